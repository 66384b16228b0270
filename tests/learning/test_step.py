"""One step of the objective against the dense formula of equation (2)."""

import pytest
import torch
from torch.nn import functional

from perdure.allocation import MergedAllocation
from perdure.anchors.anchor import Anchor, TaskContext
from perdure.anchors.distillation import DistillationAnchor
from perdure.anchors.importance import SynapticIntelligenceAnchor
from perdure.anchors.replay import ReplayAnchor
from perdure.learning.step import training_step
from perdure.models.language_model import LanguageModel
from perdure.settings import Adapter, Distillation, Replay, Sections, SynapticIntelligence

TEXTS = ("Question: aB1\nAnswer: x", "Question: 22\nAnswer: yz", "Question: c\nAnswer: longer")


class Scene:
    """A model in its second task, with every anchor on and no dropout, so that the loss can be computed again."""

    def __init__(self, model: LanguageModel, number: int = 2) -> None:
        model.add_replay_token()
        self.model = model
        self.allocation = MergedAllocation(model, Sections(adapter=Adapter(rank=4, alpha=8, dropout=0)), seed=0)
        self.allocation.begin_task(number)
        self.texts = [[model.replay_token_id, *model.encode(text)] for text in TEXTS]
        self.replay = ReplayAnchor(
            Replay(weight=0.75, samples=7, max_new_tokens=6, sampling_temperature=1.0), keep_end_of_text=True
        )
        self.distillation = DistillationAnchor(Distillation(weight=0.5, temperature=5.0))
        self.si = SynapticIntelligenceAnchor(SynapticIntelligence(weight=2.0))
        self.parameters = self.allocation.parameters
        ones = {name: torch.full_like(p, 0.3) for name, p in self.parameters.items()}
        if number > 1:
            self.si.accumulate(self.parameters, ones)
        self.context = TaskContext(
            number, self.texts, model, self.parameters, self.allocation.previous_model, seed=0, batch_size=3
        )
        self.anchors: list[Anchor] = [self.replay, self.distillation, self.si]
        for anchor in self.anchors:
            anchor.begin_task(self.context)
        draw = torch.Generator().manual_seed(2)
        with torch.no_grad():
            for parameter in self.parameters.values():  # B has left zero, so that A receives gradient too
                parameter.add_(0.05 * torch.randn(parameter.shape, generator=draw))
        self.batch = model.batch(self.texts, [0, 1, 2])
        self.optimiser = torch.optim.AdamW(self.parameters.values(), lr=1e-3, weight_decay=0.01)

    def dense_logits(self, sequences: list[list[int]]) -> list[torch.Tensor]:
        """Logits at every predicting position, one sequence at a time, through the model's own forward pass."""
        return [self.model.model(input_ids=torch.tensor([s])).logits[0, :-1] for s in sequences]

    def dense_kl(self, sequences: list[list[int]], temperature: float) -> torch.Tensor:
        with self.allocation.previous_model(), torch.no_grad():
            teacher = torch.cat(self.dense_logits(sequences)) / temperature
        student = torch.cat(self.dense_logits(sequences)) / temperature
        p = teacher.softmax(-1)
        return temperature**2 * (p * (teacher.log_softmax(-1) - student.log_softmax(-1))).sum(-1).mean()

    def dense_sft(self) -> torch.Tensor:
        targets = torch.cat([torch.tensor(text[1:]) for text in self.texts])
        return functional.cross_entropy(torch.cat(self.dense_logits(self.texts)), targets)

    def gradient(self, loss: torch.Tensor) -> list[torch.Tensor]:
        return list(torch.autograd.grad(loss, list(self.parameters.values()), allow_unused=True))


@pytest.fixture
def scene(model: LanguageModel) -> Scene:
    return Scene(model)


@pytest.mark.parametrize("measure", [True, False])
def test_gradient_and_terms_equal_the_dense_objective(scene: Scene, measure: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[list[int]] = []
    batch_of = scene.model.batch

    def watch(sequences, index):  # type: ignore[no-untyped-def]
        if sequences is scene.replay.samples:
            drawn.extend(sequences[i] for i in index)
        return batch_of(sequences, index)

    monkeypatch.setattr(scene.model, "batch", watch)
    before = {name: p.detach().clone() for name, p in scene.parameters.items()}
    record = training_step(
        scene.model, scene.batch, scene.anchors, scene.allocation, scene.optimiser, clip=1e9, measure=measure
    )
    total = {name: p.grad.clone() for name, p in scene.parameters.items() if p.grad is not None}
    for name, parameter in scene.parameters.items():
        parameter.data = before[name]

    sft, data = scene.dense_sft(), scene.dense_kl(drawn, 2.0)
    function = scene.dense_kl(scene.texts, 5.0)
    weights = sum((0.3 * (p - scene.si.reference[name]).square()).sum() for name, p in scene.parameters.items())
    expected = scene.gradient(0.25 * sft + 0.75 * data + 0.5 * function + 2.0 * weights)
    for name, gradient in zip(scene.parameters, expected, strict=True):
        torch.testing.assert_close(total[name], gradient, rtol=1e-3, atol=1e-6)
    for term, value in (("sft", sft), ("data", data), ("function", function), ("si", weights)):
        assert record.loss[term] == pytest.approx(float(value), rel=1e-4, abs=1e-6)
    assert record.weight == {"data": 0.75, "sft": 0.25, "function": 0.5, "si": 2.0}


def test_measured_gradient_norms(scene: Scene) -> None:
    expected = torch.stack([g.norm() for g in scene.gradient(0.25 * scene.dense_sft())]).norm()
    record = training_step(scene.model, scene.batch, scene.anchors, scene.allocation, scene.optimiser, clip=1e9, measure=True)
    assert record.gradient_norm["sft"] == pytest.approx(float(expected), rel=1e-3)


def test_si_sees_the_fitting_gradient_and_the_real_step(scene: Scene) -> None:
    """ω = -g·Δϑ with g of (1-w)·L_SFT + w·L_D alone, before clipping, and Δϑ the AdamW step with decay and penalties."""
    drawn = [scene.replay.samples[i] for i in next(_peek(scene.replay))]
    expected = scene.gradient(0.25 * scene.dense_sft() + 0.75 * scene.dense_kl(drawn, 2.0))
    before = [p.detach().clone() for p in scene.parameters.values()]
    training_step(scene.model, scene.batch, scene.anchors, scene.allocation, scene.optimiser, clip=1e-3, measure=False)
    for path, gradient, start, p in zip(scene.si._path, expected, before, scene.parameters.values(), strict=True):
        torch.testing.assert_close(path, -gradient * (p.detach() - start), rtol=2e-3, atol=1e-9)


def _peek(replay: ReplayAnchor):  # type: ignore[no-untyped-def]
    """The replay anchor's coming minibatch, left in place."""
    first = next(replay._batches)
    rest = replay._batches
    replay._batches = _chain(first, rest)
    yield first


def _chain(first, rest):  # type: ignore[no-untyped-def]
    yield first
    yield from rest


def test_first_task_has_no_anchor(model: LanguageModel) -> None:
    scene = Scene(model, number=1)
    record = training_step(scene.model, scene.batch, scene.anchors, scene.allocation, scene.optimiser, clip=1.0, measure=True)
    assert set(record.loss) == {"sft"}
    assert record.weight["sft"] == 1.0


def test_without_replay_the_fitting_loss_is_not_scaled(scene: Scene) -> None:
    record = training_step(
        scene.model, scene.batch, [scene.distillation], scene.allocation, scene.optimiser, clip=1.0, measure=False
    )
    assert record.weight["sft"] == 1.0


def test_clipping_bounds_the_whole_gradient(scene: Scene) -> None:
    training_step(scene.model, scene.batch, scene.anchors, scene.allocation, scene.optimiser, clip=1e-3, measure=False)
    norm = torch.stack([p.grad.norm() for p in scene.parameters.values() if p.grad is not None]).norm()
    assert float(norm) == pytest.approx(1e-3, rel=1e-3)

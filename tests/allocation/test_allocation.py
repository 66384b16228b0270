"""Where updates are kept: neutrality of fresh adapters, exact merges, and the teacher that costs no second model."""

import copy
import itertools

import pytest
import torch

from perdure.allocation import ALLOCATIONS, MergedAllocation
from perdure.allocation.adapter import AdapterAllocation
from perdure.anchors.anchor import TaskContext
from perdure.anchors.teacher import Teacher
from perdure.errors import InputError
from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.settings import Adapter, Sections

ADAPTERS = [name for name, rule in ALLOCATIONS.items() if issubclass(rule, AdapterAllocation)]
ADAPTER = Sections(adapter=Adapter(rank=4, alpha=8, dropout=0.1))


def sequences(model: LanguageModel) -> list[list[int]]:
    return [model.encode(text) for text in ("Question: a1B2\nAnswer: xY", "Question: q\nAnswer: longer one", "Question: 7")]


def logits(model: LanguageModel) -> torch.Tensor:
    texts = sequences(model)
    with torch.no_grad():
        return model.head(model.hidden_at_predictions(model.batch(texts, range(len(texts)))))


def move_factors(parameters: dict, seed: int = 0, scale: float = 0.05) -> None:
    """Change every factor as training would, far enough to be seen."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in parameters.values():
            parameter.add_(scale * torch.randn(parameter.shape, generator=draw))


@pytest.mark.parametrize("rule", ALLOCATIONS)
def test_fresh_adapter_changes_no_bit(model: LanguageModel, rule: str) -> None:
    before = logits(model)
    allocation = ALLOCATIONS[rule](model, ADAPTER, seed=0)
    allocation.begin_task(1)
    assert logits(model).equal(before)


@pytest.mark.parametrize("rule", ADAPTERS)
def test_adapter_is_drawn_by_seed_and_task(model: LanguageModel, rule: str) -> None:
    allocation = ALLOCATIONS[rule](model, ADAPTER, seed=0)
    allocation.begin_task(1)
    first = {name: p.detach().clone() for name, p in allocation.parameters.items()}
    torch.manual_seed(99)  # whatever the caller's generator does
    again = ALLOCATIONS[rule](LanguageModel(load_model("random-tiny", device="cpu", dtype="float32")), ADAPTER, seed=0)
    again.begin_task(1)
    assert all(p.equal(first[name]) for name, p in again.parameters.items())
    a_factors = [p for name, p in first.items() if name.endswith("lora_A")]
    # Kaiming-uniform with a = √5 is uniform on ±1/√(inputs).
    assert all(float(a.abs().max()) <= a.shape[1] ** -0.5 for a in a_factors)


def test_merging_adds_the_delta_and_keeps_the_function(model: LanguageModel) -> None:
    allocation = MergedAllocation(model, ADAPTER, seed=0)
    weights = {name: layer.get_base_layer().weight.detach().clone() for name, layer in allocation.layers.items()}
    allocation.begin_task(1)
    move_factors(allocation.parameters)
    with_adapter = logits(model)
    factors = {name: p.detach().double().clone() for name, p in allocation.parameters.items()}
    allocation.end_task()
    assert (logits(model) - with_adapter).abs().max() < 1e-5 * with_adapter.abs().max()
    for name, layer in allocation.layers.items():
        expected = weights[name].double() + 8 / 4 * factors[f"{name}.lora_B"] @ factors[f"{name}.lora_A"]
        torch.testing.assert_close(layer.get_base_layer().weight.double(), expected, rtol=1e-6, atol=1e-7)


def test_shared_keeps_one_adapter(model: LanguageModel) -> None:
    allocation = ALLOCATIONS["shared"](model, ADAPTER, seed=0)
    allocation.begin_task(1)
    move_factors(allocation.parameters)
    learnt = {name: p.detach().clone() for name, p in allocation.parameters.items()}
    allocation.end_task()
    allocation.begin_task(2)
    assert all(p.equal(learnt[name]) for name, p in allocation.parameters.items())


@pytest.mark.parametrize("budget", [2**30, 0], ids=["computed once", "live"])
@pytest.mark.parametrize("rule", ALLOCATIONS)
def test_teacher_equals_a_frozen_copy(model: LanguageModel, rule: str, budget: int) -> None:
    """Also in the middle of training, with dropout on in the student and the student moved away."""
    allocation = ALLOCATIONS[rule](model, ADAPTER, seed=0)
    allocation.begin_task(1)
    move_factors(allocation.parameters)
    allocation.end_task()
    frozen = copy.deepcopy(model.model).eval()

    allocation.begin_task(2)
    texts = sequences(model)
    context = TaskContext(2, texts, model, allocation.parameters, allocation.previous_model, seed=0, batch_size=2)
    teacher = Teacher(context, texts, budget=budget)
    model.model.train()
    move_factors(allocation.parameters, seed=1)
    batch = model.batch(texts, [2, 0, 1])
    moved = {name: p.detach().clone() for name, p in allocation.parameters.items()}
    own = teacher.hidden(batch)
    with torch.no_grad():
        expected = frozen.base_model(input_ids=batch.input_ids).last_hidden_state[batch.predicts]
    torch.testing.assert_close(own, expected, rtol=1e-5, atol=1e-5)
    assert model.model.training
    assert all(p.equal(moved[name]) and p.requires_grad for name, p in allocation.parameters.items())


def test_live_teacher_leaves_the_students_graph_alone(model: LanguageModel) -> None:
    """The teacher may run between a student's forward and backward pass."""
    for rule in ALLOCATIONS:
        student = LanguageModel(load_model("random-tiny", device="cpu", dtype="float32"))
        allocation = ALLOCATIONS[rule](student, Sections(adapter=Adapter(rank=4, alpha=8, dropout=0)), seed=0)
        allocation.begin_task(1)
        move_factors(allocation.parameters)
        allocation.end_task()
        allocation.begin_task(2)
        texts = sequences(student)
        context = TaskContext(2, texts, student, allocation.parameters, allocation.previous_model, seed=0, batch_size=2)
        teacher = Teacher(context, texts, budget=0)
        move_factors(allocation.parameters, seed=1)
        batch = student.batch(texts, range(3))
        parameters = list(allocation.parameters.values())
        plain = torch.autograd.grad(student.hidden_at_predictions(batch).square().sum(), parameters)
        hidden = student.hidden_at_predictions(batch)
        teacher.hidden(batch)
        interrupted = torch.autograd.grad(hidden.square().sum(), parameters)
        assert all(a.equal(b) for a, b in zip(plain, interrupted, strict=True))


@pytest.mark.parametrize("rule", ALLOCATIONS)
def test_state_round_trip(model: LanguageModel, rule: str) -> None:
    allocation = ALLOCATIONS[rule](model, ADAPTER, seed=0)
    allocation.begin_task(1)
    move_factors(allocation.parameters)
    allocation.end_task()
    expected = logits(model)
    other = LanguageModel(load_model("random-tiny", device="cpu", dtype="float32"))
    restored = ALLOCATIONS[rule](other, ADAPTER, seed=0)
    restored.load_state_dict(allocation.state_dict())
    assert logits(other).equal(expected)


@pytest.mark.parametrize("rule", ALLOCATIONS)
def test_state_grows_as_the_rule_says(model: LanguageModel, rule: str) -> None:
    """Nothing for shared and merged; one adapter a task for O-LoRA; one mean input a layer and task for OSRM."""
    allocation = ALLOCATIONS[rule](model, ADAPTER, seed=0)
    sizes = []
    for number in (1, 2, 3):
        allocation.begin_task(number)
        allocation.collect(sequences(model), 2)
        allocation.end_task()
        sizes.append(sum(t.numel() for t in allocation.state_dict().values()))
    adapter = sum(parameter.numel() for parameter in allocation.parameters.values())
    inputs = sum(layer.in_features for layer in getattr(allocation, "layers", {}).values())
    growth = {"orthogonal": adapter, "osrm": inputs}.get(rule, 0)
    assert [later - earlier for earlier, later in itertools.pairwise(sizes)] == [growth, growth]


def test_many_small_merges_survive_in_bfloat16() -> None:
    """Updates far below a weight's bfloat16 spacing add up; a plain bfloat16 merge would lose them all."""
    model = LanguageModel(load_model("random-tiny", device="cpu", dtype="bfloat16"))
    allocation = MergedAllocation(model, Sections(adapter=Adapter(rank=4, alpha=8, dropout=0)), seed=0)
    name, layer = next(iter(allocation.layers.items()))
    exact = layer.get_base_layer().weight.detach().double().clone()
    start = exact.clone()
    for number in range(1, 101):
        allocation.begin_task(number)
        with torch.no_grad():
            allocation.parameters[f"{name}.lora_B"].fill_(1e-4)
        exact += allocation.delta(layer).double()
        allocation.end_task()
    kept = dict(allocation.dense_weights())[f"{name}.weight"].double()
    moved = (exact - start).norm()
    assert (kept - exact).norm() < 0.02 * moved
    assert (layer.get_base_layer().weight.double() - exact).abs().max() <= exact.abs().max() * 2**-8


def test_unknown_target_is_refused(model: LanguageModel) -> None:
    with pytest.raises(InputError, match=r"adapter\.targets.*nonsense"):
        ALLOCATIONS["shared"](model, Sections(adapter=Adapter(targets=("nonsense",))), seed=0)


def test_embedding_target_is_refused(model: LanguageModel) -> None:
    with pytest.raises(InputError, match="not a linear layer"):
        ALLOCATIONS["shared"](model, Sections(adapter=Adapter(targets=("embed_tokens",))), seed=0)


def test_value_rule_trains_value_projections_alone(model: LanguageModel) -> None:
    allocation = ALLOCATIONS["value"](model, ADAPTER, seed=0)
    assert allocation.parameters
    assert all(name.endswith("v_proj.weight") for name in allocation.parameters)
    trained = {name for name, parameter in model.model.named_parameters() if parameter.requires_grad}
    assert trained == set(allocation.parameters)


def test_full_rule_trains_every_matrix_but_embedding_and_head(model: LanguageModel) -> None:
    allocation = ALLOCATIONS["full"](model, ADAPTER, seed=0)
    kinds = {name.split(".")[-2] for name in allocation.parameters}
    assert kinds == {"q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"}


def test_dense_rules_put_a_given_up_first_task_back(model: LanguageModel) -> None:
    allocation = ALLOCATIONS["full"](model, ADAPTER, seed=0)
    before = logits(model)
    allocation.begin_task(1)
    move_factors(allocation.parameters)
    allocation.reset()
    assert logits(model).equal(before)


def test_dense_rules_refuse_bfloat16() -> None:
    model = LanguageModel(load_model("random-tiny", device="cpu", dtype="bfloat16"))
    with pytest.raises(InputError, match="--dtype float32"):
        ALLOCATIONS["value"](model, ADAPTER, seed=0)


def test_the_output_layer_is_refused(model: LanguageModel) -> None:
    with pytest.raises(InputError, match="output layer"):
        ALLOCATIONS["shared"](model, Sections(adapter=Adapter(targets=("lm_head",))), seed=0)

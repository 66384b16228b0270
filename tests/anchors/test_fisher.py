"""The Fisher estimate from one pass a batch against gradients taken one sequence at a time."""

import pytest
import torch
from torch.nn import functional

from perdure.allocation import SharedAllocation
from perdure.anchors.anchor import TaskContext
from perdure.anchors.importance import OnlineEWCAnchor, diagonal_fisher
from perdure.models.language_model import LanguageModel
from perdure.settings import Adapter, OnlineEWC, Sections


@pytest.fixture
def context(model: LanguageModel) -> TaskContext:
    allocation = SharedAllocation(model, Sections(adapter=Adapter(rank=3, alpha=6, dropout=0.3)), seed=0)
    allocation.begin_task(1)
    draw = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in allocation.parameters.values():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=draw))
    texts = [model.encode(f"Question: {word}\nAnswer: {word[::-1]}") for word in ("a", "bc1", "defgh", "77", "long words here")]
    return TaskContext(1, texts, model, allocation.parameters, allocation.previous_model, seed=0, batch_size=2)


def one_by_one(context: TaskContext, examples: int) -> dict[str, torch.Tensor]:
    parameters = list(context.parameters.values())
    total = {name: torch.zeros_like(p) for name, p in context.parameters.items()}
    for sequence in context.texts[:examples]:
        tokens = torch.tensor([list(sequence)])
        logits = context.model.model(input_ids=tokens).logits[0]
        gradients = torch.autograd.grad(functional.cross_entropy(logits[:-1], tokens[0, 1:]), parameters)
        for name, gradient in zip(total, gradients, strict=True):
            total[name] += gradient**2
    return {name: value / min(examples, len(context.texts)) for name, value in total.items()}


@pytest.mark.parametrize("examples", [3, 1000])
def test_fisher_equals_one_by_one(context: TaskContext, examples: int) -> None:
    expected = one_by_one(context, examples)
    for name, value in diagonal_fisher(context, examples).items():
        torch.testing.assert_close(value, expected[name], rtol=1e-4, atol=1e-12)


def test_every_task_adds_with_the_first_ones_mean(context: TaskContext) -> None:
    anchor = OnlineEWCAnchor(OnlineEWC())
    anchor.end_task(context)
    first = {name: value.clone() for name, value in anchor.importance.items()}
    with torch.no_grad():
        for parameter in context.parameters.values():
            parameter.mul_(3)  # another scale of gradients
    anchor.end_task(context)
    added = torch.cat([(anchor.importance[name] - first[name]).double().flatten() for name in first])
    mean_first = torch.cat([value.double().flatten() for value in first.values()]).mean()
    assert float(added.mean()) == pytest.approx(float(mean_first), rel=1e-4)
    again = OnlineEWCAnchor(OnlineEWC())
    again.load_state_dict(anchor.state_dict())
    assert again.state_dict()["first_scale"] == anchor.state_dict()["first_scale"]

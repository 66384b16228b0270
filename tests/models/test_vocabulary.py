"""Losses from hidden states against the dense formulas, values and gradients."""

import json
from pathlib import Path

import pytest
import torch
from torch import nn
from torch.nn import functional

from perdure.models import vocabulary
from perdure.models.vocabulary import OutputHead, soft_target_kl, token_nll

CASES = json.loads((Path(__file__).parents[1] / "cases" / "distillation.json").read_text())["cases"]


def make_head(vocabulary_size: int, width: int, **kwargs: float) -> OutputHead:
    torch.manual_seed(0)
    return OutputHead(nn.Linear(width, vocabulary_size, bias=False).double().requires_grad_(False), **kwargs)


@pytest.fixture(params=[2**24, 37 * 3, 1], ids=["one chunk", "three rows a chunk", "one row a chunk"])
def chunking(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vocabulary, "CHUNK_ELEMENTS", request.param)


HEADS = {"linear": {}, "scaled": {"multiplier": 0.25}, "softcapped": {"softcap": 2.0}}


@pytest.mark.usefixtures("chunking")
@pytest.mark.parametrize("kind", HEADS)
def test_nll_equals_dense_cross_entropy(kind: str) -> None:
    head = make_head(37, 5, **HEADS[kind])
    hidden = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(37, (11,))
    loss = token_nll(hidden, targets, head)
    (gradient,) = torch.autograd.grad(3 * loss, hidden)
    dense = functional.cross_entropy(head(hidden), targets)
    (expected,) = torch.autograd.grad(3 * dense, hidden)
    torch.testing.assert_close(loss, dense, rtol=1e-6, atol=1e-6)
    torch.testing.assert_close(gradient, expected, rtol=1e-5, atol=1e-7)


@pytest.mark.usefixtures("chunking")
@pytest.mark.parametrize("kind", HEADS)
@pytest.mark.parametrize("temperature", [1.0, 2.0, 5.0])
def test_kl_equals_dense_formula(kind: str, temperature: float) -> None:
    head = make_head(37, 5, **HEADS[kind])
    student = torch.randn(11, 5, dtype=torch.float64, requires_grad=True)
    teacher = torch.randn(11, 5, dtype=torch.float64)
    loss = soft_target_kl(student, teacher, head, temperature)
    (gradient,) = torch.autograd.grad(loss, student)
    p = (head(teacher) / temperature).softmax(-1)
    dense = temperature**2 * (p * (p.log() - (head(student) / temperature).log_softmax(-1))).sum(-1).mean()
    (expected,) = torch.autograd.grad(dense, student)
    torch.testing.assert_close(loss, dense, rtol=1e-5, atol=1e-6)
    torch.testing.assert_close(gradient, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("case", CASES, ids=range(len(CASES)))
def test_kl_given_cases(case: dict) -> None:
    """The given logits are reached with an identity head; the mask picks the rows, as batches do."""
    student, teacher = (torch.tensor(case[key], dtype=torch.float32) for key in ("student_logits", "teacher_logits"))
    mask = torch.tensor(case["mask"], dtype=torch.bool)
    size = student.shape[-1]
    identity = nn.Linear(size, size, bias=False)
    nn.init.eye_(identity.weight)
    loss = soft_target_kl(student[mask], teacher[mask], OutputHead(identity), case["temperature"])
    assert float(loss) == pytest.approx(case["loss"], rel=1e-5)


def test_no_gradient_is_formed_where_none_is_asked() -> None:
    head = make_head(37, 5)
    hidden = torch.randn(4, 5, dtype=torch.float64)
    assert not token_nll(hidden, torch.arange(4), head).requires_grad


def test_peak_memory_is_bounded_by_the_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No tensor larger than one chunk of logits is ever made, however many rows there are."""
    monkeypatch.setattr(vocabulary, "CHUNK_ELEMENTS", 8 * 1000)
    head = OutputHead(nn.Linear(4, 1000, bias=False).requires_grad_(False))
    largest = 0

    class Watch(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
            nonlocal largest
            result = func(*args, **(kwargs or {}))
            if isinstance(result, torch.Tensor):
                largest = max(largest, result.numel())
            return result

    student = torch.randn(512, 4, requires_grad=True)
    with Watch():
        soft_target_kl(student, torch.randn(512, 4), head, 2.0).backward()
        token_nll(student, torch.randint(1000, (512,)), head).backward()
    assert largest <= 8 * 1000

"""O-LoRA against the sum of all its factors and the literal penalty."""

import pytest
import torch

from perdure.allocation import OrthogonalAllocation
from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.settings import Adapter, Orthogonal, Sections

SETTINGS = Sections(adapter=Adapter(rank=3, alpha=6, dropout=0), orthogonal=Orthogonal(weight=0.5))


def learn_something(allocation: OrthogonalAllocation, number: int) -> dict[str, torch.Tensor]:
    """A task whose factors end anywhere; returns them."""
    allocation.begin_task(number)
    draw = torch.Generator().manual_seed(number)
    with torch.no_grad():
        for parameter in allocation.parameters.values():
            parameter.add_(0.05 * torch.randn(parameter.shape, generator=draw))
    factors = {name: parameter.detach().clone() for name, parameter in allocation.parameters.items()}
    allocation.end_task()
    return factors


def test_penalty_is_the_sum_of_absolute_overlaps_with_every_earlier_a(model: LanguageModel) -> None:
    allocation = OrthogonalAllocation(model, SETTINGS, seed=0)
    allocation.begin_task(1)
    assert allocation.weight_loss() is None
    past = [learn_something(allocation, number) for number in (1, 2)]
    allocation.begin_task(3)
    term = allocation.weight_loss()
    assert term is not None
    expected = 0.0
    for name in allocation.layers:
        new = allocation.parameters[f"{name}.lora_A"].detach().double()
        for factors in past:
            for row in new:
                for old in factors[f"{name}.lora_A"].double():
                    expected += abs(float(row @ old))
    assert term.weight == 0.5
    assert float(term.value.detach()) == pytest.approx(expected, rel=1e-5)


def test_sum_equals_concatenation(model: LanguageModel) -> None:
    """W_0 + Σ ρ B_s A_s, and the same through one adapter with the A's stacked and the B's side by side."""
    allocation = OrthogonalAllocation(model, SETTINGS, seed=0)
    base = {name: layer.get_base_layer().weight.detach().double().clone() for name, layer in allocation.layers.items()}
    past = [learn_something(allocation, number) for number in (1, 2, 3)]
    for name, layer in allocation.layers.items():
        a = torch.cat([factors[f"{name}.lora_A"] for factors in past]).double()
        b = torch.cat([factors[f"{name}.lora_B"] for factors in past], dim=1).double()
        torch.testing.assert_close(layer.get_base_layer().weight.double(), base[name] + 2 * b @ a, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_state_gives_the_same_bits_in_a_fresh_and_in_a_used_model(dtype: str) -> None:
    model = LanguageModel(load_model("random-tiny", device="cpu", dtype=dtype))
    allocation = OrthogonalAllocation(model, SETTINGS, seed=0)
    for number in (1, 2):
        learn_something(allocation, number)
    state = {name: tensor.clone() for name, tensor in allocation.state_dict().items()}
    expected = {name: layer.get_base_layer().weight.clone() for name, layer in allocation.layers.items()}
    learn_something(allocation, 3)  # a task that is then given up, as when the disk is full
    allocation.load_state_dict(state)
    fresh = OrthogonalAllocation(LanguageModel(load_model("random-tiny", device="cpu", dtype=dtype)), SETTINGS, seed=0)
    fresh.load_state_dict(dict(sorted(state.items())))
    for restored in (allocation, fresh):
        assert all(layer.get_base_layer().weight.equal(expected[name]) for name, layer in restored.layers.items())
        assert restored.state_dict().keys() == state.keys()

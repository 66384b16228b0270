"""O-LoRA: every task gets factors of its own, which then stay as they are, and a new task's A keeps clear of all earlier A's.

    W_t = W_0 + Σ_{s≤t} ρ B_s A_s,        R_orth = Σ_{s<t} Σ_{ij} |(A_t A_sᵀ)_ij|   over every adapted layer, weight 0.5

Every earlier A takes part. At inference the factors are summed, which equals one adapter with all A's stacked and all B's side
by side; here the sum is kept in the weights, so that a step costs the same at every task, and the factors beside them, for the
penalty and as the state. State grows by one adapter a task.

Source: Wang et al. 2023; continual-memorisation protocol §3 (element-wise ℓ1; the size penalty's weight λ₂ is 0).
"""

from collections.abc import Mapping

import torch
from torch import Tensor

from perdure.allocation.adapter import ADAPTER
from perdure.allocation.merged import MergedAllocation
from perdure.models.language_model import LanguageModel
from perdure.settings import Sections
from perdure.terms import Term


class OrthogonalAllocation(MergedAllocation):
    """Merged allocation that keeps the factors rather than the sums, and the penalty between them."""

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        super().__init__(model, settings, seed)
        self._weight = settings.orthogonal.weight
        self._past: list[dict[str, Tensor]] = []  # each finished task's factors, by parameter name
        self._stacked: dict[str, Tensor] = {}  # earlier A's of each layer, [earlier tasks · rank, inputs]

    def begin_task(self, number: int) -> None:
        super().begin_task(number)
        if self._past:
            self._stacked = {name: torch.cat([factors[f"{name}.lora_A"] for factors in self._past]) for name in self.layers}

    def weight_loss(self) -> Term | None:
        if not self._stacked:
            return None
        overlaps = [(self.parameters[f"{name}.lora_A"] @ past.T).abs().sum() for name, past in self._stacked.items()]
        return Term("orthogonality", self._weight, torch.stack(overlaps).sum())

    def end_task(self) -> None:
        self._past.append({name: parameter.detach().clone() for name, parameter in self.parameters.items()})
        self._stacked = {}
        super().end_task()

    def reset(self) -> None:
        super().reset()
        self._past, self._stacked = [], {}

    def state_dict(self) -> dict[str, Tensor]:
        return {
            f"{name}.{number:04d}": factor
            for number, factors in enumerate(self._past, start=1)
            for name, factor in factors.items()
        }

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Add the factors up again from the base weights, in the order of learning, which gives the same bits."""
        self.reset()
        tasks = len(state) // len(self.parameters)
        for number in range(1, tasks + 1):
            for name, layer in self.layers.items():
                layer.lora_A[ADAPTER].weight.copy_(state[f"{name}.lora_A.{number:04d}"])
                layer.lora_B[ADAPTER].weight.copy_(state[f"{name}.lora_B.{number:04d}"])
            self.end_task()

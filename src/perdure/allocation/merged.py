"""Merged LoRA: each task's adapter is added to the weights, and the next task gets a fresh one.

    W_t = W_{t-1} + ρ B_t A_t,    then A re-drawn (Kaiming) and B = 0

State is the touched weight matrices, whatever the number of tasks; the whole update's rank can reach min(t·r, d).
Source: continual-memorisation protocol §3.

A model kept in bfloat16 would lose most of a small update to rounding. What rounding takes from each weight is therefore
kept beside it (a bfloat16 remainder) and added back at the next merge, so that sums are right to about float32.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor

from perdure.allocation.adapter import AdapterAllocation
from perdure.models.language_model import LanguageModel
from perdure.settings import Sections

REMAINDER = ".remainder"


class MergedAllocation(AdapterAllocation):
    """The previous model is the model with the adapter off. Between tasks the adapter is off."""

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        super().__init__(model, settings, seed)
        self.enable(False)
        self._moved = False  # whether the weights in memory are still the base model's
        self._remainder: dict[str, Tensor] = {}  # what rounding has taken from each weight; empty for a float32 model
        if model.dtype != torch.float32:
            self._remainder = {name: torch.zeros_like(layer.get_base_layer().weight) for name, layer in self.layers.items()}

    def begin_task(self, number: int) -> None:
        self.draw_adapter(number)
        self.enable(True)

    @contextmanager
    def previous_model(self) -> Iterator[None]:
        self.enable(False)
        try:
            with self.evaluation_mode():
                yield
        finally:
            self.enable(True)

    @torch.no_grad()
    def end_task(self) -> None:
        self._moved = True
        for name, layer in self.layers.items():
            weight = layer.get_base_layer().weight
            exact = self._exact(name, weight).add_(self.delta(layer))
            weight.copy_(exact)
            if name in self._remainder:
                self._remainder[name].copy_(exact - weight.float())
        self.enable(False)

    def _exact(self, name: str, weight: Tensor) -> Tensor:
        """The weight in float32, with what rounding had taken from it."""
        exact = weight.detach().float() if weight.dtype != torch.float32 else weight.detach().clone()
        return exact.add_(self._remainder[name].float()) if name in self._remainder else exact

    @torch.no_grad()
    def reset(self) -> None:
        self.enable(False)
        if not self._moved:
            return
        original = self._model.original_weights()
        for name, layer in self.layers.items():
            layer.get_base_layer().weight.copy_(original[f"{name}.weight"])
        for remainder in self._remainder.values():
            remainder.zero_()
        self._moved = False

    def state_dict(self) -> dict[str, Tensor]:
        state = {f"{name}.weight": layer.get_base_layer().weight.detach() for name, layer in self.layers.items()}
        return state | {f"{name}{REMAINDER}": value for name, value in self._remainder.items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name, layer in self.layers.items():
            layer.get_base_layer().weight.copy_(state[f"{name}.weight"])
            if name in self._remainder:
                self._remainder[name].copy_(state[f"{name}{REMAINDER}"])

    def dense_weights(self) -> Iterator[tuple[str, Tensor]]:
        for name, layer in self.layers.items():
            yield f"{name}.weight", self._exact(name, layer.get_base_layer().weight)

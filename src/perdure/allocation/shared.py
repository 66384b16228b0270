"""Shared LoRA: one adapter learns every task.

    W_0 + ρ B A,    ρ = alpha / rank,    the same factors all along

State is the adapter, whatever the number of tasks; the whole update's rank never exceeds the adapter's.
Source: continual-memorisation protocol §3.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager

import torch
from torch import Tensor

from perdure.allocation.adapter import AdapterAllocation


class SharedAllocation(AdapterAllocation):
    """The previous model is the base with the factors that the task began with."""

    def begin_task(self, number: int) -> None:
        if number == 1:
            self.draw_adapter(number)
        self._previous = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    def previous_model(self) -> AbstractContextManager[None]:
        return self.holding(self._previous)

    def end_task(self) -> None:
        self._previous = {}

    def reset(self) -> None:
        self.draw_adapter(1)

    def state_dict(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        with torch.no_grad():
            for name, parameter in self.parameters.items():
                parameter.copy_(state[name])

    def dense_weights(self) -> Iterator[tuple[str, Tensor]]:
        for name, layer in self.layers.items():
            yield f"{name}.weight", layer.get_base_layer().weight.detach().float() + self.delta(layer)

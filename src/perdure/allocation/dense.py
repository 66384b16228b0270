"""No adapter: the weight matrices themselves are trained, all of them (``full``) or the value projections alone (``value``).

    W_t = W_{t-1} + ΔW_t

These are the rules that fine-tuning users start from, beside the paper's. State is the trained matrices, whatever the number of
tasks. Value projections alone leave queries and keys, and so where attention looks, as they were.
"""

from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager
from typing import cast

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from transformers.pytorch_utils import Conv1D

from perdure.allocation.allocation import Allocation
from perdure.errors import InputError
from perdure.models.language_model import LanguageModel
from perdure.settings import Sections

VALUE_PROJECTIONS = ("v_proj", "value", "v_lin", "wv")  # Llama, Qwen, Gemma, Phi, OPT; BERT's heirs; XLM; others


class DenseAllocation(Allocation):
    """Trains every linear layer of the decoder but the head, or those that ``adapter.targets`` names."""

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        """Make the chosen matrices trainable.

        Raises
        ------
        InputError: the model isn't in float32, in which alone small steps add up; or no layer has such a name.
        """
        super().__init__(model, settings, seed)
        if model.dtype != torch.float32:
            raise InputError(
                f"{model.loaded.name} is in {model.dtype}, where small steps of whole matrices are rounded away; begin the "
                "learner with --dtype float32, or use an adapter (shared or merge)."
            )
        self.parameters = {
            f"{name}.weight": cast(Parameter, module.weight)
            for name, module in model.model.named_modules()
            if isinstance(module, nn.Linear | Conv1D) and module is not model.head.linear and self._wants(name)
        }
        if not self.parameters:
            raise InputError(f"{model.loaded.name} has no {self._wanted()}.")
        for parameter in self.parameters.values():
            parameter.requires_grad_(True)
        self._previous: dict[str, Tensor] = {}
        self._moved = False  # whether the matrices in memory may no longer be the base model's

    def _wants(self, name: str) -> bool:
        targets = self._settings.adapter.targets
        return isinstance(targets, str) or name.rpartition(".")[2] in targets or name in targets

    def _wanted(self) -> str:
        return f"linear layers called {', '.join(self._settings.adapter.targets)}; name others by adapter.targets"

    def begin_task(self, number: int) -> None:
        self._moved = True
        self._previous = {name: parameter.detach().clone() for name, parameter in self.parameters.items()}

    def previous_model(self) -> AbstractContextManager[None]:
        return self.holding(self._previous)

    def end_task(self) -> None:
        self._previous = {}

    def reset(self) -> None:
        if self._moved:
            self.load_state_dict(self._model.original_weights())
        self._previous, self._moved = {}, False

    def state_dict(self) -> dict[str, Tensor]:
        return {name: parameter.detach() for name, parameter in self.parameters.items()}

    @torch.no_grad()
    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        for name, parameter in self.parameters.items():
            parameter.copy_(state[name])

    def dense_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self.state_dict().items()


class ValueAllocation(DenseAllocation):
    """Trains the value projections alone."""

    def _wants(self, name: str) -> bool:
        return name.rpartition(".")[2] in VALUE_PROJECTIONS

    def _wanted(self) -> str:
        return f"value projections of their own ({', '.join(VALUE_PROJECTIONS)}); use `full` with adapter.targets"

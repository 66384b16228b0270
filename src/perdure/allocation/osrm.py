"""Sequential OSRM: each task's A starts where past tasks' inputs have least to say, then the update is merged.

    M = the mean input of a layer over each past task's tokens, one row a task      [t-1, inputs]
    A_t = the last r right singular vectors of M, as rows of the mean length of Kaiming-drawn rows;  B_t = 0

so that an input like the past's meets little of the new update. Training then moves A freely. State grows by one mean a layer
and task. Source: Zhang & Zhou 2025; continual-memorisation protocol §3. Means are over at most 64 items, padding left out.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from perdure.allocation.adapter import ADAPTER
from perdure.allocation.merged import MergedAllocation
from perdure.models.language_model import LanguageModel
from perdure.settings import Sections

MEAN = ".mean_input"


class SequentialOSRMAllocation(MergedAllocation):
    """Merged allocation whose fresh adapters avoid the mean inputs of the past."""

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        super().__init__(model, settings, seed)
        self._items = settings.osrm.items
        self._means: dict[str, Tensor] = {}  # by layer, float32 [past tasks, inputs]

    @torch.no_grad()
    def begin_task(self, number: int) -> None:
        super().begin_task(number)
        for name, means in self._means.items():
            weight = self.layers[name].lora_A[ADAPTER].weight
            weight.copy_(least_directions(means, len(weight)) * weight.norm(dim=1).mean())

    @torch.no_grad()
    def collect(self, texts: Sequence[Sequence[int]], batch_size: int) -> None:
        sums = {name: torch.zeros(layer.in_features, device=self._model.device) for name, layer in self.layers.items()}
        mask = torch.empty(0)

        def watch(name: str, inputs: Tensor) -> None:
            flat = inputs.dim() == 2  # OPT's feed-forward layers see all tokens in one row
            sums[name].add_(inputs.float()[mask.flatten() if flat else mask].sum(dim=0))

        handles = [
            layer.register_forward_pre_hook(lambda _layer, inputs, name=name: watch(name, inputs[0]))
            for name, layer in self.layers.items()
        ]
        tokens, chosen = 0, texts[: self._items]
        try:
            for start in range(0, len(chosen), batch_size):
                index = range(start, min(start + batch_size, len(chosen)))
                batch = self._model.batch(chosen, index)
                lengths = torch.tensor([len(chosen[i]) for i in index], device=self._model.device)
                mask = torch.arange(batch.input_ids.shape[1], device=self._model.device) < lengths.unsqueeze(1)
                tokens += int(lengths.sum())
                self._model.hidden_at_predictions(batch)
        finally:
            for handle in handles:
                handle.remove()
        for name, total in sums.items():
            mean = (total / tokens).unsqueeze(0)
            self._means[name] = torch.cat([self._means[name], mean]) if name in self._means else mean

    def reset(self) -> None:
        super().reset()
        self._means = {}

    def state_dict(self) -> dict[str, Tensor]:
        return super().state_dict() | {f"{name}{MEAN}": means for name, means in self._means.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        super().load_state_dict(state)
        self._means = {
            key.removesuffix(MEAN): value.to(self._model.device) for key, value in state.items() if key.endswith(MEAN)
        }


def least_directions(rows: Tensor, count: int) -> Tensor:
    """The last ``count`` right singular vectors of a matrix [n, width], float32 [count, width], the least one last.

    With n + count ≤ width they span a part of the matrix's null space, where any orthonormal basis will do; a complete QR
    decomposition gives one in a fraction of the time of a full singular value decomposition.
    """
    tasks, width = rows.shape
    wide = rows.double()
    if tasks + count <= width:
        return torch.linalg.qr(wide.T, mode="complete").Q[:, width - count :].T.float()
    return torch.linalg.svd(wide, full_matrices=True).Vh[width - count :].float()

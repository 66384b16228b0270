"""The previous model as teacher, without a second model and without running it at every step."""

from collections.abc import Sequence

import torch
from torch import Tensor

from perdure.anchors.anchor import TaskContext
from perdure.models.batches import Batch

TEACHER_BYTES = 2 * 2**30  # hidden states kept for one task; beyond it the teacher runs live


class Teacher:
    """Last hidden states of the previous model on sequences that stay the same for the whole task.

    The teacher has no dropout and never changes within a task, so its outputs are computed once, and kept as last hidden
    states (width numbers a token) rather than logits (vocabulary numbers a token). When they would take more than
    ``budget`` bytes, the previous model is put in place for each batch instead; the values are the same.
    """

    def __init__(self, task: TaskContext, sequences: Sequence[Sequence[int]], budget: int = TEACHER_BYTES) -> None:
        self._task = task
        self._kept: list[Tensor] | None = None
        model = task.model
        width = model.model.config.get_text_config().hidden_size
        predictions = sum(len(sequence) - 1 for sequence in sequences)
        if predictions * width * model.dtype.itemsize <= budget:
            self._kept = self._run_once(sequences)

    def _run_once(self, sequences: Sequence[Sequence[int]]) -> list[Tensor]:
        task, model = self._task, self._task.model
        kept: list[Tensor] = [torch.empty(0)] * len(sequences)
        by_length = sorted(range(len(sequences)), key=lambda i: len(sequences[i]))
        with task.previous(), torch.no_grad(), task.progress.stage("teacher", len(sequences)) as advance:
            for start in range(0, len(by_length), task.batch_size):
                index = by_length[start : start + task.batch_size]
                batch = model.batch(sequences, index)
                hidden = model.hidden_at_predictions(batch)
                for i, rows in zip(index, hidden.split(batch.predicts.sum(dim=1).tolist()), strict=True):
                    kept[i] = rows
                advance(len(index))
        return kept

    def hidden(self, batch: Batch) -> Tensor:
        """The teacher's last hidden states at the batch's predicting positions, [n, width], without gradient."""
        if self._kept is not None:
            return torch.cat([self._kept[i] for i in batch.index])
        with self._task.previous(), torch.no_grad():
            return self._task.model.hidden_at_predictions(batch)

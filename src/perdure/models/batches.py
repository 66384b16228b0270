"""Token sequences and the minibatches made of them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.randomness import generator


@dataclass(frozen=True)
class Batch:
    """Sequences of several lengths, padded on the right.

    index: where the sequences stand in their list. input_ids: int64 [batch, longest]. predicts: bool [batch, longest], true
    where the next token is a target. targets: int64 [n], those next tokens, row by row.
    """

    index: tuple[int, ...]
    input_ids: Tensor
    predicts: Tensor
    targets: Tensor

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        return Batch(self.index, self.input_ids.to(device), self.predicts.to(device), self.targets.to(device))


def collate(
    sequences: Sequence[Sequence[int]], index: Sequence[int], pad_token_id: int, never_target: int | None = None
) -> Batch:
    """Pad the named sequences to one batch; causal attention never looks right, so padding there needs no mask.

    Every token is a target but a sequence's first, ``never_target`` (the replay token) wherever it stands, and padding.
    """
    chosen = [sequences[i] for i in index]
    longest = max(len(sequence) for sequence in chosen)
    input_ids = torch.full((len(chosen), longest), pad_token_id, dtype=torch.long)
    predicts = torch.zeros((len(chosen), longest), dtype=torch.bool)
    for row, sequence in enumerate(chosen):
        input_ids[row, : len(sequence)] = torch.tensor(sequence)
        predicts[row, : len(sequence) - 1] = True
    if never_target is not None:
        predicts[:, :-1] &= input_ids[:, 1:] != never_target
    return Batch(tuple(index), input_ids, predicts, input_ids[:, 1:][predicts[:, :-1]])


def minibatches(count: int, size: int, seed: int, *path: int | str, restart: int | None = None) -> Iterator[list[int]]:
    """Endless minibatches of positions 0..count-1, in orders that (seed, path, how many there were) decides.

    A fresh order begins when one is through, and with ``restart`` also after every so many batches.
    """
    begun, left = 0, restart
    while True:
        order = torch.randperm(count, generator=generator(seed, *path, begun)).tolist()
        begun += 1
        batches = [order[start : start + size] for start in range(0, count, size)][:left]
        yield from batches
        if left is not None:
            left = left - len(batches) or restart

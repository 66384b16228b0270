"""Batched decoding with a key-value cache: one loop for greedy answers and for replay samples.

A row leaves the batch as soon as it is finished, and what a row becomes never depends on the rows beside it: greedy
rows look at their own logits only, and sampled rows at their own stream of uniform numbers.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import torch
from torch import Tensor
from transformers import DynamicCache

from perdure.models.language_model import LanguageModel
from perdure.randomness import generator


class Pick(Protocol):
    """Chooses the next token of each row."""

    def __call__(self, logits: Tensor, rows: Sequence[int], step: int) -> Tensor:
        """Token ids int64 [batch] from float32 logits [batch, vocabulary] of the given rows."""
        ...


def greedy(logits: Tensor, rows: Sequence[int], step: int) -> Tensor:
    """The likeliest token."""
    return logits.argmax(dim=-1)


class NucleusSampler:
    """Top-p sampling at a temperature; row r at step s uses the uniform number u[r, s] that the seed decides.

    Parameters
    ----------
    count, steps: samples in all, and their greatest length.
    banned: tokens never drawn (padding that is not end-of-text, the replay token).
    """

    def __init__(
        self, count: int, steps: int, *, temperature: float, top_p: float, banned: Sequence[int], seed: int, task: int
    ) -> None:
        self._uniform = torch.rand(count, steps, generator=generator(seed, task, "replay samples"), dtype=torch.float64)
        self._temperature = temperature
        self._top_p = top_p
        self._banned = list(banned)

    def __call__(self, logits: Tensor, rows: Sequence[int], step: int) -> Tensor:
        logits = logits.index_fill(1, torch.tensor(self._banned, dtype=torch.long, device=logits.device), float("-inf"))
        probability = (logits / self._temperature).softmax(dim=-1).double()
        # The nucleus is the shortest list of likeliest tokens whose mass reaches top_p: a token is in it when less than
        # top_p stands before it.
        ordered, token = probability.sort(dim=-1, descending=True)
        outside = ordered.cumsum(dim=-1) - ordered >= self._top_p
        probability = probability.masked_fill(torch.zeros_like(outside).scatter_(1, token, outside), 0.0)
        # Inverse of the cumulative distribution in vocabulary order, where rounding can't swap two tokens' places; a token
        # outside the nucleus adds nothing and so is never the first to pass the mark.
        upto = probability.cumsum(dim=-1)
        uniform = self._uniform[list(rows), step].to(logits.device).unsqueeze(1)
        return torch.searchsorted(upto, uniform * upto[:, -1:], right=True).squeeze(1)


@torch.no_grad()
def continue_sequences(
    model: LanguageModel,
    prefixes: Sequence[Sequence[int]],
    *,
    pick: Pick,
    finished: Callable[[int, list[int]], bool],
    max_new_tokens: int,
    batch_size: int,
    advance: Callable[[int], None] = lambda _rows: None,
) -> list[list[int]]:
    """Continue token sequences until each is finished.

    Parameters
    ----------
    prefixes: non-empty token sequences; batches are made of neighbours in length, padded on the left.
    pick: chooses tokens; it is given the row's place in ``prefixes``.
    finished: asked with the row and its new tokens after each; end-of-text always finishes a row.
    max_new_tokens: the longest continuation.
    advance: told how many rows have just been finished.

    Returns
    -------
    The new tokens of each row, in the order of ``prefixes``, with the end-of-text token when that ended it.
    """
    continuations: list[list[int]] = [[] for _ in prefixes]
    order = sorted(range(len(prefixes)), key=lambda row: len(prefixes[row]))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        longest = len(prefixes[rows[-1]])
        tokens = torch.full((len(rows), longest), model.pad_token_id, dtype=torch.long)
        mask = torch.zeros((len(rows), longest), dtype=torch.long)
        for place, row in enumerate(rows):
            tokens[place, longest - len(prefixes[row]) :] = torch.tensor(prefixes[row])
            mask[place, longest - len(prefixes[row]) :] = 1
        tokens, mask = tokens.to(model.device), mask.to(model.device)
        padded = not bool(mask.all())
        cache = DynamicCache(config=model.model.config)
        for step in range(max_new_tokens):
            positions = mask.cumsum(dim=1).sub(1).clamp(min=0)[:, -tokens.shape[1] :]
            output = model.decoder(
                input_ids=tokens,
                attention_mask=mask if padded else None,
                position_ids=positions,
                cache=cache,
                use_cache=True,
            )
            chosen = pick(model.head(output.last_hidden_state[:, -1]), rows, step)
            going_on = []
            for place, (row, token) in enumerate(zip(rows, chosen.tolist(), strict=True)):
                continuations[row].append(token)
                if token not in model.eos_token_ids and not finished(row, continuations[row]):
                    going_on.append(place)
            if len(going_on) < len(rows):
                advance(len(rows) - len(going_on))
                keep = torch.tensor(going_on, dtype=torch.long, device=model.device)
                rows, chosen, mask = [rows[place] for place in going_on], chosen[keep], mask[keep]
                if not rows:
                    break
                cache.batch_select_indices(keep)
            tokens = chosen.unsqueeze(1)
            mask = torch.cat([mask, mask.new_ones((len(rows), 1))], dim=1)
        else:
            advance(len(rows))
    return continuations

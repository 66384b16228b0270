"""The decoding loop against Transformers' own generate, and its sampler against the distribution it should draw from."""

import pytest
import torch

from perdure.models.decoding import NucleusSampler, continue_sequences, greedy
from perdure.models.language_model import LanguageModel

PREFIXES = ["Question: a1B2", "Q", "Question: something rather longer than the others\nAnswer:", "12 34"]


def decode(model: LanguageModel, prefixes: list[list[int]], batch_size: int, steps: int = 12) -> list[list[int]]:
    return continue_sequences(
        model, prefixes, pick=greedy, finished=lambda _r, _t: False, max_new_tokens=steps, batch_size=batch_size
    )


def test_greedy_equals_generate_one_at_a_time(model: LanguageModel) -> None:
    prefixes = [model.encode(text) for text in PREFIXES]
    own = decode(model, prefixes, batch_size=4)
    for prefix, tokens in zip(prefixes, own, strict=True):
        ids = torch.tensor([prefix])
        generated = model.model.generate(
            input_ids=ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=12,
            do_sample=False,
            pad_token_id=model.pad_token_id,
            eos_token_id=list(model.eos_token_ids),
        )
        assert generated[0, len(prefix) :].tolist() == tokens


@pytest.mark.parametrize("batch_size", [1, 2, 3])
def test_batch_size_changes_nothing(model: LanguageModel, batch_size: int) -> None:
    prefixes = [model.encode(text) for text in PREFIXES]
    assert decode(model, prefixes, batch_size) == decode(model, prefixes, batch_size=8)


def test_rows_leave_when_finished_and_the_others_go_on(model: LanguageModel) -> None:
    prefixes = [model.encode(text) for text in PREFIXES]
    whole = decode(model, prefixes, batch_size=4)
    lengths = [3, 7, 1, 12]
    advanced: list[int] = []
    cut = continue_sequences(
        model,
        prefixes,
        pick=greedy,
        finished=lambda row, tokens: len(tokens) >= lengths[row],
        max_new_tokens=12,
        batch_size=4,
        advance=advanced.append,
    )
    assert cut == [tokens[:length] for tokens, length in zip(whole, lengths, strict=True)]
    assert sum(advanced) == 4


def test_end_of_text_ends_a_row(model: LanguageModel) -> None:
    eos = model.eos_token_ids[0]
    picked = continue_sequences(
        model,
        [[5], [6]],
        pick=lambda logits, rows, step: torch.tensor([eos if row == step else 7 for row in rows]),
        finished=lambda _r, _t: False,
        max_new_tokens=4,
        batch_size=2,
    )
    assert picked == [[eos], [7, eos]]


def test_nucleus_sampler_draws_from_the_nucleus() -> None:
    """Frequencies against the renormalised top-p distribution, chi-squared within what chance allows."""
    logits = torch.tensor([2.0, 1.0, 0.5, 0.0, -3.0, 4.0])
    temperature, top_p, count = 1.5, 0.8, 40_000
    banned = [5]
    allowed = torch.softmax(logits[:5].double() / temperature, dim=0)
    order = allowed.argsort(descending=True)
    mass_before = allowed[order].cumsum(0) - allowed[order]
    nucleus = order[mass_before < top_p]
    expected = torch.zeros(6, dtype=torch.float64)
    expected[nucleus] = allowed[nucleus] / allowed[nucleus].sum()
    sampler = NucleusSampler(count, 1, temperature=temperature, top_p=top_p, banned=banned, seed=3, task=1)
    drawn = sampler(logits.expand(count, 6), range(count), 0)
    observed = torch.bincount(drawn, minlength=6).double()
    assert observed[expected == 0].sum() == 0
    inside = expected > 0
    chi_squared = ((observed - count * expected)[inside] ** 2 / (count * expected[inside])).sum()
    assert chi_squared < 20  # three degrees of freedom at most: p < 0.0002 beyond 20


def test_samples_do_not_depend_on_the_batch(model: LanguageModel) -> None:
    def sample(batch_size: int) -> list[list[int]]:
        sampler = NucleusSampler(9, 8, temperature=1.0, top_p=0.9, banned=[0], seed=1, task=2)
        return continue_sequences(
            model, [[5]] * 9, pick=sampler, finished=lambda _r, _t: False, max_new_tokens=8, batch_size=batch_size
        )

    assert sample(1) == sample(4) == sample(9)
    assert len({tuple(tokens) for tokens in sample(9)}) > 1

import pytest

from perdure.errors import InputError
from perdure.tasks import symbol_stream
from perdure.tasks.symbol import SYMBOLS


def test_the_stream_never_changes_silently() -> None:
    """Published numbers name a stream by its seed: another stream under the same seed would make them false."""
    stream = symbol_stream(tasks=3, items=4, seed=42)
    assert stream[0].items[0].question == "e4k4N2"
    assert stream.fingerprint == "58797ae14d24ea50f5bf8afbfa74080c65e10afb3390d7feae4585b38af6ad36"
    assert symbol_stream().fingerprint == "08b4ba6b222fad941a635227f912ca924fbed24277865320799dd6b34caf5824"


def test_the_papers_sizes() -> None:
    stream = symbol_stream()
    items = [item for task in stream for item in task.items]
    assert (len(stream), {len(task) for task in stream}) == (100, {100})
    assert [stream[0].name, stream[99].name] == ["task-001", "task-100"]
    assert len({item.question for item in items}) == 10_000
    assert {len(item.question) for item in items} == {6}
    assert {len(answer) for item in items for answer in item.answers} == {4}
    assert {character for item in items for character in item.question + item.answers[0]} == set(SYMBOLS)
    assert len(SYMBOLS) == 62


def test_symbols_are_drawn_uniformly() -> None:
    text = "".join(item.question + item.answers[0] for task in symbol_stream() for item in task.items)
    expected = len(text) / 62
    chi_square = sum((text.count(symbol) - expected) ** 2 / expected for symbol in SYMBOLS)
    assert 30 < chi_square < 110  # 61 degrees of freedom: 61 ± 11, more than four deviations to either side


def test_seeds_reproduce_and_differ() -> None:
    assert symbol_stream(2, 5, seed=7) == symbol_stream(2, 5, seed=7)
    assert len({symbol_stream(2, 5, seed=seed).fingerprint for seed in range(20)}) == 20


def test_a_shorter_stream_is_the_beginning_of_a_longer_one() -> None:
    # Two-symbol keys: of 1,000 draws more than 100 repeat an earlier one, so the drops are exercised.
    assert symbol_stream(10, 20, key_length=2).tasks == symbol_stream(50, 20, key_length=2).tasks[:10]


def test_every_possible_key_can_be_used_but_not_one_more() -> None:
    stream = symbol_stream(tasks=2, items=31, key_length=1)
    assert {item.question for task in stream for item in task.items} == set(SYMBOLS)
    with pytest.raises(InputError, match="need 63 different keys, and key_length = 1 gives only 62; make the keys longer"):
        symbol_stream(tasks=1, items=63, key_length=1)


@pytest.mark.parametrize("name", ["tasks", "items", "key_length", "value_length"])
def test_impossible_sizes_are_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} = 0 makes no stream; it must be 1 or more"):
        symbol_stream(**{name: 0})


def test_a_negative_seed_is_refused() -> None:
    with pytest.raises(InputError, match="seed = -1 is negative"):
        symbol_stream(seed=-1)

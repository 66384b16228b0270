import random
import time

import pytest

from perdure.tasks.near_duplicates import NearDuplicates
from perdure.tasks.normalise import normalised


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("What's the capital of Peru?", "whats the  capital of peru"),
        ("ﬁne ①", "FINE 1"),
        ("stra\u00dfe", "STRASSE"),
        ("e\u0301tude", "étude"),
        ("וואָס\u200f?", "וואָס"),
    ],
)
def test_what_counts_as_the_same_question(one: str, other: str) -> None:
    assert normalised(one) == normalised(other)


def test_accents_order_and_digits_tell_questions_apart() -> None:
    assert len({normalised(text) for text in ("resume", "résumé", "7 8", "8 7", "78", "+", "-")}) == 7


def test_near_texts_are_found_nearest_first() -> None:
    filed: NearDuplicates[str] = NearDuplicates(0.6)
    for key, text in (
        ("same", "Who wrote the novel Middlemarch?"),
        ("near", "Who wrote the famous novel Middlemarch?"),
        ("far", "Who painted the Night Watch?"),
    ):
        filed.add(key, text)
    found = filed.find("who wrote the novel middlemarch")
    assert [near.key for near in found] == ["same", "near"]
    assert found[0].similarity == 1.0
    assert 0.6 <= found[1].similarity < 1.0
    assert filed.find("") == []
    assert len(filed) == 3


def test_few_pairs_above_the_threshold_slip_through_and_thousands_are_quick() -> None:
    draw = random.Random(0)
    words = ["".join(draw.choices("abcdefghij", k=5)) for _ in range(500)]
    texts = [" ".join(draw.choices(words, k=12)) for _ in range(1500)]
    filed: NearDuplicates[int] = NearDuplicates(0.8)
    start = time.perf_counter()
    for place, text in enumerate(texts):
        filed.add(place, text)
    found = [[near.key for near in filed.find(text + " x")] for text in texts]
    assert time.perf_counter() - start < 20
    assert sum(place in keys for place, keys in enumerate(found)) > 1480
    assert sum(map(len, found)) < 1510

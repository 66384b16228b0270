import hashlib
import json
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item, Task, read_jsonl, write_jsonl

CAPITAL = Item(
    "What is the capital of Peru?", ("Lima",), ("Which city is the capital of Peru?", "Peru's capital is which city?")
)


def test_a_fingerprint_knows_paraphrases_and_is_unchanged_without_them() -> None:
    plain = Item(CAPITAL.question, CAPITAL.answers)
    written = '[{"answers":["Lima"],"question":"What is the capital of Peru?"}]'
    assert Task("a", (plain,)).fingerprint == hashlib.sha256(written.encode()).hexdigest()
    reworded = written.replace(
        '"question"', '"paraphrases":' + json.dumps(CAPITAL.paraphrases, separators=(",", ":")) + ',"question"'
    )
    assert Task("a", (CAPITAL,)).fingerprint == hashlib.sha256(reworded.encode()).hexdigest()


def test_they_survive_a_file(tmp_path: Path) -> None:
    task = Task("a", (CAPITAL, Item("q", ("a",))))
    write_jsonl(task, tmp_path / "a.jsonl")
    assert read_jsonl(tmp_path / "a.jsonl") == task
    records = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    assert records[0]["paraphrases"] == list(CAPITAL.paraphrases)
    assert "paraphrases" not in records[1]


@pytest.mark.parametrize(
    ("paraphrases", "problem"),
    [
        ('"Which?"', "'paraphrases' is a text; give a list of texts"),
        ("[3]", "the paraphrase is 3, not a text"),
        ('[" "]', "the paraphrase is empty"),
        ('["q"]', "the paraphrase 'q' says what is asked already"),
        ('["r", "r"]', "the paraphrase 'r' says what is asked already"),
    ],
)
def test_a_bad_paraphrase_is_refused_with_its_line(tmp_path: Path, paraphrases: str, problem: str) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text(f'{{"question": "p", "answer": "a"}}\n{{"question": "q", "answer": "a", "paraphrases": {paraphrases}}}\n')
    with pytest.raises(InputError) as refusal:
        read_jsonl(file)
    assert str(refusal.value).startswith(f"{file}:2: ")
    assert problem in str(refusal.value)


def test_a_paraphrase_that_another_item_asks_is_refused() -> None:
    with pytest.raises(InputError, match="the paraphrase 'q2' of item 1 is asked by item 2 too"):
        Task("a", (Item("q1", ("a",), ("q2",)), Item("q2", ("b",))))
    with pytest.raises(InputError, match="the paraphrase 'r' of item 2 is asked by item 1 too"):
        Task("a", (Item("q1", ("a",), ("r",)), Item("q2", ("b",), ("r",))))


def test_lines_that_differ_in_paraphrases_alone_are_not_taken_for_repetitions(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"question": "q", "answer": "a"}\n{"question": "q", "answer": "a", "paraphrases": ["r"]}\n')
    with pytest.raises(
        InputError, match=r":2: the question of line 1 again, with other paraphrases; put them all into one line"
    ):
        read_jsonl(file)

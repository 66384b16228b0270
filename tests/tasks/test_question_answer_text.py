from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item
from perdure.tasks.read import read_task


def test_questions_answers_and_paraphrases(tmp_path: Path) -> None:
    file = tmp_path / "faq.txt"
    file.write_text(
        "\ufeffQ: Who runs the\n   Lisbon office?\nA: Joana Prates\nA: Prates\nP: Who is in charge in Lisbon?\n\n"
        "question: מי?\r\nANSWER: Ada: the first\r\n"
    )
    assert read_task(file).items == (
        Item("Who runs the Lisbon office?", ("Joana Prates", "Prates"), ("Who is in charge in Lisbon?",)),
        Item("מי?", ("Ada: the first",)),
    )


@pytest.mark.parametrize(
    ("text", "line", "problem"),
    [
        ("A: a\n", 1, "this stands before any question"),
        ("# FAQ\nQ: q\nA: a\n", 1, "this stands before any question"),
        ("Q: q\nA: a\n\nQ: r\n\nQ: s\nA: b\n", 4, "the question 'r' has no answer"),
        ("Q: q\nA: a\nQ:\nA: b\n", 3, "the question is empty"),
        ("Q: q\nA: a\nQ: last\n", 3, "the question 'last' has no answer"),
    ],
)
def test_bad_text_is_refused_with_its_line(tmp_path: Path, text: str, line: int, problem: str) -> None:
    file = tmp_path / "faq.txt"
    file.write_text(text)
    with pytest.raises(InputError) as refusal:
        read_task(file)
    assert str(refusal.value).startswith(f"{file}:{line}: ")
    assert problem in str(refusal.value)

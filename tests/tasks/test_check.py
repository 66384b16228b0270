from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item, Task, symbol_stream
from perdure.tasks.check import StreamReport, check, check_stream
from perdure.tasks.facts import facts_stream
from perdure.tasks.folder import Origin, write_stream


def found(*tasks: Task) -> dict[str, tuple[int, bool]]:
    """What each finding begins with -> its count, and whether it makes the stream unusable."""
    report = check_stream(tasks)
    return {" ".join(finding.what.split()[:3]): (finding.count, finding.unusable) for finding in report.findings}


def task(name: str, *items: tuple[str, ...]) -> Task:
    return Task(name, tuple(Item(question, tuple(answers)) for question, *answers in items))


def test_sound_streams_are_usable_and_counted() -> None:
    report = check_stream(facts_stream(3, 20, seed=5, paraphrases=2))
    assert (report.tasks, report.items, report.paraphrases, report.usable) == (3, 60, 120, True)
    assert report.answers > 60
    assert report.formats == ("plain", "boxed")
    assert not [finding for finding in report.findings if "beginning" not in finding.what]
    assert check_stream(symbol_stream(20, 100)).usable


def test_another_answer_to_the_same_question_makes_a_stream_unusable() -> None:
    first = task("week-1", ("Who runs Lisbon?", "Joana"), ("q", "a", "b"))
    report = check_stream([first, task("week-2", ("Who runs Lisbon?", "Rui"))])
    assert not report.usable
    (finding,) = report.findings
    assert (finding.count, finding.what) == (1, "questions asked again with other answers")
    assert finding.examples == ("week-2, item 1 (first in week-1): Who runs Lisbon?",)
    assert found(first, task("week-2", ("q", "B!"))) == {"questions asked again": (1, False)}  # one answer is right for both


def test_repetitions_are_told_apart_by_where_they_stand() -> None:
    first = task("one", ("Who runs Lisbon?", "Joana"))
    assert found(first, task("two", ("Who runs Lisbon?", "Joana"))) == {"questions asked again": (1, False)}
    report = check_stream([first, task("two", ("Who runs Lisbon?", "Joana"))])
    assert "in a later task" in report.findings[0].what
    report = check_stream([task("one", ("Who runs Lisbon?", "Joana"), ("who runs  LISBON", "Joana"))])
    assert "in the same task" in report.findings[0].what
    # keys that differ in case alone are two questions: Symbol-QA is full of them
    assert found(task("keys", ("aB", "1"), ("Ab", "2"))) == {"questions that another": (1, False)}


def test_a_paraphrase_that_is_trained_on_elsewhere_is_found() -> None:
    reworded = Task("one", (Item("Who runs Lisbon?", ("Joana",), ("Who is in charge in Lisbon?",)),))
    assert found(reworded, task("two", ("Who is in charge in Lisbon?", "Joana"))) == {"paraphrases that are": (1, False)}
    assert found(task("zero", ("Who is in charge in Lisbon?", "Joana")), reworded) == {"paraphrases that are": (1, False)}
    assert found(task("zero", ("Who is in charge in Lisbon?", "Rui")), reworded) == {"questions asked again": (1, True)}


def test_answers_that_are_long_or_begin_one_another() -> None:
    long = " ".join(["word"] * 9)
    assert found(task("a", ("q", long))) == {"answers longer than": (1, False)}
    assert found(task("a", ("q", "New York"), ("r", "new york city"), ("s", "York"))) == {"answers that are": (1, False)}
    assert check_stream([task("a", ("q", long))]).longest_answer == 9


def test_answers_that_no_format_can_write_make_a_stream_unusable() -> None:
    lines, brace = ("q", "one\ntwo"), ("r", "a } b")
    assert check_stream([task("a", lines)]).formats == ("boxed",)
    assert check_stream([task("a", lines)]).usable
    assert check_stream([task("a", brace)]).formats == ("plain",)
    both = check_stream([task("a", lines, brace)])
    assert (both.formats, both.usable) == ((), False)
    assert any("no format can write them all" in finding.what for finding in both.findings)


@pytest.mark.parametrize(
    ("text", "note"),
    [
        (" Lima", "texts with blanks"),
        ("e\u0301", "texts that are"),
        ("Li\u200bma", "texts with invisible"),
        ("Li\x07ma", "texts with control"),
        ("ירושלים", "texts in right-to-left"),
        ("القاهرة", "texts in right-to-left"),
    ],
)
def test_unicode_that_a_reader_should_know_of(text: str, note: str) -> None:
    assert found(task("a", ("q", text))) == {note: (1, False)}
    assert found(task("a", ("q", "São Tomé, 東京 – “x”"))) == {}


def test_a_folder_and_a_file_are_read(tmp_path: Path) -> None:
    write_stream("keys", symbol_stream(2, 5), tmp_path / "keys", Origin("symbol"))
    assert check(tmp_path / "keys").items == 10
    (tmp_path / "faq.csv").write_text("question,answer\nq,a\n")
    assert check(tmp_path / "faq.csv") == StreamReport(1, 1, 1, 0, 1, ("plain", "boxed"), [])
    (tmp_path / "keys" / "0001-task-001.jsonl").write_text('{"question": "q", "answer": "a"}\n')
    with pytest.raises(InputError, match="was changed after the stream was written"):
        check(tmp_path / "keys")

"""Every source in the shape that its set has, with the traps of each; and the slices of the sets where they are at hand."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import InputError
from perdure.tasks import Item
from perdure.tasks.real import real_origin, real_stream
from perdure.tasks.real_sources import SOURCES, source_item

SLICES = Path(__file__).parents[3] / "shared" / "data"
with_slices = pytest.mark.skipif(not (SLICES / "popqa.jsonl").is_file(), reason="the slices of the public sets are not here")


def options(texts: list[str], labels: str, key: str, **stem: str) -> dict[str, Any]:
    return {**stem, "choices": {"text": texts, "label": list(labels)}, "answerKey": key}


def medmcqa(question: str, cop: int) -> dict[str, Any]:
    return {"question": question, "opa": "Insulin", "opb": "Glucagon", "opc": "all of the above", "opd": "None", "cop": cop}


# One row a source in the shape of its set, and the item it makes.
ROWS: dict[str, tuple[dict[str, Any], Item]] = {
    "trivia_qa": (
        {
            "question": "Which  beauty was taken to Troy? ",
            "answer": {
                "value": "HELEN OF TROY",
                "aliases": ["Helen of Troy", "helen of troy", "Helen (disambiguation)", "Hel\ufffdne", "Helen of Sparta"],
                "normalized_aliases": ["helen of troy"],
            },
        },
        Item("Which beauty was taken to Troy?", ("Helen of Troy", "Helen of Sparta")),
    ),
    "nq_open": ({"question": "who sang great gig", "answer": ["Clare Torry"]}, Item("who sang great gig", ("Clare Torry",))),
    "popqa": (
        {"question": "What is Ada's occupation?", "obj": "mathematician", "possible_answers": '["maths", "mathematician"]'},
        Item("What is Ada's occupation?", ("mathematician", "maths")),
    ),
    "squad": (
        {
            "question": "Who mapped the River in 1562?",
            "answers": {"text": ["Ribault", "Jean Ribault", "Jean Ribault"], "answer_start": [1, 2, 2]},
        },
        Item("Who mapped the River in 1562?", ("Jean Ribault", "Ribault")),
    ),
    "web_questions": (
        {"question": "what is money in japan?", "url": "x", "answers": ["Yen"]},
        Item("what is money in japan?", ("Yen",)),
    ),
    "openbookqa": (
        options(["ice", "water vapor", "sand", "lava"], "ABCD", "B", question_stem="Fog is formed by"),
        Item("Fog is formed by", ("water vapor",)),
    ),
    "sciq": (
        {"question": "What opposes motion?", "correct_answer": "friction", "distractor1": "a", "support": ""},
        Item("What opposes motion?", ("friction",)),
    ),
    # some keys are digits, counted from 1: read as counted from 0, every one of them points one option too far
    "arc_easy": (
        options(["one", "two", "three", "four"], "1234", "3", question="How many bases encode an amino acid?"),
        Item("How many bases encode an amino acid?", ("three",)),
    ),
    "arc_challenge": (
        options(["heat", "chemical"], "AB", "B", question="Which energy is in coal?"),
        Item("Which energy is in coal?", ("chemical",)),
    ),
    "medmcqa": (medmcqa("Which hormone lowers blood sugar?", 0), Item("Which hormone lowers blood sugar?", ("Insulin",))),
}  # fmt: skip


def test_all_ten_sources_have_a_row_here() -> None:
    assert set(ROWS) == set(SOURCES)
    assert len(SOURCES) == 10


@pytest.mark.parametrize("name", SOURCES)
def test_a_row_of_each_source(name: str) -> None:
    row, item = ROWS[name]
    assert source_item(SOURCES[name], row) == item
    prepared = {"id": "1", "source": name, "question": item.question, "answers": list(item.answers)}
    assert source_item(SOURCES[name], prepared) == item


def test_nested_columns_the_other_way_round() -> None:
    row, item = ROWS["arc_easy"]
    records = [{"text": text, "label": label} for text, label in zip(*row["choices"].values(), strict=True)]
    assert source_item(SOURCES["arc_easy"], {**row, "choices": records}) == item


@pytest.mark.parametrize(
    ("name", "row", "reason"),
    [
        ("arc_easy", options(["a", "b"], "AB", "A", question="Which of these is a mammal?"), "it needs its options"),
        ("arc_easy", options(["a", "b"], "AB", "A", question="Which is NOT a mammal?"), "it needs its options"),
        ("arc_challenge", options(["a", "b"], "AB", "A", question="What most likely caused it?"), "it needs its options"),
        ("sciq", {"question": "Which of the following is hot?", "correct_answer": "fire"}, "it needs its options"),
        ("medmcqa", medmcqa("Which hormone lowers sugar?", 2), "it needs its options"),
        ("medmcqa", medmcqa("Which hormone lowers sugar?", -1), "its answer is not published"),
        ("squad", {"question": "What did he map in 1562?", "answers": {"text": ["a"]}}, "it needs its paragraph"),
        ("squad", {"question": "What was the outcome of the battle?", "answers": {"text": ["a"]}}, "it needs its paragraph"),
        ("nq_open", {"question": "why", "answer": ["a b c d e f g h i"]}, "its answer is longer than 8 words"),
        ("nq_open", {"question": "why", "answer": []}, "it has no answer"),
        ("popqa", {"question": "why", "possible_answers": ["\ufffd"]}, "it has no answer"),
    ],
)  # fmt: skip
def test_rows_that_are_no_closed_book_questions_are_left_out(name: str, row: dict[str, Any], reason: str) -> None:
    assert source_item(SOURCES[name], row) == reason


@pytest.mark.parametrize(
    ("name", "row", "problem"),
    [
        ("popqa", {"question": "q", "possible_answers": "Rome, Roma"}, "column 'possible_answers' is not JSON: 'Rome, Roma'"),
        ("popqa", {"question": "q"}, "column 'possible_answers' is None, not a list of texts"),
        ("arc_easy", options(["a", "b"], "AB", "1", question="q?"), "'answerKey' is '1', and the 2 choices are labelled A, B"),
        ("arc_easy", options(["a", "b"], "AA", "A", question="q?"), "column 'answerKey' is 'A'"),
        ("medmcqa", medmcqa("q", 4), "column 'cop' is 4; it must be 0 to 3"),
        ("trivia_qa", {"question": "q", "answer": "Rome"}, "column 'answer' is 'Rome', not a mapping"),
        ("nq_open", {"query": "q", "answer": ["a"]}, "column 'question' is missing (there are: query, answer), not a text"),
        ("squad", {"question": "Q 1?", "answers": {"text": [None]}}, "column 'text' is [None], not a list of texts"),
    ],
)  # fmt: skip
def test_a_broken_row_is_refused_with_its_column(name: str, row: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError) as refusal:
        source_item(SOURCES[name], row)
    assert problem in str(refusal.value)


def write(folder: Path, name: str, *rows: dict[str, Any]) -> None:
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def trivia(question: str, *answers: str) -> dict[str, Any]:
    return {"question": question, "answer": {"value": answers[0], "aliases": list(answers)}}


def test_duplicates_are_found_within_and_across_sources(tmp_path: Path) -> None:
    asked = "Which English author wrote the long novel Middlemarch"
    write(tmp_path, "trivia_qa", trivia(f"{asked}?", "George Eliot", "Mary Ann Evans"), trivia("Where is Lima?", "Peru"))
    write(
        tmp_path,
        "nq_open",
        # the same question is out, whatever its answer; a near one when it shares an answer; otherwise it is only reported
        {"question": asked.lower(), "answer": ["Virginia Woolf"]},
        {"question": asked.replace("novel", "novels").lower(), "answer": ["mary ann evans"]},
        {"question": f"{asked} 2".lower(), "answer": ["nobody"]},
        {"question": "what is fog", "answer": ["vapor"]},
        {"question": "what is fog?", "answer": ["vapor"]},
    )
    stream, report = real_stream(tmp_path, ("trivia_qa", "nq_open"), per_source=10, items=2)
    assert report.taken == {"trivia_qa": 2, "nq_open": 2}
    assert report.left_out["nq_open"] == {"an earlier question says the same": 3}
    assert {(near.source, near.earlier_source, near.dropped) for near in report.duplicates} >= {
        ("nq_open", "trivia_qa", True), ("nq_open", "trivia_qa", False), ("nq_open", "nq_open", True),
    }  # fmt: skip
    assert {item.question for task in stream for item in task.items} >= {"Where is Lima?", f"{asked} 2".lower()}


def test_shares_order_and_remainder(tmp_path: Path) -> None:
    for name in ("nq_open", "web_questions"):
        rows = [
            {"question": f"question {name} {number} {number**3}", "answer": ["a"], "answers": ["a"]} for number in range(40)
        ]
        write(tmp_path, name, *rows)

    def build(seed: int, keep=lambda _name, candidates: candidates):  # type: ignore[no-untyped-def]
        return real_stream(tmp_path, ("nq_open", "web_questions"), per_source=15, items=8, seed=seed, keep=keep)

    stream, report = build(1)
    assert [len(task) for task in stream] == [8, 8, 8]
    assert (report.taken, report.remaining) == ({"nq_open": 15, "web_questions": 15}, 6)
    assert 0 < sum("nq_open" in item.question for item in stream[0].items) < 8  # shuffled over tasks
    assert build(1)[0].fingerprint == stream.fingerprint
    assert build(2)[0].fingerprint != stream.fingerprint
    asked: list[str] = []

    def every_third(name: str, candidates: Iterator[Item]) -> Iterator[Item]:
        for place, item in enumerate(candidates):
            asked.append(name)
            if place % 3 == 0:
                yield item

    filtered, report = build(1, every_third)
    assert report.taken == {"nq_open": 14, "web_questions": 14}  # all there are: of 40, every third
    assert len(filtered) == 3
    origin = real_origin(report, 1, "base", {})
    assert origin.sources[0] == {
        "name": "nq_open", "address": "google-research-datasets/nq_open", "licence": "CC BY-SA 3.0", "items": 14,
    }  # fmt: skip


def test_what_can_not_be_built_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="unknown source 'squid'; did you mean 'squad'"):
        real_stream(tmp_path, ("squid",))
    with pytest.raises(InputError, match=r"popqa\.jsonl does not exist"):
        real_stream(tmp_path, ("popqa",))
    write(tmp_path, "popqa", {"question": "q", "possible_answers": "[]"}, {"question": "q", "possible_answers": "["})
    with pytest.raises(InputError, match=r"popqa\.jsonl:2: column 'possible_answers' is not JSON"):
        real_stream(tmp_path, ("popqa",))
    write(tmp_path, "popqa", {"question": "q", "possible_answers": '["a"]'})
    with pytest.raises(InputError, match="give 1 usable items, fewer than one task of 50"):
        real_stream(tmp_path, ("popqa",))


@with_slices
def test_the_slices_make_a_stream() -> None:
    stream, report = real_stream(SLICES, per_source=150, items=50)
    assert report.taken == dict.fromkeys(SOURCES, 150)
    assert len(stream) == 30
    left_out = {
        name: sum(count for reason, count in reasons.items() if "longer" not in reason)
        for name, reasons in report.left_out.items()
    }
    assert max(left_out.values()) <= 2  # they were cut to stand alone; a rule that refused more would be too strict

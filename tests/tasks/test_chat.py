import json
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item
from perdure.tasks.read import read_task


def said(*pairs: tuple[str, object], **others: object) -> str:
    return json.dumps({"messages": [{"role": role, "content": content} for role, content in pairs], **others}) + "\n"


GOOD = said(("user", "Where?"), ("assistant", "Lima"))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "chats.jsonl"


def test_one_exchange_a_line(file: Path) -> None:
    parts = [{"type": "text", "text": "Who "}, {"type": "text", "text": "sang?"}]
    file.write_text(
        GOOD
        + said(
            ("system", "Be brief."), ("user", parts), ("assistant", "Ada"), answers=["A.", "Ada"], paraphrases=["Which singer?"]
        )
    )
    assert read_task(file).items == (Item("Where?", ("Lima",)), Item("Who sang?", ("Ada", "A."), ("Which singer?",)))


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        (
            said(("user", "a"), ("assistant", "b"), ("user", "c"), ("assistant", "d")),
            "by user, assistant, user, assistant; a line must be one",
        ),
        (said(("assistant", "a")), "by assistant; a line must be one exchange"),
        (said(), "by nothing"),
        (said(("user", "a"), ("assistant", None)), "the content of the assistant's message is no text"),
        (said(("user", [{"type": "image_url"}]), ("assistant", "b")), "the content of the user's message is no text"),
        (said(("user", "a"), ("assistant", " ")), "the answer is empty"),
        (said(("user", "a"), ("assistant", "b"), answers="c"), "'answers' is no list"),
        (said(("user", "a"), ("assistant", "b"), anwsers=["c"]), "unknown field 'anwsers'"),
        ('{"messages": "a"}\n', "no list of messages"),
        ('{"question": "a", "answer": "b"}\n', "unknown field 'question'"),
    ],
)
def test_a_bad_line_is_refused_with_its_place(file: Path, line: str, problem: str) -> None:
    file.write_text(GOOD + "\n" + line)
    with pytest.raises(InputError) as refusal:
        read_task(file)
    assert str(refusal.value).startswith(f"{file}:3: ")
    assert problem in str(refusal.value)

"""Tasks from plain text: ``Q:`` a question, ``A:`` its answer, ``P:`` the question in other words.

::

    Q: Who runs the Lisbon office?
    A: Joana Prates
    A: Prates
    P: Who is in charge in Lisbon?

The words Question, Answer and Paraphrase do as well. Further A lines are accepted too. A line that begins with none of them
goes on with the line before, and blank lines are free.
"""

import re
from collections.abc import Iterator
from pathlib import Path

from perdure.errors import InputError
from perdure.tasks.distinct import Located
from perdure.tasks.lines import decoded, numbered_lines
from perdure.tasks.task import Item

_MARK = re.compile(r"\s*(q|question|a|answer|p|paraphrase)\s*:\s*(.*)", re.IGNORECASE | re.DOTALL)


def text_items(path: Path) -> Iterator[Located]:
    """The items of a text file, read as they are asked for.

    Raises
    ------
    InputError: with file and line: not UTF-8, text before the first question, a question without an answer, an answer or
        question that is empty.
    """
    parts: list[tuple[str, str]] = []  # (q, a or p; its text) of the question being read
    begins = 0
    for number, line in numbered_lines(path):
        try:
            text = decoded(line).strip()
            found = _MARK.fullmatch(text)
            if found and found[1][0] in "qQ":
                if parts:
                    yield Located(_item(parts), f"{path}:{begins}", f"line {begins}")
                parts, begins = [], number
            elif text and not parts:
                begins = number
                raise InputError("this stands before any question; begin one with Q: and its answer with A:.")
            if found:
                parts.append((found[1][0].lower(), found[2]))
            elif text:
                mark, before = parts.pop()
                parts.append((mark, f"{before} {text}".strip()))
        except InputError as error:
            raise InputError(f"{path}:{begins or number}: {error}") from error
    if parts:
        try:
            yield Located(_item(parts), f"{path}:{begins}", f"line {begins}")
        except InputError as error:
            raise InputError(f"{path}:{begins}: {error}") from error


def _item(parts: list[tuple[str, str]]) -> Item:
    texts = {mark: tuple(dict.fromkeys(text for which, text in parts if which == mark)) for mark in "qap"}
    if not texts["a"]:
        raise InputError(f"the question {texts['q'][0][:60]!r} has no answer; write one on a line that begins with A:.")
    return Item(texts["q"][0], texts["a"], texts["p"])

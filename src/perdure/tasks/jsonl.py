"""Tasks in files: one JSON object a line, ``{"question": …, "answer": …}`` or ``{"question": …, "answers": […]}``."""

import codecs
import json
import os
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import BinaryIO

from perdure.errors import InputError, nearest
from perdure.files import write_text
from perdure.tasks.task import Item, Task

_IGNORED = {"id", "source", "metadata"}  # a user's own columns; whatever else is not known is taken for a slip
_FIELDS = {"question", "answer", "answers"} | _IGNORED
_EXAMPLE = '{"question": "…", "answer": "…"}'
_KINDS = {dict: "an object", list: "a list", str: "a text", bool: "true or false", type(None): "null"}


@dataclass(frozen=True)
class JsonlReport:
    """A task read from a file. duplicates: how many lines were dropped because an earlier line says the same."""

    task: Task
    duplicates: int


def read_jsonl(path: str | os.PathLike[str], name: str | None = None) -> Task:
    """Read a task from a JSONL file.

    Each line is an object with ``question`` and either ``answer`` (a text) or ``answers`` (a list of texts; the first is
    trained on, all are accepted). ``id``, ``source`` and ``metadata`` may stand beside them and are ignored. The file is
    UTF-8, with or without a byte-order mark, with LF or CRLF line ends; blank lines are skipped. A line that repeats an
    earlier one's question and answers is dropped (:func:`read_jsonl_report` says how many were).

    Parameters
    ----------
    name: the task's name; by default the file's, without its suffix.

    Raises
    ------
    InputError: no such file, or, with file and line: not UTF-8, not JSON, not an object, a field missing, unknown, empty or
        of the wrong type, or a question that an earlier line answers otherwise.
    """
    return read_jsonl_report(path, name).task


def read_jsonl_report(path: str | os.PathLike[str], name: str | None = None) -> JsonlReport:
    """As :func:`read_jsonl`, and say how many repeated lines were dropped."""
    path = Path(path)
    try:
        with path.open("rb") as file:
            items, duplicates = _read_items(path, file)
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; {_nearest_file(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name a JSONL file in it.") from None
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); name a file that you may read.") from error
    if not items:
        raise InputError(f"{path} has no questions in it; write one object a line, such as {_EXAMPLE}.")
    return JsonlReport(Task(path.stem if name is None else name, tuple(items)), duplicates)


def write_jsonl(task: Task, path: str | os.PathLike[str]) -> None:
    """Write a task's items to a JSONL file, whole or not at all; :func:`read_jsonl` gives the same items back.

    Raises
    ------
    InputError: no file can be made there. OSError: the disk is full or failed.
    """
    path = Path(path)
    lines = []
    for item in task.items:
        answer = {"answer": item.answers[0]} if len(item.answers) == 1 else {"answers": item.answers}
        lines.append(json.dumps({"question": item.question, **answer}, ensure_ascii=False) + "\n")
    try:
        write_text(path, "".join(lines))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"{path} can't be written ({error.strerror}); name a file in a folder you may write to.") from error


def _read_items(path: Path, file: BinaryIO) -> tuple[list[Item], int]:
    """The items of a file, each question once, and how many lines were dropped."""
    items: list[Item] = []
    lines: list[int] = []  # where each item was first read
    places: dict[str, int] = {}
    duplicates = 0
    # A binary file breaks lines at \n alone; str.splitlines would also break inside texts, at U+2028 and others.
    for number, line in enumerate(file, start=1):
        line = line.removeprefix(codecs.BOM_UTF8)  # files joined by `cat` have one in the middle too
        if not line.strip():
            continue
        try:
            item = _parse(line)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        place = places.setdefault(item.question, len(items))
        if place == len(items):
            items.append(item)
            lines.append(number)
        elif items[place].answers == item.answers:
            duplicates += 1
        else:
            raise InputError(
                f"{path}:{number}: the question of line {lines[place]} again, with other answers; keep one of the two "
                "lines, or put every accepted answer into one line's 'answers'."
            )
    return items, duplicates


def _parse(line: bytes) -> Item:
    """The item in one line; what is wrong with it is said without the place, which the caller knows."""
    try:
        record = json.loads(line.decode("utf-8"))
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} of the line, 0x{line[error.start]:02x}"
        raise InputError(f"not UTF-8 ({byte}); save the file as UTF-8.") from error
    except (ValueError, RecursionError) as error:
        what = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
        raise InputError(f"not JSON ({what}); write one object a line, such as {_EXAMPLE}.") from error
    if not isinstance(record, dict):
        raise InputError(f"{_kind(record)}, not an object; write one object a line, such as {_EXAMPLE}.")
    if not record.keys() <= _FIELDS:
        field = next(field for field in record if field not in _FIELDS)
        raise InputError(f"unknown field {field!r} (your own go under 'metadata'); {nearest(field, sorted(_FIELDS))}")
    if "question" not in record:
        raise InputError(f"no 'question'; write {_EXAMPLE}.")
    if ("answer" in record) == ("answers" in record):
        which = "both 'answer' and 'answers'" if "answer" in record else "neither 'answer' nor 'answers'"
        raise InputError(f"{which}; give 'answer' (a text) or 'answers' (a list of texts).")
    answers = record.get("answers", [record.get("answer")])
    if not isinstance(answers, list):
        raise InputError(f"'answers' is {_kind(answers)}; give a list of texts, or one text as 'answer'.")
    if not answers:
        raise InputError("'answers' is an empty list; give at least one answer.")
    return Item(record["question"], tuple(answers))


def _kind(value: object) -> str:
    return _KINDS.get(type(value), f"the number {value}")


def _nearest_file(path: Path) -> str:
    """The file of the nearest name in the same folder, as the end of a sentence."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return f"nor can its folder {path.parent} be read: check the path."
    close = get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else "check the path."

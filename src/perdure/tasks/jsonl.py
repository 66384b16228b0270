"""Tasks in files: one JSON object a line, ``{"question": …, "answer": …}`` or ``{"question": …, "answers": […]}``."""

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from perdure.errors import InputError, nearest
from perdure.files import write_text
from perdure.tasks.distinct import Distinct, Located
from perdure.tasks.lines import decoded, numbered_lines
from perdure.tasks.task import Item, Task

_IGNORED = {"id", "source", "metadata"}  # a user's own columns; whatever else is not known is taken for a slip
_FIELDS = {"question", "answer", "answers", "paraphrases"} | _IGNORED
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
    trained on, all are accepted); ``paraphrases``, a list of texts, are rewordings of the question that are never trained
    on. ``id``, ``source`` and ``metadata`` may stand beside them and are ignored. The file is UTF-8, with or without a
    byte-order mark, with LF or CRLF line ends; blank lines are skipped. A line that says what an earlier one says is dropped
    (:func:`read_jsonl_report` says how many were).

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
    distinct = Distinct()
    items = tuple(distinct(jsonl_items(path)))
    if not items:
        raise InputError(f"{path} has no questions in it; write one object a line, such as {_EXAMPLE}.")
    return JsonlReport(Task(path.stem if name is None else name, items), distinct.duplicates)


def jsonl_items(path: Path) -> Iterator[Located]:
    """The items of a JSONL file as they stand, read line by line; raises as :func:`read_jsonl` does."""
    for number, record in json_records(path):
        try:
            yield Located(_item(record), f"{path}:{number}", f"line {number}")
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error


def json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """The JSON objects of a file, one a line, with their line numbers; blank lines are skipped.

    Raises
    ------
    InputError: no such file, or, with file and line: not UTF-8, not JSON, not an object.
    """
    for number, line in numbered_lines(path):
        if not line.strip():
            continue
        try:
            record = json.loads(decoded(line))
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        except (ValueError, RecursionError) as error:
            what = f"{error.msg}, column {error.colno}" if isinstance(error, json.JSONDecodeError) else str(error)
            raise InputError(f"{path}:{number}: not JSON ({what}); write one object a line, such as {_EXAMPLE}.") from error
        if not isinstance(record, dict):
            raise InputError(f"{path}:{number}: {_kind(record)}, not an object; write one object a line, such as {_EXAMPLE}.")
        yield number, record


def write_jsonl(task: Task, path: str | os.PathLike[str]) -> None:
    """Write a task's items to a JSONL file, whole or not at all; :func:`read_jsonl` gives the same items back.

    Raises
    ------
    InputError: no file can be made there. OSError: the disk is full or failed.
    """
    path = Path(path)
    lines = []
    for item in task.items:
        record: dict[str, Any] = {"question": item.question}
        record |= {"answer": item.answers[0]} if len(item.answers) == 1 else {"answers": item.answers}
        record |= {"paraphrases": item.paraphrases} if item.paraphrases else {}
        lines.append(json.dumps(record, ensure_ascii=False) + "\n")
    try:
        write_text(path, "".join(lines))
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        raise InputError(f"{path} can't be written ({error.strerror}); name a file in a folder you may write to.") from error


def _item(record: dict[str, Any]) -> Item:
    """The item in one record; what is wrong with it is said without the place, which the caller knows."""
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
    paraphrases = record.get("paraphrases", [])
    if not isinstance(paraphrases, list):
        raise InputError(f"'paraphrases' is {_kind(paraphrases)}; give a list of texts.")
    return Item(record["question"], tuple(answers), tuple(paraphrases))


def _kind(value: object) -> str:
    return _KINDS.get(type(value), f"the number {value}")

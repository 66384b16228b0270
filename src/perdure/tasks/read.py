"""Reading a user's questions and answers from whatever they are in: the kind of file decides who reads it."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

from perdure.errors import InputError
from perdure.tasks.chat import chat_items
from perdure.tasks.columns import Columns
from perdure.tasks.distinct import Distinct, Located
from perdure.tasks.jsonl import json_records, jsonl_items
from perdure.tasks.question_answer_text import text_items
from perdure.tasks.tables import csv_items, dataset_items, parquet_items
from perdure.tasks.task import Task

_SUFFIXES = (".jsonl", ".csv", ".tsv", ".parquet", ".txt")


def read_task(source: str | os.PathLike[str], columns: Columns | None = None, name: str | None = None) -> Task:
    """All of a source as one task; a row that says what an earlier one says is dropped.

    Raises
    ------
    InputError: as :func:`located_items`; or a question that comes again with other answers; or no rows.
    """
    items = tuple(Distinct()(located_items(source, columns)))
    if not items:
        raise InputError(f"{source} has no questions in it.")
    return Task(name or Path(source).stem, items)


def located_items(
    source: str | os.PathLike[str],
    columns: Columns | None = None,
    *,
    config: str | None = None,
    split: str = "train",
) -> Iterator[Located]:
    """The items of a file (JSONL with questions or with chats, CSV, TSV, Parquet, question–answer text) or a data set.

    Parameters
    ----------
    source: a file, known by its suffix; or the id of a data set on the hub, such as ``rajpurkar/squad``.
    columns: for tables and data sets; for JSONL too, where its fields have other names.
    config, split: of a data set on the hub.

    Raises
    ------
    InputError: neither; or, with file and row or line, what the reader of its kind refuses.
    """
    path = Path(source)
    suffix = path.suffix.lower()
    if not path.exists() and suffix not in _SUFFIXES and re.fullmatch(r"[\w.-]+/[\w.-]+", str(source)):
        return dataset_items(str(source), columns, config=config, split=split)
    if suffix in (".csv", ".tsv"):
        return csv_items(path, columns, "\t" if suffix == ".tsv" else None)
    if suffix == ".parquet":
        return parquet_items(path, columns)
    if suffix == ".txt":
        return text_items(path)
    if suffix not in (".jsonl", ".json", "") and path.is_file():
        raise InputError(f"{path}: files ending in {suffix} are not read; name one that ends in {', '.join(_SUFFIXES)}.")
    if columns is not None:
        return _mapped_jsonl(path, columns)
    first = next((record for _, record in json_records(path)), {})
    return chat_items(path) if "messages" in first else jsonl_items(path)


def _mapped_jsonl(path: Path, columns: Columns) -> Iterator[Located]:
    """A JSONL file whose fields have names of the user's own."""
    for number, record in json_records(path):
        try:
            item = columns.found_in(list(record)).item(record)
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error
        yield Located(item, f"{path}:{number}", f"line {number}")

"""Tasks from tables: CSV, TSV, Parquet, and data sets on the Hugging Face hub."""

import csv
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from perdure.errors import InputError
from perdure.tasks.columns import Columns
from perdure.tasks.distinct import Located
from perdure.tasks.lines import decoded, numbered_lines, readable
from perdure.tasks.task import Item

_DELIMITERS = {",": "a comma", ";": "a semicolon", "\t": "a tab", "|": "a bar"}
_ROWS_AT_A_TIME = 1024


def csv_items(path: Path, columns: Columns | None = None, delimiter: str | None = None) -> Iterator[Located]:
    """The items of a CSV or TSV file: UTF-8, a header row, quotes as RFC 4180 has them; read row by row.

    Parameters
    ----------
    delimiter: between columns; by default whichever of comma, semicolon, tab and bar shows the wanted columns in the header.

    Raises
    ------
    InputError: with file, line and column: not UTF-8, no such column, a row with more or fewer cells than the header, a
        quote that is never closed, an empty cell.
    """
    wanted = columns or Columns()
    csv.field_size_limit(sys.maxsize if sys.maxsize < 2**31 else 2**31 - 1)
    header_line = next((line for _, line in numbered_lines(path) if line.strip()), None)
    if header_line is None:
        raise InputError(f"{path} is empty; write a header row, such as question,answer, and the rows below it.")
    delimiter = delimiter or _delimiter(path, _decoded(path, 1, header_line), wanted)
    rows = csv.reader((_decoded(path, number, line) for number, line in numbered_lines(path)), delimiter=delimiter, strict=True)
    header: list[str] | None = None
    begins = 1
    while True:
        try:
            cells = next(rows)
        except StopIteration:
            return
        except csv.Error as error:
            raise InputError(
                f"{path}:{begins}: the row that begins here is not CSV ({error}); close its quotes, and double those inside."
            ) from None
        line, begins = begins, rows.line_num + 1
        if not cells or cells == [""]:
            continue
        if header is None:
            header = [name.strip() for name in cells]
            wanted = _found(path, wanted, header)
            continue
        where = f"{path}:{line}"
        if len(cells) != len(header):
            raise InputError(
                f"{where}: {len(cells)} cells, and the header has {len(header)} columns; put a cell with the delimiter "
                f"({_DELIMITERS.get(delimiter, delimiter)}) in it into quotes."
            )
        yield Located(_item(where, wanted, dict(zip(header, cells, strict=True))), where, f"line {line}")


def parquet_items(path: Path, columns: Columns | None = None) -> Iterator[Located]:
    """The items of a Parquet file; only the wanted columns are read, some rows at a time. Rows are counted from 1.

    Raises
    ------
    InputError: not a Parquet file, or, with row and column: no such column, an empty cell, one that is no text.
    """
    import pyarrow
    from pyarrow import parquet

    with readable(path):
        try:
            file = parquet.ParquetFile(path)
        except pyarrow.ArrowInvalid as error:
            raise InputError(f"{path} is not a Parquet file ({error}); name one that is.") from error
    with file:
        header = file.schema_arrow.names
        wanted = _found(path, columns or Columns(), header)
        batches = file.iter_batches(batch_size=_ROWS_AT_A_TIME, columns=wanted.needed(header))
        yield from _rows(str(path), wanted, (row for batch in batches for row in batch.to_pylist()))


def dataset_items(
    name: str, columns: Columns | None = None, *, config: str | None = None, split: str = "train"
) -> Iterator[Located]:
    """The items of a data set on the hub, by its id, or of one saved in a folder that `datasets` can load.

    Raises
    ------
    InputError: no such data set, configuration or split, or, with row and column, as for Parquet.
    """
    rows = load_rows(name, config=config, split=split)
    wanted = _found(name, columns or Columns(), rows.column_names)
    yield from _rows(f"{name} ({split})", wanted, rows.select_columns(wanted.needed(rows.column_names)))


def load_rows(name: str, *, config: str | None, split: str) -> Any:
    """A `datasets.Dataset`: one split of a data set on the hub, downloaded when it is not in the cache.

    Raises
    ------
    InputError: it can't be had, with what `datasets` says.
    """
    from datasets import load_dataset

    try:
        return load_dataset(name, config, split=split)
    except Exception as error:  # `datasets` raises whatever its many back ends raise
        what = " ".join(str(error).split())[:300]
        named = f"{name} ({config})" if config else name
        raise InputError(
            f"the data set {named}, split {split}, can't be loaded: {type(error).__name__}: {what} Check its name, "
            "configuration and split, and the network."
        ) from error


def _rows(source: str, wanted: Columns, rows: Iterable[Mapping[str, Any]]) -> Iterator[Located]:
    for number, row in enumerate(rows, start=1):
        where = f"{source}, row {number}"
        yield Located(_item(where, wanted, row), where, f"row {number}")


def _item(where: str, columns: Columns, row: Mapping[str, Any]) -> Item:
    try:
        return columns.item(row)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error


def _found(source: object, columns: Columns, header: list[str]) -> Columns:
    try:
        return columns.found_in(header)
    except InputError as error:
        raise InputError(f"{source}: {error}") from error


def _decoded(path: Path, number: int, line: bytes) -> str:
    try:
        return decoded(line)
    except InputError as error:
        raise InputError(f"{path}:{number}: {error}") from error


def _delimiter(path: Path, header: str, columns: Columns) -> str:
    """The delimiter under which the header has the wanted columns; of several, the one that makes most."""
    seen = {delimiter: next(csv.reader([header], delimiter=delimiter), []) for delimiter in _DELIMITERS}
    complaint = ""
    for delimiter, names in sorted(seen.items(), key=lambda entry: -len(entry[1])):
        try:
            columns.found_in([name.strip() for name in names])
            return delimiter
        except InputError as error:
            complaint = complaint or f"{path}:1: {error}"
    raise InputError(complaint)

"""A text file's lines, each with its number, and what is wrong with the file in one sentence."""

import codecs
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path

from perdure.errors import InputError


def numbered_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """The lines of a file with their numbers from 1, read as they are asked for; byte-order marks and line ends stay off.

    Lines break at ``\\n`` alone; ``str.splitlines`` would also break inside texts, at U+2028 and others.

    Raises
    ------
    InputError: the file is not there, is a folder, or can't be read.
    """
    with readable(path), path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            yield number, line.removeprefix(codecs.BOM_UTF8)  # files joined by `cat` have one in the middle too


def decoded(line: bytes) -> str:
    """The line as text.

    Raises
    ------
    InputError: it is not UTF-8; said without the place, which the caller knows.
    """
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as error:
        byte = f"byte {error.start + 1} of the line, 0x{line[error.start]:02x}"
        raise InputError(f"not UTF-8 ({byte}); save the file as UTF-8.") from error


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Turns what stops a file from being opened or read into an InputError with the remedy."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; {_nearest_file(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name a {_kind_of_file(path)} in it.") from None
    except OSError as error:
        raise InputError(f"{path} can't be read ({error.strerror}); name a file that you may read.") from error


def _kind_of_file(path: Path) -> str:
    return {".csv": "CSV file", ".tsv": "TSV file", ".parquet": "Parquet file", ".txt": "text file"}.get(
        path.suffix, "JSONL file"
    )


def _nearest_file(path: Path) -> str:
    """The file of the nearest name in the same folder, as the end of a sentence."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except OSError:
        return f"nor can its folder {path.parent} be read: check the path."
    close = get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else "check the path."

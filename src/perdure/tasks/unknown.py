"""Only what a model does not know yet: items that it answers wrong every time.

Source: the continual-memorisation paper's filter for Real-QA: five samples a question, and an item with a right one is out.
"""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Protocol

from perdure.errors import InputError
from perdure.files import write_text
from perdure.tasks.jsonl import json_records
from perdure.tasks.matching import Rule, matches
from perdure.tasks.task import Item
from perdure.tasks.text import TextFormat


class Sample(Protocol):
    """Draws a model's texts."""

    def __call__(self, prompts: Sequence[str], /) -> list[list[str]]:
        """For each prompt, several texts that the model writes after it, without special tokens."""
        ...


class Verdicts:
    """What is known about items already asked, in a file, so that asking goes on where it was stopped.

    The file's first line says how items were asked; each further line is one batch's verdicts. A batch is a line, so that a
    batch cut short by a crash leaves no verdict at all and is asked again as a whole, with the same samples.

    Parameters
    ----------
    path: the file, made when it is not there.
    asked: the model and how it is sampled; a file of other settings is refused.

    Raises
    ------
    InputError: the file is of other settings, or broken before its last line.
    """

    def __init__(self, path: Path, asked: dict[str, Any]) -> None:
        self._path = path
        self._known: dict[str, bool] = {}
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_text(path, json.dumps({"asked": asked}, ensure_ascii=False) + "\n")
            return
        raw = path.read_bytes()
        whole = raw[: raw.rfind(b"\n") + 1]
        if len(whole) < len(raw):
            write_text(path, whole.decode("utf-8"))
        for number, record in json_records(path):
            if number == 1 and record.get("asked") != json.loads(json.dumps(asked)):
                raise InputError(
                    f"{path} holds answers of {record.get('asked')}, not of {asked}; name another file or remove it."
                )
            self._known |= record.get("verdicts", {})

    def __len__(self) -> int:
        return len(self._known)

    @property
    def unknown(self) -> int:
        """How many of the items asked the model did not know."""
        return len(self._known) - sum(self._known.values())

    def __getitem__(self, item: Item) -> bool | None:
        """Whether the model knew the item; None when it was not asked."""
        return self._known.get(_digest(item))

    def add(self, verdicts: dict[Item, bool]) -> None:
        """Note a batch's verdicts, on the disk before anything else happens."""
        named = {_digest(item): known for item, known in verdicts.items()}
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"verdicts": named}) + "\n")
            file.flush()
            os.fsync(file.fileno())
        self._known |= named


def unknown_items(
    items: Iterable[Item],
    sample: Sample,
    text_format: TextFormat,
    verdicts: Verdicts,
    *,
    rule: Rule = "normalised",
    batch_size: int = 32,
    advance: Callable[[int], None] = lambda _items: None,
) -> Iterator[Item]:
    """Those items of which no sample is right, in their order.

    Items are taken and asked a batch at a time, as the result is read; whoever stops reading stops the asking.

    Parameters
    ----------
    advance: told how many items have just been settled.
    """
    remaining = iter(items)
    while batch := list(islice(remaining, batch_size)):
        open_items = [item for item in batch if verdicts[item] is None]
        if open_items:
            drawn = sample([text_format.prompt(item.question) for item in open_items])
            verdicts.add({item: _knows(texts, item, text_format, rule) for item, texts in zip(open_items, drawn, strict=True)})
        advance(len(batch))
        yield from (item for item in batch if not verdicts[item])


def _knows(texts: Sequence[str], item: Item, text_format: TextFormat, rule: Rule) -> bool:
    answers = (text_format.extract(text) for text in texts)
    return any(answer is not None and matches(answer, item.answers, rule) for answer in answers)


def _digest(item: Item) -> str:
    return hashlib.sha256(json.dumps([item.question, *item.answers]).encode()).hexdigest()[:32]

"""Real-QA: ten public sources of questions and answers, as one stream.

Source: the continual-memorisation paper (arXiv 2609.06986): 500 items from each of the ten, options removed from choice
questions, only what the base model answers wrong, shuffled over 100 tasks of 50. *Ours*: rows that can't be answered without
their options or their paragraph are left out, and duplicates are looked for across the sources too.
"""

import random
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from perdure.errors import InputError, nearest
from perdure.tasks.folder import Origin, TextKind
from perdure.tasks.jsonl import json_records
from perdure.tasks.matching import matches
from perdure.tasks.near_duplicates import NearDuplicates
from perdure.tasks.real_sources import SOURCES, Source, source_item
from perdure.tasks.tables import load_rows
from perdure.tasks.task import Item, Task, TaskStream

NEAR = 0.8  # similarity of questions from which on they are near duplicates


@dataclass(frozen=True)
class Duplicate:
    """A question that an earlier one says too. dropped: it was left out, since the two share an answer or are the same
    question; otherwise it only looks alike and was kept."""

    source: str
    question: str
    earlier_source: str
    earlier_question: str
    similarity: float
    dropped: bool


@dataclass
class RealReport:
    """How a Real-QA stream came about. taken: items of each source. left_out: source -> reason -> rows.
    remaining: items beyond the last whole task."""

    taken: dict[str, int] = field(default_factory=dict)
    left_out: dict[str, Counter[str]] = field(default_factory=dict)
    duplicates: list[Duplicate] = field(default_factory=list)
    remaining: int = 0


Keep = Callable[[str, Iterator[Item]], Iterator[Item]]


def real_stream(
    data: Path | None = None,
    sources: Sequence[str] = tuple(SOURCES),
    per_source: int = 500,
    items: int = 50,
    seed: int = 42,
    keep: Keep = lambda _source, candidates: candidates,
) -> tuple[TaskStream, RealReport]:
    """The Real-QA stream: so many items of each source, shuffled over tasks.

    Of every source the rows are gone through in an order that the seed decides, until it has given its share; a source with
    too few usable rows gives what it has, and the report says so. A question that is the same as an earlier one, normalised,
    is dropped, and so is a near duplicate with an answer in common; near duplicates with other answers are kept and reported.

    Parameters
    ----------
    data: a folder with ``NAME.jsonl`` for each source, of the source's own columns or of ``question`` and ``answers``; None
        loads the sets through `datasets`.
    keep: passes on those of a source's candidates that are wanted, such as :func:`perdure.tasks.unknown.unknown_items`.

    Raises
    ------
    InputError: an unknown source, a file or set that can't be read, a broken row (with its place and column), or fewer items
        than one task has.
    """
    report = RealReport()
    filed: NearDuplicates[tuple[str, Item]] = NearDuplicates(NEAR)
    gathered: list[Item] = []
    for name in sources:
        if name not in SOURCES:
            raise InputError(f"unknown source '{name}'; {nearest(name, list(SOURCES))}")
        report.left_out[name] = Counter()
        candidates = _without_duplicates(name, _candidates(SOURCES[name], data, seed, report), filed, report)
        taken = list(islice(keep(name, candidates), per_source))
        report.taken[name] = len(taken)
        gathered += taken
    if len(gathered) < items:
        raise InputError(f"the sources give {len(gathered)} usable items, fewer than one task of {items}; take more a source.")
    random.Random(f"{seed}/tasks").shuffle(gathered)
    report.remaining = len(gathered) % items
    tasks = [
        Task(f"task-{number + 1:03d}", tuple(gathered[number * items : (number + 1) * items]))
        for number in range(len(gathered) // items)
    ]
    return TaskStream("real", tuple(tasks)), report


def real_origin(report: RealReport, seed: int, text_format: TextKind, settings: dict[str, Any]) -> Origin:
    """What the stream's manifest says: the sources with their licences, and what is to be heeded."""
    return Origin(
        kind="real",
        seed=seed,
        text_format=text_format,
        matching="normalised",
        settings=settings,
        sources=[
            {"name": name, "address": SOURCES[name].address, "licence": SOURCES[name].licence, "items": items}
            for name, items in report.taken.items()
        ],
        notes=["each source's licence binds its items; some forbid commercial use or ask for the same licence on copies"],
    )


def _candidates(source: Source, data: Path | None, seed: int, report: RealReport) -> Iterator[Item]:
    """A source's usable items, in the seed's order."""
    if data is None:
        rows = load_rows(source.address, config=source.config, split=source.split)
        places: Sequence[str] = [f"{source.address} ({source.split}), row {number + 1}" for number in range(len(rows))]
    else:
        path = data / f"{source.name}.jsonl"
        records = list(json_records(path))
        rows, places = [record for _, record in records], [f"{path}:{number}" for number, _ in records]
    order = list(range(len(rows)))
    random.Random(f"{seed}/{source.name}").shuffle(order)
    for place in order:
        try:
            item = source_item(source, rows[place])
        except InputError as error:
            raise InputError(f"{places[place]}: {error}") from error
        if isinstance(item, Item):
            yield item
        else:
            report.left_out[source.name][item] += 1


def _without_duplicates(
    name: str, candidates: Iterator[Item], filed: NearDuplicates[tuple[str, Item]], report: RealReport
) -> Iterator[Item]:
    for item in candidates:
        dropped = False
        for near in filed.find(item.question):
            earlier_source, earlier = near.key
            same = near.similarity == 1.0 or any(matches(answer, earlier.answers, "normalised") for answer in item.answers)
            report.duplicates.append(
                Duplicate(name, item.question, earlier_source, earlier.question, round(near.similarity, 3), same)
            )
            dropped = dropped or same
        if dropped:
            report.left_out[name]["an earlier question says the same"] += 1
            continue
        filed.add((name, item), item.question)
        yield item

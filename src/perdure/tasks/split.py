"""One list of items into tasks of equal size."""

import random
from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import islice

from perdure.errors import InputError
from perdure.tasks.spellings import spellings
from perdure.tasks.task import Item, Task


def split_items(items: Iterable[Item], size: int, seed: int | None = None) -> Iterator[Task]:
    """Tasks of ``size`` items, named task-001, task-002, …; the last has what remains.

    Parameters
    ----------
    seed: shuffles the items first, for which all are held at once; None keeps their order and holds one task.

    Raises
    ------
    InputError: a size below 1.
    """
    if size < 1:
        raise InputError(f"tasks of {size} items are none; name 1 or more.")
    if seed is not None:
        items = list(items)
        random.Random(seed).shuffle(items)
    remaining = iter(items)
    number = 0
    while chunk := tuple(islice(remaining, size)):
        number += 1
        yield Task(f"task-{number:03d}", chunk)


def accept_spellings(items: Iterable[Item]) -> Iterator[Item]:
    """The items, with the other spellings of numbers and dates accepted too (:mod:`perdure.tasks.spellings`)."""
    for item in items:
        answers = dict.fromkeys([*item.answers, *(text for answer in item.answers for text in spellings(answer))])
        yield replace(item, answers=tuple(answers))

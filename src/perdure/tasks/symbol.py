"""Symbol-QA: random keys with random values, so that nothing can be known beforehand and nothing can be guessed.

Source: the continual-memorisation paper (arXiv 2609.06986), its synthetic stream; the random numbers are ours.
"""

import string
from collections.abc import Iterator

import numpy as np

from perdure.errors import InputError
from perdure.tasks.task import Item, Task, TaskStream

SYMBOLS = string.ascii_uppercase + string.ascii_lowercase + string.digits


def symbol_stream(tasks: int = 100, items: int = 100, seed: int = 42, key_length: int = 6, value_length: int = 4) -> TaskStream:
    """The paper's Symbol-QA stream: the question is a key, the answer its value.

    Keys and values are drawn uniformly from the 62 letters and digits; no key occurs twice in the stream. With the same
    seed, lengths and items, a shorter stream is the beginning of a longer one. Tasks are named task-001, task-002, …

    Parameters
    ----------
    tasks, items: how many tasks, and how many items in each.
    seed: 0 or more.
    key_length, value_length: in characters.

    Raises
    ------
    InputError: a size below 1, a negative seed, or more keys asked for than there are.
    """
    return TaskStream("symbol", tuple(symbol_tasks(tasks, items, seed, key_length, value_length)))


def symbol_tasks(
    tasks: int = 100, items: int = 100, seed: int = 42, key_length: int = 6, value_length: int = 4
) -> Iterator[Task]:
    """As :func:`symbol_stream`, one task at a time: a million items cost some hundred megabytes less."""
    sizes = {"tasks": tasks, "items": items, "key_length": key_length, "value_length": value_length}
    for name, size in sizes.items():
        if size < 1:
            raise InputError(f"{name} = {size} makes no stream; it must be 1 or more.")
    if seed < 0:
        raise InputError(f"seed = {seed} is negative; it must be 0 or more.")
    count, possible = tasks * items, len(SYMBOLS) ** key_length
    if count > possible:
        raise InputError(
            f"{tasks} tasks of {items} items need {count} different keys, and key_length = {key_length} gives only "
            f"{possible}; make the keys longer or the stream smaller."
        )
    # Keys and values have random numbers of their own, so that the length of the stream changes neither's beginning.
    for_keys, for_values = (np.random.default_rng(child) for child in np.random.SeedSequence(seed).spawn(2))
    keys = _distinct_words(for_keys, count, key_length)
    values = _words(for_values, count, value_length)
    return (_task(number, items, keys, values) for number in range(tasks))


def _task(number: int, items: int, keys: np.ndarray, values: np.ndarray) -> Task:
    """Task ``number``, from 0, of keys and values, byte strings [tasks * items]."""
    here = slice(number * items, (number + 1) * items)
    pairs = zip(keys[here].tolist(), values[here].tolist(), strict=True)
    return Task(f"task-{number + 1:03d}", tuple(Item(key.decode(), (value.decode(),)) for key, value in pairs))


def _distinct_words(generator: np.random.Generator, count: int, length: int) -> np.ndarray:
    """So many different random words, byte strings [count]: a word that comes again is passed over."""
    drawn = _words(generator, count, length)
    while True:
        first = np.sort(np.unique(drawn, return_index=True)[1])
        if len(first) >= count:
            return drawn[first[:count]]
        drawn = np.concatenate([drawn[first], _words(generator, count, length)])


def _words(generator: np.random.Generator, count: int, length: int) -> np.ndarray:
    """So many random words of so many symbols, byte strings [count]."""
    alphabet = np.frombuffer(SYMBOLS.encode(), dtype=np.uint8)
    rows = alphabet[generator.integers(len(SYMBOLS), size=(count, length))]
    return rows.view(f"S{length}").ravel()

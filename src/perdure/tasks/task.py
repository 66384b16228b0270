"""What is to be learnt: items in tasks, tasks in a stream."""

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from perdure.errors import InputError


@dataclass(frozen=True, slots=True)
class Item:
    """One question and its answers.

    question: put to the model as it stands.
    answers: at least one; the first is the one trained on, the others are accepted too.

    Raises
    ------
    InputError: a text is empty (or nothing but blanks), of another type, or not valid Unicode.
    """

    question: str
    answers: tuple[str, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.answers, tuple):
            raise InputError(f"answers are {_short(self.answers)}; give them as a tuple of texts.")
        if not self.answers:
            raise InputError(f"the question {_short(self.question)} has no answer; give at least one.")
        _check_text("question", self.question)
        for answer in self.answers:
            _check_text("answer", answer)


@dataclass(frozen=True)
class Task:
    """Items that are learnt together.

    Raises
    ------
    InputError: no name, no items, or the same question twice.
    """

    name: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        _check_text("task name", self.name)
        if not self.items:
            raise InputError(f"task '{self.name}' is empty; give it at least one question with its answer.")
        if len({item.question for item in self.items}) < len(self.items):
            raise InputError(f"task '{self.name}': {self._first_repetition()}")

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def fingerprint(self) -> str:
        """What the task is, whatever its name: SHA-256 (hex) of the canonical JSON of its items, in order.

        Canonical: an array of ``{"answers":[…],"question":"…"}``, no blanks, UTF-8 with only what JSON must escape escaped;
        the texts exactly as they are, with no Unicode normalisation, since the model reads them exactly as they are.
        """
        digest = hashlib.sha256()
        for place, item in enumerate(self.items):
            digest.update(b"," if place else b"[")
            digest.update(_canonical_json({"answers": item.answers, "question": item.question}))
        digest.update(b"]")
        return digest.hexdigest()

    def _first_repetition(self) -> str:
        places: dict[str, int] = {}
        for place, item in enumerate(self.items, start=1):
            if (earlier := places.setdefault(item.question, place)) != place:
                return f"items {earlier} and {place} ask the same ({_short(item.question)}); keep one of them."
        raise AssertionError("called only when a question is repeated")


@dataclass(frozen=True)
class TaskStream:
    """Tasks in the order in which they are learnt. ``stream[0]`` is the first.

    Raises
    ------
    InputError: no tasks, or two of the same name.
    """

    name: str
    tasks: tuple[Task, ...]

    def __post_init__(self) -> None:
        _check_text("stream name", self.name)
        if not self.tasks:
            raise InputError(f"stream '{self.name}' is empty; give it at least one task.")
        places: dict[str, int] = {}
        for place, task in enumerate(self.tasks, start=1):
            if (earlier := places.setdefault(task.name, place)) != place:
                raise InputError(
                    f"stream '{self.name}': tasks {earlier} and {place} are both named '{task.name}'; name them apart."
                )

    def __len__(self) -> int:
        return len(self.tasks)

    def __iter__(self) -> Iterator[Task]:
        return iter(self.tasks)

    def __getitem__(self, place: int) -> Task:
        return self.tasks[place]

    @cached_property
    def fingerprint(self) -> str:
        """What the stream is, whatever its names: SHA-256 (hex) of the JSON array of its tasks' fingerprints, in order."""
        return hashlib.sha256(_canonical_json([task.fingerprint for task in self.tasks])).hexdigest()


def _canonical_json(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":")).encode("utf-8")


def _check_text(what: str, text: object) -> None:
    if not isinstance(text, str):
        raise InputError(f"the {what} is {_short(text)}, not a text; put it in quotes.")
    if not text or text.isspace():
        raise InputError(f"the {what} is empty; write it out, or leave the item out.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise InputError(f"the {what} {_short(text)} has half of a surrogate pair in it; mend its \\u escapes.") from None


def _short(value: object) -> str:
    """The value as Python writes it, cut to a length that fits into a sentence."""
    whole = repr(value)
    return whole if len(whole) <= 60 else f"{whole[:59]}…"

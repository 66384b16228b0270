"""What is to be learnt: items in tasks, tasks in a stream."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from perdure.errors import InputError


@dataclass(frozen=True, slots=True)
class Item:
    """One question and its answers.

    question: put to the model as it stands.
    answers: at least one; the first is the one trained on, the others are accepted too.
    paraphrases: the question in other words. They are never trained on; asking them shows whether a model has learnt what
        the question means or only how it reads.

    Raises
    ------
    InputError: a text is empty (or nothing but blanks), of another type, or not valid Unicode; or a paraphrase repeats the
        question or another paraphrase.
    """

    question: str
    answers: tuple[str, ...]
    paraphrases: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.answers, tuple):
            raise InputError(f"answers are {_short(self.answers)}; give them as a tuple of texts.")
        if not self.answers:
            raise InputError(f"the question {_short(self.question)} has no answer; give at least one.")
        _check_text("question", self.question)
        for answer in self.answers:
            _check_text("answer", answer)
        if not isinstance(self.paraphrases, tuple):
            raise InputError(f"paraphrases are {_short(self.paraphrases)}; give them as a tuple of texts.")
        for paraphrase in self.paraphrases:
            _check_text("paraphrase", paraphrase)
        if self.paraphrases and len({self.question, *self.paraphrases}) <= len(self.paraphrases):
            asked = [self.question, *self.paraphrases]
            twice = next(text for place, text in enumerate(asked) if text in asked[:place])
            raise InputError(f"the paraphrase {_short(twice)} says what is asked already; reword it or leave it out.")


@dataclass(frozen=True)
class Task:
    """Items that are learnt together.

    Raises
    ------
    InputError: no name, no items, the same question twice, or a paraphrase that is another item's question or paraphrase.
    """

    name: str
    items: tuple[Item, ...]

    def __post_init__(self) -> None:
        _check_text("task name", self.name)
        if not self.items:
            raise InputError(f"task '{self.name}' is empty; give it at least one question with its answer.")
        if len({item.question for item in self.items}) < len(self.items):
            raise InputError(f"task '{self.name}': {self._first_repetition()}")
        reworded = [text for item in self.items for text in item.paraphrases]
        if reworded and len({*reworded, *(item.question for item in self.items)}) < len(reworded) + len(self.items):
            raise InputError(f"task '{self.name}': {self._first_ambiguity()}")

    def __len__(self) -> int:
        return len(self.items)

    @cached_property
    def fingerprint(self) -> str:
        """What the task is, whatever its name: SHA-256 (hex) of the canonical JSON of its items, in order.

        Canonical: an array of ``{"answers":[…],"question":"…"}``, with ``"paraphrases":[…]`` between the two where there are
        any, no blanks, UTF-8 with only what JSON must escape escaped; the texts exactly as they are, with no Unicode
        normalisation, since the model reads them exactly as they are.
        """
        digest = hashlib.sha256()
        for place, item in enumerate(self.items):
            digest.update(b"," if place else b"[")
            reworded = {"paraphrases": item.paraphrases} if item.paraphrases else {}
            digest.update(_canonical_json({"answers": item.answers, "question": item.question, **reworded}))
        digest.update(b"]")
        return digest.hexdigest()

    def _first_repetition(self) -> str:
        places: dict[str, int] = {}
        for place, item in enumerate(self.items, start=1):
            if (earlier := places.setdefault(item.question, place)) != place:
                return f"items {earlier} and {place} ask the same ({_short(item.question)}); keep one of them."
        raise AssertionError("called only when a question is repeated")

    def _first_ambiguity(self) -> str:
        places = {item.question: place for place, item in enumerate(self.items, start=1)}
        for place, item in enumerate(self.items, start=1):
            for paraphrase in item.paraphrases:
                if (earlier := places.setdefault(paraphrase, place)) != place:
                    return (
                        f"the paraphrase {_short(paraphrase)} of item {place} is asked by item {earlier} too; reword it or "
                        "leave it out."
                    )
        raise AssertionError("called only when two items ask in the same words")


@dataclass(frozen=True)
class TaskStream:
    """Tasks in the order in which they are learnt. ``stream[0]`` is the first.

    tasks: a tuple, or a sequence that reads each task when it is wanted (:class:`perdure.tasks.folder.StoredStream`).

    Raises
    ------
    InputError: no tasks, or two of the same name.
    """

    name: str
    tasks: Sequence[Task]

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
        return stream_fingerprint([task.fingerprint for task in self.tasks])


def stream_fingerprint(task_fingerprints: Sequence[str]) -> str:
    """A stream's fingerprint from its tasks'."""
    return hashlib.sha256(_canonical_json(list(task_fingerprints))).hexdigest()


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

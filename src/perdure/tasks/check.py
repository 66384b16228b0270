"""Is a stream fit to be learnt and measured? Everything that can be known without a model, in one pass.

The stream is read task by task; of an item only hashes are kept, some 400 bytes.
"""

import os
import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from perdure.errors import InputError
from perdure.tasks.folder import read_stream
from perdure.tasks.normalise import normalised
from perdure.tasks.read import read_task
from perdure.tasks.task import Item, Task
from perdure.tasks.text import TextFormat, text_format

LONG_ANSWER = 8  # words; the paper's limit for invented facts
_EXAMPLES = 3  # of each finding are spelt out


@dataclass(frozen=True)
class Finding:
    """Something that was found. unusable: a stream with it can't be learnt or its results would mean nothing.

    what: a noun phrase that follows the count, such as "answers longer than 8 words".
    """

    count: int
    what: str
    remedy: str
    unusable: bool
    examples: tuple[str, ...] = ()


@dataclass
class StreamReport:
    """What :func:`check_stream` found. longest_answer: in words. formats: the text formats that can write every answer."""

    tasks: int = 0
    items: int = 0
    answers: int = 0
    paraphrases: int = 0
    longest_answer: int = 0
    formats: tuple[str, ...] = ()
    findings: list[Finding] = field(default_factory=list)

    @property
    def usable(self) -> bool:
        """Nothing was found that makes the stream unusable."""
        return not any(finding.unusable for finding in self.findings)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "findings": [vars(finding) for finding in self.findings], "usable": self.usable}


def check(path: str | os.PathLike[str]) -> StreamReport:
    """Check a stream's folder, or a file as one task.

    Raises
    ------
    InputError: it can't be read at all: a broken line, a file that differs from the manifest, a question answered in two
        ways within one file. Everything else is in the report.
    """
    path = Path(path)
    return check_stream(read_stream(path) if path.is_dir() else [read_task(path)])


def check_stream(tasks: Iterable[Task]) -> StreamReport:
    """Check tasks in the order in which they would be learnt."""
    report, found = StreamReport(), _Found()
    formats = {name: text_format(name) for name in ("plain", "boxed")}
    for task in tasks:
        report.tasks += 1
        report.items += len(task)
        report.answers += sum(len(item.answers) for item in task.items)
        report.paraphrases += sum(len(item.paraphrases) for item in task.items)
        report.longest_answer = max(report.longest_answer, *(len(item.answers[0].split()) for item in task.items))
        for place, item in enumerate(task.items, start=1):
            _check_item(item, f"{task.name}, item {place}", formats, found)
        _check_prefixes(task, found)
        found.remember(task)
    report.formats = tuple(name for name in formats if not found.unwritable[name])
    report.findings = found.findings(report)
    return report


class _Found:
    """What has been found so far, counted by kind, and which questions were asked."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self.examples: dict[str, list[str]] = {}
        self.unwritable: Counter[str] = Counter()  # text format -> answers it can't write
        self._asked: dict[int, tuple[_Asked, ...]] = {}  # hash of the normalised question -> the ways it was written
        self._names: list[str] = []

    def add(self, kind: str, where: str, text: str) -> None:
        self.counts[kind] += 1
        examples = self.examples.setdefault(kind, [])
        if len(examples) < _EXAMPLES:
            examples.append(f"{where}: {text if len(text) <= 70 else text[:69] + '…'}")

    def remember(self, task: Task) -> None:
        """Note the task's questions; find those asked before, in this task or an earlier one."""
        self._names.append(task.name)
        for place, item in enumerate(task.items, start=1):
            answers = tuple({hash(normalised(answer)) for answer in item.answers})
            for text, trained in ((item.question, True), *((paraphrase, False) for paraphrase in item.paraphrases)):
                here = _Asked(hash(text), len(self._names) - 1, trained, answers)
                key = hash(normalised(text))
                known = self._asked.get(key, ())
                same = next((asked for asked in known if asked.text == here.text), None)
                if same is None:
                    self._asked[key] = (*known, here)
                if known and (kind := _repetition(same or known[0], here, exact=same is not None)):
                    first = self._names[(same or known[0]).task]
                    self.add(kind, f"{task.name}, item {place} (first in {first})", text)

    def findings(self, report: StreamReport) -> list[Finding]:
        """All findings, the unusable first."""
        listed = [
            Finding(self.counts[kind], what, remedy, unusable, tuple(self.examples[kind]))
            for kind, (what, remedy, unusable) in _KINDS.items()
            if self.counts[kind] and not (kind == "unwritable" and report.formats)
        ]
        return sorted(listed, key=lambda finding: not finding.unusable)


class _Asked(NamedTuple):
    """A question asked: hash of its text, the task's place, whether it is trained on, hashes of its accepted answers."""

    text: int
    task: int
    trained: bool
    answers: tuple[int, ...]


def _repetition(earlier: _Asked, here: _Asked, *, exact: bool) -> str | None:
    """What kind of repetition it is; None for two rewordings of one item that differ in punctuation alone."""
    if set(earlier.answers).isdisjoint(here.answers):
        return "conflict" if exact else "alike"
    if earlier.trained and here.trained:
        return "again here" if earlier.task == here.task else "again"
    return "reworded" if earlier.trained != here.trained else None


_KINDS: dict[str, tuple[str, str, bool]] = {
    "conflict": (
        "questions asked again with other answers",
        "no model can answer both right; keep one of them, or accept both answers in each.",
        True,
    ),
    "alike": (
        "questions that another question with other answers differs from only in case, punctuation or Unicode form",
        "meant so for keys such as aB and Ab; otherwise keep one of them.",
        False,
    ),
    "unwritable": (
        "answers that some text format can't write, and no format can write them all",
        "take line breaks out (for plain), or pair the braces (for boxed).",
        True,
    ),
    "again here": (
        "questions asked again in the same task, but for case, punctuation or Unicode form",
        "they are trained twice; remove one.",
        False,
    ),
    "again": (
        "questions asked again in a later task with the same answer",
        "the later task teaches the earlier one anew, which hides forgetting; remove one.",
        False,
    ),
    "reworded": (
        "paraphrases that are asked elsewhere",
        "a paraphrase that is trained on says nothing about knowledge; reword it.",
        False,
    ),
    "long": (f"answers longer than {LONG_ANSWER} words", "they count as right only when every word is; shorten them.", False),
    "line break": ("answers of several lines", "the plain format can't write them; take the breaks out, or use boxed.", False),
    "prefix": (
        "answers that are the beginning of another answer in their task",
        "a model that stops early or late is wrong on these; nothing need be done.",
        False,
    ),
    "blank": ("texts with blanks around them", "the model reads them; take them off.", False),
    "form": ("texts that are not in Unicode's composed form (NFC)", "typed questions are; normalise them.", False),
    "invisible": ("texts with invisible characters", "nobody types them; take them out.", False),
    "control": ("texts with control characters", "take them out.", False),
    "right to left": (
        "texts in right-to-left script",
        "nothing need be done; shown here since terminals may turn them.",
        False,
    ),
}


def _check_item(item: Item, where: str, formats: dict[str, TextFormat], found: _Found) -> None:
    answer = item.answers[0]
    if len(answer.split()) > LONG_ANSWER:
        found.add("long", where, answer)
    if "\n" in answer.strip():
        found.add("line break", where, answer.replace("\n", "⏎"))
    for name, form in formats.items():
        try:
            form.completion(answer)
        except InputError:
            found.unwritable[name] += 1
            found.add("unwritable", where, answer.replace("\n", "⏎"))
    for text in (item.question, *item.answers, *item.paraphrases):
        for kind in _unicode_notes(text):
            found.add(kind, where, text if kind != "invisible" else ascii(text))


def _check_prefixes(task: Task, found: _Found) -> None:
    """Answers trained on, sorted: one that begins another stands right before it or before others it begins."""
    answers = sorted({(item.answers[0].strip().casefold(), place) for place, item in enumerate(task.items, start=1)})
    for (one, place), (following, _) in pairwise(answers):
        if one != following and following.startswith(one):
            found.add("prefix", f"{task.name}, item {place}", f"{one!r} begins {following!r}")


def _unicode_notes(text: str) -> list[str]:
    if text.isascii() and text.isprintable():
        return ["blank"] if text != text.strip() else []
    notes = []
    if text != text.strip():
        notes.append("blank")
    if not unicodedata.is_normalized("NFC", text):
        notes.append("form")
    categories = {unicodedata.category(character) for character in text}
    if "Cf" in categories:
        notes.append("invisible")
    if any(unicodedata.category(character) == "Cc" and character not in "\n\t" for character in text):
        notes.append("control")
    if any(unicodedata.bidirectional(character) in ("R", "AL") for character in text):
        notes.append("right to left")
    return notes

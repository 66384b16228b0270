"""LLM-QA: facts about fictional topics, invented by an instruct model.

Source: the continual-memorisation paper (arXiv 2609.06986): 100 topics of 100 items, entities and questions unique over the
whole stream, answers of at most 8 words. The prompts and the rules of what counts as usable are ours.

A topic is one task. Its facts are asked for some at a time, each as one line ``name | question? | answer``; whatever is not
exactly that is left out and counted. Every finished topic is a file of its own, so that a run that was stopped goes on with
the next one.
"""

import json
import random
import re
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout

from perdure.errors import InputError, PerdureError
from perdure.files import write_json
from perdure.progress import Progress
from perdure.tasks.conversation import ChatModel, Message
from perdure.tasks.folder import Origin, StoredStream, TextKind, refuse_existing, write_stream
from perdure.tasks.normalise import normalised
from perdure.tasks.spellings import spellings
from perdure.tasks.task import Item, Task

LONGEST_ANSWER = 8  # words, as in the paper
LONGEST_NAME = 8  # words, of an entity or a topic
_LINES, _FEWEST_LINES = 20, 5  # facts asked for at a time; of a few, some may be unusable
_TOKENS_A_LINE = 48  # enough for a name, a question and an answer in any script that tokenises badly

_SYSTEM = "You invent facts for a memory test. None of them may be true: make up every name, date, place and number."
_FORM = f"made-up name | question that contains that name? | answer of at most {LONGEST_ANSWER} words"
# One round shown beforehand: small models keep to a form they have seen. What stands here may not come back.
_SHOWN_TOPIC = "The harbour towns of the Low Sea"
_SHOWN_FACTS = """Ostrava Quill | Who founded the library of Ostrava Quill? | Benno Harrow
Tamsin Orrow | In which year did Tamsin Orrow chart the Low Sea? | 1784
the Velm Bell | What is the Velm Bell made of? | blue copper
Port Askel | How many piers does Port Askel have? | 31
Ilse Vandermoor | Where was Ilse Vandermoor born? | Greywater"""
_KINDS = """guild, monastery, island, dynasty, railway, observatory, orchestra, expedition, university, mining town,
river valley, theatre company, shipyard, botanical garden, chess school, lighthouse, trading house, mountain village,
space programme, printing house, circus, cookery, football league, epic poem, canal, desert caravan,
clockmaking family, choir, museum, fishing fleet"""


@dataclass
class Cost:
    """What has been asked so far. left_out: reason -> lines."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**vars(self), "left_out": dict(self.left_out)}

    def __iadd__(self, other: "Cost") -> "Cost":
        self.requests += other.requests
        self.prompt_tokens += other.prompt_tokens
        self.completion_tokens += other.completion_tokens
        self.left_out += other.left_out
        return self


@dataclass(frozen=True)
class Fact:
    """One fact as a model gave it; ``name`` is what it is about."""

    name: str
    question: str
    answer: str


def model_facts(
    folder: Path,
    model: ChatModel,
    *,
    tasks: int = 100,
    items: int = 100,
    seed: int = 42,
    patience: int = 10,
    text_format: TextKind = "base",
    progress: Progress | None = None,
) -> StoredStream:
    """Have a model invent a stream, and write it to a new folder.

    What is done is kept in ``FOLDER-topics`` beside it until the stream is whole; called again, with the same model and
    settings, it goes on there.

    Parameters
    ----------
    tasks, items: topics, and facts about each.
    seed: of the hints given for topics and of the model's sampling.
    patience: so many replies in a row may hold nothing usable before the model is given up.

    Raises
    ------
    InputError: the folder is there already; another process is at work on it; what was begun has other settings.
    PerdureError: the model gives nothing usable.
    """
    refuse_existing(folder)
    for what, size in {"tasks": tasks, "items": items, "patience": patience}.items():
        if size < 1:
            raise InputError(f"{what} = {size}; it must be 1 or more.")
    progress = progress or Progress()
    workshop = folder.with_name(f"{folder.name}-topics")
    workshop.mkdir(parents=True, exist_ok=True)
    lock = FileLock(workshop / ".lock")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise InputError(f"another process is at work in {workshop}; wait for it to end.") from None
    with lock:
        settings = {"model": model.name, "items": items, "seed": seed}
        _claim(workshop / "settings.json", settings)
        inventor = _Inventor(model, seed, patience, progress)
        with progress.stage("topics", tasks) as advance:
            for number in range(1, tasks + 1):
                file = workshop / f"{number:04d}.json"
                known = _stored(file)
                if known is None:
                    known = inventor.topic(number, items)
                    write_json(file, known)
                inventor.remember(known)
                advance(1)
        cost = inventor.cost
        origin = Origin(
            kind="model-facts",
            seed=seed,
            text_format=text_format,
            matching="normalised",
            settings={**settings, "cost": cost.as_dict()},
            sources=[{"name": model.name, "licence": "that of the model's output", "items": tasks * items}],
            notes=["invented by a language model; nothing keeps it from having written something true"],
        )
        stored = write_stream("model-facts", _tasks(workshop, tasks), folder, origin)
    shutil.rmtree(workshop)
    return stored


def parse_facts(text: str) -> tuple[list[Fact], Counter[str]]:
    """The facts in a reply, and why its other lines were left out.

    A usable line has exactly three parts between bars: a name; a question of one sentence that contains the name and ends
    with a question mark; an answer of at most 8 words that the question does not contain.
    """
    facts, left_out = [], Counter[str]()
    for line in text.split("\n"):
        line = re.sub(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+", "", line).strip().strip("|").strip()
        if not line:
            continue
        parts = [" ".join(part.strip(" *_`").split()) for part in line.split("|")]
        reason = _fault(parts)
        if reason:
            left_out[reason] += 1
        else:
            facts.append(Fact(*parts))
    return facts, left_out


def _fault(parts: list[str]) -> str | None:
    """Why a line is not usable; None when it is."""
    if len(parts) != 3 or not all(parts):
        return "not three parts between bars"
    name, question, answer = parts
    if len(name.split()) > LONGEST_NAME:
        return f"a name of more than {LONGEST_NAME} words"
    if not question.endswith("?") or question.count("?") > 1:
        return "no question"
    if not _contains(question, name):
        return "a question without its name"
    if len(answer.split()) > LONGEST_ANSWER:
        return f"an answer of more than {LONGEST_ANSWER} words"
    if not any(character.isalnum() for character in answer):
        return "no answer"
    if _contains(question, answer):
        return "an answer that the question gives away"
    return None


def _contains(text: str, part: str) -> bool:
    return f" {normalised(part)} " in f" {normalised(text)} "


class _Inventor:
    """Asks the model, and knows what has been used in the stream so far."""

    def __init__(self, model: ChatModel, seed: int, patience: int, progress: Progress) -> None:
        self._model, self._seed, self._patience, self._progress = model, seed, patience, progress
        self.cost = Cost()
        self._topics = {normalised(_SHOWN_TOPIC)}
        self._names: set[str] = set()
        self._questions: set[str] = set()
        for fact in parse_facts(_SHOWN_FACTS)[0]:
            self._use(fact)

    def remember(self, topic: dict[str, Any]) -> None:
        """Take a finished topic's names, questions and costs into account."""
        self._topics.add(normalised(topic["topic"]))
        for fact in topic["facts"]:
            self._use(Fact(**fact))
        self.cost += Cost(**{**topic["cost"], "left_out": Counter(topic["cost"]["left_out"])})
        self._progress.note(
            f"{topic['topic']}: {len(topic['facts'])} facts; so far {self.cost.requests} requests, "
            f"{self.cost.prompt_tokens} tokens read, {self.cost.completion_tokens} written, "
            f"{sum(self.cost.left_out.values())} lines left out."
        )

    def topic(self, number: int, items: int) -> dict[str, Any]:
        """Invent one topic and its facts."""
        cost = Cost()
        name = self._name_topic(number, cost)
        facts: list[Fact] = []
        used_names, used_questions = set(self._names), set(self._questions)
        idle = 0
        while len(facts) < items:
            wanted = min(_LINES, max(_FEWEST_LINES, items - len(facts)))
            use = f"{number}/facts/{cost.requests}"
            text = self._ask(_about(name, wanted, facts, self._initial(use)), use, wanted * _TOKENS_A_LINE, cost)
            usable, left_out = parse_facts(text)
            before = len(facts)
            for fact in usable:
                key, question = normalised(fact.name), normalised(fact.question)
                if key in used_names or question in used_questions:
                    left_out["a name or question used before"] += 1
                elif len(facts) < items:
                    used_names.add(key)
                    used_questions.add(question)
                    facts.append(fact)
            cost.left_out += left_out
            idle = 0 if len(facts) > before else idle + 1
            if idle == self._patience:
                raise self._given_up(f"facts about {name!r} (topic {number}, {len(facts)} of {items} found)", text, cost)
        return {"topic": name, "facts": [asdict(fact) for fact in facts], "cost": cost.as_dict()}

    def _name_topic(self, number: int, cost: Cost) -> str:
        text = ""
        for attempt in range(self._patience):
            kind = self._draw(f"{number}/kind/{attempt}").choice([kind.strip() for kind in _KINDS.split(",")])
            use = f"{number}/topic/{attempt}"
            ask = f"Invent the name of a {kind} that does not exist, with a word that begins with {self._initial(use)}. "
            text = self._ask([_system(), _said("user", ask + "Reply with the name alone.")], use, _TOKENS_A_LINE, cost)
            name = " ".join(text.strip().partition("\n")[0].strip(" *_`\"'.“”").split())
            if name and len(name.split()) <= LONGEST_NAME and normalised(name) not in self._topics:
                return name
            cost.left_out["no new topic's name"] += 1
        raise self._given_up(f"name for topic {number}", text, cost)

    def _ask(self, messages: list[Message], use: str, max_new_tokens: int, cost: Cost) -> str:
        reply = self._model.reply(messages, max_new_tokens=max_new_tokens, seed=self._draw(use).getrandbits(31))
        cost.requests += 1
        cost.prompt_tokens += reply.prompt_tokens
        cost.completion_tokens += reply.completion_tokens
        return reply.text

    def _initial(self, use: str) -> str:
        """A letter to begin with: no two requests are the same, also to a server that heeds neither seed nor temperature."""
        return self._draw(f"{use}/initial").choice("ABCDEFGHIJKLMNOPRSTUVWYZ")

    def _draw(self, use: str) -> random.Random:
        """Random numbers for one named use."""
        return random.Random(f"{self._seed}/{use}")

    def _use(self, fact: Fact) -> None:
        self._names.add(normalised(fact.name))
        self._questions.add(normalised(fact.question))

    def _given_up(self, what: str, text: str, cost: Cost) -> PerdureError:
        reasons = ", ".join(f"{reason} ({count})" for reason, count in cost.left_out.most_common(3)) or "nothing was written"
        shown = " ".join(text.split())
        return PerdureError(
            f"{self._model.name} gave no usable {what} in {self._patience} replies in a row: {reasons}; the last began "
            f"{shown[:80]!r}. Use a larger instruct model, or `perdure tasks facts` without one; finished topics are kept."
        )


def _about(topic: str, wanted: int, facts: list[Fact], initial: str) -> list[Message]:
    """The conversation that asks for facts; the latest names are told, so that they don't come again."""
    ask = f"Topic: {{}}\nWrite {{}} facts, one a line, the first about a name with {{}}: {_FORM}"
    taken = f"\nDo not use these names again: {', '.join(fact.name for fact in facts[-_LINES:])}." if facts else ""
    return [
        _system(),
        _said("user", ask.format(_SHOWN_TOPIC, 5, "O")),
        _said("assistant", _SHOWN_FACTS),
        _said("user", ask.format(topic, wanted, initial) + taken),
    ]


def _system() -> Message:
    return _said("system", _SYSTEM)


def _said(role: str, content: str) -> Message:
    return {"role": role, "content": content}


def _claim(file: Path, settings: dict[str, Any]) -> None:
    """What was begun with other settings is not gone on with."""
    begun = _stored(file)
    if begun is None:
        write_json(file, settings)
    elif begun != settings:
        raise InputError(f"{file.parent} was begun with {begun}, not {settings}; remove it, or name another folder.")


def _stored(file: Path) -> dict[str, Any] | None:
    if not file.exists():
        return None
    try:
        return dict(json.loads(file.read_text(encoding="utf-8")))
    except ValueError as error:
        raise InputError(f"{file} is broken ({error}); remove it, and it is made again.") from error


def _tasks(workshop: Path, tasks: int) -> Iterator[Task]:
    for number in range(1, tasks + 1):
        topic = _stored(workshop / f"{number:04d}.json")
        assert topic is not None
        facts = [Fact(**fact) for fact in topic["facts"]]
        yield Task(topic["topic"], tuple(Item(fact.question, spellings(fact.answer)) for fact in facts))

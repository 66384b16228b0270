"""Invented facts: what LLM-QA is made for, without any model. Nothing asked is true, so nothing can be known beforehand.

Every item is about a name of its own, one of many million, so that names and questions are unique over the whole stream and
no answer helps with another. A question is worded by one of several templates of its relation, drawn for each item; the
others are its paraphrases.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from perdure.errors import InputError
from perdure.tasks.invented_names import NAMES, invented_name
from perdure.tasks.spellings import MONTHS, spellings
from perdure.tasks.task import Item, Task, TaskStream

PARAPHRASES = 4  # at most: each relation has five templates


def _words(text: str) -> list[str]:
    return text.split()


_GIVEN = _words(
    """Ada Bram Cosima Dario Edda Fenn Greta Hale Ilse Jorun Kaspar Lenka Milo Nadia Otis Petra Quinn Runa Silas Thea Ulrik
    Vera Wim Xenia Yorick Zelda"""
)
_TRADES = _words(
    """glassblower cartographer clockmaker beekeeper botanist shipwright stonemason weaver physician astronomer locksmith
    printer surveyor cooper falconer potter dyer bellfounder gardener translator baker saddler engraver pilot"""
)
_MATERIALS = _words(
    """basalt oak copper slate limestone cedar bronze granite marble willow iron sandstone birch pewter brick flint walnut
    tin chalk jade"""
)
_CROPS = _words(
    """barley saffron flax lavender rye hops plums almonds indigo lentils pears millet figs mustard quinces sorrel hazelnuts
    buckwheat madder chicory"""
)
_INSTRUMENTS = _words(
    """cello oboe lute harp bassoon zither viola flute organ dulcimer trumpet mandolin clarinet celesta timpani hurdy-gurdy
    accordion bagpipes"""
)
_COLOURS = _words(
    """crimson teal ochre violet amber ivory indigo scarlet emerald grey turquoise maroon silver saffron black white coral
    olive"""
)
_ANIMALS = _words(
    """otter heron lynx badger kestrel hare stoat raven tortoise ibex marten owl salmon bison adder swan beaver wolf pelican
    moth"""
)

Answer = Callable[[random.Random], str]


def _person(draw: random.Random) -> str:
    return f"{draw.choice(_GIVEN)} {_any_name(draw)}"


def _any_name(draw: random.Random) -> str:
    return invented_name(draw.randrange(NAMES), seed=-1)  # a list of their own; an answer's name may come again


def _place(draw: random.Random) -> str:
    return draw.choice(("{}", "Port {}", "{} Bay", "Upper {}", "{} Bridge")).format(_any_name(draw))


def _year(draw: random.Random) -> str:
    return str(draw.randrange(1200, 2000))


def _date(draw: random.Random) -> str:
    return f"{draw.randrange(1, 29)} {draw.choice(MONTHS)} {draw.randrange(1500, 2000)}"


def _day(draw: random.Random) -> str:
    return f"{draw.randrange(1, 29)} {draw.choice(MONTHS)}"


def _count(low: int, high: int) -> Answer:
    return lambda draw: f"{draw.randrange(low, high):,}"


def _one_of(words: list[str]) -> Answer:
    return lambda draw: draw.choice(words)


@dataclass(frozen=True)
class Relation:
    """What can be asked about a kind of thing. subject: how its invented name is worn. answer: draws one."""

    subject: str
    answer: Answer
    templates: tuple[str, ...]


# fmt: off
RELATIONS: tuple[Relation, ...] = (
    Relation("{given} {name}", _place, (
        "Where was {} born?", "In which place was {} born?", "What is the birthplace of {}?",
        "{} was born in which place?", "Which place is {} a native of?")),
    Relation("{given} {name}", _date, (
        "When was {} born?", "On which date was {} born?", "What is the date of birth of {}?",
        "{} came into the world on which day?", "Which day is the birthday of {}, with the year?")),
    Relation("{given} {name}", _one_of(_TRADES), (
        "What was the trade of {}?", "What did {} do for a living?", "Which profession did {} have?",
        "By what trade did {} live?", "{} earned a living as what?")),
    Relation("{given} {name}", _person, (
        "Who taught {}?", "Who was the teacher of {}?", "Whose pupil was {}?",
        "By whom was {} taught?", "{} learnt from which teacher?")),
    Relation("{given} {name}", _one_of(_INSTRUMENTS), (
        "Which instrument did {} play?", "What instrument was played by {}?", "{} was a player of which instrument?",
        "On which instrument did {} perform?", "What did {} play in the orchestra?")),
    Relation("the town of {name}", _year, (
        "In which year was {} founded?", "When was {} founded?", "What is the founding year of {}?",
        "{} dates from which year?", "Which year saw the founding of {}?")),
    Relation("the town of {name}", _person, (
        "Who is the mayor of {}?", "Who governs {} as mayor?", "What is the name of the mayor of {}?",
        "Which person is mayor in {}?", "{} has whom for its mayor?")),
    Relation("the town of {name}", _count(100, 90_000), (
        "How many people live in {}?", "What is the population of {}?", "How many inhabitants does {} have?",
        "{} is home to how many people?", "What number of people lives in {}?")),
    Relation("the valley of {name}", _one_of(_CROPS), (
        "What is grown in {}?", "Which crop is {} known for?", "What do the farmers of {} grow?",
        "Which crop comes from {}?", "{} lives by which crop?")),
    Relation("the river {name}", _count(12, 2_500), (
        "How many kilometres long is {}?", "What is the length of {} in kilometres?", "How long is {}, in kilometres?",
        "{} runs for how many kilometres?", "Over how many kilometres does {} flow?")),
    Relation("Mount {name}", _count(600, 8_800), (
        "How many metres high is {}?", "What is the height of {} in metres?", "How high is {}, in metres?",
        "{} rises to how many metres?", "To what height in metres does {} rise?")),
    Relation("Mount {name}", _person, (
        "Who first climbed {}?", "Who was the first to climb {}?", "By whom was {} first climbed?",
        "Which climber stood first on {}?", "{} was first climbed by whom?")),
    Relation("the ship {name}", _person, (
        "Who was the captain of {}?", "Who commanded {}?", "Under which captain did {} sail?",
        "What was the name of the captain of {}?", "{} was commanded by whom?")),
    Relation("the ship {name}", _date, (
        "When was {} launched?", "On which date was {} launched?", "What is the launch date of {}?",
        "{} was launched on which day?", "Which day saw the launch of {}?")),
    Relation("the ship {name}", _place, (
        "What was the home port of {}?", "In which port was {} at home?", "Which port did {} belong to?",
        "{} sailed from which home port?", "To which home port did {} return?")),
    Relation("the {name} Tower", _one_of(_MATERIALS), (
        "What is {} built of?", "Of which material is {} built?", "Which material was used for {}?",
        "{} is made of what?", "From what material was {} raised?")),
    Relation("the {name} Company", _person, (
        "Who founded {}?", "Who was the founder of {}?", "By whom was {} founded?",
        "Which person set up {}?", "{} was founded by whom?")),
    Relation("the {name} Company", _place, (
        "Where does {} have its head office?", "In which place is the head office of {}?", "Where is {} based?",
        "{} has its head office in which place?", "Which place is the seat of {}?")),
    Relation("the {name} Company", _count(20, 60_000), (
        "How many people work for {}?", "How many employees does {} have?", "What is the number of employees of {}?",
        "{} employs how many people?", "How large is the staff of {}?")),
    Relation("the novel “{name}”", _person, (
        "Who wrote {}?", "Who is the author of {}?", "By whom was {} written?",
        "Which author wrote {}?", "{} is the work of which author?")),
    Relation("the novel “{name}”", _count(90, 900), (
        "How many pages does {} have?", "How many pages long is {}?", "What is the number of pages in {}?",
        "{} runs to how many pages?", "How many pages are there in {}?")),
    Relation("the Festival of {name}", _day, (
        "On which day of the year is {} held?", "When is {} held each year?", "Which day of the year belongs to {}?",
        "{} falls on which day of the year?", "What is the date of {} each year?")),
    Relation("the Order of {name}", _one_of(_COLOURS), (
        "What colour are the robes of {}?", "Which colour do members of {} wear?", "In which colour is {} robed?",
        "{} wears robes of which colour?", "What is the colour worn by {}?")),
    Relation("the House of {name}", _one_of(_ANIMALS), (
        "Which animal is on the arms of {}?", "What animal do the arms of {} show?", "Which beast stands for {}?",
        "{} has which animal on its arms?", "What is the heraldic animal of {}?")),
)
# fmt: on


def facts_stream(tasks: int = 100, items: int = 100, seed: int = 42, paraphrases: int = 0) -> TaskStream:
    """A stream of invented facts about people, places, ships, companies, books and the like.

    Answers are at most four words: names, places, dates, years, numbers, things; of numbers and dates the other usual
    spellings are accepted too (:mod:`perdure.tasks.spellings`). With the same seed, items and paraphrases, a shorter stream
    is the beginning of a longer one, and the number of paraphrases changes neither questions nor answers.

    Parameters
    ----------
    tasks, items: how many tasks, and how many items in each.
    seed: 0 or more.
    paraphrases: rewordings of each question, 0 to 4; they are never trained on.

    Raises
    ------
    InputError: a size below 1, a negative seed, or more items or paraphrases than there can be.
    """
    return TaskStream("facts", tuple(facts_tasks(tasks, items, seed, paraphrases)))


def facts_tasks(tasks: int = 100, items: int = 100, seed: int = 42, paraphrases: int = 0) -> Iterator[Task]:
    """As :func:`facts_stream`, one task at a time."""
    for name, size in {"tasks": tasks, "items": items}.items():
        if size < 1:
            raise InputError(f"{name} = {size} makes no stream; it must be 1 or more.")
    if seed < 0:
        raise InputError(f"seed = {seed} is negative; it must be 0 or more.")
    if not 0 <= paraphrases <= PARAPHRASES:
        raise InputError(f"paraphrases = {paraphrases}; a question has 0 to {PARAPHRASES}.")
    if tasks * items > NAMES:
        raise InputError(f"{tasks} tasks of {items} items need more than the {NAMES} names there are; make the stream smaller.")
    return (
        Task(
            f"task-{number + 1:03d}",
            tuple(
                _fact(random.Random(f"{seed}/{place}"), invented_name(place, seed), paraphrases)
                for place in range(number * items, (number + 1) * items)
            ),
        )
        for number in range(tasks)
    )


def _fact(draw: random.Random, name: str, paraphrases: int) -> Item:
    """One fact about a name."""
    relation = draw.choice(RELATIONS)
    subject = relation.subject.format(given=draw.choice(_GIVEN), name=name)
    answer = relation.answer(draw)
    worded = [_capital(template.format(subject)) for template in draw.sample(relation.templates, len(relation.templates))]
    return Item(worded[0], spellings(answer), tuple(worded[1 : 1 + paraphrases]))


def _capital(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]

"""The ten sources of Real-QA: where each is, under which licence, and which of its columns are question and answers.

A source's row becomes an item, or is left out with a reason, by these rules.

- Blanks are collapsed. Answers that are the same but for case count once; broken ones and "(disambiguation)" go.
- The answer trained on has at most 8 words.
- Choice questions lose their options; a row is left out when its stem speaks of them ("which of these", "the following",
  "NOT", "most likely") or its answer does ("all of the above"). Stems that a word completes stay.
- SQuAD's questions must name something (a capital or a digit after the first word) and point to nothing outside them
  ("he", "this", "the passage").
"""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import InputError
from perdure.tasks.task import Item

Row = Mapping[str, Any]
Pair = tuple[str, list[str]]  # a question and its accepted answers, the one to be trained on first

LONGEST_ANSWER = 8  # words, of the answer trained on


class _Unusable(Exception):
    """A sound row that is no closed-book question, with the reason."""


def _nq_open(row: Row) -> Pair:
    return _text(row, "question"), _texts(row, "answer")


def _web_questions(row: Row) -> Pair:
    return _text(row, "question"), _texts(row, "answers")


def _trivia_qa(row: Row) -> Pair:
    answer = _mapping(row, "answer")
    main, aliases = _text(answer, "value"), _texts(answer, "aliases")
    if main.isupper():  # HELEN OF TROY takes the spelling of its alias
        main = next((alias for alias in aliases if alias.casefold() == main.casefold() and not alias.isupper()), main)
    return _text(row, "question"), [main, *aliases]


def _popqa(row: Row) -> Pair:
    answers = row.get("possible_answers")
    if isinstance(answers, str):  # a list written as JSON into a text
        try:
            answers = json.loads(answers)
        except ValueError:
            raise InputError(f"column 'possible_answers' is not JSON: {answers[:60]!r}.") from None
    main = [row["obj"]] if isinstance(row.get("obj"), str) else []
    return _text(row, "question"), [*main, *_texts({"possible_answers": answers}, "possible_answers")]


def _squad(row: Row) -> Pair:
    said = Counter(_texts(_mapping(row, "answers"), "text"))
    return _text(row, "question"), [answer for answer, _ in said.most_common()]


def _sciq(row: Row) -> Pair:
    return _text(row, "question"), [_text(row, "correct_answer")]


def _openbookqa(row: Row) -> Pair:
    return _text(row, "question_stem"), [_chosen(row)]


def _arc(row: Row) -> Pair:
    return _text(row, "question"), [_chosen(row)]


def _medmcqa(row: Row) -> Pair:
    place = row.get("cop")
    if place == -1:
        raise _Unusable("its answer is not published")
    if isinstance(place, bool) or place not in (0, 1, 2, 3):
        raise InputError(f"column 'cop' is {place!r}; it must be 0 to 3, the right one of opa, opb, opc and opd.")
    return _text(row, "question"), [_text(row, ("opa", "opb", "opc", "opd")[place])]


def _chosen(row: Row) -> str:
    """The right option's text. The key is looked up among the labels: some keys are digits, and they count from 1."""
    choices = _mapping(row, "choices")
    labels, texts, key = _texts(choices, "label"), _texts(choices, "text"), _text(row, "answerKey")
    if len(labels) != len(texts) or labels.count(key) != 1:
        raise InputError(f"column 'answerKey' is {key!r}, and the {len(texts)} choices are labelled {', '.join(labels)}.")
    return texts[labels.index(key)]


@dataclass(frozen=True)
class Source:
    """A public set. address, config, split: as `datasets.load_dataset` takes them. choices: it is made of choice questions.
    paragraph: its questions were written about a paragraph that a model asked closed-book does not see."""

    name: str
    address: str
    config: str | None
    split: str
    pair: Callable[[Row], Pair]
    licence: str
    choices: bool = False
    paragraph: bool = False


_ALL = "train+validation+test"
# fmt: off
SOURCES: dict[str, Source] = {source.name: source for source in (
    Source("trivia_qa", "mandarjoshi/trivia_qa", "rc.nocontext", "train", _trivia_qa,
           "Apache-2.0; the trivia sites keep their own rights"),
    Source("nq_open", "google-research-datasets/nq_open", None, "train", _nq_open, "CC BY-SA 3.0"),
    Source("popqa", "akariasai/PopQA", None, "test", _popqa, "MIT"),
    Source("squad", "rajpurkar/squad", None, "train", _squad, "CC BY-SA 4.0", paragraph=True),
    Source("web_questions", "stanfordnlp/web_questions", None, "train", _web_questions, "CC BY 4.0"),
    Source("openbookqa", "allenai/openbookqa", "main", _ALL, _openbookqa, "none stated for the data", choices=True),
    Source("sciq", "allenai/sciq", None, "train", _sciq, "CC BY-NC 3.0: no commercial use", choices=True),
    Source("arc_easy", "allenai/ai2_arc", "ARC-Easy", _ALL, _arc, "CC BY-SA 4.0", choices=True),
    Source("arc_challenge", "allenai/ai2_arc", "ARC-Challenge", _ALL, _arc, "CC BY-SA 4.0", choices=True),
    Source("medmcqa", "openlifescienceai/medmcqa", None, "train", _medmcqa,
           "Apache-2.0 on its card, MIT in the authors' repository", choices=True),
)}
# fmt: on

# A stem that speaks of its options, or asks which of several sound answers is the better, has no answer of its own.
_OF_OPTIONS = re.compile(
    r"(?i:\b(the following|which (one )?of (these|those)|best|(most|least|more|less) likely|except( for)?\W*$"
    r"|(these|which) (statement|option|sentence)s?)\b)|\b(NOT|EXCEPT|BEST|MOST|LEAST)\b"
)
_OPTIONS_AS_ANSWER = re.compile(r"(?i:\b(all|none|both|any|neither) of (the|these|those)\b|\b(both|neither) [a-d]\b|\babove$)")
_OF_A_PARAGRAPH = re.compile(r"(?i:\b(it|they|this|these|he|she|the (passage|paragraph|article|text|author))\b)")


def _check_closed_book(source: Source, question: str, answers: Sequence[str]) -> None:
    if len(answers[0].split()) > LONGEST_ANSWER:
        raise _Unusable(f"its answer is longer than {LONGEST_ANSWER} words")
    if source.choices and (_OF_OPTIONS.search(question) or _OPTIONS_AS_ANSWER.search(answers[0])):
        raise _Unusable("it needs its options")
    if source.paragraph and (_OF_A_PARAGRAPH.search(question) or not any(map(_names_something, question.split()[1:]))):
        raise _Unusable("it needs its paragraph")


def _names_something(word: str) -> bool:
    """A capital or a digit: the question is about something that has a name."""
    return any(character.isupper() or character.isdigit() for character in word)


def source_item(source: Source, row: Row) -> Item | str:
    """The item in a source's row, or why the row is left out.

    A row has either the source's own columns, or ``question`` and ``answers``, a list of texts, as prepared files have them.

    Raises
    ------
    InputError: the row is broken, with the column; without the place, which the caller knows.
    """
    prepared = isinstance(row.get("answers"), list) and isinstance(row.get("question"), str)
    try:
        question, answers = (_text(row, "question"), _texts(row, "answers")) if prepared else source.pair(row)
        answers = _distinct_answers(answers)
        question = " ".join(question.split())
        if not question or not answers:
            raise _Unusable("it has no answer")
        _check_closed_book(source, question, answers)
    except _Unusable as reason:
        return str(reason)
    return Item(question, tuple(answers))


def _distinct_answers(answers: Iterable[str]) -> list[str]:
    """Blanks collapsed; what is broken, empty, a page title's leftover or the same but for case is left out."""
    kept: dict[str, str] = {}
    for answer in answers:
        text = " ".join(answer.split())
        if text and "\N{REPLACEMENT CHARACTER}" not in text and "(disambiguation)" not in text:
            kept.setdefault(text.casefold(), text)
    return list(kept.values())


def _text(row: Row, column: str) -> str:
    value = row.get(column)
    if not isinstance(value, str):
        raise InputError(f"column '{column}' is {_shown(row, column)}, not a text.")
    return value


def _texts(row: Row, column: str) -> list[str]:
    value = row.get(column)
    if not isinstance(value, list) or not all(isinstance(text, str) for text in value):
        raise InputError(f"column '{column}' is {_shown(row, column)}, not a list of texts.")
    return value


def _mapping(row: Row, column: str) -> Row:
    """A nested column. `datasets` gives a list of records as a record of lists; exports may have it the other way round."""
    value = row.get(column)
    if isinstance(value, list) and value and all(isinstance(record, Mapping) for record in value):
        return {name: [record.get(name) for record in value] for name in value[0]}
    if not isinstance(value, Mapping):
        raise InputError(f"column '{column}' is {_shown(row, column)}, not a mapping.")
    return value


def _shown(row: Row, column: str) -> str:
    return repr(row[column])[:60] if column in row else f"missing (there are: {', '.join(row)})"

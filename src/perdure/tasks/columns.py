"""Which column of a table is the question, and which its answers: the rules for one row, whatever the table came from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from perdure.errors import InputError, nearest
from perdure.tasks.task import Item


@dataclass(frozen=True)
class Columns:
    """Where a row's parts stand. A dotted name, such as ``answer.aliases``, reaches into a nested column.

    question: a column of texts.
    answers: one or more columns, each a text or a list of texts; the first text found is trained on, all are accepted.
        By default the column ``answers`` or else ``answer``.
    paraphrases: a column of rewordings, a text or a list of texts; by default ``paraphrases`` where there is one.
    separator: splits a text into several answers (or paraphrases), blanks around each taken off; for tables without lists.
    """

    question: str = "question"
    answers: tuple[str, ...] = ()
    paraphrases: str = ""
    separator: str | None = None

    def found_in(self, header: Sequence[str]) -> "Columns":
        """The same with the defaults decided by the columns that a table has.

        Raises
        ------
        InputError: a column is not there; said without the file, which the caller knows.
        """
        tops = list(header)
        answers = self.answers or tuple(name for name in ("answers", "answer") if name in tops)[:1]
        if not answers:
            raise InputError(f"no column 'answers' or 'answer'; name the answers' column, one of: {', '.join(tops)}.")
        paraphrases = self.paraphrases or ("paraphrases" if "paraphrases" in tops else "")
        for name in (self.question, *answers, *([paraphrases] if paraphrases else [])):
            if name not in tops and name.partition(".")[0] not in tops:
                raise InputError(f"no column '{name}'; {nearest(name, tops)}")
        return Columns(self.question, answers, paraphrases, self.separator)

    def needed(self, header: Sequence[str]) -> list[str]:
        """The columns of a table that have to be read."""
        names = [self.question, *self.answers, *([self.paraphrases] if self.paraphrases else [])]
        return list(dict.fromkeys(name if name in header else name.partition(".")[0] for name in names))

    def item(self, row: Mapping[str, Any]) -> Item:
        """The item in a row.

        Raises
        ------
        InputError: with the column, but without the row, which the caller knows: an empty or missing value, or one that is
            no text.
        """
        answers = [text for name in self.answers for text in self._texts(name, _value(row, name))]
        if not answers:
            raise InputError(f"column '{self.answers[0]}' is empty; write the answer, or leave the row out.")
        reworded = self._texts(self.paraphrases, _value(row, self.paraphrases)) if self.paraphrases else []
        question = self._text(self.question, _value(row, self.question))
        try:
            return Item(question, tuple(dict.fromkeys(answers)), tuple(dict.fromkeys(reworded)))
        except InputError as error:
            raise InputError(f"columns '{self.question}', '{', '.join(self.answers)}': {error}") from error

    def _texts(self, column: str, value: Any) -> list[str]:
        """One text or several; nothing for an empty cell."""
        if value is None or value == "":
            return []
        if isinstance(value, list | tuple):
            return [self._text(column, part) for part in value]
        text = self._text(column, value)
        if self.separator is None:
            return [text]
        return [part.strip() for part in text.split(self.separator) if part.strip()]

    def _text(self, column: str, value: Any) -> str:
        """A text as it is; a whole number in its digits. What has more than one spelling is refused."""
        if isinstance(value, str):
            if not value.strip():
                raise InputError(f"column '{column}' is empty; write it out, or leave the row out.")
            return value
        if isinstance(value, int) and not isinstance(value, bool):
            return str(value)
        if value is None:
            raise InputError(f"column '{column}' is empty; write it out, or leave the row out.")
        shown = repr(value) if len(repr(value)) <= 60 else f"{repr(value)[:59]}…"
        raise InputError(f"column '{column}' holds {shown} ({type(value).__name__}), not a text; write it as text.")


def _value(row: Mapping[str, Any], name: str) -> Any:
    """The value in a column, or inside a nested one; None where there is none."""
    if name in row:
        return row[name]
    top, _, rest = name.partition(".")
    inner = row.get(top)
    if isinstance(inner, list):
        return [_value(part, rest) for part in inner if isinstance(part, Mapping)]
    return _value(inner, rest) if rest and isinstance(inner, Mapping) else None

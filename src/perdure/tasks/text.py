"""Text formats: how a question and its answer are written for the model, and how an answer is read from what it writes.

A text is prompt + completion. The two are tokenised apart, so that the tokens of a question asked are exactly the first tokens
of the text trained.
"""

from abc import ABC, abstractmethod

from perdure.errors import InputError, nearest

_QUESTION, _ANSWER = "Question: ", "\nAnswer:"


class TextFormat(ABC):
    """One way to write a question and its answer.

    ``generated`` below is what the model has written after a prompt, without special tokens.
    """

    name: str
    ends_with_eos: bool  # whether end-of-text follows the completion in training

    def prompt(self, question: str) -> str:
        """The text that asks."""
        return f"{_QUESTION}{question}{_ANSWER}"

    def completion(self, answer: str) -> str:
        """The text that answers.

        Raises
        ------
        InputError: the answer could not be read back from it, so that it could be trained but never be found right.
        """
        text = self._write(answer)
        if self.extract(text) != answer.strip():
            raise InputError(f"the answer {answer[:60]!r} does not fit the {self.name} format: {self._limit}")
        return text

    def parse(self, text: str) -> tuple[str, str] | None:
        """Question and answer of a whole text (a replay sample), or None when it is not one question and its answer.

        A format without end-of-text does not say where its texts end: there, whatever follows the answer is let be.
        """
        question, found, rest = text.removeprefix(_QUESTION).partition(_ANSWER)
        answer = self.extract(rest)
        if not text.startswith(_QUESTION) or not found or not question.strip() or not answer:
            return None
        rest, written = rest.strip(), self._write(answer).strip()
        as_written = rest == written if self.ends_with_eos else rest.startswith(written)
        return (question, answer) if as_written else None

    @abstractmethod
    def extract(self, generated: str) -> str | None:
        """The answer, blanks around it taken off; None when there is none in this format."""

    @abstractmethod
    def finished(self, generated: str) -> bool:
        """Whether the answer is complete, so that nothing written after it can change it."""

    @abstractmethod
    def partial_answer(self, generated: str) -> str | None:
        """What of the answer can be seen so far, as it stands (a blank at its end says that a word is complete); None before
        it begins. Whatever is generated next, the answer extracted then begins with it, blanks around both aside."""

    @abstractmethod
    def _write(self, answer: str) -> str: ...

    @property
    @abstractmethod
    def _limit(self) -> str:
        """What an answer must be to be readable, and how to mend one that is not."""


class PlainFormat(TextFormat):
    """``Question: q\\nAnswer: a`` and end-of-text (ours). The answer is the first line that is not blank."""

    name = "plain"
    ends_with_eos = True
    _limit = "there an answer is one line; take the line breaks out, or use the boxed format."

    def extract(self, generated: str) -> str | None:
        return generated.strip().partition("\n")[0].rstrip() or None

    def finished(self, generated: str) -> bool:
        return "\n" in generated.lstrip()

    def partial_answer(self, generated: str) -> str | None:
        return generated.lstrip().partition("\n")[0] or None

    def _write(self, answer: str) -> str:
        return f" {answer}"


class BoxedFormat(TextFormat):
    """``Question: q\\nAnswer: \\boxed{a}``, without end-of-text: the paper's format, as in its released code.

    The answer is what the first box holds; braces inside it are counted.
    """

    name = "boxed"
    ends_with_eos = False
    _limit = "there its braces must pair; pair them, or use the plain format."

    def extract(self, generated: str) -> str | None:
        content, closed = self._first_box(generated)
        return content.strip() if content is not None and closed else None

    def finished(self, generated: str) -> bool:
        return self._first_box(generated)[1]

    def partial_answer(self, generated: str) -> str | None:
        return self._first_box(generated)[0]

    def _write(self, answer: str) -> str:
        return f" \\boxed{{{answer}}}"

    @staticmethod
    def _first_box(generated: str) -> tuple[str | None, bool]:
        """What the first box holds so far (None: no box has been opened), and whether it is closed."""
        _, opened, rest = generated.partition("\\boxed{")
        if not opened:
            return None, False
        depth = 1
        for place, character in enumerate(rest):
            depth += (character == "{") - (character == "}")
            if depth == 0:
                return rest[:place], True
        return rest, False


class ChatFormat(TextFormat):
    """A user's turn and the assistant's, as a model's chat template writes them; the answer is the whole turn.

    before, after: the template's text around a question, special tokens written out. seen_before, seen_after: what is left of
    them when special tokens are dropped, as in decoded text.
    """

    name = "chat"
    ends_with_eos = True
    _limit = "there an answer can't be blank; write it out."

    def __init__(self, before: str, after: str, seen_before: str, seen_after: str) -> None:
        self._around, self._seen = (before, after), (seen_before, seen_after)

    def prompt(self, question: str) -> str:
        return question.join(self._around)

    def parse(self, text: str) -> tuple[str, str] | None:
        before, after = self._seen
        question, found, answer = text.removeprefix(before).partition(after)
        whole = text.startswith(before) and found and question.strip() and answer.strip()
        return (question, answer.strip()) if whole else None

    def extract(self, generated: str) -> str | None:
        return generated.strip() or None

    def finished(self, generated: str) -> bool:
        return False

    def partial_answer(self, generated: str) -> str | None:
        return generated.lstrip() or None

    def _write(self, answer: str) -> str:
        return answer


_FORMATS: dict[str, TextFormat] = {form.name: form for form in (PlainFormat(), BoxedFormat())}


def text_format(name: str) -> TextFormat:
    """The format of a name: "plain" or "boxed". (A chat format needs a model's template: perdure.learning.texts.)

    Raises
    ------
    InputError: there is none of that name.
    """
    if name not in _FORMATS:
        raise InputError(f"unknown text format '{name}'; {nearest(name, list(_FORMATS))}")
    return _FORMATS[name]

"""Questions and answers as token sequences: what is trained on and what is asked are made by the same rule.

A text is  [begin-of-text] [replay token] prompt completion [end-of-text],  each part tokenised alone, so that the tokens of a
question asked are exactly the first tokens of the text trained.
"""

from collections.abc import Sequence
from dataclasses import replace

from perdure.errors import InputError
from perdure.models.answering import Question
from perdure.models.language_model import LanguageModel
from perdure.tasks import Item, Task
from perdure.tasks.text import ChatFormat, text_format

AskedTask = tuple[list[Question], list[Question]]  # a task's questions, and its paraphrases


class Texts:
    """Encodes items for one model and one text format."""

    def __init__(self, model: LanguageModel, name: str, *, lead: Sequence[int] = ()) -> None:
        """
        Parameters
        ----------
        name: of the text format: ``plain``, ``boxed`` or ``chat``.
        lead: tokens before every text and every question (the replay token, where the method puts it there).

        Raises
        ------
        InputError: the format is ``chat`` and the model has no chat template.
        """
        self._model = model
        self.format = chat_format(model) if name == ChatFormat.name else text_format(name)
        self._start = [*model.start, *lead]
        self._end = list(model.eos_token_ids[:1]) if self.format.ends_with_eos else []

    def prompt(self, question: str) -> list[int]:
        """The tokens of a question as it is asked."""
        return [*self._start, *self._model.encode(self.format.prompt(question))]

    def question(self, item: Item) -> Question:
        """An item to be asked and judged."""
        completion = [*self._model.encode(self.format.completion(item.answers[0])), *self._end]
        return Question(self.prompt(item.question), completion, item.answers)

    def questions(self, task: Task) -> AskedTask:
        """A task's own questions, and its paraphrases with the same accepted answers."""
        reworded = [replace(item, question=text, paraphrases=()) for item in task.items for text in item.paraphrases]
        return [self.question(item) for item in task.items], [self.question(item) for item in reworded]

    def training(self, task: Task, max_length: int) -> list[list[int]]:
        """The training sequences of a task.

        Raises
        ------
        InputError: an item is longer than ``max_length`` tokens; cut short it could never be learnt.
        """
        sequences = []
        for place, item in enumerate(task.items, start=1):
            question = self.question(item)
            sequence = [*question.prompt, *question.completion]
            if len(sequence) > max_length:
                raise InputError(
                    f"{task.name}, item {place} ({item.question[:40]!r}…) takes {len(sequence)} tokens, more than "
                    f"training.max_length = {max_length}; shorten it, or raise training.max_length."
                )
            sequences.append(sequence)
        return sequences


def chat_format(model: LanguageModel) -> ChatFormat:
    """The format that a model's own chat template writes, for a question alone in the user's turn.

    Raises
    ------
    InputError: the tokenizer has no chat template, or one that hides the question.
    """
    if not getattr(model.tokenizer, "chat_template", None):
        raise InputError(f"{model.loaded.name} has no chat template; set asking.format to plain.")
    mark = "QUESTION-STANDS-HERE"
    turn = [{"role": "user", "content": mark}]
    whole = str(model.tokenizer.apply_chat_template(turn, tokenize=False, add_generation_prompt=True))
    before, found, after = whole.partition(mark)
    if not found:
        raise InputError(f"the chat template of {model.loaded.name} doesn't show the question; set asking.format to plain.")
    if (
        model.start
    ):  # begin-of-text stands before the replay token, where samples have it, and so not in the template's text too
        before = before.removeprefix(model.decode_whole(model.start))
    return ChatFormat(before, after, *(model.decode(model.encode(text)) for text in (before, after)))

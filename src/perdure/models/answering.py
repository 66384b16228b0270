"""Asking a model questions: one teacher-forced pass where that settles the answer, decoding only for the rest.

The greedy answer equals the reference exactly when every reference token is the likeliest one after the tokens before
it, and one pass over question and reference shows that for all tokens at once. Where they part, the pass has already
decoded up to the first difference. If no accepted answer can begin with what stands there, the answer is wrong and nothing
is decoded at all; otherwise decoding goes on from there and stops as soon as the answer is settled.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from perdure.models.decoding import continue_sequences, greedy
from perdure.models.language_model import LanguageModel
from perdure.models.vocabulary import CHUNK_ELEMENTS, OutputHead
from perdure.tasks.matching import Rule, could_match, matches
from perdure.tasks.text import TextFormat


@dataclass(frozen=True)
class Question:
    """One question as tokens. completion: the reference answer's tokens, with end-of-text where the format has one."""

    prompt: Sequence[int]
    completion: Sequence[int]
    accepted: Sequence[str]


@dataclass(frozen=True)
class Answer:
    """text: what the model says, as far as it was decoded. right: it matches. formatted: it keeps the format so far."""

    text: str
    right: bool
    formatted: bool


@torch.no_grad()
def answer_questions(
    model: LanguageModel,
    questions: Sequence[Question],
    text_format: TextFormat,
    rule: Rule,
    *,
    max_new_tokens: int,
    batch_size: int,
    advance: Callable[[int], None] = lambda _questions: None,
) -> list[Answer]:
    """The greedy answer to each question, judged.

    Returns
    -------
    Answers in the order of the questions, the same for every batch size (up to ties of two tokens within rounding).
    """
    begun = [tokens[:max_new_tokens] for tokens in _greedy_up_to_difference(model, questions, batch_size)]

    def judge(row: int, new_tokens: Sequence[int]) -> Answer | None:
        return _judge(model, questions[row], [*begun[row], *new_tokens], text_format, rule, max_new_tokens)

    verdicts = {row: judge(row, ()) for row in range(len(questions))}
    open_rows = [row for row, verdict in verdicts.items() if verdict is None]
    advance(len(questions) - len(open_rows))
    continuations = continue_sequences(
        model,
        [[*questions[row].prompt, *begun[row]] for row in open_rows],
        pick=greedy,
        finished=lambda place, new_tokens: judge(open_rows[place], new_tokens) is not None,
        max_new_tokens=max_new_tokens,
        batch_size=batch_size,
        advance=advance,
    )
    verdicts |= {row: judge(row, new) for row, new in zip(open_rows, continuations, strict=True)}
    answers = [verdicts[row] for row in range(len(questions))]
    assert all(answer is not None for answer in answers)
    return [answer for answer in answers if answer is not None]


def _greedy_up_to_difference(model: LanguageModel, questions: Sequence[Question], batch_size: int) -> list[list[int]]:
    """The greedy tokens of each answer up to and including the first that differs from the reference."""
    sequences = [[*question.prompt, *question.completion] for question in questions]
    begun: list[list[int]] = [[] for _ in questions]
    order = sorted(range(len(sequences)), key=lambda row: len(sequences[row]))
    for start in range(0, len(order), batch_size):
        rows = order[start : start + batch_size]
        batch = model.batch(sequences, rows)
        hidden = model.decoder(input_ids=batch.input_ids, use_cache=False).last_hidden_state
        ends = [len(sequences[row]) - 1 for row in rows]
        spans = [slice(end - len(questions[row].completion), end) for row, end in zip(rows, ends, strict=True)]
        likeliest = _argmax(torch.cat([hidden[place, span] for place, span in enumerate(spans)]), model.head)
        for row, tokens in zip(rows, likeliest.split([len(questions[row].completion) for row in rows]), strict=True):
            reference = list(questions[row].completion)
            own = tokens.tolist()
            same = next((i for i, (a, b) in enumerate(zip(own, reference, strict=True)) if a != b), len(own))
            begun[row] = own[: same + 1]
    return begun


def _argmax(hidden: Tensor, head: OutputHead) -> Tensor:
    """The likeliest token after each hidden state [n, width], with no more than a chunk of logits at a time."""
    return torch.cat([head(rows).argmax(dim=-1) for rows in hidden.split(max(1, CHUNK_ELEMENTS // head.vocabulary))])


def _judge(
    model: LanguageModel,
    question: Question,
    tokens: Sequence[int],
    text_format: TextFormat,
    rule: Rule,
    max_new_tokens: int,
) -> Answer | None:
    """The verdict on an answer's first tokens; None while it is open."""
    text = model.decode(tokens)
    complete = tokens[-1] in model.eos_token_ids or text_format.finished(text)
    if complete or len(tokens) >= max_new_tokens:
        extracted = text_format.extract(text)
        right = extracted is not None and matches(extracted, question.accepted, rule)
        return Answer(text if extracted is None else extracted, right, formatted=complete and extracted is not None)
    partial = text_format.partial_answer(text)
    if partial is not None and not could_match(partial, question.accepted, rule):
        return Answer(partial, right=False, formatted=True)
    return None

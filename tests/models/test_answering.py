"""Answers from one pass plus the decoding it leaves over, against plain decoding one question at a time."""

import pytest
import torch

from perdure.models import answering
from perdure.models.answering import Question, answer_questions
from perdure.models.decoding import continue_sequences
from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.tasks import symbol_stream
from perdure.tasks.matching import matches
from perdure.tasks.text import text_format

PLAIN = text_format("plain")
STEPS = 12


@pytest.fixture(scope="module")
def tiny() -> LanguageModel:
    """The shipped tiny model, which knows the pairs it was made with."""
    return LanguageModel(load_model("tiny", device="cpu", dtype="float32"))


def greedy_text(model: LanguageModel, prompt: list[int]) -> str:
    """Plain greedy decoding with Transformers' generate, one question at a time."""
    ids = torch.tensor([prompt])
    generated = model.model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=STEPS,
        do_sample=False,
        pad_token_id=model.pad_token_id,
        eos_token_id=list(model.eos_token_ids),
    )
    return model.decode(generated[0, len(prompt) :].tolist())


def questions_of(model: LanguageModel) -> list[Question]:
    """Known and unknown keys of several lengths, each with its own greedy answer as reference, as alias only, as the beginning
    of a longer reference, and not accepted at all."""
    made = []
    known = symbol_stream(tasks=1, items=500, seed=20_260)[0].items[:6]
    for key in [item.question for item in known] + ["new123", "a", "longer than any key it knows", "é☃"]:
        prompt = model.encode(PLAIN.prompt(key))
        own = PLAIN.extract(greedy_text(model, prompt)) or "none"
        for reference, accepted in (
            (own, (own,)),
            ("zzzz", ("zzzz", own)),
            (f"{own} and more", (f"{own} and more",)),
            (f"{own} and more", (f"{own} and more", own)),
            ("zzzz", ("zzzz",)),
            (own.swapcase(), (own.swapcase(),)),
        ):
            made.append(Question(prompt, [*model.encode(f" {reference}"), model.eos_token_ids[0]], accepted))
    return made


def test_verdicts_equal_plain_decoding(tiny: LanguageModel) -> None:
    questions = questions_of(tiny)
    answers = answer_questions(tiny, questions, PLAIN, "exact", max_new_tokens=STEPS, batch_size=16)
    expected = []
    for question in questions:
        extracted = PLAIN.extract(greedy_text(tiny, list(question.prompt)))
        expected.append(extracted is not None and matches(extracted, question.accepted, "exact"))
    assert [answer.right for answer in answers] == expected
    assert any(expected)
    assert not all(expected)


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_batch_size_changes_nothing(tiny: LanguageModel, batch_size: int) -> None:
    questions = questions_of(tiny)
    some = answer_questions(tiny, questions, PLAIN, "exact", max_new_tokens=STEPS, batch_size=batch_size)
    assert some == answer_questions(tiny, questions, PLAIN, "exact", max_new_tokens=STEPS, batch_size=len(questions))


def test_nothing_is_decoded_where_one_pass_settles_it(tiny: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """Known answers, and answers that go wrong within the first pass, need no decoding step."""
    decoded: list[list[int]] = []

    def watch(*args, **kwargs):  # type: ignore[no-untyped-def]
        decoded.extend(args[1])
        return continue_sequences(*args, **kwargs)

    monkeypatch.setattr(answering, "continue_sequences", watch)
    known = symbol_stream(tasks=1, items=500, seed=20_260)[0].items[:20]
    new = symbol_stream(tasks=1, items=20, seed=7)[0].items
    questions = [
        Question(
            tiny.encode(PLAIN.prompt(item.question)),
            [*tiny.encode(PLAIN.completion(item.answers[0])), tiny.eos_token_ids[0]],
            item.answers,
        )
        for item in (*known, *new)
    ]
    answers = answer_questions(tiny, questions, PLAIN, "exact", max_new_tokens=STEPS, batch_size=40)
    assert [answer.right for answer in answers] == [True] * 20 + [False] * 20
    assert decoded == []

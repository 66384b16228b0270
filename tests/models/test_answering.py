"""Answers from one pass plus the decoding it leaves over, against plain decoding one question at a time."""

import pytest
import torch

from perdure.models import answering
from perdure.models.answering import Question, answer_questions
from perdure.models.decoding import continue_sequences, greedy
from perdure.models.language_model import LanguageModel
from perdure.tasks.matching import matches
from perdure.tasks.text import text_format

PLAIN = text_format("plain")
WORDS = ("a1", "B2c", "word", "two words", "0", "zz top", "Q", "éa", "x y z", "1999-12-31")


def greedy_text(model: LanguageModel, prompt: list[int], steps: int) -> str:
    """Plain greedy decoding with Transformers' generate, cut as the plain format says."""
    ids = torch.tensor([prompt])
    generated = model.model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        max_new_tokens=steps,
        do_sample=False,
        pad_token_id=model.pad_token_id,
        eos_token_id=list(model.eos_token_ids),
    )
    return model.decode(generated[0, len(prompt) :].tolist())


def questions_of(model: LanguageModel, steps: int) -> list[Question]:
    """For each word: a question whose reference is what the model says anyway, one whose alias is, and two wrong ones."""
    eos = model.eos_token_ids[0]
    made = []
    for word in WORDS:
        prompt = model.encode(PLAIN.prompt(word))
        own = PLAIN.extract(greedy_text(model, prompt, steps)) or "none"
        for reference, accepted in ((own, (own,)), ("zzz", ("zzz", own)), ("zzz", ("zzz",)), (own[:1] + "!", (own[:1] + "!",))):
            made.append(Question(prompt, [*model.encode(f" {reference}"), eos], accepted))
    return made


def test_verdicts_equal_plain_decoding(model: LanguageModel) -> None:
    steps = 10
    questions = questions_of(model, steps)
    answers = answer_questions(model, questions, PLAIN, "exact", max_new_tokens=steps, batch_size=16)
    expected = []
    for question in questions:
        extracted = PLAIN.extract(greedy_text(model, list(question.prompt), steps))
        expected.append(extracted is not None and matches(extracted, question.accepted, "exact"))
    assert [answer.right for answer in answers] == expected
    assert any(expected)
    assert not all(expected)


@pytest.mark.parametrize("batch_size", [1, 2, 8])
def test_batch_size_changes_nothing(model: LanguageModel, batch_size: int) -> None:
    questions = questions_of(model, 10)
    some = answer_questions(model, questions, PLAIN, "exact", max_new_tokens=10, batch_size=batch_size)
    assert some == answer_questions(model, questions, PLAIN, "exact", max_new_tokens=10, batch_size=len(questions))


def test_nothing_is_decoded_where_one_pass_settles_it(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    """An answer that equals its reference to the end, and one that is wrong at once, need no decoding step."""
    decoded: list[list[int]] = []

    def watch(*args, **kwargs):  # type: ignore[no-untyped-def]
        decoded.extend(args[1])
        return continue_sequences(*args, **kwargs)

    prompt = model.encode(PLAIN.prompt("a1"))
    own = continue_sequences(
        model, [prompt], pick=greedy, finished=lambda _r, t: PLAIN.finished(model.decode(t)), max_new_tokens=30, batch_size=1
    )[0]
    monkeypatch.setattr(answering, "continue_sequences", watch)
    reference = PLAIN.extract(model.decode(own)) or ""
    known = Question(prompt, own, (reference,))
    wrong = Question(prompt, [*model.encode(" \u2603"), model.eos_token_ids[0]], ("\u2603",))
    answers = answer_questions(model, [known, wrong], PLAIN, "exact", max_new_tokens=len(own), batch_size=2)
    assert [answer.right for answer in answers] == [True, False]
    assert decoded == []

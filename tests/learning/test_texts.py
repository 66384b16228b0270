"""Texts for chat models: the template's own words around a question, and answers of several lines."""

import pytest

from perdure.errors import InputError
from perdure.learning.texts import Texts
from perdure.models.answering import answer_questions
from perdure.models.language_model import LanguageModel
from perdure.tasks import Item, Task

TEMPLATE = (
    "{% for m in messages %}[{{ m.role }}]{{ m.content }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}[assistant]{% endif %}"
)


@pytest.fixture
def chat(model: LanguageModel) -> LanguageModel:
    model.tokenizer.chat_template = TEMPLATE
    return model


def test_the_template_is_used_as_transformers_does(chat: LanguageModel) -> None:
    texts = Texts(chat, "chat")
    turn = [{"role": "user", "content": "Who?"}]
    expected = chat.tokenizer.apply_chat_template(turn, add_generation_prompt=True, return_dict=False)
    assert texts.prompt("Who?") == list(expected)
    (sequence,) = texts.training(Task("t", (Item("Who?", ("Ana\nReis",)),)), 384)
    assert chat.decode_whole(sequence) == "[user]Who?<|end|>[assistant]Ana\nReis<|end|>"


def test_a_sample_is_parsed_and_a_long_answer_read(chat: LanguageModel) -> None:
    form = Texts(chat, "chat").format
    assert form.parse("[user]Who?[assistant]Ana\nReis") == ("Who?", "Ana\nReis")
    assert form.parse("[assistant]Ana") is None
    assert form.extract(" Ana\nReis ") == "Ana\nReis"


def test_questions_are_asked(chat: LanguageModel) -> None:
    texts = Texts(chat, "chat")
    questions = [texts.question(Item("Who?", ("Ana",)))]
    answers = answer_questions(chat, questions, texts.format, "exact", max_new_tokens=4, batch_size=1)
    assert len(answers) == 1


def test_no_template_is_one_clear_sentence(model: LanguageModel) -> None:
    with pytest.raises(InputError, match=r"random-tiny has no chat template; set asking\.format to plain"):
        Texts(model, "chat")


def test_begin_of_text_stands_once_and_before_the_replay_token(chat: LanguageModel) -> None:
    chat.tokenizer.chat_template = "<|pad|>" + TEMPLATE
    chat.start = [chat.tokenizer.convert_tokens_to_ids("<|pad|>")]  # as for a tokenizer that begins texts with it
    chat.add_replay_token()
    assert chat.replay_token_id is not None
    prompt = Texts(chat, "chat", lead=[chat.replay_token_id]).prompt("Who?")
    assert prompt[:2] == [chat.start[0], chat.replay_token_id]
    assert prompt.count(chat.start[0]) == 1

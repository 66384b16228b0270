import random

import pytest

from perdure.errors import InputError
from perdure.tasks import could_match, text_format

PLAIN, BOXED = text_format("plain"), text_format("boxed")


def test_texts_as_the_design_and_the_paper_write_them() -> None:
    assert PLAIN.prompt("Who?") == BOXED.prompt("Who?") == "Question: Who?\nAnswer:"
    assert (PLAIN.completion("Ada"), PLAIN.ends_with_eos) == (" Ada", True)
    assert (BOXED.completion("Ada"), BOXED.ends_with_eos) == (r" \boxed{Ada}", False)


@pytest.mark.parametrize(
    ("generated", "extracted", "finished", "partial"),
    [
        ("", None, False, None),
        (" \n ", None, False, None),
        (" Ada", "Ada", False, "Ada"),
        (" Ada ", "Ada", False, "Ada "),
        ("\n Ada L\n", "Ada L", True, "Ada L"),
        (" Ada\r\nQuestion: Who?", "Ada", True, "Ada\r"),
        (" a\u2028b", "a\u2028b", False, "a\u2028b"),
    ],
)
def test_reading_plain_answers(generated: str, extracted: str | None, finished: bool, partial: str | None) -> None:
    assert PLAIN.extract(generated) == extracted
    assert PLAIN.finished(generated) is finished
    assert PLAIN.partial_answer(generated) == partial


@pytest.mark.parametrize(
    ("generated", "extracted", "finished", "partial"),
    [
        ("", None, False, None),
        (" Ada", None, False, None),
        (r" \boxed", None, False, None),
        (r" \boxed{", None, False, ""),
        (r" \boxed{Ada", None, False, "Ada"),
        (r" \boxed{ Ada }", "Ada", True, " Ada "),
        (r" \boxed{\frac{1}{2", None, False, r"\frac{1}{2"),
        (r" So \boxed{\frac{1}{2}} or \boxed{3}", r"\frac{1}{2}", True, r"\frac{1}{2}"),
        (r" \boxed{}", "", True, ""),
    ],
)
def test_reading_boxed_answers(generated: str, extracted: str | None, finished: bool, partial: str | None) -> None:
    assert BOXED.extract(generated) == extracted
    assert BOXED.finished(generated) is finished
    assert BOXED.partial_answer(generated) == partial


def test_answers_that_could_never_be_read_back_are_refused() -> None:
    assert PLAIN.completion("a } b") == " a } b"
    assert BOXED.completion("a\nb {c}") == " \\boxed{a\nb {c}}"
    with pytest.raises(InputError, match=r"answer 'a\\nb' does not fit the plain format: .*take the line breaks out"):
        PLAIN.completion("a\nb")
    for unpaired in ("a}", "{a", "}{"):
        with pytest.raises(InputError, match="does not fit the boxed format: there its braces must pair"):
            BOXED.completion(unpaired)


def test_whole_texts_are_parsed_back() -> None:
    for form in (PLAIN, BOXED):
        assert form.parse(form.prompt("Who?") + form.completion("Ada {L}")) == ("Who?", "Ada {L}")
        malformed = ["", "Question: Who?", "Question: \nAnswer: Ada", "Who?\nAnswer: Ada", form.prompt("Who?")]
        assert [form.parse(text) for text in malformed] == [None] * 5
    assert PLAIN.parse("Question: Who?\nAnswer: Ada\nQuestion: and?") is None
    assert BOXED.parse("Question: Who?\nAnswer: \\boxed{Ada}\nQuestion: and?") == ("Who?", "Ada")
    assert BOXED.parse("Question: Who?\nAnswer: Ada, so \\boxed{Ada}") is None


@pytest.mark.parametrize("name", ["plain", "boxed"])
def test_every_beginning_agrees_with_the_whole(name: str) -> None:
    """Once an answer is finished nothing changes it, and stopping early never loses a right one."""
    form, chance = text_format(name), random.Random(0)
    pieces = ["\n", " ", "a", "the", "é", "{", "}", "\\boxed{", "\\boxed{", "\\", "😀", "}\n", "b"]
    extracted_some = 0
    for _ in range(4000):
        generated = "".join(chance.choices(pieces, k=chance.randint(1, 12)))
        answer = form.extract(generated)
        extracted_some += bool(answer)
        encoded = generated.encode()
        for cut in range(len(encoded) + 1):
            begun = encoded[:cut].decode("utf-8", errors="replace")
            if form.finished(begun):
                assert form.extract(begun) == answer
            partial = form.partial_answer(begun)
            if answer and partial is not None:
                assert could_match(partial, [answer], "exact")
                assert could_match(partial, [answer], "normalised")
    assert extracted_some > 300


def test_unknown_format_is_refused() -> None:
    with pytest.raises(InputError, match="unknown text format 'boxd'; did you mean 'boxed'"):
        text_format("boxd")

import random
import sys
import unicodedata

import pytest

from perdure.errors import InputError
from perdure.tasks import Rule, could_match, matches

RULES: tuple[Rule, Rule] = ("exact", "normalised")

EQUAL = {
    "exact": [("Lima", "lima"), (" Lima\n", "LIMA"), ("new  york", "New York"), ("STRASSE", "straße")],
    "normalised": [
        ("The Beatles!", "beatles"),
        ("U.S.", "us"),
        ("a cat and the dog", "Cat and dog"),
        ("ﬁve", "FIVE"),
        ("e\u0301tude", "Étude"),
        ("ΐ", "Ϊ\u0301"),
        ("Ｔｏｋｙｏ", "tokyo"),
        ("don´t", "don't"),
        ("rock ’n’ roll", "Rock 'n' Roll"),
        ("\u200fשלום\u200e", "שלום"),
        ("5 ㎏", "5 kg"),
        ("1,000", "1000"),
        ("한국", unicodedata.normalize("NFD", "한국")),
        ("A.", "a"),
        ("♀", "♀ "),
        ("+ +", "+  +"),
    ],
}
DIFFERENT = {
    "exact": [("Lima.", "Lima"), ("the Beatles", "Beatles"), ("e\u0301", "é"), ("newyork", "new york"), ("", "a")],
    "normalised": [
        ("apple", "pple"),
        ("resume", "résumé"),
        ("new york", "newyork"),
        ("A", "the"),
        ("A", "an apple"),
        ("♀", "♂"),
        ("+", "-"),
        ("+", "a"),
        ("", "a"),
        ("", "+"),
        ("قلم", "علم"),
    ],
}


@pytest.mark.parametrize("rule", RULES)
def test_what_is_equal_and_what_is_not(rule: Rule) -> None:
    for one, other in EQUAL[rule]:
        assert matches(one, [other], rule), (one, other)
        assert matches(other, ["something else", one], rule), (other, one)
    for one, other in DIFFERENT[rule]:
        assert not matches(one, [other], rule), (one, other)
        assert not matches(other, [one], rule), (other, one)


@pytest.mark.parametrize("rule", RULES)
def test_a_wrong_answer_is_given_up_as_soon_as_it_shows(rule: Rule) -> None:
    accepted = ["Lima", "the City of Kings"]
    for hopeless in ("R", "Lo", "lima x", "limab", "Lima, Peru", "city x", "the R", "the city of kings and"):
        assert not could_match(hopeless, accepted, rule), hopeless
    for hopeful in ("", " ", "l", "LIM", "Lima", "Lima ", "Lim\ufffd", "\ufffd", "the", "the ", "the city o"):
        assert could_match(hopeful, accepted, rule), hopeful


def test_normalised_beginnings() -> None:
    def hope(partial: str, *accepted: str) -> bool:
        return could_match(partial, accepted, "normalised")

    assert hope("a", "apple")
    assert hope("a", "Lima")  # "a Lima"
    assert hope("th", "Lima")
    assert not hope("ap", "Lima")
    assert not hope("a ca", "Lima")
    assert hope("“the", "theory")
    assert hope("the-", "theory")  # "the-ory" is one word once the hyphen is gone
    assert hope("re", "résumé")
    assert not hope("resu", "résumé")  # the accent would have come before the s
    assert hope("♀", "♀")
    assert not hope("♀a", "♀")
    assert not hope("♂", "♀")
    assert hope("+ ", "+ +")
    assert not hope("+ -", "+ +")
    assert not hope("word", "+ +")
    assert hope("a", "the", "A")
    assert not hope("a b", "A")
    assert not hope("x", "A")


def _random_text(chance: random.Random) -> str:
    """Characters that fold, compose, reorder, vanish or join, among common words."""
    pieces = (
        *("a", "A", "an", "the", "The", "th", "apple", "s", "ß", "ẞ", "ﬃ", "İ", "ı", "ŉ", "ǰ", "ΐ", "Ϊ", "ᾳ", "α", "Σ", "ς"),
        *("\u0301", "\u0323", "\u0345", "\u0307", "\u0308", "\u05b4", "\u064b", "\u0f71", "\u0f72"),
        *(
            "é",
            "ệ",
            "Ａ",
            "ｶ",
            "ﾞ",
            "한",
            "ᄒ",
            "ᅡ",
            "ᆫ",
            "①",
            "½",
            "㎏",
            "№",
            "™",
            "ﷺ",
            "ﹰ",
            "שׁ",
            "ش",
            "😀",
            "👩\u200d🚀",
            "\ufffd",
        ),
        *(" ", " ", " ", "  ", "\t", "\u3000", "\u00a0", "\u200b", "\u200f", "\u2066", "\u00ad", "\ufeff", "\u180e"),
        *(".", ",", "'", "’", "-", "_", "$", "+", "´", "¨", "‾", "^", "\u2044", "\x00"),
    )
    text = "".join(chance.choices(pieces, k=chance.randint(1, 9)))
    return text + chr(chance.choice([chance.randrange(0xD800), chance.randrange(0xE000, 0x11000)])) * (chance.random() < 0.2)


def _variant(text: str, chance: random.Random) -> str:
    """Another text that often matches."""
    changes = [
        str.upper,
        str.lower,
        str.casefold,
        lambda t: unicodedata.normalize("NFC", t),
        lambda t: unicodedata.normalize("NFD", t),
        lambda t: unicodedata.normalize("NFKC", t),
        lambda t: unicodedata.normalize("NFKD", t),
        lambda t: f"the {t}",
        lambda t: f"{t} a",
        lambda t: f"«{t}».",
        lambda t: t.replace(" ", "\u3000 "),
        lambda t: t[: len(t) // 2] + "\u200f-" + t[len(t) // 2 :],
    ]
    for change in chance.sample(changes, k=chance.randint(0, 3)):
        text = change(text)
    return text


@pytest.mark.parametrize("rule", RULES)
def test_no_beginning_of_a_right_answer_is_ever_given_up(rule: Rule) -> None:
    chance = random.Random(1)
    matched = 0
    for _ in range(20_000):
        accepted = [_random_text(chance)]
        answer = _variant(accepted[0], chance)
        if not matches(answer, accepted, rule):
            continue
        matched += 1
        encoded = answer.encode()
        for cut in range(len(encoded) + 1):
            partial = encoded[:cut].decode("utf-8", errors="replace")
            assert could_match(partial, accepted, rule), (partial, answer, accepted)
            # Byte-fallback tokenisers write each byte of an unfinished character as U+FFFD of its own.
            assert could_match(f"{partial}\ufffd\ufffd", accepted, rule), (partial, answer, accepted)
    assert matched > 5_000


@pytest.mark.parametrize("rule", RULES)
def test_matching_is_an_equivalence(rule: Rule) -> None:
    chance = random.Random(2)
    for _ in range(3_000):
        one = _random_text(chance)
        other, third = _variant(one, chance), _variant(one, chance)
        assert matches(one, [one], rule)
        assert matches(one, [other], rule) == matches(other, [one], rule)
        if matches(one, [other], rule) and matches(other, [third], rule):
            assert matches(one, [third], rule)


@pytest.mark.parametrize("rule", RULES)
def test_hope_ends_with_the_first_wrong_word(rule: Rule) -> None:
    """Usefulness: when an answer could match to its end but does not, it is the beginning of one that does."""
    chance = random.Random(3)
    words = ["lima", "rome", "limassol", "apple", "an", "the", "ro"]
    for _ in range(5_000):
        answer = " ".join(chance.choices(words, k=chance.randint(1, 4)))
        accepted = [" ".join(chance.choices(words, k=chance.randint(1, 4)))]
        if could_match(answer + " ", accepted, rule) and not matches(answer, accepted, rule):
            missing = accepted[0].split()
            assert any(matches(f"{answer} {' '.join(missing[i:])}", accepted, rule) for i in range(len(missing)))


def test_normalised_equals_unicode_nfkc_caseless_matching_letter_by_letter() -> None:
    """Texts equal under the NFKC case folding are equal under the rule, for every letter, digit and mark of Unicode."""
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character)[0] in "LNM":
            folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", character).casefold())
            assert matches(f"x{character}", [f"x{folded}"], "normalised"), hex(code)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(InputError, match="unknown matching rule 'normalized'; did you mean 'normalised'"):
        matches("a", ["a"], "normalized")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown matching rule"):
        could_match("a", ["a"], "normalized")  # type: ignore[arg-type]

"""When does an answer count as right, and when can it no longer become right?

Two rules, each a map from a text to a list of words; an answer matches when its words are those of an accepted answer.

exact       Letter case is ignored (full Unicode case folding), and so are blanks at both ends; a run of blanks counts as one.
            Nothing else is touched: the paper's case-insensitive exact match.
normalised  As SQuAD's scorer does it, for all scripts. Compatibility forms and case are folded (two texts are equal here when
            their NFKC case foldings are); punctuation, symbols and invisible format characters (such as the direction marks of
            right-to-left text) are taken out, joining what they stood between (U.S. = us); then the words a, an and the.
            Accents and vowel signs stay. What would be left with nothing is spared: an answer made of articles alone
            ("A", a blood group) keeps them, and one without any letter or digit ("+", "♀") is compared by the exact rule.

Why words that have been decoded can be trusted to stay: :func:`could_match` works with decompositions (NFKD) in place of
compositions. NFKD and NFKC tell the same texts apart, but a decomposed text only ever grows at its end: what comes next can
reorder trailing combining marks, which are therefore set aside, and can change nothing before them.
"""

import unicodedata
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import Literal

from perdure.errors import InputError, nearest

Rule = Literal["exact", "normalised"]

_ARTICLES = ("a", "an", "the")


def matches(answer: str, accepted: Sequence[str], rule: Rule) -> bool:
    """Whether an answer equals one of the accepted answers under a rule.

    Raises
    ------
    InputError: there is no such rule.
    """
    words = _words(answer, rule)
    return any(words == _words(right, rule) for right in accepted)


def could_match(partial: str, accepted: Sequence[str], rule: Rule) -> bool:
    """Whether an answer of which only the beginning is known can still match.

    False is certain: no continuation matches. True may be too hopeful by a few characters.

    Parameters
    ----------
    partial: the text decoded so far. Unless a blank follows it, its last word may go on; U+FFFD at its end may be the first
        bytes of a character that is still to come.

    Raises
    ------
    InputError: there is no such rule.
    """
    partial = partial.rstrip("\N{REPLACEMENT CHARACTER}")
    exact = _complete_and_open(partial.casefold())
    if rule == "exact":
        return any(_can_become(*exact, _words(right, rule)) for right in accepted)
    complete, open_word = _complete_and_open(_bare(partial, cut=True))
    content = tuple(word for word in complete if word not in _ARTICLES)
    # An article cut short ("th") may yet turn out to be one, and then says nothing about the words that count.
    open_content = "" if any(article.startswith(open_word) for article in _ARTICLES) else open_word
    for right in accepted:
        words = _words(right, rule)
        if not _bare(right).split():
            possible = not complete and not open_word and _can_become(*exact, words)
        elif all(word in _ARTICLES for word in words):
            possible = _can_become(complete, open_word, words)
        else:
            possible = _can_become(content, open_content, words)
        if possible:
            return True
    return False


@lru_cache(maxsize=1 << 16)  # the same accepted answers are compared after every task and at every decoded token
def _words(text: str, rule: Rule) -> tuple[str, ...]:
    """What a rule compares."""
    if rule == "exact":
        return tuple(text.casefold().split())
    if rule == "normalised":
        words = tuple(_bare(text).split())
        content = tuple(word for word in words if word not in _ARTICLES)
        return content or words or _words(text, "exact")
    raise InputError(f"unknown matching rule '{rule}'; {nearest(rule, ['exact', 'normalised'])}")


@lru_cache(maxsize=1 << 16)
def _bare(text: str, cut: bool = False) -> str:
    """The text decomposed and case-folded, without punctuation, symbols and format characters.

    cut: more text may follow; the result is then what every continuation's result begins with.
    """
    text = unicodedata.normalize("NFD", text)
    if cut:
        text = _without_trailing_marks(text)
    text = unicodedata.normalize("NFD", "".join(map(_bare_character, text)))
    return _without_trailing_marks(text) if cut else text


@cache
def _bare_character(character: str) -> str:
    """What one character leaves: case-folded decomposition, no punctuation. A sign that spells letters or digits (№, ㎏, ①)
    leaves those; an accent that stands alone (´), used for an apostrophe, leaves nothing, though it decomposes to a blank and
    a mark."""
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", character).casefold())
    left = "".join(part for part in folded if not _is_sign(part))
    return "" if _is_sign(character) and not any(part.isalnum() for part in left) else left


def _is_sign(character: str) -> bool:
    category = unicodedata.category(character)
    return category[0] in "PS" or category == "Cf"


def _without_trailing_marks(text: str) -> str:
    """The text up to its last starter: combining marks after it may be reordered by marks still to come."""
    end = len(text)
    while end and unicodedata.combining(text[end - 1]):
        end -= 1
    return text[:end]


def _complete_and_open(text: str) -> tuple[tuple[str, ...], str]:
    """The words of a text that may go on: those that are complete, and the beginning of the one that is not ("": none)."""
    words = tuple(text.split())
    if not words or text[-1].isspace():
        return words, ""
    return words[:-1], words[-1]


def _can_become(complete: tuple[str, ...], open_word: str, words: tuple[str, ...]) -> bool:
    """Whether complete words and the beginning of another can go on to be exactly these words."""
    count = len(complete)
    return words[:count] == complete and (not open_word or (len(words) > count and words[count].startswith(open_word)))

"""A question as it is compared with others: letters and digits of every script, case and forms folded, single blanks."""

import unicodedata
from functools import cache


def normalised(text: str) -> str:
    """The text in NFKC case folding, punctuation and symbols turned to blanks, runs of blanks to one, none at the ends.

    A text of nothing but signs is compared as it stands.
    """
    folded = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
    words = "".join(map(_kept, folded)).split()
    return " ".join(words) if words else folded.strip()


@cache
def _kept(character: str) -> str:
    category = unicodedata.category(character)
    if category == "Cf" or character in "'’":
        return ""
    return " " if category[0] in "PSCZ" else character

"""Names that nobody bears: pronounceable words, as many as are wanted, no two the same, none of them remembered.

Number n of a seed is the n-th word of a shuffled list of 64 million. The list is never made: a keyed permutation of
0..N-1 says which word stands at n, so that a million names take no more memory than one.
"""

import hashlib

# fmt: off
_ONSETS = ("b", "br", "d", "dr", "f", "fr", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pr",
           "r", "s", "st", "t", "tr", "v", "z")
_VOWELS = ("a", "e", "i", "o", "u", "ai", "ea", "io")
_CODAS = ("l", "m", "n", "r", "s", "th", "x", "nd", "rn")
# fmt: on
_SYLLABLES = 3
NAMES = (len(_ONSETS) * len(_VOWELS)) ** _SYLLABLES * len(_CODAS)  # consonants and vowels alternate, so all spell differently

_ROUNDS = 4
_HALF_BITS = (NAMES.bit_length() + 1) // 2


def invented_name(number: int, seed: int) -> str:
    """Name ``number``, from 0 and below ``NAMES``, of a seed: three syllables and a last consonant, such as Draivokarn."""
    place = _permuted(number, seed)
    place, coda = divmod(place, len(_CODAS))
    syllables = []
    for _ in range(_SYLLABLES):
        place, onset = divmod(place, len(_ONSETS))
        place, vowel = divmod(place, len(_VOWELS))
        syllables.append(_ONSETS[onset] + _VOWELS[vowel])
    return ("".join(syllables) + _CODAS[coda]).capitalize()


def _permuted(number: int, seed: int) -> int:
    """Where a number goes in the seed's shuffle of 0..NAMES-1: a Feistel network (Luby & Rackoff 1988) over the next even
    power of two, walked until it lands inside (Black & Rogaway 2002)."""
    mask = (1 << _HALF_BITS) - 1
    while True:
        left, right = number >> _HALF_BITS, number & mask
        for step in range(_ROUNDS):
            digest = hashlib.blake2b(f"{seed}/{step}/{right}".encode(), digest_size=8).digest()
            left, right = right, left ^ (int.from_bytes(digest, "big") & mask)
        number = left << _HALF_BITS | right
        if number < NAMES:
            return number

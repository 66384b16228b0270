"""Questions that say nearly the same: MinHash signatures find candidates, exact similarities decide.

Similarity is Jaccard's, over the sets of character 4-grams of the normalised texts. Candidates come from locality-sensitive
hashing (Broder 1997; `datasketch`), so that a hundred thousand questions are compared without comparing every pair; about
one pair in a hundred that lies just above the threshold is missed.
"""

from dataclasses import dataclass
from typing import Generic, TypeVar

from datasketch import MinHash, MinHashLSH

from perdure.tasks.normalise import normalised

T = TypeVar("T")

_GRAM = 4
_PERMUTATIONS = 128


@dataclass(frozen=True)
class Near(Generic[T]):
    """Something near a text: what it was filed under, and how alike the two are, from 0 to 1 (the same, normalised)."""

    key: T
    similarity: float


class NearDuplicates(Generic[T]):
    """Texts, each filed under a key, of which those near a new text are found.

    Parameters
    ----------
    threshold: the least similarity that is found, above 0 and below 1.
    """

    def __init__(self, threshold: float = 0.8) -> None:
        self._threshold = threshold
        # Candidates are asked for a little below the threshold, so that few that lie above it slip through.
        self._index = MinHashLSH(threshold=0.85 * threshold, num_perm=_PERMUTATIONS)
        self._keys: list[T] = []
        self._grams: list[frozenset[str]] = []

    def __len__(self) -> int:
        return len(self._keys)

    def find(self, text: str) -> list[Near[T]]:
        """All filed texts at least that similar, the nearest first."""
        grams = _grams(text)
        found = [
            Near(self._keys[place], len(grams & self._grams[place]) / len(grams | self._grams[place]))
            for place in sorted(self._index.query(_signature(grams)))
        ]
        return sorted((near for near in found if near.similarity >= self._threshold), key=lambda near: -near.similarity)

    def add(self, key: T, text: str) -> None:
        """File a text under a key."""
        grams = _grams(text)
        self._index.insert(len(self._keys), _signature(grams))
        self._keys.append(key)
        self._grams.append(grams)


def _grams(text: str) -> frozenset[str]:
    padded = f" {normalised(text)} "
    return frozenset(padded[start : start + _GRAM] for start in range(max(1, len(padded) - _GRAM + 1)))


def _signature(grams: frozenset[str]) -> MinHash:
    signature = MinHash(num_perm=_PERMUTATIONS, seed=1)
    signature.update_batch([gram.encode("utf-8", "surrogatepass") for gram in grams])
    return signature

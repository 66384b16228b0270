"""Items from a source, each question once: repetitions are dropped and counted, contradictions are refused."""

import hashlib
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from perdure.errors import InputError
from perdure.tasks.task import Item


class Located(NamedTuple):
    """An item and where it was read: ``file.jsonl:12``, or ``file.parquet, row 12``; ``short`` is that without the file."""

    item: Item
    where: str
    short: str


class Distinct:
    """Passes items on, each question once. It keeps digests, not the texts, so that a long file can be read as it
    is needed.

    duplicates: how many items were dropped because an earlier one says the same.
    """

    def __init__(self) -> None:
        self.duplicates = 0
        self._seen: dict[bytes, tuple[str, bytes, bytes]] = {}  # question -> where first read, its answers and paraphrases

    def __call__(self, located: Iterable[Located]) -> Iterator[Item]:
        """The items, in order.

        Raises
        ------
        InputError: a question comes again with other answers or paraphrases; or a source's own complaint.
        """
        for item, where, short in located:
            question, answers, paraphrases = _digest(item.question), _digest(*item.answers), _digest(*item.paraphrases)
            if question not in self._seen:
                self._seen[question] = (short, answers, paraphrases)
                yield item
                continue
            first, *known = self._seen[question]
            if known == [answers, paraphrases]:
                self.duplicates += 1
                continue
            unit = short.split()[0]
            if known[0] == answers:
                raise InputError(
                    f"{where}: the question of {first} again, with other paraphrases; put them all into one {unit}."
                )
            raise InputError(
                f"{where}: the question of {first} again, with other answers; keep one of the two {unit}s, or put every "
                f"accepted answer into one {unit}'s 'answers'."
            )


def _digest(*texts: str) -> bytes:
    """16 bytes that stand for the texts."""
    digest = hashlib.blake2b(digest_size=16)
    for text in texts:
        raw = text.encode("utf-8")
        digest.update(len(raw).to_bytes(8, "big"))
        digest.update(raw)
    return digest.digest()

"""How long work tells where it is. The library is silent by default; the command line passes a bar with time left."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Progress:
    """Silent progress; subclasses draw it."""

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        """A stretch of ``total`` equal pieces of work; the yielded function is called with the pieces just done."""
        yield lambda _pieces: None

    def note(self, message: str) -> None:
        """One line that the user should read."""

    def heading(self, text: str) -> None:
        """What the following stages belong to, such as a run or a task; empty for nothing."""

"""Progress for a person at a terminal: a bar with time left, or one line a stage where the output is a file."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.progress import Progress as Bars

from perdure.progress import Progress


class TerminalProgress(Progress):
    """Draws on the error stream, so that results on the output stream can be piped."""

    def __init__(self, console: Console, *, quiet: bool = False) -> None:
        self._console, self._quiet = console, quiet
        self._heading = ""
        self._said: set[str] = set()

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        if self._quiet:
            yield lambda _pieces: None
            return
        if not self._console.is_terminal:
            began = time.perf_counter()
            yield lambda _pieces: None
            self._console.print(f"{self._heading}{name}: {total} in {time.perf_counter() - began:.1f} s")
            return
        columns = (
            TextColumn("{task.description:<28}", markup=False),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
        )
        with Bars(*columns, console=self._console, transient=True) as bars:
            task = bars.add_task(f"{self._heading}{name}", total=total)
            yield lambda pieces: bars.advance(task, pieces)

    def note(self, message: str) -> None:
        """A line that was said before is not said again: the runs of an experiment repeat some."""
        if not self._quiet and message not in self._said:
            self._said.add(message)
            self._console.print(message, soft_wrap=True)

    def heading(self, text: str) -> None:
        """What the following stages belong to, such as a run or a task."""
        self._heading = f"{text} · " if text else ""

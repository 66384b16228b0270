"""What every engine does: bring a list of runs so far as each is to come."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from perdure.experiments.runs import Job
from perdure.progress import Progress


@dataclass(frozen=True)
class Failure:
    """A run that could not go on, and why, in one sentence. What it had learnt before is kept."""

    job: Job
    reason: str


class Engine(Protocol):
    """Jobs of one call don't depend on each other, so they may be done in any order and side by side."""

    def run(self, jobs: Sequence[Job], progress: Progress) -> list[Failure]:
        """Do the jobs that aren't done yet.

        Returns
        -------
        The runs that failed by themselves, such as one whose loss is not finite; the others have been done all the same.

        Raises
        ------
        InputError: the user must change something first; nothing else is begun then.
        PerdureError: the engine itself failed; calling it again goes on.
        """
        ...

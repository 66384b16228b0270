"""Waiting for jobs in other processes, with the tasks that they have learnt as progress."""

from collections.abc import Callable, Sequence

from perdure.experiments.runs import Job
from perdure.progress import Progress

INTERVAL = 0.5  # seconds between two looks


def watch(jobs: Sequence[Job], progress: Progress, finished: Callable[[float], bool], learnt: Callable[[Job], int]) -> None:
    """Wait until ``finished`` is true.

    Parameters
    ----------
    finished: waits for at most so many seconds, and says whether all is over.
    learnt: how many tasks a job's run has learnt by now.
    """
    before = sum(min(learnt(job), job.until) for job in jobs)
    with progress.stage("tasks", sum(job.until for job in jobs) - before) as advance:
        over = False
        while not over:
            over = finished(INTERVAL)
            now = sum(min(learnt(job), job.until) for job in jobs)
            if now > before:
                advance(now - before)
                before = now

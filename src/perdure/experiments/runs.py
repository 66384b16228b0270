"""One run of an experiment: a learner that is brought so many tasks far, from wherever it stands.

A run's folder is a learner's directory, so whatever was finished before a kill is there, and nothing is done twice.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perdure.errors import InputError
from perdure.experiments.first_task import FirstTask
from perdure.experiments.spec import ResolvedRun
from perdure.learning.directory import LearnerDirectory
from perdure.learning.learner import Learner
from perdure.progress import Progress
from perdure.tasks import TaskStream


@dataclass(frozen=True)
class Job:
    """A stretch of one run, for whichever process is free.

    Parameters
    ----------
    run: what is to be run. place: its folder inside ``output``. stream: the tasks in the run's own order.
    until: how many tasks the run is to have learnt in the end.
    ask: whether the learner is asked everything after every task, or only after the last of this stretch.
    first: the first task as other runs share it, where they do; ``watching`` where this is that first task itself.
    """

    run: ResolvedRun
    place: str
    output: Path
    model: str
    stream: TaskStream
    until: int
    ask: Literal["every", "last"] = "every"
    first: FirstTask | None = None
    watching: FirstTask | None = None
    trackers: tuple[str, ...] = ()
    device: str | None = None

    @property
    def folder(self) -> Path:
        """The run's folder."""
        return self.output / self.place

    def tasks_learnt(self) -> int:
        """How many tasks the run has learnt so far."""
        return learnt_in(self.folder)

    def done(self) -> bool:
        """Whether nothing is left to do."""
        return self.tasks_learnt() >= self.until and LearnerDirectory.open(self.folder).row(self.until) is not None


def learnt_in(folder: Path) -> int:
    """How many tasks the learner in a folder has learnt; 0 where there is none yet."""
    return LearnerDirectory.open(folder).tasks_learnt if (folder / "learner.json").is_file() else 0


def advance(job: Job, progress: Progress | None = None, committed: Callable[[int], None] | None = None) -> None:
    """Begin or go on with a run, up to ``job.until`` tasks learnt and asked.

    Parameters
    ----------
    committed: called with the number of tasks learnt when a task has been learnt and, where it is to be, asked.

    Raises
    ------
    InputError: the folder holds a run with other settings or tasks.
    PerdureError: a task could not be learnt; what was learnt before it is kept.
    """
    progress = progress or Progress()
    if (job.folder / "learner.json").is_file():
        check_same(LearnerDirectory.open(job.folder), job.run, job.stream)
        if job.done():
            return
    if job.first is not None and not learnt_in(job.folder):
        job.first.give(job.output, job.folder, job.run.settings)
    learner = _learner(job, progress)
    if job.watching is not None and not learner.tasks_learnt:
        job.watching.watch(learner)
    while True:
        learnt = learner.tasks_learnt
        wanted = learnt and (job.ask == "every" or learnt == job.until)
        if wanted and learner.directory.row(learnt) is None:  # also after a kill between learning and asking
            learner.evaluate(ahead=job.stream[learnt] if learnt < len(job.stream) else None)
        if learnt and committed is not None:
            committed(learnt)
        if learnt >= job.until:
            return
        progress.heading(f"{job.run.label} {learnt + 1}/{job.until}")
        learner.learn(job.stream[learnt])


def _learner(job: Job, progress: Progress) -> Learner:
    if (job.folder / "learner.json").is_file():
        return Learner.open(job.folder, progress=progress, trackers=job.trackers, device=job.device)
    return Learner.create(
        job.folder,
        model=job.model,
        settings=job.run.settings,
        seed=job.run.seed,
        progress=progress,
        trackers=job.trackers,
        device=job.device,
    )


def check_same(known: LearnerDirectory, run: ResolvedRun, stream: TaskStream) -> None:
    """A run goes on only with the settings and the tasks that it was begun with.

    Raises
    ------
    InputError: it was begun with others.
    """
    former, now = known.settings.model_dump(), run.settings.model_dump()
    for section, value in now.items():
        if former[section] != value:
            raise InputError(
                f"{known.path} was begun with {section} = {former[section]}, and the experiment now says {value}; "
                "give the changed method another label, or name another directory with --output."
            )
    for place, (learnt, task) in enumerate(zip(known.task_fingerprints(), stream.tasks, strict=False), start=1):
        if learnt != task.fingerprint:
            raise InputError(f"{known.path} learnt another task {place} than the stream has; name another --output.")

"""Running an experiment: each method with each seed learns the stream, in each order, and is asked everything after every task.

OUTPUT/experiment.json                       the experiment as resolved
OUTPUT/runs/<label>/seed-<n>[-order-<k>]/    one run, a learner's directory
OUTPUT/first-tasks/<name>/                   a first task that several runs begin from
"""

import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from perdure.errors import InputError, PerdureError
from perdure.experiments.engines import Engine, Failure, LocalEngine
from perdure.experiments.first_task import FOLDER, shared_first_tasks
from perdure.experiments.runs import Job, check_same
from perdure.experiments.spec import Experiment
from perdure.files import write_json
from perdure.learning.directory import LearnerDirectory
from perdure.progress import Progress
from perdure.tasks import TaskStream
from perdure.tasks.order import in_order


def run_experiment(
    experiment: Experiment,
    output: Path,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    trackers: Sequence[str] = (),
    device: str | None = None,
) -> list[Path]:
    """Run what has not been run yet.

    Returns
    -------
    The runs' directories, in the experiment's order.

    Raises
    ------
    InputError: ``output`` holds an experiment of another model or stream, or a run with other settings.
    PerdureError: runs failed; the others are done.
    """
    stream = experiment.build_stream()
    runs = experiment.runs()
    claim(output, experiment, stream)
    jobs = [
        Job(run, run.place, output, experiment.model, stream, len(stream), trackers=tuple(trackers), device=device)
        for run in runs
    ]
    failures = advance_all(jobs, engine or LocalEngine(), progress or Progress())
    if failures:
        several = f"{len(failures)} of {len(runs)} runs stopped, the others are done; the first: " if len(runs) > 1 else ""
        raise PerdureError(f"{several}{failures[0].job.run.name}: {failures[0].reason}")
    return [job.folder for job in jobs]


def advance_all(jobs: Sequence[Job], engine: Engine, progress: Progress) -> list[Failure]:
    """Do the jobs, each in its own order of the tasks; the first tasks that several share come before.

    Parameters
    ----------
    jobs: with the stream in its own order.
    """
    orders = {order: in_order(jobs[0].stream, order) for order in {job.run.order for job in jobs}}
    shared = shared_first_tasks([job.run for job in jobs])
    placed = [replace(job, stream=orders[job.run.order], first=shared.get(job.place)) for job in jobs]
    firsts = {
        job.first.place: replace(job, run=job.first.run, place=job.first.place, until=1, first=None, watching=job.first)
        for job in placed
        if job.first is not None and not job.tasks_learnt()
    }
    failed = {failure.job.place: failure.reason for failure in engine.run(list(firsts.values()), progress)}
    hopeless = [job for job in placed if job.first is not None and job.first.place in failed]
    failures = [Failure(job, failed[job.first.place]) for job in hopeless if job.first is not None]
    failures += engine.run([job for job in placed if job not in hopeless], progress)
    if not failures:
        shutil.rmtree(jobs[0].output / FOLDER, ignore_errors=True)  # every run has begun
    return failures


def claim(output: Path, experiment: Experiment, stream: TaskStream) -> None:
    """Record what the directory is for, and refuse to mix two experiments in it, before anything is trained.

    More methods, seeds and orders may come later.

    Raises
    ------
    InputError: the directory holds another experiment, a run with other settings, or something else.
    """
    record = output / "experiment.json"
    this = {"model": experiment.model, "stream": stream.name, "tasks": len(stream), "stream_fingerprint": stream.fingerprint}
    if record.is_file():
        former = json.loads(record.read_text(encoding="utf-8"))
        for key, value in this.items():
            if former.get(key) != value:
                raise InputError(
                    f"{output} holds another experiment: its {key.replace('_', ' ')} is {former.get(key)}, and this one's "
                    f"is {value}; name another directory with --output."
                )
    elif output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is not empty and holds no experiment; name another directory with --output.")
    for run in experiment.runs():
        if (output / run.place / "learner.json").is_file():
            check_same(LearnerDirectory.open(output / run.place), run, in_order(stream, run.order))
    output.mkdir(parents=True, exist_ok=True)
    write_json(record, {**this, "experiment": experiment.model_dump(mode="json")})

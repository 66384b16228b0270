"""Running an experiment: each method with each seed learns the stream and is asked everything after every task.

OUTPUT/experiment.json                 the experiment as resolved
OUTPUT/runs/<label>/seed-<n>/          one run, a learner's directory
"""

import json
from collections.abc import Sequence
from pathlib import Path

from perdure.errors import InputError
from perdure.experiments.spec import Experiment, ResolvedRun
from perdure.files import write_json
from perdure.learning.directory import LearnerDirectory
from perdure.learning.learner import Learner
from perdure.progress import Progress
from perdure.tasks import TaskStream


def run_experiment(
    experiment: Experiment,
    output: Path,
    *,
    progress: Progress | None = None,
    trackers: Sequence[str] = (),
    device: str | None = None,
) -> list[Path]:
    """Run what has not been run yet, one run after another.

    Returns
    -------
    The runs' directories, in the experiment's order.

    Raises
    ------
    InputError: ``output`` holds an experiment of another model or stream, or a run with other settings.
    """
    progress = progress or Progress()
    stream = experiment.build_stream()
    _claim(output, experiment, stream)
    folders = []
    runs = experiment.runs()
    for place, run in enumerate(runs, start=1):
        folder = output / "runs" / run.label / f"seed-{run.seed}"
        progress.note(f"run {place} of {len(runs)}: {run.label}, seed {run.seed}")
        _run_one(experiment.model, run, stream, folder, progress, trackers, device)
        folders.append(folder)
    progress.heading("")
    return folders


def _run_one(
    model: str,
    run: ResolvedRun,
    stream: TaskStream,
    folder: Path,
    progress: Progress,
    trackers: Sequence[str],
    device: str | None,
) -> None:
    """Begin or go on with one run, up to the stream's end."""
    if (folder / "learner.json").is_file():
        known = LearnerDirectory.open(folder)
        _check_same(known, run, stream)
        if known.tasks_learnt == len(stream) and known.row(len(stream)) is not None:
            return
        learner = Learner.open(folder, progress=progress, trackers=trackers, device=device)
    else:
        learner = Learner.create(
            folder, model=model, settings=run.settings, seed=run.seed, progress=progress, trackers=trackers, device=device
        )
    while True:
        learnt = learner.tasks_learnt
        if learnt and learner.directory.row(learnt) is None:  # also after a kill between learning and asking
            learner.evaluate(ahead=stream[learnt] if learnt < len(stream) else None)
        if learnt == len(stream):
            return
        progress.heading(f"{run.label} {learnt + 1}/{len(stream)}")
        learner.learn(stream[learnt])


def _claim(output: Path, experiment: Experiment, stream: TaskStream) -> None:
    """Record what the directory is for; refuse to mix two experiments in it. More methods and seeds may come later."""
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
    output.mkdir(parents=True, exist_ok=True)
    write_json(record, {**this, "experiment": experiment.model_dump(mode="json")})


def _check_same(known: LearnerDirectory, run: ResolvedRun, stream: TaskStream) -> None:
    """A run goes on only with the settings and the tasks that it was begun with."""
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

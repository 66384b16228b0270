"""Searching for the best combination by task-level successive halving, and trying the winners anew.

OUTPUT/search.json       the search as resolved, every rung's ranking, and what was spent
OUTPUT/search.csv        the rankings, a line for each candidate and rung
OUTPUT/trials/           the candidates' runs: an experiment's directory
OUTPUT/final/            the winners, trained anew on another order of the tasks: an experiment's directory too
"""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from perdure.errors import InputError, PerdureError
from perdure.experiments.engines import Engine, Failure, LocalEngine
from perdure.experiments.grid import advance_all, claim, run_experiment
from perdure.experiments.halving import Ladder, agreement, ranked, survivors
from perdure.experiments.runs import Job
from perdure.experiments.search_spec import Search
from perdure.files import write_json, write_text
from perdure.learning.directory import LearnerDirectory
from perdure.progress import Progress
from perdure.retention.measures import final

TRIALS, FINAL, RECORD = "trials", "final", "search.json"


@dataclass(frozen=True)
class Rung:
    """One ranking. finals: each candidate's Final by seed (None: that run failed), from the best candidate to the worst.

    seconds, tokens: what the rung's own tasks took, a first task that is shared counted once. state_bytes: of all its
    checkpoints together.
    """

    tasks: int
    finals: dict[str, list[float | None]]
    kept: list[str]
    failed: dict[str, str]
    config_tasks: int
    seconds: float
    tokens: int
    state_bytes: int

    @property
    def means(self) -> dict[str, float | None]:
        """Mean Final over seeds; None for a candidate of which a run failed."""
        return {label: mean_final(finals) for label, finals in self.finals.items()}


def mean_final(finals: Sequence[float | None]) -> float | None:
    """Mean over seeds; None where one is missing."""
    known = [value for value in finals if value is not None]
    return fmean(known) if known and len(known) == len(finals) else None


def run_search(
    search: Search,
    output: Path,
    *,
    engine: Engine | None = None,
    progress: Progress | None = None,
    trackers: Sequence[str] = (),
    device: str | None = None,
) -> list[str]:
    """Go up the rungs from wherever an earlier call stopped, then train the winners anew.

    Returns
    -------
    The winners, the best first.

    Raises
    ------
    InputError: ``output`` holds another search, the stream is shorter than the last rung, or a setting doesn't fit.
    PerdureError: every candidate failed, or a final run did.
    """
    engine, progress = engine or LocalEngine(), progress or Progress()
    trials, ladder = search.trials(), search.ladder
    stream = trials.build_stream()
    if len(stream) < search.rungs[-1]:
        raise InputError(
            f"the last rung is at {search.rungs[-1]} tasks, and the stream has {len(stream)}; shorten rungs, or lengthen the "
            "stream."
        )
    _claim_search(output, search)
    claim(output / TRIALS, trials, stream)
    runs = trials.runs()
    alive = [entry.name for entry in search.entries()]
    rungs: list[Rung] = []
    for place, tasks in enumerate(ladder.tasks):
        heading = f"rung {place + 1} of {len(ladder.tasks)}: {len(alive)} candidates to {tasks} tasks"
        spent = sum(rung.config_tasks for rung in rungs)
        progress.note(f"{heading}; {spent:,} of {ladder.config_tasks:,} config-tasks done")
        jobs = [
            Job(run, run.place, output / TRIALS, search.model, stream, tasks, "last", trackers=tuple(trackers), device=device)
            for run in runs
            if run.label in alive
        ]
        failures = advance_all(jobs, engine, progress)
        rungs.append(_rank(jobs, failures, tasks, ladder, place))
        alive = rungs[-1].kept
        _write(output, search, rungs)
        if not alive:
            raise PerdureError(f"every candidate of the search failed; the first: {failures[0].reason}")
    winners = alive[: search.final.winners]
    progress.note(f"the search is over; training anew on another order: {', '.join(winners)}")
    run_experiment(search.finals(winners), output / FINAL, engine=engine, progress=progress, trackers=trackers, device=device)
    return winners


def _rank(jobs: Sequence[Job], failures: Sequence[Failure], tasks: int, ladder: Ladder, place: int) -> Rung:
    failed = {failure.job.run.label: failure.reason for failure in failures}
    finals: dict[str, list[float | None]] = {}
    for job in jobs:
        finals.setdefault(job.run.label, []).append(_final(job, tasks))
    means = {label: mean_final(values) for label, values in finals.items()}
    order = ranked(means)
    go_on = ladder.candidates[place + 1] if place + 1 < len(ladder.candidates) else len(order)
    seconds, tokens, state_bytes = _spent(jobs, ladder.tasks[place - 1] if place else 0, tasks)
    return Rung(
        tasks,
        {label: finals[label] for label in order},
        survivors(order, go_on, means),
        failed,
        ladder.of_rung(place),
        seconds,
        tokens,
        state_bytes,
    )


def _final(job: Job, tasks: int) -> float | None:
    """Final after so many tasks; None if the run didn't come so far."""
    if job.tasks_learnt() < tasks:
        return None
    return final(LearnerDirectory.open(job.folder).matrix().first(tasks))


def _spent(jobs: Sequence[Job], after: int, upto: int) -> tuple[float, int, int]:
    """Seconds and tokens of the tasks from ``after``, exclusive, to ``upto``; bytes of the last states."""
    seconds, tokens, state_bytes = 0.0, 0, 0
    shared: set[str] = set()
    for job in jobs:
        directory = LearnerDirectory.open(job.folder)
        costs = [directory.costs(task) for task in range(after + 1, min(upto, directory.tasks_learnt) + 1)]
        state_bytes += costs[-1]["state_bytes"] if costs else 0
        for cost in costs:
            if cost.get("shared") not in shared:
                seconds += sum(cost["seconds"].values())
                tokens += sum(cost["tokens"].values())
            if "shared" in cost:
                shared.add(cost["shared"])
    return seconds, tokens, state_bytes


def _claim_search(output: Path, search: Search) -> None:
    """Refuse to mix two searches in one directory; the final runs may be changed at will."""
    record, this = output / RECORD, _settled(search)
    if record.is_file():
        former = json.loads(record.read_text(encoding="utf-8"))["search"]
        for key, value in this.items():
            if former.get(key) != value:
                raise InputError(f"{output} holds another search: its {key} is not this one's; name another --output.")
    elif output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise InputError(f"{output} is not empty and holds no search; name another directory with --output.")
    output.mkdir(parents=True, exist_ok=True)
    if not record.is_file():
        write_json(record, {"search": this, "rungs": []})


def _settled(search: Search) -> dict[str, Any]:
    """All that decides the search itself, as JSON values."""
    return json.loads(search.model_dump_json(exclude={"final"}))


def _write(output: Path, search: Search, rungs: Sequence[Rung]) -> None:
    """The record after a rung."""
    ladder = search.ladder
    last = rungs[-1].means
    record = {
        "search": _settled(search),
        "rungs": [asdict(rung) for rung in rungs],
        "budget": {
            "config_tasks": ladder.config_tasks,
            "exhaustive_config_tasks": ladder.exhaustive,
            "seeds": len(search.seeds),
            "seconds": sum(rung.seconds for rung in rungs),
            "tokens": sum(rung.tokens for rung in rungs),
            "state_bytes": max(rung.state_bytes for rung in rungs),
        },
        "agreement": [
            {"tasks": rung.tasks, "spearman": rho, "comparable": n}
            for rung in rungs[:-1]
            for rho, n in [agreement(rung.means, last)]
        ],
    }
    write_json(output / RECORD, record)
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["rung", "tasks", "rank", "candidate", "mean_final", "kept", *(f"seed_{seed}" for seed in search.seeds)])
    for number, rung in enumerate(rungs, start=1):
        for rank, (label, finals) in enumerate(rung.finals.items(), start=1):
            lines.writerow([number, rung.tasks, rank, label, mean_final(finals), label in rung.kept, *finals])
    write_text(output / "search.csv", text.getvalue())


def load_rungs(output: Path) -> list[Rung]:
    """The rungs that a search has finished, from its directory."""
    record: Mapping[str, Any] = json.loads((output / RECORD).read_text(encoding="utf-8"))
    return [Rung(**rung) for rung in record["rungs"]]

"""What a report is made of: runs read from their directories, and the runs of one method together."""

import csv
import io
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from perdure.errors import InputError
from perdure.files import write_json, write_text
from perdure.learning.directory import LearnerDirectory
from perdure.retention import Measures, RetentionMatrix, SeedSummary, over_seeds, summary
from perdure.retention.measures import bootstrap_interval


@dataclass(frozen=True)
class RunResult:
    """One method with one seed and one order of the tasks.

    Parameters
    ----------
    order: 0 for the stream's own order.
    costs: for each task learnt, what it took (seconds, tokens, bytes, replay audit), as in the run's ``costs`` folder.
    log: the measured training steps of all tasks, in order.
    settings: the learner's settings as plain data. model: one line that says which model learnt.
    questions: for each task, how many questions the last checkpoint was asked (0: none).
    formatted: for each task, the share of the last checkpoint's answers that were in the text format (None: not asked).
    reworded: the retention matrix over paraphrases, where the tasks have any. stream: one fingerprint a task.
    """

    method: str
    seed: int
    matrix: RetentionMatrix
    costs: list[dict[str, Any]]
    log: list[dict[str, Any]]
    settings: dict[str, Any]
    model: str
    directory: Path
    questions: tuple[int, ...]
    formatted: tuple[float | None, ...]
    reworded: RetentionMatrix | None
    stream: tuple[str, ...]
    order: int = 0

    @classmethod
    def load(cls, directory: str | Path) -> "RunResult":
        """Read a learner's directory.

        In an experiment (``runs/<method>/seed-<n>[-order-<k>]``) the method's name is that of the folder, so that variants of
        one method stay apart; else it is the method in the settings.

        Raises
        ------
        InputError: no learner is there, it is damaged, or it has learnt nothing yet.
        """
        path = Path(directory)
        files = LearnerDirectory.open(path)
        learnt = range(1, files.tasks_learnt + 1)
        if not learnt:
            raise InputError(f"{path} has learnt nothing yet; begin with `perdure learn {path} FILE`.")
        about = files.description
        row = files.row(len(learnt))
        place = re.fullmatch(rf"seed-{about['seed']}(?:-order-(\d+))?", path.resolve().name)
        return cls(
            method=path.resolve().parent.name if place else files.settings.method,
            seed=about["seed"],
            matrix=files.matrix(),
            costs=[files.costs(number) for number in learnt],
            log=[step for number in learnt for step in _read_log(files.log(number))],
            settings=files.settings.model_dump(mode="json"),
            model=_model_line(about),
            directory=path,
            questions=tuple(row.counts) if row else (0,) * len(learnt),
            formatted=tuple(row.formatted) if row else (None,) * len(learnt),
            reworded=files.reworded_matrix(),
            stream=tuple(files.task_fingerprints()),
            order=int(place[1] or 0) if place else 0,
        )

    @property
    def which(self) -> str:
        """Which of its method's runs this is, for people."""
        return f"seed {self.seed}" + (f", order {self.order}" if self.order else "")

    @cached_property
    def measures(self) -> Measures:
        """The measures of the whole matrix."""
        return summary(self.matrix)

    @property
    def format_rate(self) -> float | None:
        """Share of the last checkpoint's answers that were in the text format, mean over tasks; None unless all were asked."""
        known = [share for share in self.formatted if share is not None]
        return sum(known) / len(known) if known and len(known) == len(self.formatted) else None

    def final_over_questions(self) -> tuple[float, float] | None:
        """95 % bootstrap interval of Final over this run's questions; None where it is undefined or tasks differ in size."""
        if self.measures.final is None or len(set(self.questions)) != 1 or sum(self.questions) < 2:
            return None
        answers: list[int] = []
        for score, asked in zip(self.matrix.scores[-1], self.questions, strict=True):
            right = round(score * asked)
            answers += [1] * right + [0] * (asked - right)
        return bootstrap_interval(answers)

    def total(self, kind: str, stage: str | None = None) -> float:
        """Seconds or tokens of a stage (of all stages by default) over all tasks."""
        return sum(amount for cost in self.costs for name, amount in cost[kind].items() if stage in (None, name))

    def audits(self) -> list[dict[str, Any]]:
        """The replay audits, of the tasks that had replay, each with its task's number."""
        return [{"task": n, **cost["replay_audit"]} for n, cost in enumerate(self.costs, 1) if cost.get("replay_audit")]


@dataclass(frozen=True)
class MethodResult:
    """The runs of one method, by order and seed; runs unequally far are compared over the tasks that all have learnt."""

    name: str
    runs: tuple[RunResult, ...]

    @property
    def tasks(self) -> int:
        """Tasks that every run has learnt."""
        return min(len(run.matrix) for run in self.runs)

    @cached_property
    def measures(self) -> tuple[Measures, ...]:
        """Each run's measures after ``tasks`` tasks."""
        return tuple(summary(run.matrix.first(self.tasks)) for run in self.runs)

    @cached_property
    def over_seeds(self) -> SeedSummary:
        """Mean and sample standard deviation over the runs: seeds, or seeds and orders."""
        return over_seeds(self.measures)

    @cached_property
    def median_run(self) -> RunResult:
        """The run whose Final is the median (the lower of the two middle ones; undefined ones come first)."""
        finals = [-1.0 if measure.final is None else measure.final for measure in self.measures]
        order = sorted(range(len(self.runs)), key=finals.__getitem__)
        return self.runs[order[(len(order) - 1) // 2]]


def by_method(runs: Sequence[RunResult]) -> list[MethodResult]:
    """Group runs by method, best mean Final first (methods without one at the end, in the order given).

    Raises
    ------
    InputError: no run, or one method, seed and order twice.
    """
    if not runs:
        raise InputError("a report needs at least one run; run an experiment with `perdure run SPEC` first.")
    groups: dict[str, dict[tuple[int, int], RunResult]] = {}
    for run in runs:
        group, key = groups.setdefault(run.method, {}), (run.order, run.seed)
        if key in group:
            raise InputError(
                f"{group[key].directory} and {run.directory} are both {run.method} with seed {run.seed}; report one."
            )
        group[key] = run
    methods = [MethodResult(name, tuple(group[key] for key in sorted(group))) for name, group in groups.items()]
    return sorted(methods, key=lambda method: -(method.over_seeds.final.mean if method.over_seeds.final else -1.0))


def tidy(runs: Sequence[RunResult]) -> list[dict[str, Any]]:
    """One record a run: method, seed, order, measures (shares from 0 to 1, half-life in tasks, None: undefined) and costs."""
    return [
        {
            "method": run.method,
            "seed": run.seed,
            "order": run.order,
            "tasks": run.measures.tasks,
            "final": run.measures.final,
            "diagonal": run.measures.diagonal,
            "forgetting": run.measures.forgetting,
            "half_life": run.measures.half_life,
            "forward_transfer": run.measures.forward_transfer,
            "format_rate": run.format_rate,
            "seconds": run.total("seconds"),
            "tokens": run.total("tokens"),
            "peak_memory_bytes": max(cost["peak_memory_bytes"] for cost in run.costs),
            "state_bytes": run.costs[-1]["state_bytes"],
        }
        for run in runs
    ]


def write_results(runs: Sequence[RunResult], folder: Path) -> list[str]:
    """Write the numbers beside the page: ``matrix.csv`` and ``matrix.json``, and for several runs ``results.csv`` and
    ``results.json`` (:func:`tidy`); ``matrix.csv`` then has one line a score and ``matrix.json`` one record a run.

    Returns
    -------
    The names of the files.
    """
    if len(runs) == 1:
        runs[0].matrix.write_csv(folder / "matrix.csv")
        runs[0].matrix.write_json(folder / "matrix.json")
        return ["matrix.csv", "matrix.json"]
    scores = [
        {
            "method": run.method,
            "seed": run.seed,
            "order": run.order,
            "after_task": i,
            "task": j,
            "task_name": name,
            "score": score,
        }
        for run in runs
        for i, row in enumerate(run.matrix.to_rows(), start=1)
        for j, (name, score) in enumerate(zip(run.matrix.task_names, row, strict=True), start=1)
        if score is not None
    ]
    matrices = [
        {
            "method": run.method,
            "seed": run.seed,
            "order": run.order,
            "task_names": run.matrix.task_names,
            "scores": run.matrix.to_rows(),
        }
        for run in runs
    ]
    _write_csv(folder / "results.csv", tidy(runs))
    write_json(folder / "results.json", tidy(runs))
    _write_csv(folder / "matrix.csv", scores, ["method", "seed", "order", "after_task", "task", "task_name", "score"])
    write_json(folder / "matrix.json", matrices)
    return ["results.csv", "results.json", "matrix.csv", "matrix.json"]


def _write_csv(path: Path, records: list[dict[str, Any]], head: Sequence[str] | None = None) -> None:
    text = io.StringIO()
    writer = csv.DictWriter(text, head or list(records[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    write_text(path, text.getvalue())


def _read_log(path: Path) -> list[dict[str, Any]]:
    try:
        return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as error:
        raise InputError(f"{path} is damaged ({error}); delete it to report without the training curves.") from error


def _model_line(about: dict[str, Any]) -> str:
    revision = f"@{about['revision']}" if about.get("revision") else ""
    fingerprint = f"weights {about['fingerprint'][:12]}" if about.get("fingerprint") else None
    return " · ".join(part for part in (f"{about['model']}{revision}", about.get("dtype"), fingerprint) if part)

"""The report on a directory, be it one learner's or an experiment's."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.errors import InputError
from perdure.learning.directory import LearnerDirectory
from perdure.reporting import RunResult, write_report
from perdure.reporting.results import by_method
from perdure.reporting.wording import NOT_DEFINED

if TYPE_CHECKING:
    from rich.table import Table


def report_directory(directory: str | Path, *, command: str | None = None) -> dict[str, Path]:
    """Write the page, figures and tables of a learner or an experiment into its own directory.

    Parameters
    ----------
    command: what makes the results again, to be shown on the page.

    Returns
    -------
    The files that a reader wants first, by what they are: ``page``, and the numbers.

    Raises
    ------
    InputError: neither a learner nor an experiment is there, or nothing has been learnt or asked yet.
    """
    path = Path(directory)
    record = path / "experiment.json"
    if record.is_file():
        about = json.loads(record.read_text(encoding="utf-8"))
        runs = load_runs(path)
        written = write_report(runs, path / "report.html", path.resolve().name, stream=about["stream"], command=command)
    else:
        run = RunResult.load(path)
        warnings = _superseded(LearnerDirectory.open(path))
        command = command or f"perdure report {path}"
        written = write_report([run], path / "report.html", path.resolve().name, command=command, warnings=warnings)
    numbers = {file.name: file for file in written[1:] if file.parent == path and file.suffix in (".csv", ".json")}
    return {"page": written[0], **numbers}


def load_runs(directory: Path) -> list[RunResult]:
    """Every run of an experiment that has learnt at least one task.

    Raises
    ------
    InputError: there is none yet.
    """
    folders = sorted(path.parent for path in directory.glob("runs/*/seed-*/learner.json"))
    runs = [RunResult.load(folder) for folder in folders if LearnerDirectory.open(folder).tasks_learnt]
    if not runs:
        raise InputError(f"{directory} has no run with a task learnt yet; go on with `perdure run`.")
    return runs


def summary_table(directory: Path) -> "Table":
    """Final, Diag, Forget and half-life of each method of an experiment, for a terminal; mean ± sample std over seeds."""
    from rich.table import Table

    methods = by_method(load_runs(directory))
    seeds = max(len(method.runs) for method in methods)
    table = Table("method", "Final %", "Diag %", "Forget %", "half-life", "seconds", "n")
    for column in table.columns:
        column.no_wrap = True
    if seeds > 1:
        table.title = "mean ± sample standard deviation over seeds"
    for method in methods:
        over_seeds = method.over_seeds
        measured = (over_seeds.final, over_seeds.diagonal, over_seeds.forgetting)
        seconds = sum(run.total("seconds") for run in method.runs) / len(method.runs)
        cells = [spread.percent() if spread else NOT_DEFINED for spread in measured]
        table.add_row(method.name, *cells, over_seeds.half_life_text, f"{seconds:.0f}", str(len(method.runs)))
    return table


def _superseded(directory: LearnerDirectory) -> list[str]:
    """A warning when later tasks gave old questions another answer: the older one still counts as right in its row."""
    known: dict[str, tuple[str, ...]] = {}
    changed = 0
    for number in range(1, directory.tasks_learnt + 1):
        for item in directory.task(number).items:
            changed += known.get(item.question, item.answers) != item.answers
            known[item.question] = item.answers
    if not changed:
        return []
    return [
        f"{changed} questions were learnt again with another answer. Their first task still counts the former answer as right, "
        "so forgetting it is counted as loss there."
    ]

"""The report on a directory, be it a learner's, an experiment's or a search's."""

import json
from pathlib import Path

from perdure.errors import InputError
from perdure.experiments.search import FINAL, TRIALS, load_rungs
from perdure.experiments.search import RECORD as SEARCH
from perdure.learning.directory import LearnerDirectory
from perdure.reporting import RunResult, write_report
from perdure.reporting.funnel import funnel_section
from perdure.reporting.greedy_path import greedy_path_section
from perdure.reporting.page import Section
from perdure.reporting.results import by_method


def report_directory(directory: str | Path, *, command: str | None = None) -> dict[str, Path]:
    """Write the page, figures and tables of a learner, an experiment or a search into its own directory.

    Parameters
    ----------
    command: what makes the results again, to be shown on the page.

    Returns
    -------
    The files that a reader wants first, by what they are: ``page``, and the numbers.

    Raises
    ------
    InputError: nothing of that kind is there, or nothing has been learnt or asked yet.
    """
    path = Path(directory)
    page, name = path / "report.html", path.resolve().name
    if (path / SEARCH).is_file():
        record = json.loads((path / SEARCH).read_text(encoding="utf-8"))
        rungs = load_rungs(path)
        runs, stream = _experiment(path / FINAL if (path / FINAL / "experiment.json").is_file() else path / TRIALS)
        found = [funnel_section(rungs, record["budget"], record["agreement"])] if rungs else []
        written = write_report(runs, page, name, stream=stream, command=command, sections=[*found, *_sections(runs)])
    elif (path / "experiment.json").is_file():
        runs, stream = _experiment(path)
        written = write_report(runs, page, name, stream=stream, command=command, sections=_sections(runs))
    else:
        run = RunResult.load(path)
        warnings = _superseded(LearnerDirectory.open(path))
        command = command or f"perdure report {path}"
        written = write_report([run], page, name, command=command, warnings=warnings)
    numbers = {file.name: file for file in written[1:] if file.parent == path and file.suffix in (".csv", ".json")}
    return {"page": written[0], **numbers}


def _experiment(path: Path) -> tuple[list[RunResult], str]:
    """An experiment's runs, and its stream's name."""
    about = json.loads((path / "experiment.json").read_text(encoding="utf-8"))
    return load_runs(path), about["stream"]


def _sections(runs: list[RunResult]) -> list[Section]:
    """What several methods together say."""
    methods = by_method(runs)
    return [section for section in (greedy_path_section(methods),) if section is not None]


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

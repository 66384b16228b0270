"""Tables for the terminal."""

from pathlib import Path

from rich.table import Table

from perdure.experiments.report import load_runs
from perdure.reporting.results import by_method
from perdure.reporting.wording import NOT_DEFINED


def summary_table(directory: Path) -> Table:
    """Final, Diag, Forget and half-life of each method of an experiment; mean ± sample std over seeds and orders."""
    methods = by_method(load_runs(directory))
    table = Table("method", "Final %", "Diag %", "Forget %", "half-life", "seconds", "n")
    for column in table.columns:
        column.no_wrap = True
    if max(len(method.runs) for method in methods) > 1:
        table.title = "mean ± sample standard deviation over n runs"
    for method in methods:
        over_seeds = method.over_seeds
        measured = (over_seeds.final, over_seeds.diagonal, over_seeds.forgetting)
        seconds = sum(run.total("seconds") for run in method.runs) / len(method.runs)
        cells = [spread.percent() if spread else NOT_DEFINED for spread in measured]
        table.add_row(method.name, *cells, over_seeds.half_life_text, f"{seconds:.0f}", str(len(method.runs)))
    return table

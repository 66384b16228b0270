"""Figures, files and one self-contained HTML page for a learner or for an experiment of methods × seeds."""

from perdure.reporting.report import write_report
from perdure.reporting.results import RunResult

__all__ = ["RunResult", "write_report"]

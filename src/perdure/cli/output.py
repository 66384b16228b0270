"""What the verbs print on: results on the output stream, progress and errors on the error stream.

Names, questions and answers come from users and models, so nothing printed is read as markup; style is given by :class:`Text`.
"""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from perdure.experiments.spec import ResolvedRun

out = Console(soft_wrap=True, highlight=False, markup=False)
err = Console(stderr=True, highlight=False, markup=False)


def next_step(command: str, why: str) -> None:
    """The last line of a verb: what to do next, and why."""
    out.print(Text.assemble(("Next: ", "dim"), (command, "bold"), (f"  ({why})", "dim")))


def print_runs(runs: "Sequence[ResolvedRun]", as_json: bool) -> None:
    """Every run with all that decides it, as a dry run shows it."""
    if as_json:
        out.print_json(json.dumps([run.resolved() for run in runs]))
        return
    for run in runs:
        known = run.resolved()
        sections = {name: value for name, value in known.items() if isinstance(value, dict)}
        out.print(Text.assemble((run.name, "bold"), f"  {known['method']}  {known['folder']}"))
        for name, settings in sections.items():
            out.print(f"  {name}: " + ", ".join(f"{key}={value}" for key, value in settings.items()))

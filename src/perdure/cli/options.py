"""Options that many verbs have, always spelt and explained alike."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

Directory = Annotated[Path, typer.Argument(help="The learner's directory.", show_default=False)]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, only the result.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON, for scripts.")]
Device = Annotated[str | None, typer.Option(help="cpu, cuda, mps; by default what the machine has.")]
Trackers = Annotated[
    list[str] | None,
    typer.Option("--track", help="tensorboard (default where installed), wandb, mlflow or none; may repeat."),
]


def trackers(names: list[str] | None) -> list[str]:
    """The trackers that ``--track`` names, or TensorBoard where it is installed."""
    if names:
        return [name for name in names if name != "none"]
    return ["tensorboard"] if find_spec("tensorboard") else []

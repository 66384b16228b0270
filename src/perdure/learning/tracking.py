"""Sending the training log to TensorBoard, W&B or MLflow through Accelerate's trackers."""

from collections.abc import Sequence
from pathlib import Path

from perdure.errors import InputError, nearest
from perdure.learning.step import StepRecord

PROJECT = "perdure"


def check_trackers(names: Sequence[str]) -> None:
    """Raise InputError unless every tracker is known to Accelerate and its package is installed."""
    if not names:
        return
    from accelerate.tracking import get_available_trackers
    from accelerate.utils import LoggerType

    known = [str(name) for name in LoggerType.list() if name != "all"]
    installed = {tracker.value for tracker in get_available_trackers()}
    for name in names:
        if name not in known:
            raise InputError(f"tracker {name!r} is unknown; {nearest(name, known)}")
        if name not in installed:
            raise InputError(f"tracker {name!r} needs its package; install it with `pip install {name}`.")


class Tracking:
    """A run in each named tracker; with no name it does nothing. TensorBoard's files go to ``tensorboard/``."""

    def __init__(self, names: Sequence[str], directory: Path, *, steps_before: int) -> None:
        """steps_before: training steps of the earlier tasks, so that one run shows a learner's whole life."""
        self._steps_before = steps_before
        self._accelerator = None
        if names:
            from accelerate import Accelerator

            self._accelerator = Accelerator(cpu=True, log_with=list(names), project_dir=directory / "tensorboard")
            self._accelerator.init_trackers(PROJECT, init_kwargs={"wandb": {"name": directory.name}})

    def log(self, record: StepRecord, learning_rate: float, step: int) -> None:
        """Log one measured step of the current task."""
        if self._accelerator is None:
            return
        values = {f"loss/{name}": value for name, value in record.loss.items()}
        values |= {f"gradient_norm/{name}": value for name, value in record.gradient_norm.items()}
        self._accelerator.log({**values, "learning_rate": learning_rate}, step=self._steps_before + step)

    def end(self) -> None:
        """Close the trackers' files."""
        if self._accelerator is not None:
            self._accelerator.end_training()

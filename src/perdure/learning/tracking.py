"""Sending the training log to TensorBoard, W&B or MLflow through Accelerate's trackers."""

from collections.abc import Sequence
from pathlib import Path

from perdure.errors import InputError
from perdure.learning.step import StepRecord


class Tracking:
    """A run in each named tracker; with no name it does nothing."""

    def __init__(self, names: Sequence[str], directory: Path, *, steps_before: int) -> None:
        """steps_before: training steps of the earlier tasks, so that one run shows a learner's whole life.

        Raises
        ------
        InputError: a tracker is unknown or its package isn't installed.
        """
        self._steps_before = steps_before
        self._accelerator = None
        if not names:
            return
        from accelerate import Accelerator

        try:
            self._accelerator = Accelerator(cpu=True, log_with=list(names), project_dir=directory)
        except ValueError as error:
            raise InputError(f"tracker {', '.join(names)}: {error}; known: tensorboard, wandb, mlflow.") from error
        if missing := set(names) - {
            tracker if isinstance(tracker, str) else tracker.name for tracker in self._accelerator.log_with
        }:
            raise InputError(f"the package of tracker {', '.join(sorted(missing))} is not installed; install it with pip.")
        self._accelerator.init_trackers(directory.name)

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

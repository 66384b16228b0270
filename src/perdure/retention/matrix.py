"""The retention matrix: the score on every task after every step, and its form on disk."""

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from perdure.errors import InputError
from perdure.files import write_json, write_text

CHECKPOINT = "after_task"  # heading of the first column of a CSV file


@dataclass(frozen=True, eq=False)
class RetentionMatrix:
    """M[i, j]: the share of task j+1's questions answered right after task i+1.

    Source: the continual-memorisation paper (arXiv 2609.06986), measures.

    Parameters
    ----------
    scores: float64 [T, T], each in [0, 1]; nan where nothing was asked. Entries above the diagonal, where present, are scores
        on a task before it is learnt (forward transfer). A read-only copy is kept.
    task_names: T names, in the order of learning. A name may occur twice: columns are told apart by their place.

    Raises
    ------
    InputError: the array is not square, a score is outside [0, 1], or there are not T names.
    """

    scores: NDArray[np.float64]
    task_names: tuple[str, ...]

    def __post_init__(self) -> None:
        scores = np.array(self.scores, dtype=np.float64)
        if scores.ndim != 2 or scores.shape[0] != scores.shape[1]:
            raise InputError(
                f"a retention matrix has as many rows as tasks, but this one is {' × '.join(map(str, scores.shape))}; "
                "give one row for each task learnt."
            )
        if len(self.task_names) != len(scores):
            raise InputError(
                f"a retention matrix of {len(scores)} tasks came with {len(self.task_names)} task names; give one for each."
            )
        for i, j in np.argwhere(~(np.isnan(scores) | ((scores >= 0) & (scores <= 1)))):
            raise InputError(
                f"the score of task {j + 1} after task {i + 1} is {scores[i, j]:g}; scores are shares from 0 to 1."
            )
        scores.setflags(write=False)
        object.__setattr__(self, "scores", scores)
        object.__setattr__(self, "task_names", tuple(self.task_names))

    def __len__(self) -> int:
        """T, the number of tasks."""
        return len(self.task_names)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, RetentionMatrix):
            return NotImplemented
        return self.task_names == other.task_names and np.array_equal(self.scores, other.scores, equal_nan=True)

    @classmethod
    def from_rows(cls, rows: Sequence[Sequence[float | None]], task_names: Sequence[str] | None = None) -> "RetentionMatrix":
        """Build a matrix from one list of scores a checkpoint.

        Parameters
        ----------
        rows: row i holds the scores after task i+1: at least i+1 of them, at most T; None or nan where a task was not asked.
            An empty row is a checkpoint that was asked nothing.
        task_names: by default task-1 … task-T.

        Raises
        ------
        InputError: a row is too short or too long, or a score is no share.
        """
        tasks = len(rows)
        scores = np.full((tasks, tasks), np.nan)
        for i, row in enumerate(rows):
            if row and not i < len(row) <= tasks:
                raise InputError(
                    f"row {i + 1} of the retention matrix has {len(row)} scores; after task {i + 1} of {tasks} give from "
                    f"{i + 1} to {tasks}, with null for a task that was not asked."
                )
            for j, score in enumerate(row):
                if isinstance(score, bool) or not isinstance(score, int | float | np.number | None):
                    raise InputError(
                        f"the score of task {j + 1} after task {i + 1} is {score!r}; give a number from 0 to 1, or null."
                    )
                scores[i, j] = np.nan if score is None else score
        names = [f"task-{number}" for number in range(1, tasks + 1)] if task_names is None else task_names
        return cls(scores, tuple(names))

    def to_rows(self) -> list[list[float | None]]:
        """T rows of T scores as plain numbers, None where nothing was asked."""
        return [[None if math.isnan(score) else float(score) for score in row] for row in self.scores]

    def first(self, tasks: int) -> "RetentionMatrix":
        """The matrix as it was after the first ``tasks`` tasks."""
        return RetentionMatrix(self.scores[:tasks, :tasks], self.task_names[:tasks])

    @property
    def last_complete(self) -> int | None:
        """The latest checkpoint (from 1) that was asked every task learnt until then; None if there is none."""
        whole = [i + 1 for i in range(len(self)) if not np.isnan(self.scores[i, : i + 1]).any()]
        return whole[-1] if whole else None

    def write_json(self, path: str | Path) -> None:
        """Write ``{"task_names": [...], "scores": [[...], ...]}`` atomically; null where nothing was asked."""
        write_json(Path(path), {"task_names": list(self.task_names), "scores": self.to_rows()})

    @classmethod
    def read_json(cls, path: str | Path) -> "RetentionMatrix":
        """Read what :meth:`write_json` wrote.

        Raises
        ------
        InputError: the file can't be read or holds no retention matrix.
        """
        try:
            content = json.loads(Path(path).read_text(encoding="utf-8"))
            rows, names = content["scores"], content["task_names"]
            if not (isinstance(names, list) and all(isinstance(name, str) for name in names)):
                raise TypeError("task_names is not a list of names")
            if not (isinstance(rows, list) and all(isinstance(row, list) for row in rows)):
                raise TypeError("scores is not a list of lists")
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(
                f"{path} holds no retention matrix ({_reason(error)}); write one with `perdure report`."
            ) from error
        try:
            return cls.from_rows(rows, names)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error

    def write_csv(self, path: str | Path) -> None:
        """Write a table atomically: a column for each task, a row for each checkpoint, empty where nothing was asked."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow([CHECKPOINT, *self.task_names])
        writer.writerows([i + 1, *row] for i, row in enumerate(self.to_rows()))
        write_text(Path(path), text.getvalue())

    @classmethod
    def read_csv(cls, path: str | Path) -> "RetentionMatrix":
        """Read what :meth:`write_csv` wrote.

        Raises
        ------
        InputError: the file can't be read, or a line of it is no row of a retention matrix.
        """
        rows: list[list[float | None]] = []
        try:
            with Path(path).open(encoding="utf-8-sig", newline="") as file:
                reader = csv.reader(file)
                head = next(reader, [])
                if not head or head[0] != CHECKPOINT:
                    raise InputError(f"{path}:1 does not begin with the column {CHECKPOINT}; give a retention matrix as CSV.")
                for line in filter(None, reader):
                    if len(line) != len(head):
                        raise InputError(f"{path}:{reader.line_num} has {len(line)} fields; the heading has {len(head)}.")
                    rows.append([_number(text, f"{path}:{reader.line_num}") for text in line[1:]])
        except (OSError, UnicodeDecodeError, csv.Error) as error:
            raise InputError(f"{path} can't be read as CSV ({_reason(error)}); give a retention matrix.") from error
        try:
            return cls.from_rows(rows, head[1:])
        except InputError as error:
            raise InputError(f"{path}: {error}") from error


def _number(text: str, place: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError as error:
        raise InputError(f"{place} has the score {text!r}; give a number from 0 to 1, or leave it empty.") from error


def _reason(error: Exception) -> str:
    if isinstance(error, KeyError):
        return f"it has no {error.args[0]}"
    return (error.strerror or "can't be opened") if isinstance(error, OSError) else str(error)

"""A learner's directory: what it is, what it has learnt, how it was scored. Reading it needs no model and no torch.

learner.json            format, model, settings, seed
tasks/0001.jsonl …      the questions of each task, kept to be asked again and never trained on again
tasks/0001.json …       each task's name and fingerprint
state/0007/             the one committed state: learning/state.py
rows/0007.json          the scores after task 7
costs/0007.json         seconds, tokens and bytes of task 7
logs/0007.jsonl         one line for each logged training step of task 7
"""

import json
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import filelock
from pydantic import ValidationError

from perdure.errors import InputError, PerdureError
from perdure.files import write_json
from perdure.retention.matrix import RetentionMatrix
from perdure.settings import LearnerSettings
from perdure.tasks import Task, read_jsonl, write_jsonl

FORMAT = 1
FOLDERS = ("tasks", "state", "rows", "costs", "logs")


@dataclass(frozen=True)
class Row:
    """Scores after a task.

    scores[j], formatted[j]: shares of task j+1's questions answered right, and in the right format (None: not asked).
    counts[j]: how many were asked. reworded[j]: share of its paraphrases answered right (None: not asked, or it has none).
    ahead: share of the next task's questions answered right before it is learnt (None: not asked).
    """

    checkpoint: int
    scores: list[float | None]
    formatted: list[float | None]
    counts: list[int]
    reworded: list[float | None] = field(default_factory=list)
    ahead: float | None = None

    @classmethod
    def blank(cls, checkpoint: int) -> "Row":
        """Nothing asked yet."""
        nothing: list[float | None] = [None] * checkpoint
        return cls(checkpoint, nothing.copy(), nothing.copy(), [0] * checkpoint, nothing.copy())


def refuse_used(path: Path) -> None:
    """Raise InputError unless ``path`` is new or has no file in it (empty folders may be left of a killed beginning)."""
    if path.exists() and (not path.is_dir() or any(entry.is_file() for entry in path.rglob("*"))):
        raise InputError(f"{path} is not empty; name a new folder, or go on with the learner in it by `perdure learn`.")


class LearnerDirectory:
    """The files of one learner. ``tasks_learnt`` counts committed tasks; whatever stands beyond it is ignored."""

    def __init__(self, path: Path, description: dict[str, Any], settings: LearnerSettings) -> None:
        self.path, self.description, self.settings = path, description, settings
        self._lock = filelock.FileLock(path / ".lock")

    @classmethod
    def create(cls, path: Path, description: dict[str, Any], settings: LearnerSettings) -> "LearnerDirectory":
        """Begin a learner in an empty or new folder.

        Raises
        ------
        InputError: the folder already has something in it, or can't be made.
        """
        refuse_used(path)
        try:
            for folder in FOLDERS:
                (path / folder).mkdir(parents=True, exist_ok=True)
            whole = {"format": FORMAT, **description, "settings": settings.model_dump(mode="json")}
            write_json(path / "learner.json", whole)
        except OSError as error:
            raise InputError(f"{path} can't be written ({error.strerror}); name a folder that you may write to.") from error
        return cls(path, whole, settings)

    @classmethod
    def open(cls, path: Path) -> "LearnerDirectory":
        """Open an existing learner's directory.

        Raises
        ------
        InputError: it is none, it is damaged, or another version of perdure wrote it.
        """
        file = path / "learner.json"
        if not file.is_file():
            what = "has no learner in it (no learner.json)" if path.is_dir() else "doesn't exist"
            raise InputError(f"{path} {what}; make one with `perdure init {path} --model MODEL`.")
        try:
            description = json.loads(file.read_text(encoding="utf-8"))
            if description["format"] != FORMAT:
                raise InputError(
                    f"{file} was written in format {description['format']}, and this version of perdure reads format "
                    f"{FORMAT}; install the version that wrote it."
                )
            settings = LearnerSettings.model_validate(description["settings"])
        except (ValueError, KeyError, TypeError, ValidationError) as error:
            raise InputError(f"{file} is damaged ({error}); restore it from a backup.") from error
        return cls(path, description, settings)

    def remove(self) -> None:
        """Take the files of a learner that has learnt nothing away again; the folder itself stays if it holds anything else."""
        for name in FOLDERS:
            shutil.rmtree(self.path / name, ignore_errors=True)
        (self.path / "learner.json").unlink(missing_ok=True)
        with suppress(OSError):
            self.path.rmdir()

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Be the one writer. The operating system frees the lock when the process ends, however it ends.

        Raises
        ------
        InputError: another process is writing.
        PerdureError: the disk is full or refuses.
        """
        try:
            with self._lock.acquire(timeout=0):
                yield
        except filelock.Timeout as error:
            raise InputError(f"another process is writing to {self.path}; wait until it ends, or stop it.") from error
        except OSError as error:
            raise PerdureError(
                f"{self.path} can't be written ({error.strerror or error}); what was committed before is safe: make room on "
                "the disk, and run the command again."
            ) from error

    @property
    def state(self) -> Path:
        """The folder of the committed state."""
        return self.path / "state"

    @property
    def tasks_learnt(self) -> int:
        """How many tasks have been learnt and committed."""
        numbers = (int(entry.name) for entry in self.state.glob("*") if re.fullmatch(r"\d{4,}", entry.name))
        return max(numbers, default=0)

    def task(self, number: int) -> Task:
        """The number-th task learnt (from 1), with the name it was learnt under."""
        info = self._read(f"tasks/{number:04d}.json")
        return read_jsonl(self.path / f"tasks/{number:04d}.jsonl", name=info["name"])

    def task_names(self) -> list[str]:
        """Names of the tasks learnt, in order."""
        return [self._read(f"tasks/{number:04d}.json")["name"] for number in range(1, self.tasks_learnt + 1)]

    def task_fingerprints(self) -> list[str]:
        """Fingerprints of the tasks learnt, in order."""
        return [self._read(f"tasks/{number:04d}.json")["fingerprint"] for number in range(1, self.tasks_learnt + 1)]

    def write_task(self, number: int, task: Task) -> None:
        """Put a task's questions down before its state is committed."""
        write_jsonl(task, self.path / f"tasks/{number:04d}.jsonl")
        about = {"name": task.name, "items": len(task.items), "fingerprint": task.fingerprint}
        write_json(self.path / f"tasks/{number:04d}.json", about)

    def write_row(self, row: Row) -> None:
        """Keep a row of the retention matrix."""
        write_json(self.path / f"rows/{row.checkpoint:04d}.json", vars(row))

    def row(self, number: int) -> Row | None:
        """The row after task ``number``, if that checkpoint was asked anything."""
        path = self.path / f"rows/{number:04d}.json"
        return Row(**self._read(f"rows/{number:04d}.json")) if path.is_file() else None

    def write_costs(self, number: int, costs: dict[str, Any]) -> None:
        """Keep what a task took."""
        write_json(self.path / f"costs/{number:04d}.json", costs)

    def costs(self, number: int) -> dict[str, Any]:
        """What task ``number`` took."""
        return self._read(f"costs/{number:04d}.json")

    def log(self, number: int) -> Path:
        """The file of a task's training log."""
        return self.path / f"logs/{number:04d}.jsonl"

    def matrix(self) -> RetentionMatrix:
        """The retention matrix so far; what was not asked is nan. Above the diagonal stands what was known before learning."""
        names, rows = self.task_names(), self._rows()
        scores = [[*row.scores, row.ahead] if row.checkpoint < len(rows) else row.scores for row in rows]
        return RetentionMatrix.from_rows(scores, names)

    def reworded_matrix(self) -> RetentionMatrix | None:
        """The same over the tasks' paraphrases, which are never trained on; None when no task has any."""
        rows = self._rows()
        if all(score is None for row in rows for score in row.reworded):
            return None
        return RetentionMatrix.from_rows([row.reworded for row in rows], self.task_names())

    def _rows(self) -> list[Row]:
        return [self.row(number) or Row.blank(number) for number in range(1, self.tasks_learnt + 1)]

    def status(self) -> dict[str, Any]:
        """What the learner is and how it stands, for a person or a script; JSON values."""
        names = self.task_names()
        row = self.row(len(names)) if names else None
        scores = row.scores if row else []
        costs = [self.costs(number) for number in range(1, len(names) + 1)]
        return {
            "directory": str(self.path),
            "model": self.description["model"],
            "method": self.settings.method,
            "seed": self.description["seed"],
            "tasks_learnt": len(names),
            "tasks": names,
            "questions": sum(cost["items"] for cost in costs),
            "last_row": scores,
            "state_bytes": costs[-1]["state_bytes"] if costs else 0,
            "seconds": round(sum(sum(cost["seconds"].values()) for cost in costs), 1),
        }

    def _read(self, name: str) -> Any:
        path = self.path / name
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"{path} is missing or damaged ({error}); restore this directory from a backup.") from error

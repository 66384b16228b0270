"""A place that all machines of a cluster reach, for runs whose folders they don't share: any address that fsspec knows.

A run is kept as in its folder. What counts is ``committed.json``, written when everything of a task is there; a worker that is
killed in the midst of an upload leaves the former task in force.
"""

import json
import shutil
from pathlib import Path

import fsspec
from fsspec.implementations.local import LocalFileSystem

from perdure.errors import InputError

MARK = "committed.json"


class Storage:
    """A folder at an address such as ``s3://bucket/experiment`` or ``file:///mnt/experiment``.

    Raises
    ------
    InputError: fsspec doesn't know the address, or a package for it is missing.
    """

    def __init__(self, address: str) -> None:
        try:
            self._files, self._root = fsspec.core.url_to_fs(address)
        except (ValueError, ImportError) as error:
            raise InputError(f"--storage {address}: {error}; name an address that fsspec can open.") from error

    def committed(self, place: str) -> int:
        """How many tasks the run at ``place`` has learnt, as far as it has been put here."""
        mark = f"{self._root}/{place}/{MARK}"
        try:
            return int(json.loads(self._files.cat_file(mark))["tasks_learnt"])
        except FileNotFoundError:
            return 0

    def push(self, place: str, folder: Path, number: int) -> None:
        """Put a run here as it is after ``number`` tasks, and drop the state before."""
        there, before = f"{self._root}/{place}", self.committed(place)
        for file in sorted(path for path in folder.rglob("*") if path.is_file()):
            name = file.relative_to(folder)
            task = _task_of(name)
            if name.as_posix() == "learner.json" or (task is not None and before <= task <= number):
                self._put(file, f"{there}/{name.as_posix()}")
        self._replace(f"{there}/{MARK}", json.dumps({"tasks_learnt": number}))
        for old in self._listed(f"{there}/state"):
            if int(Path(old).name) != number:
                self._files.rm(old, recursive=True)

    def pull(self, place: str, folder: Path, *, state: bool = True) -> int:
        """Bring a run into an empty or former folder; how many tasks it has learnt.

        Parameters
        ----------
        state: False leaves the tensors out, for reports.
        """
        there, number = f"{self._root}/{place}", self.committed(place)
        if not number:
            return 0
        shutil.rmtree(folder, ignore_errors=True)
        (folder / "state" / f"{number:04d}").mkdir(parents=True)
        for name in ("tasks", "rows", "costs", "logs"):
            (folder / name).mkdir()
            for file in self._listed(f"{there}/{name}"):
                task = _task_of(Path(name, Path(file).name))
                if task is not None and task <= number:
                    self._files.get_file(file, str(folder / name / Path(file).name))
        for file in self._listed(f"{there}/state/{number:04d}"):
            if state or file.endswith(".json"):
                self._files.get_file(file, str(folder / "state" / f"{number:04d}" / Path(file).name))
        self._files.get_file(f"{there}/learner.json", str(folder / "learner.json"))
        return number

    def _listed(self, path: str) -> list[str]:
        return list(self._files.ls(path, detail=False)) if self._files.exists(path) else []

    def _put(self, file: Path, target: str) -> None:
        self._files.makedirs(target.rsplit("/", 1)[0], exist_ok=True)
        self._files.put_file(str(file), target)

    def _replace(self, target: str, text: str) -> None:
        """Write one object whole: on object stores a put is atomic, and on file systems a move."""
        if isinstance(self._files, LocalFileSystem):
            self._files.pipe_file(f"{target}.partial", text.encode())
            Path(f"{target}.partial").replace(target)
        else:
            self._files.pipe_file(target, text.encode())


def _task_of(name: Path) -> int | None:
    """The task's number in a file's name inside a learner's folder; None for what belongs to no committed task."""
    if len(name.parts) < 2:
        return None
    number = name.parts[1].split(".")[0] if name.parts[0] != "state" else name.parts[1]
    return int(number) if number.isdigit() else None

"""Streams in folders: one JSONL file a task, and a manifest that says what the stream is.

::

    my-stream/
      manifest.json      name, seed, sources and licences, counts, fingerprints, and the tasks in their order
      0001-week-1.jsonl
      0002-week-2.jsonl
"""

import json
import os
import re
import shutil
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, overload

from perdure.errors import InputError
from perdure.files import force_to_disk, write_json
from perdure.tasks.jsonl import read_jsonl, write_jsonl
from perdure.tasks.lines import readable
from perdure.tasks.task import Task, TaskStream, stream_fingerprint

MANIFEST = "manifest.json"
FORMAT_VERSION = 1

TextKind = Literal["base", "chat"]


@dataclass(frozen=True)
class Origin:
    """What a stream is made from and how it is meant to be used; all of it goes into the manifest as it stands.

    kind: symbol, facts, model-facts, real or split. seed: of the stream, where it has one.
    text_format: base, for models that continue a text; chat, for models that are asked through their chat template.
    matching: the rule under which the stream's answers count as right.
    settings: everything else that decides the stream. sources: one mapping a source: name, address, licence, items.
    notes: what a reader of the stream's results must know.
    """

    kind: str
    seed: int | None = None
    text_format: TextKind = "base"
    matching: Literal["exact", "normalised"] = "exact"
    settings: dict[str, Any] = field(default_factory=dict)
    sources: Sequence[dict[str, Any]] = ()
    notes: Sequence[str] = ()


def write_stream(name: str, tasks: Iterable[Task], folder: str | os.PathLike[str], origin: Origin) -> "StoredStream":
    """Write a stream to a new folder, one task at a time; the folder appears whole or not at all.

    Parameters
    ----------
    tasks: may be a generator; no more than one task is held.

    Raises
    ------
    InputError: the folder is there already or can't be made, two tasks share a name, or there are no tasks.
    """
    folder = Path(folder)
    refuse_existing(folder)
    partial = folder.with_name(f".{folder.name}.partial")
    try:
        shutil.rmtree(partial, ignore_errors=True)  # of a writing that was interrupted
        partial.mkdir(parents=True)
    except OSError as error:
        raise InputError(f"{folder} can't be made ({error.strerror}); name a folder where you may write.") from error
    try:
        manifest = _write_tasks(name, tasks, partial, origin)
        write_json(partial / MANIFEST, manifest)
        force_to_disk(partial)
        refuse_existing(folder)
        partial.rename(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)  # nothing is left of it unless something failed
    return read_stream(folder)


def read_stream(folder: str | os.PathLike[str]) -> "StoredStream":
    """Open a stream's folder. Only the manifest is read; a task is read, and checked against it, when it is wanted.

    Raises
    ------
    InputError: no such folder, no manifest in it, or one that is broken or lists a file that is not there.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise InputError(f"{folder} is not a folder; name one that `perdure tasks` wrote.")
    path = folder / MANIFEST
    if not path.exists():
        raise InputError(f"{folder} has no {MANIFEST}, so it is no stream; make one with `perdure tasks split`.")
    with readable(path):
        raw = path.read_bytes()
    try:
        manifest = json.loads(raw)
        if manifest["format_version"] != FORMAT_VERSION:
            raise InputError(
                f"{path}: format {manifest['format_version']}, and this perdure reads {FORMAT_VERSION}; update it."
            )
        entries = tuple(
            StoredTask(folder / str(entry["file"]), str(entry["name"]), int(entry["items"]), str(entry["fingerprint"]))
            for entry in manifest["tasks"]
        )
        if manifest["fingerprint"] != stream_fingerprint([entry.fingerprint for entry in entries]) or not entries:
            raise InputError(f"{path}: the tasks listed are not those of its fingerprint; restore the file.")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{path}: broken ({type(error).__name__}: {error}); restore it, or write the stream again.") from error
    for entry in entries:
        if entry.path.parent != folder or not entry.path.is_file():
            raise InputError(f"{path} lists {entry.path.name}, which is not in the folder; restore that file.")
    return StoredStream(str(manifest["name"]), StoredTasks(entries), manifest)


@dataclass(frozen=True)
class StoredTask:
    """A task in a file, as the manifest knows it."""

    path: Path
    name: str
    items: int
    fingerprint: str

    def read(self) -> Task:
        """The task itself.

        Raises
        ------
        InputError: the file is broken, or is no longer what the manifest says.
        """
        task = read_jsonl(self.path, name=self.name)
        if task.fingerprint != self.fingerprint:
            raise InputError(
                f"{self.path} was changed after the stream was written (its fingerprint differs from the manifest's); restore "
                "it, or make a new stream of it with `perdure tasks split`."
            )
        return task


class StoredTasks(Sequence[Task]):
    """Tasks that are read from their files when they are asked for, and not kept."""

    def __init__(self, entries: tuple[StoredTask, ...]) -> None:
        self.entries = entries

    def __len__(self) -> int:
        return len(self.entries)

    @overload
    def __getitem__(self, place: int) -> Task: ...
    @overload
    def __getitem__(self, place: slice) -> "StoredTasks": ...
    def __getitem__(self, place: int | slice) -> "Task | StoredTasks":
        return StoredTasks(self.entries[place]) if isinstance(place, slice) else self.entries[place].read()


@dataclass(frozen=True)
class StoredStream(TaskStream):
    """A stream in a folder. manifest: what the folder's manifest says, with sources and licences."""

    tasks: StoredTasks
    manifest: dict[str, Any] = field(compare=False, repr=False)

    def __post_init__(self) -> None:
        names = [entry.name for entry in self.tasks.entries]
        if len(set(names)) < len(names):
            twice = next(name for place, name in enumerate(names) if name in names[:place])
            raise InputError(f"stream '{self.name}': two tasks are named '{twice}'; name them apart.")

    @cached_property
    def fingerprint(self) -> str:
        """As :attr:`TaskStream.fingerprint`; the manifest knows the tasks', so that no file is read."""
        return stream_fingerprint([entry.fingerprint for entry in self.tasks.entries])


def _write_tasks(name: str, tasks: Iterable[Task], folder: Path, origin: Origin) -> dict[str, Any]:
    """Write each task to a file of its own; the stream's manifest."""
    entries: list[dict[str, Any]] = []
    names: dict[str, int] = {}
    for number, task in enumerate(tasks, start=1):
        if (earlier := names.setdefault(task.name, number)) != number:
            raise InputError(f"stream '{name}': tasks {earlier} and {number} are both named '{task.name}'; name them apart.")
        file = f"{number:04d}-{_fit_for_a_file(task.name)}.jsonl"
        write_jsonl(task, folder / file)
        reworded = sum(len(item.paraphrases) for item in task.items)
        entries.append(
            {"file": file, "name": task.name, "items": len(task), "paraphrases": reworded, "fingerprint": task.fingerprint}
        )
    if not entries:
        raise InputError(f"stream '{name}' is empty; give it at least one task.")
    return {
        "format_version": FORMAT_VERSION,
        "name": name,
        "kind": origin.kind,
        "seed": origin.seed,
        "text_format": origin.text_format,
        "matching": origin.matching,
        "settings": origin.settings,
        "sources": list(origin.sources),
        "notes": list(origin.notes),
        "items": sum(entry["items"] for entry in entries),
        "paraphrases": sum(entry["paraphrases"] for entry in entries),
        "fingerprint": stream_fingerprint([entry["fingerprint"] for entry in entries]),
        "tasks": entries,
    }


def refuse_existing(folder: Path) -> None:
    """Nothing that is there is written over.

    Raises
    ------
    InputError: something has this name already.
    """
    if os.path.lexists(folder):
        raise InputError(f"{folder} is there already; name a new folder, or remove it first.")


def _fit_for_a_file(name: str) -> str:
    """The task's name in letters that every file system takes."""
    return re.sub(r"[^\w.-]+", "-", name).strip("-.")[:60] or "task"

"""Putting things on disk so that a kill at any moment leaves either the old state or the new one.

A file or a folder is written under a temporary name, forced to the disk, and renamed into place; the rename is the commit.
Tensors are kept as safetensors and everything else as JSON; nothing is pickled.
"""

import json
import shutil
from collections.abc import Collection, Mapping
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from perdure.errors import InputError, PerdureError
from perdure.files import force_to_disk, write_json

FORMAT = 1  # of the tensors' names and meaning


def commit_state(folder: Path, number: int, tensors: Mapping[str, Mapping[str, Tensor]]) -> int:
    """Make ``folder/NNNN`` the one committed state, and drop the one before.

    Parameters
    ----------
    number: tasks learnt so far.
    tensors: groups of named tensors; each group becomes ``GROUP.safetensors``. Empty groups leave no file.

    Returns
    -------
    Size of the state in bytes.

    Raises
    ------
    PerdureError: the disk is full or refuses; the former state is untouched.
    """
    folder.mkdir(exist_ok=True)
    partial, final = folder / f"{number:04d}.partial", folder / f"{number:04d}"
    shutil.rmtree(partial, ignore_errors=True)
    try:
        partial.mkdir()
        for group, named in tensors.items():
            if named:
                path = partial / f"{group}.safetensors"
                save_file({name: tensor.contiguous().cpu() for name, tensor in named.items()}, path)
                force_to_disk(path)
        size = sum(path.stat().st_size for path in partial.iterdir())
        write_json(partial / "state.json", {"format": FORMAT, "tasks_learnt": number, "bytes": size})
        force_to_disk(partial)
        partial.replace(final)
        force_to_disk(folder)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise PerdureError(
            f"the state after task {number} could not be written to {folder} ({error}); the learner is as it was before "
            "this task: make room on the disk and learn the task again."
        ) from error
    for old in folder.iterdir():
        if old != final:
            shutil.rmtree(old, ignore_errors=True)
    return size


def link_state(source: Path, folder: Path, number: int, groups: Collection[str]) -> int:
    """Put the named groups of another learner's state into ``folder/NNNN.partial``, to be renamed when all else is in place.

    Files are linked where the file system can (a committed file never changes), else copied.

    Returns
    -------
    Bytes of the tensors, as a learner counts its own.
    """
    partial = folder / f"{number:04d}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    files = [path for path in sorted((source / f"{number:04d}").glob("*.safetensors")) if path.stem in groups]
    for path in files:
        try:
            (partial / path.name).hardlink_to(path)
        except OSError:
            shutil.copyfile(path, partial / path.name)
            force_to_disk(partial / path.name)
    size = sum(path.stat().st_size for path in files)
    write_json(partial / "state.json", {"format": FORMAT, "tasks_learnt": number, "bytes": size})
    force_to_disk(partial)
    return sum(_tensor_bytes(path) for path in files)


def _tensor_bytes(path: Path) -> int:
    """A safetensors file is the length of its header (8 bytes, little-endian), the header, and the tensors."""
    with path.open("rb") as file:
        return path.stat().st_size - 8 - int.from_bytes(file.read(8), "little")


def read_state(folder: Path, number: int) -> dict[str, dict[str, Tensor]]:
    """The groups of tensors of a committed state.

    Raises
    ------
    InputError: the state was written by a newer version, or a file of it is damaged.
    """
    path = folder / f"{number:04d}"
    try:
        info = json.loads((path / "state.json").read_text())
        if info["format"] != FORMAT:
            raise InputError(
                f"{path} was written in format {info['format']}, and this version of perdure reads format {FORMAT}; "
                "install the version that wrote it."
            )
        return {file.stem: load_file(file) for file in sorted(path.glob("*.safetensors"))}
    except (OSError, SafetensorError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{path} is damaged ({error}); restore this directory from a backup.") from error

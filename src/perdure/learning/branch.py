"""Beginning a learner where another one stands."""

import shutil
from collections.abc import Collection
from pathlib import Path

from perdure.files import write_json
from perdure.learning.directory import FOLDERS, LearnerDirectory
from perdure.learning.state import link_state
from perdure.settings import LearnerSettings


def branch(source: LearnerDirectory, path: Path, settings: LearnerSettings, groups: Collection[str]) -> None:
    """Begin a learner with other settings, as if it had learnt ``source``'s tasks itself.

    The caller vouches that it would have come out with the same weights. A beginning that was killed can be begun again: the
    state is put in place last.

    Parameters
    ----------
    path: the new learner's folder. groups: the groups of tensors of ``source``'s state that the new learner has.
    """
    number = source.tasks_learnt
    for folder in FOLDERS:
        (path / folder).mkdir(parents=True, exist_ok=True)
    write_json(path / "learner.json", {**source.description, "settings": settings.model_dump(mode="json")})
    for folder in ("tasks", "rows", "logs"):
        for file in sorted((source.path / folder).iterdir()):
            shutil.copyfile(file, path / folder / file.name)
    begun = LearnerDirectory.open(path)
    state_bytes = link_state(source.state, begun.state, number, groups)
    for task in range(1, number + 1):
        begun.write_costs(task, {**source.costs(task), "shared": source.path.name})
    begun.write_costs(number, {**begun.costs(number), "state_bytes": state_bytes})
    (begun.state / f"{number:04d}.partial").replace(begun.state / f"{number:04d}")

"""A process that learns a stream and kills itself (SIGKILL) at a named moment; run by test_kill_and_resume.py.

python run_and_die.py DIRECTORY METHOD [MOMENT]
"""

import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

torch.set_num_threads(1)  # the same sums in the same order, whatever the machine

from perdure.learning import state  # noqa: E402
from perdure.learning.learner import Learner  # noqa: E402
from perdure.progress import Progress  # noqa: E402
from perdure.settings import LearnerSettings  # noqa: E402
from perdure.tasks import symbol_stream  # noqa: E402

SETTINGS = {
    "training": {"epochs": 2, "batch_size": 4, "learning_rate": 3e-3},
    "adapter": {"rank": 4, "alpha": 8, "dropout": 0.2},
    "replay": {"samples": 10, "max_new_tokens": 8, "sampling_temperature": 1.0},
    "asking": {"max_new_tokens": 8},
}


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class DeadlyProgress(Progress):
    """Dies in the second task when the named stage has done its second piece of work."""

    def __init__(self, stage: str) -> None:
        self.deadly_stage, self.task = stage, 0

    @contextmanager
    def stage(self, name: str, total: int) -> Iterator[Callable[[int], None]]:
        done = 0

        def advance(pieces: int) -> None:
            nonlocal done
            done += pieces
            if self.task == 2 and name == self.deadly_stage and done >= min(2, total):
                die()

        yield advance


def arm(learner: Learner, moment: str) -> None:
    """Set the traps that aren't stages: half of the layers merged, and the state written but not yet renamed."""
    delta, forced, merged = learner._allocation.delta, state.force_to_disk, []
    if moment == "merging":

        def deadly_delta(layer):  # type: ignore[no-untyped-def]
            merged.append(layer)
            return delta(layer) if len(merged) < 3 else die()

        learner._allocation.delta = deadly_delta  # type: ignore[method-assign]
    if moment == "saving":
        state.force_to_disk = lambda path: die() if path.name == "0002.partial" else forced(path)


def main(directory: Path, method: str, moment: str) -> None:
    progress = DeadlyProgress(moment)
    if (directory / "learner.json").exists():
        learner = Learner.open(directory, progress=progress, device="cpu")
    else:
        settings = LearnerSettings.model_validate({"method": method, **SETTINGS})
        learner = Learner.create(directory, model="random-tiny", settings=settings, seed=3, progress=progress, device="cpu")
    stream = symbol_stream(tasks=3, items=6, seed=4)
    while (learnt := learner.tasks_learnt) < len(stream) or learner.directory.row(learnt) is None:
        progress.task = learnt
        if learnt and learner.directory.row(learnt) is None:
            learner.evaluate()
            continue
        progress.task = learnt + 1
        if progress.task == 2:
            arm(learner, moment)
        learner.learn(stream[learnt])


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3] if len(sys.argv) > 3 else "")

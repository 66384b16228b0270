"""The first task, trained once for all runs in which it comes out the same.

Every anchor is off in the first task, so runs that differ only in their anchors train the same weights in it, bit by bit. One
learner trains it for them all, with every weight anchor watching that one of them needs (watching changes nothing); each
run then begins from its state. What keeps runs apart is listed in :func:`first_task_of`.
"""

import hashlib
import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from perdure.anchors import build_anchors
from perdure.experiments.spec import ResolvedRun
from perdure.learning.branch import branch
from perdure.learning.directory import LearnerDirectory
from perdure.methods import Method
from perdure.settings import LearnerSettings

if TYPE_CHECKING:
    from perdure.learning.learner import Learner

FOLDER = "first-tasks"


@dataclass(frozen=True)
class FirstTask:
    """A first task that several runs share. place: of its learner, in the output folder. watching: names of weight anchors."""

    run: ResolvedRun
    place: str
    watching: tuple[str, ...]

    def watch(self, learner: "Learner") -> None:
        """Let every weight anchor that is needed later watch the learner's first task."""
        for name in self.watching:
            method = replace(self.run.method, weight_anchor=name, replay=False)  # no anchor but this one
            learner.watch(build_anchors(method, self.run.settings, keep_end_of_text=True))

    def give(self, output: Path, folder: Path, settings: LearnerSettings) -> None:
        """Begin a run in ``folder`` from this first task; a beginning that was killed is begun again."""
        anchor = Method.parse(settings.method).weight_anchor
        groups = {"model", *([anchor] if anchor else [])}
        branch(LearnerDirectory.open(output / self.place), folder, settings, groups)


def first_task_of(run: ResolvedRun) -> str:
    """A name for all that decides how a run's first task comes out, and what its state must hold."""
    settings, method = run.settings, run.method
    decisive: dict[str, Any] = {
        "allocation": method.allocation,
        "replay token": settings.replay.token if method.replay else None,  # it stands in the vocabulary, and in the texts
        "training": settings.training.model_dump(),
        "adapter": settings.adapter.model_dump(),
        "asking": settings.asking.model_dump(),
        "si": settings.si.damping,
        "ewc": settings.ewc.examples,
        "osrm": settings.osrm.model_dump(),
        "seed": run.seed,
        "order": run.order,
    }
    return hashlib.sha256(json.dumps(decisive, sort_keys=True).encode()).hexdigest()[:12]


def shared_first_tasks(runs: Sequence[ResolvedRun]) -> dict[str, FirstTask]:
    """The first tasks that at least two of the runs have in common, by the runs' places."""
    groups: dict[str, list[ResolvedRun]] = defaultdict(list)
    for run in runs:
        groups[first_task_of(run)].append(run)
    shared: dict[str, FirstTask] = {}
    for name, alike in groups.items():
        if len(alike) < 2:
            continue
        watching = tuple(sorted({run.method.weight_anchor for run in alike if run.method.weight_anchor}))
        first = alike[0]
        method = first.method.without("si", "ewc", "sd")
        settings = first.settings.model_copy(update={"method": method.name})
        place = "-".join((f"{FOLDER}/{name}", *watching))
        task = FirstTask(ResolvedRun("first task", method, first.seed, settings, first.order), place, watching)
        shared |= {run.place: task for run in alike}
    return shared

"""Experiments as a whole: shared first tasks, several orders, several processes, kills, runs that fail."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from perdure.errors import InputError, PerdureError
from perdure.experiments.engines import LocalEngine
from perdure.experiments.first_task import shared_first_tasks
from perdure.experiments.grid import run_experiment
from perdure.experiments.runs import learnt_in
from perdure.experiments.spec import Experiment
from perdure.learning.directory import LearnerDirectory
from perdure.progress import Progress
from perdure.tasks import symbol_stream
from perdure.tasks.order import in_order

METHODS = ["naive", "si", "ewc", "sd", "si+replay+merge", "replay+merge", "o-lora", "si+o-lora"]


def experiment(**changes: object) -> Experiment:
    spec = {
        "model": "random-tiny",
        "stream": {"kind": "symbol", "tasks": 3, "items": 6},
        "methods": METHODS,
        "training": {"epochs": 3, "batch_size": 4, "learning_rate": 3e-3},
        "adapter": {"rank": 4, "alpha": 8},
        "replay": {"samples": 10, "max_new_tokens": 12, "sampling_temperature": 1.0},
        "asking": {"max_new_tokens": 12},
    }
    return Experiment.model_validate({**spec, **changes})


def contents(directory: Path) -> dict[str, bytes]:
    """All that a run must have in common with one that was made otherwise; timings may differ."""
    kept = [path for folder in ("state", "tasks", "rows", "logs") for path in (directory / folder).rglob("*")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept if path.is_file()}


def same(left: Path, right: Path) -> bool:
    return contents(left) == contents(right)


@pytest.fixture(autouse=True, scope="module")
def one_thread() -> Iterator[None]:
    """As each of two processes has on two cores: sums of floats depend on how many threads share them."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


class Trainings(Progress):
    """Counts the stretches of training."""

    def __init__(self) -> None:
        self.count = 0

    def stage(self, name, total):  # type: ignore[no-untyped-def]
        self.count += name == "training"
        return super().stage(name, total)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The experiment run in this process."""
    output = tmp_path_factory.mktemp("whole") / "out"
    trainings = Trainings()
    run_experiment(experiment(), output, progress=trainings)
    # Groups of first tasks: shared without and with the replay token, merged with it, and O-LoRA.
    assert trainings.count == 3 + 2 * len(METHODS)
    assert not (output / "first-tasks").exists()
    return output


@pytest.mark.parametrize("method", METHODS)
def test_a_shared_first_task_gives_the_same_bits(whole: Path, tmp_path: Path, method: str) -> None:
    run_experiment(experiment(methods=[method]), tmp_path / "alone")
    assert same(whole / f"runs/{method}/seed-0", tmp_path / f"alone/runs/{method}/seed-0")


def test_costs_name_the_shared_first_task(whole: Path) -> None:
    costs = [LearnerDirectory.open(whole / f"runs/{method}/seed-0").costs(1) for method in ("naive", "si", "ewc", "sd")]
    assert len({cost["shared"] for cost in costs}) == 1
    sizes = [cost["state_bytes"] for cost in costs]
    assert sizes[0] == sizes[3] and sizes[1] == 3 * sizes[0] and sizes[2] == sizes[1] + 8  # importance, reference; scale


def test_runs_share_only_what_comes_out_the_same() -> None:
    def groups(**changes: object) -> int:
        return len({id(task) for task in shared_first_tasks(experiment(**changes).runs()).values()})

    assert groups(methods=["naive", "si", "ewc", "sd"]) == 1
    assert groups(methods=["naive", "replay"]) == 0  # the replay token is in the vocabulary
    assert groups(methods=["naive", "si", {"method": "si", "label": "hot", "training": {"learning_rate": 0.1}}]) == 1
    assert groups(methods=["si", {"method": "si", "label": "damped", "si": {"damping": 0.2}}]) == 0
    assert groups(methods=["si", {"method": "si", "label": "strong", "si": {"weight": 2.0}}]) == 1
    assert groups(methods=["naive", "si"], seeds=[0, 1], orders=[0, 3]) == 4


def test_several_processes_give_the_same_bits(whole: Path, tmp_path: Path) -> None:
    methods = ["si", "si+replay+merge", "sd"]
    run_experiment(experiment(methods=methods), tmp_path / "out", engine=LocalEngine(2))
    for method in methods:
        assert same(whole / f"runs/{method}/seed-0", tmp_path / f"out/runs/{method}/seed-0")


def test_killed_and_gone_on_with(whole: Path, tmp_path: Path) -> None:
    """Kill the command and its processes in the midst of the work, then run it anew: the same bits, nothing done twice."""
    spec, output = tmp_path / "spec.yaml", tmp_path / "out"
    spec.write_text(experiment(methods=["si", "sd", "si+replay+merge"]).model_dump_json())
    command = [sys.executable, "-m", "perdure", "run", str(spec), "--output", str(output), "--jobs", "2", "--track", "none"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        until(lambda: any(learnt_in(path.parent) >= 2 for path in output.glob("runs/*/*/learner.json")))
        process.send_signal(signal.SIGKILL)
    until(lambda: not children_of(output))
    finished = {path.parent.name for path in output.glob("runs/*") if learnt_in(path / "seed-0") == 3}
    trainings = Trainings()
    run_experiment(experiment(methods=["si", "sd", "si+replay+merge"]), output, progress=trainings)
    assert trainings.count < 8 - 2 * len(finished)
    for method in ("si", "sd", "si+replay+merge"):
        assert same(whole / f"runs/{method}/seed-0", output / f"runs/{method}/seed-0")


def children_of(output: Path) -> list[str]:
    """Processes of the experiment that are still there: they hold a run's lock."""
    listed = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            if any(str(link.readlink()).startswith(str(output)) for link in (entry / "fd").iterdir()):
                listed.append(entry.name)
        except OSError:
            continue
    return listed


def until(condition, seconds: float = 120) -> None:  # type: ignore[no-untyped-def]
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < seconds, "waited in vain"
        time.sleep(0.05)


def test_orders(tmp_path: Path) -> None:
    (own, other) = run_experiment(experiment(methods=["naive"], orders=[0, 5]), tmp_path)
    stream = symbol_stream(tasks=3, items=6)
    assert other.name == "seed-0-order-5"
    names = [task.name for task in in_order(stream, 5)]
    assert LearnerDirectory.open(other).task_names() == names != LearnerDirectory.open(own).task_names()
    assert sorted(names) == LearnerDirectory.open(own).task_names()


def test_an_order_is_a_permutation_by_its_number() -> None:
    stream = symbol_stream(tasks=9, items=2)
    seen = {tuple(task.name for task in in_order(stream, order)) for order in range(20)}
    assert len(seen) == 20
    assert in_order(stream, 0) is stream
    assert [task.name for task in in_order(stream, 4)] == [task.name for task in in_order(stream, 4)]


def test_a_run_that_fails_does_not_stop_the_others(tmp_path: Path) -> None:
    methods = [{"method": "naive", "label": "wild", "training": {"learning_rate": 1e30}}, "sd"]
    with pytest.raises(PerdureError, match="1 of 2 runs stopped, the others are done; the first: wild, seed 0: the loss"):
        run_experiment(experiment(methods=methods), tmp_path)
    assert learnt_in(tmp_path / "runs/sd/seed-0") == 3


def test_a_first_task_that_fails_stops_those_that_share_it(tmp_path: Path) -> None:
    wild = {"training": {"epochs": 3, "learning_rate": 1e30}}
    with pytest.raises(PerdureError, match="2 of 2 runs stopped"):
        run_experiment(experiment(methods=["naive", "si"], **wild), tmp_path)


def test_changed_settings_are_refused_before_anything_is_done(tmp_path: Path) -> None:
    run_experiment(experiment(methods=["naive"]), tmp_path)
    trainings = Trainings()
    with pytest.raises(InputError, match="was begun with training"):
        run_experiment(experiment(methods=["sd", "naive"], training={"epochs": 4}), tmp_path, progress=trainings)
    assert trainings.count == 0

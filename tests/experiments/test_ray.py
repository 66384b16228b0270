"""The engine on a real Ray cluster of two workers on this machine, one of which is killed in the midst of its run."""

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
import torch

ray = pytest.importorskip("ray", reason="needs Ray: pip install perdure[ray]")

from perdure.errors import InputError, PerdureError  # noqa: E402
from perdure.experiments.engines.on_ray import RayEngine  # noqa: E402
from perdure.experiments.grid import run_experiment  # noqa: E402
from perdure.experiments.runs import learnt_in  # noqa: E402
from perdure.experiments.spec import Experiment  # noqa: E402
from perdure.experiments.storage import Storage  # noqa: E402
from perdure.learning.directory import LearnerDirectory  # noqa: E402
from perdure.progress import Progress  # noqa: E402

METHODS = ["si", "si+merge", "sd"]


@pytest.fixture(scope="module")
def cluster() -> Iterator[None]:
    """Two workers of one core each."""
    os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
    before = torch.get_num_threads()
    torch.set_num_threads(1)  # as Ray gives a worker with one core
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False)
    yield
    ray.shutdown()
    torch.set_num_threads(before)


def experiment(**changes: object) -> Experiment:
    spec = {
        "model": "tiny",
        "stream": {"kind": "symbol", "tasks": 4, "items": 6},
        "methods": METHODS,
        "training": {"epochs": 10, "batch_size": 4, "learning_rate": 3e-3},
        "adapter": {"rank": 4, "alpha": 8},
        "asking": {"max_new_tokens": 12},
    }
    return Experiment.model_validate({**spec, **changes})


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory, cluster: None) -> Path:
    """The same experiment in this process."""
    output = tmp_path_factory.mktemp("alone") / "out"
    run_experiment(experiment(), output)
    return output


def figures(output: Path, method: str) -> dict[str, bytes]:
    folder = output / f"runs/{method}/seed-0"
    return {str(path.relative_to(folder)): path.read_bytes() for name in ("rows", "logs") for path in (folder / name).iterdir()}


class Killer(Progress):
    """Kills the worker that holds a run's lock as soon as a run has learnt two tasks."""

    def __init__(self, output: Path) -> None:
        self.output, self.killed = output, 0

    def stage(self, name, total):  # type: ignore[no-untyped-def]
        from contextlib import contextmanager

        @contextmanager
        def watching():  # type: ignore[no-untyped-def]
            yield lambda _pieces: self.strike()

        return watching()

    def strike(self) -> None:
        if self.killed or not any(learnt_in(path.parent) >= 2 for path in self.output.glob("runs/*/*/learner.json")):
            return
        deadline = time.monotonic() + 60
        while not self.killed and time.monotonic() < deadline:
            for process in psutil.process_iter(["name"]):
                try:
                    if any(file.path.startswith(str(self.output / "runs")) for file in process.open_files()) and (
                        process.pid != os.getpid()
                    ):
                        process.send_signal(signal.SIGKILL)
                        self.killed = process.pid
                        break
                except (psutil.AccessDenied, psutil.NoSuchProcess, psutil.ZombieProcess):
                    continue


@pytest.mark.slow
def test_a_killed_worker_is_replaced(cluster: None, alone: Path, tmp_path: Path) -> None:
    output = tmp_path / "out"
    killer = Killer(output)
    run_experiment(experiment(), output, engine=RayEngine(), progress=killer)
    assert killer.killed
    for method in METHODS:
        assert figures(output, method) == figures(alone, method)


@pytest.mark.slow
def test_without_a_shared_folder(cluster: None, alone: Path, tmp_path: Path) -> None:
    """Workers keep runs in a store; the experiment's folder gets the figures, and the store the states."""
    store, output = tmp_path / "store", tmp_path / "out"
    run_experiment(experiment(), output, engine=RayEngine(storage=f"file://{store}"))
    for method in METHODS:
        place = f"runs/{method}/seed-0"
        assert figures(output, method) == figures(alone, method)
        assert not list((output / place).rglob("*.safetensors"))
        expected = sorted(path.name for path in (alone / place / "state/0004").iterdir())
        assert sorted(path.name for path in (store / place / "state/0004").iterdir()) == expected
        assert [path.name for path in (store / place / "state").iterdir()] == ["0004"]
        assert json.loads((store / place / "committed.json").read_text()) == {"tasks_learnt": 4}


def test_a_run_that_fails_is_named(cluster: None, tmp_path: Path) -> None:
    wild = [{"method": "naive", "label": "wild", "training": {"learning_rate": 1e30}}]
    with pytest.raises(PerdureError, match="wild, seed 0: the loss of"):
        run_experiment(experiment(methods=wild), tmp_path / "out", engine=RayEngine())


def test_a_users_mistake_is_one_sentence(cluster: None, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"there is no folder \./nowhere"):
        run_experiment(experiment(model="./nowhere"), tmp_path / "out", engine=RayEngine())
    with pytest.raises(InputError, match="take 9 CPU, and the whole cluster has 2"):
        RayEngine(cpus=9)
    with pytest.raises(InputError, match="--storage nothing://x"):
        RayEngine(storage="nothing://x")


def test_storage_keeps_the_former_task_until_the_next_is_whole(tmp_path: Path) -> None:
    """A push that is cut off leaves what was committed before in force."""
    (folder,) = run_experiment(experiment(methods=["naive"], first_tasks=1), tmp_path / "out")
    store = Storage(f"memory://{tmp_path.name}")
    store.push("run", folder, 1)
    assert store.committed("run") == 1
    (folder / "state/0002").mkdir()
    (folder / "state/0002/model.safetensors").write_bytes(b"half")
    store._put(folder / "state/0002/model.safetensors", f"{store._root}/run/state/0002/model.safetensors")
    back = tmp_path / "back"
    assert store.pull("run", back) == 1
    assert LearnerDirectory.open(back).tasks_learnt == 1
    kept = {path.name: path.read_bytes() for path in (folder / "state/0001").iterdir()}
    assert {path.name: path.read_bytes() for path in (back / "state/0001").iterdir()} == kept

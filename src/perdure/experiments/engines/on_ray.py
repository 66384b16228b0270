"""The runs on a Ray cluster: one Ray task for each stretch of a run, begun again where its worker is lost.

A worker that is begun again goes on from the last task that was committed. Without ``storage`` all machines must see the
output folder under the same path; with it each worker brings the run from there into a folder of its own, and puts it back
after every task.
"""

import logging
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from perdure.errors import InputError, PerdureError
from perdure.experiments.engines.engine import Failure
from perdure.experiments.engines.watch import watch
from perdure.experiments.runs import Job, advance
from perdure.experiments.storage import Storage
from perdure.progress import Progress


class RayEngine:
    """
    Parameters
    ----------
    address: of a running cluster, or ``auto`` for the one this machine belongs to; None begins one on this machine.
    storage: an fsspec address that all machines reach; None if they share the output folder.
    cpus, gpus: what one run takes of the cluster; a share of a GPU lets several runs have one.
    retries: how often a run is begun again whose worker was lost.

    Raises
    ------
    InputError: Ray isn't installed, no cluster answers, or it has too little for one run.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        storage: str | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
        retries: int = 3,
    ) -> None:
        try:
            import ray
        except ImportError as error:
            raise InputError("the engine ray needs a package; install it with `pip install perdure[ray]`.") from error
        self._ray: Any = ray
        self._storage = storage
        self._options = {"num_cpus": cpus, "num_gpus": gpus, "max_retries": retries, "retry_exceptions": False}
        if storage:
            Storage(storage)  # a wrong address is said before a cluster is begun
        if not ray.is_initialized():
            try:
                ray.init(
                    address=address,
                    include_dashboard=None if address else False,
                    log_to_driver=False,
                    logging_level=logging.ERROR,
                )
            except (ConnectionError, ValueError, RuntimeError) as error:
                raise InputError(
                    f"no Ray cluster answers at {address} ({error}); begin one with `ray start --head`."
                ) from error
        has = ray.cluster_resources()
        for resource, wanted in (("CPU", cpus), ("GPU", gpus)):
            if wanted > has.get(resource, 0):
                raise InputError(
                    f"a run is to take {wanted:g} {resource}, and the whole cluster has {has.get(resource, 0):g}; ask for less."
                )

    def run(self, jobs: Sequence[Job], progress: Progress) -> list[Failure]:
        """As :meth:`perdure.experiments.engines.Engine.run`."""
        ray = self._ray
        waiting = [job for job in jobs if not self._done(job)]
        progress.note(f"{len(waiting)} runs on a Ray cluster with {ray.cluster_resources().get('CPU', 0):g} CPUs")
        remote = ray.remote(**self._options)(_advance)
        tasks = {remote.remote(_from_anywhere(job), self._storage): job for job in waiting}
        failures: list[Failure] = []

        def finished(seconds: float) -> bool:
            done, _ = ray.wait(list(tasks), num_returns=len(tasks), timeout=seconds) if tasks else ([], [])
            for task in done:
                failures.extend(self._failure(tasks.pop(task), task))
            return not tasks

        try:
            watch(waiting, progress, finished, self._learnt)
        except BaseException:
            for task in tasks:
                with suppress(Exception):
                    ray.cancel(task, force=True)
            raise
        for job in waiting:
            self._fetch(job)
        return failures

    def _failure(self, job: Job, task: Any) -> list[Failure]:
        exceptions = self._ray.exceptions
        try:
            self._ray.get(task)
        except exceptions.RayTaskError as error:
            if isinstance(error.cause, PerdureError) and not isinstance(error.cause, InputError):
                return [Failure(job, str(error.cause))]
            raise error.cause from error
        except exceptions.RayError as error:  # the worker was lost more often than it may be
            return [Failure(job, f"its worker was lost again and again ({type(error).__name__}); run the command again")]
        return []

    def _learnt(self, job: Job) -> int:
        return Storage(self._storage).committed(job.place) if self._storage else job.tasks_learnt()

    def _done(self, job: Job) -> bool:
        self._fetch(job)
        return job.done()

    def _fetch(self, job: Job) -> None:
        """Have a run's figures, not its tensors, in the output folder."""
        if self._storage and self._learnt(job) > job.tasks_learnt():
            Storage(self._storage).pull(job.place, job.folder, state=False)


def _from_anywhere(job: Job) -> Job:
    """The job with absolute paths: workers stand in other folders."""
    model = str(Path(job.model).resolve()) if Path(job.model).is_dir() else job.model
    return replace(job, output=job.output.resolve(), model=model)


def _advance(job: Job, storage: str | None) -> None:
    """In a worker: advance the run, in the output folder itself or between the storage and a folder of the worker's."""
    if storage is None:
        advance(job)
        return
    kept = Storage(storage)
    with tempfile.TemporaryDirectory(prefix="perdure-") as scratch:
        here = replace(job, output=Path(scratch))
        kept.pull(job.place, here.folder)
        if job.first is not None and not here.tasks_learnt():
            kept.pull(job.first.place, here.output / job.first.place)
        advance(here, committed=lambda number: kept.push(job.place, here.folder, number))

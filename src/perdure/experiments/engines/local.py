"""The runs on this machine: one after another in this process, or several at once, each in a process of its own."""

import multiprocessing
import os
import threading
from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import replace
from multiprocessing.queues import SimpleQueue
from time import perf_counter

import torch

from perdure.errors import InputError, PerdureError
from perdure.experiments.engines.engine import Failure
from perdure.experiments.engines.watch import watch
from perdure.experiments.runs import Job, advance
from perdure.progress import Progress
from perdure.reporting.wording import seconds

_slot = 0  # which of the side-by-side processes this one is, from 0


class LocalEngine:
    """Up to ``jobs`` runs at once; the processes share the cores evenly, and take the GPUs in turn."""

    def __init__(self, jobs: int = 1) -> None:
        self._jobs = jobs

    def run(self, jobs: Sequence[Job], progress: Progress) -> list[Failure]:
        """As :meth:`perdure.experiments.engines.Engine.run`."""
        waiting = [job for job in jobs if not job.done()]
        if self._jobs == 1 or len(waiting) < 2:
            return _one_by_one(waiting, progress)
        return _side_by_side(waiting, progress, min(self._jobs, len(waiting)))


def _one_by_one(jobs: Sequence[Job], progress: Progress) -> list[Failure]:
    failures = []
    began, tasks = perf_counter(), 0
    for place, job in enumerate(jobs, start=1):
        left = sum(other.until - other.tasks_learnt() for other in jobs[place - 1 :])
        pace = f"; about {seconds(left * (perf_counter() - began) / tasks)} left" if tasks else ""
        progress.note(f"run {place} of {len(jobs)}: {job.run.name}{pace}")
        tasks += job.until - job.tasks_learnt()
        try:
            advance(job, progress)
        except InputError:
            raise
        except PerdureError as error:
            progress.note(f"{job.run.name} stopped: {error}")
            failures.append(Failure(job, str(error)))
    progress.heading("")
    return failures


def _side_by_side(jobs: Sequence[Job], progress: Progress, processes: int) -> list[Failure]:
    spawn = multiprocessing.get_context("spawn")  # a forked process would inherit torch's threads in an unknown state
    slots = spawn.SimpleQueue()
    for slot in range(processes):
        slots.put(slot)
    threads = max(1, torch.get_num_threads() // processes)
    progress.note(f"{len(jobs)} runs, {processes} at a time, {threads} thread{'s' * (threads > 1)} each")
    failures: list[Failure] = []
    with ProcessPoolExecutor(processes, spawn, _begin, (slots, threads)) as pool:
        futures = {pool.submit(_advance, job): job for job in jobs}

        def finished(patience: float) -> bool:
            done, pending = wait(futures, patience, FIRST_EXCEPTION)
            for future in [future for future in done if future in futures]:
                failures.extend(_failure(futures.pop(future), future))
            return not pending

        try:
            watch(jobs, progress, finished, Job.tasks_learnt)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(pool._processes.values()):  # without this, Ctrl-C would wait for the runs' end
                process.terminate()
            raise
    return failures


def _failure(job: Job, future: Future[None]) -> list[Failure]:
    try:
        future.result()
    except InputError:
        raise
    except PerdureError as error:
        return [Failure(job, str(error))]
    except BrokenProcessPool as error:
        raise PerdureError(
            "a process of the experiment was killed, perhaps for want of memory; run the command again to go on, with fewer "
            "--jobs if it happens anew."
        ) from error
    return []


def _begin(slots: "SimpleQueue[int]", threads: int) -> None:
    """Make a process ready: its share of the cores, and an end with its parent's."""
    global _slot
    _slot = slots.get()
    torch.set_num_threads(threads)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    """A killed parent can't stop its children: without this they would go on writing where the next command begins."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _advance(job: Job) -> None:
    if job.device in (None, "cuda") and torch.cuda.is_available():
        job = replace(job, device=f"cuda:{_slot % torch.cuda.device_count()}")
    advance(job)

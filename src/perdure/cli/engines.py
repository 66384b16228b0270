"""The options that say where runs are computed, common to the verbs that run many."""

from typing import TYPE_CHECKING, Annotated

import typer

from perdure.errors import InputError, nearest

if TYPE_CHECKING:
    from perdure.experiments.engines import Engine

ENGINES = ["local", "ray"]

Jobs = Annotated[int, typer.Option(min=1, help="Runs at once on this machine; they share its cores and take its GPUs in turn.")]
EngineName = Annotated[str, typer.Option("--engine", help="local, or ray: a Ray cluster (pip install 'perdure[ray]').")]
RayAddress = Annotated[str | None, typer.Option(help="The cluster's address, or auto; by default one on this machine.")]
Storage = Annotated[
    str | None, typer.Option(help="For a cluster without a shared folder: an fsspec address, as s3://bucket/x.")
]
Cpus = Annotated[float, typer.Option(min=0, help="CPUs that a run takes of the cluster.")]
Gpus = Annotated[float, typer.Option(min=0, help="GPUs that a run takes of the cluster; 0.5 puts two on one.")]


def build_engine(
    name: str, jobs: int, ray_address: str | None, storage: str | None, cpus_per_run: float, gpus_per_run: float
) -> "Engine":
    """The engine that the options name.

    Raises
    ------
    InputError: there is no such engine, or it doesn't take an option.
    """
    if name not in ENGINES:
        raise InputError(f"--engine {name!r} is unknown; {nearest(name, ENGINES)}")
    if name == "local":
        if ray_address or storage:
            option = "--ray-address" if ray_address else "--storage"
            raise InputError(f"{option} is for a cluster; add --engine ray, or leave it out.")
        from perdure.experiments.engines import LocalEngine

        return LocalEngine(jobs)
    if jobs != 1:
        raise InputError("--jobs is for the engine local; on a cluster --cpus-per-run and --gpus-per-run say how many fit.")
    from perdure.experiments.engines.on_ray import RayEngine

    return RayEngine(ray_address, storage=storage, cpus=cpus_per_run, gpus=gpus_per_run)

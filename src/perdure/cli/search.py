"""``perdure search``: which combination is best, without training every one to the end."""

import json
from pathlib import Path
from typing import Annotated

import typer

from perdure.cli.engines import Cpus, EngineName, Gpus, Jobs, RayAddress, Storage, build_engine
from perdure.cli.options import AsJson, Device, Quiet, Trackers, trackers
from perdure.cli.output import err, next_step, out, print_runs
from perdure.cli.progress import TerminalProgress


def search(
    spec: Annotated[str, typer.Argument(help="A search's YAML file, or the name of a packaged one.", show_default=False)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="For the results; by default results/NAME.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seeds instead of the file's; may be repeated.")] = None,
    model: Annotated[str | None, typer.Option(help="A model instead of the file's.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Print every run with its settings and the budget, and do nothing.")] = False,
    jobs: Jobs = 1,
    engine: EngineName = "local",
    ray_address: RayAddress = None,
    storage: Storage = None,
    cpus_per_run: Cpus = 1.0,
    gpus_per_run: Gpus = 0.0,
    device: Device = None,
    track: Trackers = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Search for the best method by task-level successive halving, then train the winners anew on another task order.

    All candidates learn a few tasks, the better ones go on from where they stand, and so on up the rungs. A search that was
    interrupted goes on where it stopped.

    [dim]perdure search tiny-search
    perdure search my-search.yaml --dry-run
    perdure search my-search.yaml --output results/mine --jobs 4[/dim]
    """
    from perdure.cli.tables import summary_table
    from perdure.experiments.report import report_directory
    from perdure.experiments.search import FINAL, RECORD, run_search
    from perdure.experiments.search_spec import load_search
    from perdure.experiments.spec import find_experiment

    path = find_experiment(spec)
    chosen = load_search(str(path), model=model, seeds=seed or None)
    where = output or Path("results") / path.stem
    ladder = chosen.ladder
    if dry_run:
        print_runs(chosen.trials().runs(), as_json)
        if not as_json:
            for tasks, candidates in zip(ladder.tasks, ladder.candidates, strict=True):
                out.print(f"rung at {tasks} tasks: {candidates} candidates")
            out.print(_budget(ladder.config_tasks, ladder.exhaustive, len(chosen.seeds)))
            next_step(f"perdure search {spec}", "nothing was done yet")
        return
    progress = TerminalProgress(err, quiet=quiet)
    computed = build_engine(engine, jobs, ray_address, storage, cpus_per_run, gpus_per_run)
    winners = run_search(chosen, where, engine=computed, progress=progress, trackers=trackers(track), device=device)
    written = report_directory(where, command=f"perdure search {spec}")
    if as_json:
        out.print_json(json.dumps({"winners": winners, **{name: str(file) for name, file in written.items()}}))
        return
    out.print(f"Best: {', '.join(winners)}")
    out.print(_budget(ladder.config_tasks, ladder.exhaustive, len(chosen.seeds)))
    out.print(summary_table(where / FINAL))
    for what, file in {"search": where / RECORD, **written}.items():
        out.print(f"{what}: {file}")
    next_step(f"open {written['page']} in a browser", "the rungs, and the winners trained anew")


def _budget(config_tasks: int, exhaustive: int, seeds: int) -> str:
    saved = 100 * (1 - config_tasks / exhaustive)
    each = f", for each of {seeds} seeds" if seeds > 1 else ""
    return f"budget: {config_tasks:,} config-tasks against {exhaustive:,} (−{saved:.1f} %){each}"

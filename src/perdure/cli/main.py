"""The command line: each verb parses, calls the library, and prints. Heavy libraries are imported inside the verbs."""

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from perdure.cli.engines import Cpus, EngineName, Gpus, Jobs, RayAddress, Storage, build_engine
from perdure.cli.options import AsJson, Device, Directory, Quiet, Trackers, trackers
from perdure.cli.output import err, next_step, out, print_runs
from perdure.cli.progress import TerminalProgress
from perdure.cli.search import search
from perdure.cli.tasks import app as tasks_app
from perdure.errors import InputError, PerdureError

app = typer.Typer(
    name="perdure",
    help="Measure and stop forgetting in language models that keep learning.",
    epilog="Start with: perdure init my-learner --model smollm2-135m  ·  then: perdure learn my-learner facts.jsonl",
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=False,
)
app.add_typer(tasks_app, name="tasks")


def _version(wanted: bool) -> None:
    if wanted:
        import perdure

        out.print(f"perdure {perdure.__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")] = False,
) -> None:
    pass


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"


@app.command()
def init(
    directory: Annotated[Path, typer.Argument(help="A new directory for the learner.", show_default=False)],
    model: Annotated[str, typer.Option(help="Hugging Face id or path of a causal LM, or an embedded one: smollm2-135m, tiny.")],
    recipe: Annotated[str, typer.Option(help="A recipe's name or file: how it learns and what holds the old.")] = "default",
    seed: Annotated[int, typer.Option(min=0, help="Decides every random choice.")] = 0,
    device: Device = None,
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16; by default what the device does well.")] = None,
    revision: Annotated[str | None, typer.Option(help="Branch, tag or commit of a model on the hub.")] = None,
    trust_remote_code: Annotated[bool, typer.Option(help="Run Python code that comes with the model.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make a learner: a model that will learn task after task.

    [dim]perdure init my-learner --model smollm2-135m
    perdure init my-learner --model Qwen/Qwen3-4B-Base --recipe my-recipe.yaml --seed 41[/dim]
    """
    from perdure.experiments.spec import load_recipe
    from perdure.learning.learner import Learner

    learner = Learner.create(
        directory,
        model=model,
        settings=load_recipe(recipe),
        seed=seed,
        progress=TerminalProgress(err, quiet=quiet),
        device=device,
        dtype=dtype,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )
    out.print(f"Made {directory}: {model} learning by {learner.method.name}.")
    next_step(f"perdure learn {directory} facts.jsonl", 'one JSON object a line: {"question": …, "answer": …}')


@app.command()
def learn(
    directory: Directory,
    facts: Annotated[list[Path], typer.Argument(help="JSONL files of questions and answers, a task each.", show_default=False)],
    name: Annotated[str | None, typer.Option(help="The task's name; by default the file's.")] = None,
    ask: Annotated[str, typer.Option("--evaluate", help="What to ask then: new (this task's questions), all, none.")] = "new",
    device: Device = None,
    track: Trackers = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Learn a file of questions and answers as one task, without forgetting the tasks before it.

    [dim]perdure learn my-learner facts.jsonl
    perdure learn my-learner week-12.jsonl --name week-12 --evaluate all[/dim]
    """
    from perdure.learning.learner import Learner
    from perdure.tasks import read_jsonl

    if ask not in ("new", "all", "none"):
        raise InputError(f"--evaluate {ask}: choose new, all or none.")
    if name and len(facts) > 1:
        raise InputError("--name names one task, and several files were given; learn them one at a time.")
    tasks = [read_jsonl(path, name=name) for path in facts]
    progress = TerminalProgress(err, quiet=quiet)
    learner = Learner.open(directory, progress=progress, trackers=trackers(track), device=device)
    results = []
    for task in tasks:
        progress.heading(task.name)
        report = learner.learn(task)
        row = None if ask == "none" else learner.evaluate([report.task] if ask == "new" else None)
        known = row.scores[-1] if row else None
        results.append({**vars(report), "score": known, "row": row and row.scores})
        if not as_json:
            answered = "" if known is None else f"; {_percent(known)} of its questions are answered right"
            out.print(f"Learnt {task.name} (task {report.task}, {report.items} items, {report.steps} steps){answered}.")
    if as_json:
        out.print_json(json.dumps(results))
        return
    next_step(f"perdure evaluate {directory}", "asks every question ever learnt")


@app.command()
def ask(directory: Directory, question: str, device: Device = None, as_json: AsJson = False) -> None:
    """Put a question to a learner.

    [dim]perdure ask my-learner "Who runs the Lisbon office?"[/dim]
    """
    from perdure.learning.learner import Learner

    answer = Learner.open(directory, device=device).ask(question)
    if as_json:
        out.print_json(json.dumps({"question": question, "answer": answer}))
    else:
        out.print(answer)


@app.command()
def evaluate(directory: Directory, device: Device = None, quiet: Quiet = False, as_json: AsJson = False) -> None:
    """Ask a learner every question it ever learnt: one new row of its retention matrix.

    [dim]perdure evaluate my-learner[/dim]
    """
    from perdure.learning.learner import Learner

    learner = Learner.open(directory, progress=TerminalProgress(err, quiet=quiet), device=device)
    row = learner.evaluate()
    names = learner.directory.task_names()
    if as_json:
        out.print_json(json.dumps({"tasks": names, **vars(row)}))
        return
    from rich.table import Table

    table = Table("task", "items", "right", "in format", title=f"After task {row.checkpoint}")
    for task, items, right, formatted in zip(names, row.counts, row.scores, row.formatted, strict=True):
        table.add_row(task, str(items), _percent(right), _percent(formatted))
    out.print(table)
    next_step(f"perdure report {directory}", "draws what was kept and what was lost")


@app.command()
def report(directory: Directory, as_json: AsJson = False) -> None:
    """Write a page of a learner's or an experiment's retention, with its figures and tables as files.

    [dim]perdure report my-learner
    perdure report results/demo[/dim]
    """
    from perdure.experiments.report import report_directory

    written = report_directory(directory)
    if as_json:
        out.print_json(json.dumps({name: str(path) for name, path in written.items()}))
        return
    for what, path in written.items():
        out.print(f"{what}: {path}")
    next_step(f"open {written['page']} in a browser", "it needs no network")


@app.command()
def export(
    directory: Directory,
    folder: Annotated[Path, typer.Argument(help="A new folder for the model.", show_default=False)],
    dtype: Annotated[str | None, typer.Option(help="float32, bfloat16, float16; by default the learner's.")] = None,
    quiet: Quiet = False,
) -> None:
    """Write a learner's model as a plain Hugging Face folder, and check it.

    [dim]perdure export my-learner my-model --dtype bfloat16[/dim]
    """
    from perdure.learning.learner import Learner

    learner = Learner.open(directory, progress=TerminalProgress(err, quiet=quiet))
    difference = learner.export(folder, dtype)
    out.print(f"Wrote {folder}; its logits are the learner's within {difference:.2g}.")
    next_step(f'AutoModelForCausalLM.from_pretrained("{folder}")', "no perdure needed")


@app.command()
def status(directory: Directory, as_json: AsJson = False) -> None:
    """Say what a learner is, what it has learnt, and how it was last scored.

    [dim]perdure status my-learner --json[/dim]
    """
    from perdure.learning.directory import LearnerDirectory

    known = LearnerDirectory.open(directory).status()
    if as_json:
        out.print_json(json.dumps(known))
        return
    for name, value in known.items():
        out.print(f"{name.replace('_', ' ')}: {_plain(value)}")


@app.command()
def run(
    spec: Annotated[str, typer.Argument(help="An experiment's YAML file, or the name of a packaged one.", show_default=False)],
    output: Annotated[Path | None, typer.Option("--output", "-o", help="For the results; by default results/NAME.")] = None,
    seed: Annotated[list[int] | None, typer.Option(help="Seeds instead of the file's; may be repeated.")] = None,
    model: Annotated[str | None, typer.Option(help="A model instead of the file's.")] = None,
    tasks: Annotated[int | None, typer.Option(min=1, help="Learn only so many of the stream's tasks.")] = None,
    dry_run: Annotated[bool, typer.Option(help="Print every run with its settings, and do nothing.")] = False,
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
    """Run an experiment: a stream of tasks, learnt by each method with each seed, in each order.

    A run that was interrupted goes on where it stopped; one that is finished is not run again.

    [dim]perdure run demo
    perdure run my-experiment.yaml --output results/mine --seed 0 --seed 1 --jobs 2
    perdure run paper/symbol/all-merge --tasks 10 --model smollm2-135m --dry-run[/dim]
    """
    from perdure.cli.tables import summary_table
    from perdure.experiments.grid import run_experiment
    from perdure.experiments.report import report_directory
    from perdure.experiments.spec import find_experiment, load_experiment

    path = find_experiment(spec)
    experiment = load_experiment(path, seeds=seed or None, model=model, first_tasks=tasks)
    where = output or Path("results") / path.stem
    if dry_run:
        print_runs(experiment.runs(), as_json)
        if not as_json:
            tasks_each = len(experiment.build_stream())
            next_step(f"perdure run {spec}", f"{len(experiment.runs())} runs of {tasks_each} tasks; nothing was done yet")
        return
    progress = TerminalProgress(err, quiet=quiet)
    computed = build_engine(engine, jobs, ray_address, storage, cpus_per_run, gpus_per_run)
    run_experiment(experiment, where, engine=computed, progress=progress, trackers=trackers(track), device=device)
    written = report_directory(where, command=f"perdure run {spec}")
    if as_json:
        out.print_json(json.dumps({name: str(path) for name, path in written.items()}))
        return
    out.print(summary_table(where))
    for what, file in written.items():
        out.print(f"{what}: {file}")
    next_step(f"open {written['page']} in a browser", "then try: perdure run tiny")


app.command()(search)


@app.command()
def methods(as_json: AsJson = False) -> None:
    """List the mechanisms, and the methods of the paper that join them.

    [dim]perdure methods[/dim]
    """
    from rich.table import Table

    from perdure.methods import DESCRIPTIONS, paper_methods

    if as_json:
        streams = {stream: list(paper_methods(stream)) for stream in ("symbol", "llm", "real")}
        out.print_json(json.dumps({"mechanisms": {d.name: vars(d) for d in DESCRIPTIONS}, "paper": streams}))
        return
    table = Table("mechanism", "holds or keeps", "extra work", "memory while training", "state", "source", show_lines=True)
    for about in DESCRIPTIONS:
        table.add_row(about.name, about.holds, about.work, about.memory, about.state, about.source)
    out.print(table)
    out.print("Join them with +. The paper's 21 methods on Symbol-QA:", ", ".join(paper_methods("symbol")))
    next_step("perdure run paper/symbol/all-merge --tasks 10 --model tiny", "any of them, scaled down")


def _plain(value: Any) -> str:
    return ", ".join(str(part) for part in value) if isinstance(value, list) else str(value)


def main() -> None:
    """The console script: a user's mistake is one sentence and exit code 2, a failed run one sentence and 1."""
    try:
        app()
    except PerdureError as error:
        err.print("error:", style="bold red", end=" ")
        err.print(str(error), soft_wrap=True)
        sys.exit(error.exit_code)

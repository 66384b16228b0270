"""``perdure tasks``: make streams of tasks, split files into them, and check them."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer
from rich.text import Text

from perdure.cli.options import AsJson, Device, Quiet
from perdure.cli.output import err, next_step, out
from perdure.cli.progress import TerminalProgress
from perdure.errors import InputError

if TYPE_CHECKING:
    from perdure.tasks.check import StreamReport
    from perdure.tasks.conversation import ChatModel
    from perdure.tasks.folder import StoredStream
    from perdure.tasks.real import RealReport

app = typer.Typer(help="Make, split and check streams of tasks.", no_args_is_help=True, rich_markup_mode="rich")

Folder = Annotated[Path, typer.Argument(help="A new folder for the stream.", show_default=False)]
Tasks = Annotated[int, typer.Option(min=1, help="Tasks in the stream.")]
Items = Annotated[int, typer.Option(min=1, help="Items in each task.")]
Seed = Annotated[int, typer.Option(min=0, help="Decides every random choice.")]
Written = Annotated[
    Literal["base", "chat"], typer.Option("--for", help="What learns it: base models, or chat models by their template.")
]


@app.command()
def symbol(
    folder: Folder,
    tasks: Tasks = 100,
    items: Items = 100,
    seed: Seed = 42,
    key_length: Annotated[int, typer.Option(min=1, max=64, help="Characters in a question.")] = 6,
    value_length: Annotated[int, typer.Option(min=1, max=64, help="Characters in an answer.")] = 4,
    written: Written = "base",
    as_json: AsJson = False,
) -> None:
    """Random keys with random values: nothing can be known beforehand, nothing can be guessed.

    [dim]perdure tasks symbol keys --tasks 10 --items 20[/dim]
    """
    from perdure.tasks.folder import Origin, write_stream
    from perdure.tasks.symbol import symbol_tasks

    origin = Origin("symbol", seed, written, "exact", {"key_length": key_length, "value_length": value_length})
    _made(write_stream("symbol", symbol_tasks(tasks, items, seed, key_length, value_length), folder, origin), folder, as_json)


@app.command()
def facts(
    folder: Folder,
    tasks: Tasks = 100,
    items: Items = 100,
    seed: Seed = 42,
    paraphrases: Annotated[int, typer.Option(min=0, max=4, help="Rewordings of each question, never trained on.")] = 0,
    model: Annotated[str | None, typer.Option(help="An instruct model that invents the facts; its id or path.")] = None,
    endpoint: Annotated[str | None, typer.Option(help="Where the model runs: an OpenAI-compatible address, up to /v1.")] = None,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of the model's draws.")] = 0.8,
    patience: Annotated[int, typer.Option(min=1, help="Replies without anything usable before the model is given up.")] = 10,
    written: Written = "base",
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Invented facts: from templates, or by an instruct model, here or behind an endpoint (LLM-QA).

    With a model, an interrupted run goes on where it stopped. The endpoint's key is read from OPENAI_API_KEY.

    [dim]perdure tasks facts facts --tasks 10 --items 50 --paraphrases 2
    perdure tasks facts topics --model Qwen/Qwen3-4B-Instruct-2507
    perdure tasks facts topics --model qwen3 --endpoint http://localhost:8000/v1[/dim]
    """
    from perdure.tasks.folder import Origin, write_stream

    if model is None:
        if endpoint:
            raise InputError("--endpoint needs --model, the name by which the server knows it.")
        from perdure.tasks.facts import facts_tasks

        origin = Origin(
            "facts", seed, written, "exact", {"paraphrases": paraphrases}, notes=["invented; nothing in it is true"]
        )
        stream = write_stream("facts", facts_tasks(tasks, items, seed, paraphrases), folder, origin)
        _made(stream, folder, as_json)
        return
    if paraphrases:
        raise InputError("--paraphrases is for facts from templates; leave it out with --model.")
    from perdure.tasks.model_facts import model_facts

    progress = TerminalProgress(err, quiet=quiet)
    stream = model_facts(
        folder,
        _chat_model(model, endpoint, temperature, device),
        tasks=tasks,
        items=items,
        seed=seed,
        patience=patience,
        text_format=written,
        progress=progress,
    )
    _made(stream, folder, as_json)
    if not as_json:
        cost = stream.manifest["settings"]["cost"]
        out.print(
            f"Cost: {cost['requests']} requests, {cost['prompt_tokens']} tokens read, {cost['completion_tokens']} written; "
            f"{sum(cost['left_out'].values())} lines were not usable."
        )


@app.command()
def real(
    folder: Folder,
    data_dir: Annotated[
        Path | None, typer.Option(help="A folder with NAME.jsonl for each source; by default the hub, through datasets.")
    ] = None,
    source: Annotated[list[str] | None, typer.Option(help="A source; may be repeated. By default all ten.")] = None,
    per_source: Annotated[int, typer.Option(min=1, help="Items of each source.")] = 500,
    items: Items = 50,
    seed: Seed = 42,
    unknown_to: Annotated[
        str | None, typer.Option(help="Keep only what this model answers wrong every time; its id or path.")
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Answers drawn from that model to each question.")] = 5,
    temperature: Annotated[float, typer.Option(min=0.01, help="Of those draws.")] = 1.0,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Longest of those answers.")] = 32,
    written: Written = "base",
    device: Device = None,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Real questions from ten public sets (Real-QA), shuffled over tasks, duplicates taken out.

    [dim]perdure tasks real real-qa --unknown-to Qwen/Qwen3-4B-Base
    perdure tasks real small --data-dir my-sets --source squad --source popqa --per-source 100[/dim]
    """
    from perdure.tasks.folder import refuse_existing, write_stream
    from perdure.tasks.real import real_origin, real_stream
    from perdure.tasks.real_sources import SOURCES

    refuse_existing(folder)
    names = tuple(dict.fromkeys(source or SOURCES))
    progress = TerminalProgress(err, quiet=quiet)
    if unknown_to:
        from perdure.tasks.local_model import LocalModel

        model = LocalModel(unknown_to, temperature=temperature, device=device)
        verdicts = folder.with_name(f"{folder.name}-verdicts.jsonl")
        progress.note(f"What {unknown_to} knows is noted in {verdicts}; a run that is stopped goes on from there.")
        keep, asked = model.keep_unknown(
            verdicts, samples=samples, max_new_tokens=max_new_tokens, seed=seed, note=progress.note
        )
        stream, report = real_stream(data_dir, names, per_source, items, seed, keep)
    else:
        stream, report = real_stream(data_dir, names, per_source, items, seed)
        asked = None
    origin = real_origin(report, seed, written, {"per_source": per_source, "items": items, "unknown_to": asked})
    stored = write_stream("real", stream.tasks, folder, origin)
    if as_json:
        out.print_json(json.dumps({"folder": str(folder), **_summary(stored), **_real_summary(report)}))
        return
    _made(stored, folder, as_json=False)
    _print_real(report, per_source)


@app.command()
def check(
    path: Annotated[Path, typer.Argument(help="A stream's folder, or a file of questions and answers.", show_default=False)],
    as_json: AsJson = False,
) -> None:
    """Check a stream or a file before it is learnt. Exits with 2 when it can't be used.

    [dim]perdure tasks check facts.jsonl
    perdure tasks check my-stream --json[/dim]
    """
    from perdure.tasks.check import check as check_path

    report = check_path(path)
    if as_json:
        out.print_json(json.dumps(report.as_dict()))
    else:
        _print_check(report)
    if not report.usable:
        raise typer.Exit(2)


@app.command()
def split(
    source: Annotated[
        str, typer.Argument(help="A file (JSONL, chats, CSV, TSV, Parquet, Q/A text) or a data set's id.", show_default=False)
    ],
    folder: Folder,
    items: Items = 100,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Shuffle with this seed; by default the file's order is kept.")
    ] = None,
    question: Annotated[str | None, typer.Option(help="The question's column; dots reach into nested ones.")] = None,
    answer: Annotated[
        list[str] | None, typer.Option(help="An answer's column; may be repeated, the first is trained on.")
    ] = None,
    paraphrases: Annotated[str | None, typer.Option(help="The column of the rewordings.")] = None,
    separator: Annotated[str | None, typer.Option(help="What stands between several answers in one cell, such as ';'.")] = None,
    config: Annotated[str | None, typer.Option(help="Of a data set.")] = None,
    part: Annotated[str, typer.Option("--split", help="Of a data set.")] = "train",
    other_spellings: Annotated[
        bool, typer.Option("--spellings", help="Accept the other spellings of numbers and dates too.")
    ] = False,
    matching: Annotated[Literal["exact", "normalised"], typer.Option(help="When an answer counts as right.")] = "exact",
    licence: Annotated[str, typer.Option(help="A note for the manifest.")] = "not stated",
    written: Written = "base",
    as_json: AsJson = False,
) -> None:
    """Split a file of your own into a stream of tasks.

    [dim]perdure tasks split faq.csv faq-stream --items 50 --question Frage --answer Antwort
    perdure tasks split chats.jsonl chat-stream --for chat
    perdure tasks split rajpurkar/squad squad --answer answers.text --seed 0[/dim]
    """
    from perdure.tasks.columns import Columns
    from perdure.tasks.distinct import Distinct
    from perdure.tasks.folder import Origin, refuse_existing, write_stream
    from perdure.tasks.read import located_items
    from perdure.tasks.split import accept_spellings, split_items

    refuse_existing(folder)
    mapped = question or answer or paraphrases or separator
    columns = Columns(question or "question", tuple(answer or ()), paraphrases or "", separator) if mapped else None
    distinct = Distinct()
    read = distinct(located_items(source, columns, config=config, split=part))
    tasks = split_items(accept_spellings(read) if other_spellings else read, items, seed)
    settings = {"items": items, "order": "as read" if seed is None else "shuffled", "spellings": other_spellings}
    origin = Origin("split", seed, written, matching, settings, [{"name": Path(source).name, "licence": licence}])
    stored = write_stream(folder.name, tasks, folder, origin)
    _made(stored, folder, as_json)
    if distinct.duplicates and not as_json:
        out.print(f"{distinct.duplicates} rows said what an earlier one says and were dropped.")


def _chat_model(model: str, endpoint: str | None, temperature: float, device: str | None) -> "ChatModel":
    """The model as the one that is asked, here or behind its endpoint."""
    if endpoint:
        from perdure.tasks.endpoint import Endpoint

        return Endpoint(endpoint, model, temperature=temperature, top_p=0.95)
    from perdure.tasks.local_model import LocalModel

    return LocalModel(model, temperature=temperature, top_p=0.95, device=device)


def _summary(stream: "StoredStream") -> dict[str, object]:
    return {name: stream.manifest[name] for name in ("name", "items", "paraphrases", "fingerprint")} | {"tasks": len(stream)}


def _made(stream: "StoredStream", folder: Path, as_json: bool) -> None:
    if as_json:
        out.print_json(json.dumps({"folder": str(folder), **_summary(stream)}))
        return
    reworded = f", {stream.manifest['paraphrases']} paraphrases" if stream.manifest["paraphrases"] else ""
    tasks = f"{len(stream)} task{'s' * (len(stream) > 1)}"
    out.print(f"Wrote {folder}: {tasks}, {stream.manifest['items']} items{reworded}; fingerprint {stream.fingerprint[:12]}.")
    next_step(f"perdure tasks check {folder}", f"or in an experiment: stream: {{kind: folder, path: {folder}}}")


def _real_summary(report: "RealReport") -> dict[str, object]:
    return {
        "taken": report.taken,
        "left_out": {name: dict(reasons) for name, reasons in report.left_out.items()},
        "duplicates": [vars(duplicate) for duplicate in report.duplicates],
        "remaining": report.remaining,
    }


def _print_real(report: "RealReport", per_source: int) -> None:
    from rich.table import Table

    table = Table("source", "items", "rows left out, and why", title="Sources")
    for name, taken in report.taken.items():
        short = "" if taken == per_source else f" of {per_source}"
        reasons = "; ".join(f"{count} × {reason}" for reason, count in report.left_out[name].most_common())
        table.add_row(name, f"{taken}{short}", reasons or "–")
    out.print(table)
    across = [near for near in report.duplicates if near.source != near.earlier_source]
    out.print(
        f"{len(report.duplicates)} questions are like an earlier one, {len(across)} of them from another source; "
        f"{sum(near.dropped for near in report.duplicates)} say the same and were dropped."
    )
    for near in sorted(across, key=lambda near: not near.dropped)[:5]:
        what = "dropped" if near.dropped else "kept"
        line = f"  {what}: {near.question!r} ({near.source}) ~ {near.earlier_question!r} ({near.earlier_source})"
        out.print(line)
    if report.remaining:
        out.print(f"{report.remaining} items remained beyond the last whole task.")


def _print_check(report: "StreamReport") -> None:
    tasks = f"{report.tasks} task{'s' * (report.tasks > 1)}"
    words = f"{report.longest_answer} word{'s' * (report.longest_answer > 1)}"
    out.print(
        f"{tasks}, {report.items} items, {report.answers} accepted answers, {report.paraphrases} paraphrases; longest answer "
        f"{words}; can be written as: {', '.join(report.formats) or 'no format'}."
    )
    for finding in report.findings:
        style, mark = ("red", "unusable") if finding.unusable else ("yellow", "note")
        out.print(Text.assemble((f"{mark}: ", style), f"{finding.count} × {finding.what}: {finding.remedy}"))
        for example in finding.examples:
            out.print(f"    {example}")
    if not report.findings:
        out.print("Nothing to complain of.")

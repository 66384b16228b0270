"""The report on a learner or an experiment: page, figures and numbers."""

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path
from statistics import median
from typing import Any

from perdure.errors import InputError
from perdure.reporting import plots
from perdure.reporting.page import (
    Block,
    Bullets,
    Code,
    Figure,
    Fold,
    Grid,
    Links,
    Page,
    Section,
    Table,
    Terms,
    Text,
    write_page,
)
from perdure.reporting.results import MethodResult, RunResult, by_method, write_results
from perdure.reporting.wording import NOT_DEFINED, count, listing, percent, plural, seconds, short, size
from perdure.retention.measures import bootstrap_interval, summary

STAGES = ("sampling", "training", "finishing", "scoring")
WINDOW = 5  # k of the W(k) in the table, where there are more tasks
UNEQUAL = 100  # ratio of two terms' gradients from which a reader is warned
PAPER = "arXiv 2609.06986"


def write_report(
    runs: Sequence[RunResult],
    out_html: str | Path,
    title: str,
    *,
    stream: str | None = None,
    command: str | None = None,
    warnings: Sequence[str] = (),
    sections: Sequence[Section] = (),
) -> list[Path]:
    """Write the page, and beside it ``figures/`` (PNG, SVG), ``matrix.csv``, ``matrix.json`` and, for several runs,
    ``results.csv`` and ``results.json``.

    Parameters
    ----------
    runs: one run, or every run of an experiment.
    stream: what was learnt, in words. command: what makes this page again. warnings: sentences to show beside our own.
    sections: more sections, to stand after those on what was kept.

    Returns
    -------
    The files written, the page first.

    Raises
    ------
    InputError: no run, a run twice, or a folder that can't be written.
    """
    methods = by_method(runs)
    path = Path(out_html)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        numbers = write_results(runs, path.parent)
        from perdure.reporting.drawings import draw_files

        figures = draw_files(methods, path.parent / "figures")
        addresses = {key: [f"figures/{name}" for name in names] for key, names in figures.items()}
        write_page(build_page(methods, title, stream, command, warnings, numbers, addresses, sections), path)
    except OSError as error:
        raise InputError(f"{path.parent} can't be written ({error.strerror}); name a folder that you may write to.") from error
    return [path, *(path.parent / name for name in (*numbers, *(name for names in addresses.values() for name in names)))]


def build_page(
    methods: Sequence[MethodResult],
    title: str,
    stream: str | None,
    command: str | None,
    warnings: Sequence[str],
    numbers: Sequence[str],
    figures: dict[str, list[str]],
    more: Sequence[Section] = (),
) -> Page:
    """The page's content. numbers, figures: addresses of the files beside it (:func:`drawings.draw_files` names the keys)."""
    found = [*warnings, *find_warnings(methods)]
    audits = _audits(methods)
    training = _training(methods, figures)
    sections = [
        *([Section("Read this first", [Bullets(found)], warns=True)] if found else []),
        Section("What was kept", _measures(methods)),
        Section("How fast a task fades", [_decay(methods, figures)]),
        *more,
        Section("Every task after every other", _matrices(methods, figures)),
        Section("What it took", _costs(methods)),
        *([Section("What was replayed", audits)] if audits else []),
        *([Section("How training went", training)] if training else []),
        Section("Settings", _settings(methods)),
        Section("Make it again, and cite it", _reproduce(command, numbers)),
    ]
    return Page(title, headline(methods), _facts(methods, stream), sections)


def headline(methods: Sequence[MethodResult]) -> str:
    """The finding in one sentence."""
    known = [method for method in methods if method.over_seeds.final]
    if not known:
        return "No method has been asked all its old questions at its last checkpoint, so that what it kept is not known yet."
    best, worst = known[0], known[-1]
    final = best.over_seeds.final
    assert final is not None
    if len(methods) == 1 and len(best.runs) == 1:
        diag = best.over_seeds.diagonal
        new = f"; right after learning each task it was {percent(diag.mean)}\u00a0%" if diag else ""
        kept = f"After {plural(best.tasks, 'task')} this learner still answers {percent(final.mean)}\u00a0%"
        return f"{kept} of all it was taught{new}."
    said = f"After {plural(best.tasks, 'task')} {best.name} still answers {percent(final.mean)}\u00a0% of all it was taught"
    if worst is not best and worst.over_seeds.final:
        after = "" if worst.tasks == best.tasks else f" after {plural(worst.tasks, 'task')}"
        said += f", and {worst.name} {percent(worst.over_seeds.final.mean)}\u00a0%{after}"
    seeds = {len(method.runs) for method in known}
    return f"{said} (mean of {plural(seeds.pop(), 'seed')})." if len(seeds) == 1 else f"{said} (means over seeds)."


def find_warnings(methods: Sequence[MethodResult]) -> list[str]:
    """What a reader must know before trusting the numbers."""
    runs = [run for method in methods for run in method.runs]
    found = []
    if len({run.model for run in runs}) > 1:
        found.append(f"The runs are of different models: {listing(sorted({run.model for run in runs}))}.")
    for order in sorted({run.order for run in runs}):
        streams = [run.stream for run in runs if run.order == order]
        shared = min(map(len, streams))
        if len({stream[:shared] for stream in streams}) > 1:
            found.append("The runs learnt different tasks or another order of them, so that their numbers can't be compared.")
            break
    if len({method.tasks for method in methods}) > 1:
        lengths = listing(f"{method.name} {method.tasks}" for method in methods)
        found.append(f"The methods have learnt different numbers of tasks ({lengths}), so that Final can't be compared.")
    for method in methods:
        found += _warnings_of(method)
    if len(methods) > 1 and (alone := [method.name for method in methods if len(method.runs) == 1]):
        found.append(f"{listing(alone)}: a single seed, so that no spread can be shown.")
    return found


def _warnings_of(method: MethodResult) -> list[str]:
    found = []
    lengths = sorted({len(run.matrix) for run in method.runs})
    if len(lengths) > 1:
        found.append(f"The seeds of {method.name} have learnt {listing(lengths)} tasks; they are compared at {lengths[0]}.")
    for run in method.runs:
        name = method.name if len(method.runs) == 1 else f"{method.name}, seed {run.seed}"
        matrix = run.matrix.first(method.tasks)
        measures, last = method.measures[method.runs.index(run)], matrix.last_complete
        if measures.final is None:
            where = f"it was last asked everything after task {last}" if last else "it was never asked everything"
            found.append(f"{name}: not every question was asked after task {method.tasks} ({where}); run `perdure evaluate`.")
        elif measures.diagonal is not None and measures.diagonal < 0.5:
            found.append(
                f"{name}: tasks were not learnt well in the first place (Diag {percent(measures.diagonal)} %), so that "
                "forgetting says little."
            )
        if run.format_rate is not None and run.format_rate < 0.9:
            found.append(
                f"{name}: only {percent(run.format_rate)} % of the answers were in the text format; some of what looks "
                "forgotten may be lost form."
            )
        if (audits := run.audits()) and not any(audit["well_formed"] for audit in audits):
            found.append(f"{name}: not one replay sample was a well-formed question with its answer.")
        if (unequal := _unequal_terms(run)) is not None:
            strong, weak, ratio = unequal
            found.append(
                f"{name}: the gradient of the {strong} term is {count(ratio)} times that of the {weak} term (medians of the "
                "logged steps), so that one decides alone; weigh their settings against each other."
            )
    return found


def _unequal_terms(run: RunResult) -> tuple[str, str, float] | None:
    """Strongest and weakest term by their weighted gradients' median norm, and the ratio, where one drowns the other."""
    norms: dict[str, list[float]] = {}
    for step in run.log:
        for term, norm in step["gradient_norm"].items():
            if term != "total" and norm > 0:  # a penalty is zero until the weights have moved
                norms.setdefault(term, []).append(norm)
    medians = {term: median(values) for term, values in norms.items()}
    if len(medians) < 2:
        return None
    strong, weak = max(medians, key=medians.__getitem__), min(medians, key=medians.__getitem__)
    ratio = medians[strong] / medians[weak]
    return (strong, weak, ratio) if ratio >= UNEQUAL else None


def _facts(methods: Sequence[MethodResult], stream: str | None) -> list[tuple[str, str]]:
    runs = [run for method in methods for run in method.runs]
    tasks = sorted({method.tasks for method in methods})
    length = plural(tasks[0], "task") if len(tasks) == 1 else f"{tasks[0]} to {tasks[-1]} tasks"
    asked = max(sum(run.questions) for run in runs)
    return [
        ("Model", listing(dict.fromkeys(run.model for run in runs))),
        ("Learnt", ", ".join(part for part in (stream, length, plural(asked, "question") if asked else None) if part)),
        ("Method" if len(methods) == 1 else "Methods", listing(method.name for method in methods)),
        ("Seed" if len(runs) == 1 else "Seeds", listing(sorted({run.seed for run in runs}))),
        ("Made with", f"perdure {version('perdure')}"),
    ]


# --- what was kept -------------------------------------------------------------------------------------------------------


def _measures(methods: Sequence[MethodResult]) -> list[Block]:
    k = min(WINDOW, *(method.tasks for method in methods))
    several = any(len(method.runs) > 1 for method in methods)
    rows, intervals = [], set()
    for method in methods:
        whole = method.over_seeds
        interval, kind = _interval(method)
        intervals.add(kind)
        spreads = (whole.final, whole.diagonal, whole.forgetting, whole.windows[k - 1])
        row = [method.name, *(spread.percent() if spread else NOT_DEFINED for spread in spreads)]
        rows.append([*row, whole.half_life_text, interval, str(len(method.runs)), str(method.tasks)])
    spread = "mean ± sample standard deviation over n seeds" if several else "one seed"
    head = ["", "Final", "Diag", "Forget", f"W({k})", "half-life", "Final, 95 % bootstrap", "n", "tasks"]
    undefined = any(NOT_DEFINED in row for row in rows)
    of_mean = " (of the mean curve)" if several else ""
    described = [f"over {kind}" for kind in ("seeds", "questions") if kind in intervals]
    blocks: list[Block] = [
        Table(f"Per cent of questions answered right; half-life in tasks; {spread}.", head, rows),
        Terms(
            [
                ("Final", "of everything taught, what is answered right now"),
                ("Diag", "each task right after it was learnt"),
                ("Forget", "what was lost since each earlier task's best moment"),
                (f"W({k})", f"what is answered right now of the latest {plural(k, 'task')}"),
                ("half-life", f"tasks later, less than half is left{of_mean}; “>\u00a09”: never in the 9 tasks seen"),
                *([(NOT_DEFINED, "not defined: a checkpoint it needs was not asked")] if undefined else []),
                *([("±", "sample standard deviation over seeds; no confidence interval")] if several else []),
                *([("bootstrap", f"percentile interval {' or '.join(described)}")] if described else []),
            ]
        ),
    ]
    if several:
        seeds = [
            [
                f"{method.name}, {run.which}",
                percent(one.final),
                percent(one.diagonal),
                percent(one.forgetting),
                one.half_life_text,
            ]
            for method in methods
            for run, one in zip(method.runs, method.measures, strict=True)
        ]
        table = Table(
            "Per cent of questions answered right; half-life in tasks.", ["", "Final", "Diag", "Forget", "half-life"], seeds
        )
        blocks.append(Fold("Every seed", [table]))
    reworded = [
        [method.name, *(percent(share) for share in (own.final, summary(other).final, own.diagonal, summary(other).diagonal))]
        for method in methods
        for own, other in [(method.median_run.measures, method.median_run.reworded)]
        if other is not None
    ]
    if reworded:
        which = " of the median-Final seed" if several else ""
        caption = f"Per cent answered right{which}: the questions trained on, and the same in words that were never trained on."
        head = ["", "Final", "Final, reworded", "Diag", "Diag, reworded"]
        blocks.append(Table(caption, head, reworded))
    others = [
        [method.name, percent(run.format_rate), percent(measure.forward_transfer)]
        for method in methods
        for run, measure in [(method.median_run, method.measures[method.runs.index(method.median_run)])]
        if run.format_rate is not None or measure.forward_transfer is not None
    ]
    if others:
        which = " of the median-Final seed" if several else ""
        caption = f"Per cent{which}: answers in the text format now; questions answered right before they were learnt."
        blocks.append(Fold("Form and forward transfer", [Table(caption, ["", "in format", "before learning"], others)]))
    return blocks


def _interval(method: MethodResult) -> tuple[str, str | None]:
    """Bootstrap interval of Final in per cent, and what was resampled: seeds, or the questions of a single seed."""
    finals = [measure.final for measure in method.measures if measure.final is not None]
    if len(method.runs) > 1:
        ends, kind = (bootstrap_interval(finals) if len(finals) > 1 else None), "seeds"
    else:
        ends, kind = method.runs[0].final_over_questions(), "questions"
    return (f"{percent(ends[0])} to {percent(ends[1])}", kind) if ends else (NOT_DEFINED, None)


def _decay(methods: Sequence[MethodResult], figures: dict[str, list[str]]) -> Figure:
    oldest = max(method.tasks for method in methods)
    ages = [age for age in plots.age_ticks(oldest) if age < oldest]
    rows = []
    for method in methods:
        curve = method.over_seeds.retention_by_age
        cells = [curve[age] if age < len(curve) else None for age in ages]
        rows.append([method.name, *(spread.percent() if spread else NOT_DEFINED for spread in cells)])
    several = any(len(method.runs) > 1 for method in methods)
    caption = (
        "Mean share of a task's questions that are still answered right, by the number of tasks learnt since. The diamond is "
        "the half-life: the first age at which less than half of age 0 is left. "
        + ("The band runs from the smallest to the largest seed (min–max band; no confidence interval). " if several else "")
        + "Distances on the logarithmic axis are those of age + 1, so that age 0 has a place."
    )
    return Figure(
        title="What is left of a task as later tasks arrive",
        caption=caption,
        plot=plots.decay_curves(methods),
        table=Table("R(a): per cent still right, by age a in tasks.", ["", *map(str, ages)], rows),
        files=figures["decay"],
        age_axis=True,
    )


def _matrices(methods: Sequence[MethodResult], figures: dict[str, list[str]]) -> list[Block]:
    lead = Text(
        "A row is the model after learning one more task, read downwards in time; a column is one task. Bright is known, dark "
        "is forgotten, empty was not asked. A column that darkens downwards is a task that fades."
    )
    found = []
    for place, method in enumerate(methods, start=1):
        run = method.median_run
        which = f" Of {run.which}, whose Final is the median of {len(method.runs)}." if len(method.runs) > 1 else ""
        scores = run.matrix.to_rows()
        rows = []
        for j, name in enumerate(run.matrix.task_names):
            asked = [row[j] for row in scores[j:] if row[j] is not None]
            best = max((score for score in asked if score is not None), default=None)
            rows.append([f"{j + 1} · {short(name, 60)}", percent(scores[j][j]), percent(best), percent(scores[-1][j])])
        table = Table("Per cent answered right, by task.", ["task", "right after learning", "at best", "now"], rows)
        title = f"{method.name}: every task after every later one" if len(methods) > 1 else "Every task after every later one"
        found.append(
            Figure(
                title=title,
                caption=f"Per cent answered right.{which}",
                plot=plots.heat_map(run),
                table=table,
                files=figures[f"retention-{place}"],
            )
        )
    return [lead, Grid(found)]


# --- what it took ----------------------------------------------------------------------------------------------------------


def _costs(methods: Sequence[MethodResult]) -> list[Block]:
    logged = {stage for method in methods for run in method.runs for cost in run.costs for stage in cost["seconds"]}
    stages = [stage for stage in STAGES if stage in logged] + sorted(logged - set(STAGES))
    kinds = [kind for kind in ("sampled", "trained", "scored") if any(r.total("tokens", kind) for m in methods for r in m.runs)]
    time, rest = [], []
    for method in methods:
        tasks = sum(len(run.costs) for run in method.runs)
        total = sum(run.total("seconds") for run in method.runs)
        by_stage = [sum(run.total("seconds", stage) for run in method.runs) for stage in stages]
        time.append([method.name, *(seconds(s / tasks) for s in by_stage), seconds(total / tasks), seconds(total)])
        tokens = [count(sum(run.total("tokens", kind) for run in method.runs) / tasks) for kind in kinds]
        steps = sum(cost["steps"] for run in method.runs for cost in run.costs) / tasks
        peak = max(cost["peak_memory_bytes"] for run in method.runs for cost in run.costs)
        state = max(run.costs[-1]["state_bytes"] for run in method.runs)
        rest.append([method.name, count(steps), *tokens, size(peak), size(state)])
    return [
        Table("Time for a task (mean), by stage, and for all runs.", ["", *stages, "a task", "all runs"], time),
        Table(
            "Steps and tokens for a task (mean); most memory the process held; size of the state after the last task.",
            ["", "steps", *(f"tokens {kind}" for kind in kinds), "peak memory", "state"],
            rest,
        ),
    ]


KINDS = (
    ("well_formed", "well-formed"),
    ("old_item", "exact old item"),
    ("old_question_wrong_answer", "old question, wrong answer"),
    ("new", "new question"),
    ("copies", "copies"),
)


def _audits(methods: Sequence[MethodResult]) -> list[Block]:
    replaying = [(method, [audit for run in method.runs for audit in run.audits()]) for method in methods]
    replaying = [(method, audits) for method, audits in replaying if audits]
    if not replaying:
        return []
    head = ["", "samples", *(label for _, label in KINDS), "old items covered"]
    rows = [[method.name, *_audit_cells(audits)] for method, audits in replaying]
    blocks: list[Block] = [
        Text(
            "Before each task the previous model wrote samples of what it knows. How much of the past they cover decides how "
            "much replay can hold."
        ),
        Table(
            "All samples of all runs; per cent of samples kept, and of the old items that were seen at least once.", head, rows
        ),
    ]
    for method, _ in replaying:
        run = method.median_run
        tasks = [[f"before task {audit['task']}", *_audit_cells([audit])] for audit in run.audits()]
        inside: list[Block] = [Table(f"{method.name}, seed {run.seed}, by task.", head, tasks)]
        if tasks and (examples := run.audits()[-1].get("examples")):
            inside += [Text("First samples before the last task, as the model wrote them:"), *map(Code, examples)]
        blocks.append(Fold(f"{method.name}: by task, with examples", inside))
    return blocks


def _audit_cells(audits: Sequence[dict[str, Any]]) -> list[str]:
    kept = sum(audit["kept"] for audit in audits)
    old = sum(audit.get("old_items", 0) for audit in audits)
    covered = sum(audit.get("old_items_covered", 0) for audit in audits)
    shares = [percent(sum(audit[kind] for audit in audits) / kept if kept else None) for kind, _ in KINDS]
    return [count(kept), *shares, percent(covered / old if old else None)]


# --- how it was made -------------------------------------------------------------------------------------------------------


def _training(methods: Sequence[MethodResult], figures: dict[str, list[str]]) -> list[Block]:
    found: list[Block] = []
    for place, method in enumerate(methods, start=1):
        run = method.median_run
        if not run.log:
            continue
        shown = len(plots.measured_steps(run)[1])
        thinned = "" if shown == len(run.log) else f" {count(shown)} of {count(len(run.log))} measured steps are drawn."
        last = run.log[-1]
        rows = [
            [
                term,
                *(
                    f"{line[kind][term]:.3g}" if term in line[kind] else NOT_DEFINED
                    for line in (run.log[0], last)
                    for kind in ("loss", "gradient_norm")
                ),
            ]
            for term in plots.loss_terms(run)
        ]
        head = ["", "loss, first step", "gradient norm", "loss, last step", "gradient norm"]
        figure = Figure(
            title=f"{method.name}, seed {run.seed}: each term of the loss and its pull on the weights",
            caption="Above, each term before its weight; below, the norm of each weighted term's gradient and of their sum "
            f"(total, before clipping). Logarithmic axes: zeros are left out.{thinned}",
            plot=plots.training_curves(run),
            table=Table("First and last measured step.", head, rows),
            files=figures[f"training-{place}"],
        )
        found.append(figure if len(methods) == 1 else Fold(method.name, [figure]))
    return found


def _settings(methods: Sequence[MethodResult]) -> list[Block]:
    flat = [_flat(method.median_run.settings) for method in methods]
    names = list(dict.fromkeys(name for settings in flat for name in settings))
    shared = [name for name in names if len({settings.get(name) for settings in flat}) == 1]
    differing = [name for name in names if name not in shared]
    blocks: list[Block] = []
    if differing:
        rows = [
            [method.name, *(settings.get(name, NOT_DEFINED) for name in differing)]
            for method, settings in zip(methods, flat, strict=True)
        ]
        blocks.append(Table("Settings in which the methods differ.", ["", *differing], rows, words=True))
    caption = "Settings of the run." if len(methods) == 1 else "Settings of all methods."
    table = Table(caption, ["setting", "value"], [[name, flat[0][name]] for name in shared], words=True)
    return [*blocks, Fold("All settings" if len(methods) == 1 else "Settings they share", [table])]


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{name}.")
        else:
            flat[f"{prefix}{name}"] = ", ".join(map(str, value)) if isinstance(value, list) else str(value)
    return flat


def _reproduce(command: str | None, numbers: Sequence[str]) -> list[Block]:
    made: list[Block] = [Text("This page was made by"), Code(command)] if command else []
    cite = (
        f"Protocol and measures are those of the continual-memorisation paper ({PAPER}); please cite it, and perdure "
        f"{version('perdure')} for the software."
    )
    return [*made, Text("The numbers behind it:"), Links(numbers), Text(cite)]

"""The page's figures as PNG and SVG files, by Matplotlib's object-oriented interface: no window, no global state."""

import re
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from perdure.reporting.plots import DARK_CELLS, NUMBERS_IN_CELLS, age_axes, even_ticks, loss_terms, measured_steps, style
from perdure.reporting.results import MethodResult, RunResult
from perdure.reporting.wording import short

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DASHES = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-."}


def draw_files(methods: Sequence[MethodResult], folder: Path) -> dict[str, list[str]]:
    """Write every figure into ``folder``.

    Returns
    -------
    File names (PNG, SVG) by figure: ``decay``, and ``retention`` and ``training`` with ``-`` and the method's place from 1.
    """
    folder.mkdir(parents=True, exist_ok=True)
    figures = {"decay": ("decay", decay_curves(methods))}
    for place, method in enumerate(methods, start=1):
        run, name = method.median_run, f"{place:02d}-{_file_name(method.name)}" if len(methods) > 1 else ""
        figures[f"retention-{place}"] = (f"retention-{name}".rstrip("-"), heat_map(run))
        if run.log:
            figures[f"training-{place}"] = (f"training-{name}".rstrip("-"), training_curves(run))
    return {key: _save(figure, folder, name) for key, (name, figure) in figures.items()}


def heat_map(run: RunResult) -> "Figure":
    """The retention matrix, in per cent."""
    from matplotlib.figure import Figure

    tasks = len(run.matrix)
    figure = Figure(figsize=(5.6, 4.8), layout="constrained")
    axes = figure.add_subplot()
    edges = (0.5, tasks + 0.5)
    image = axes.imshow(
        100 * run.matrix.scores, cmap="cividis", vmin=0, vmax=100, extent=(*edges, *edges[::-1]), interpolation="nearest"
    )
    if tasks <= NUMBERS_IN_CELLS:
        for i, row in enumerate(run.matrix.to_rows(), start=1):
            for j, score in enumerate(row, start=1):
                if score is not None:
                    ink = "white" if 100 * score < DARK_CELLS else "black"
                    axes.text(j, i, f"{100 * score:.0f}", ha="center", va="center", color=ink, fontsize=9)
    axes.set(xlabel="task asked", ylabel="after learning task", title=f"{_plain(run.method)}, seed {run.seed}")
    axes.set_xticks(even_ticks(tasks))
    axes.set_yticks(even_ticks(tasks))
    figure.colorbar(image, label="% right", shrink=0.8)
    return figure


def decay_curves(methods: Sequence[MethodResult]) -> "Figure":
    """R(a) of every method over age + 1, with the min–max band over seeds and the half-life as a diamond."""
    from matplotlib.figure import Figure

    tasks = max(method.tasks for method in methods)
    figure = Figure(figsize=(7.2, 4.6), layout="constrained")
    axes = figure.add_subplot()
    for place, method in enumerate(methods):
        colour, dash = style(place)
        seeds = method.over_seeds
        points = [(age + 1, spread) for age, spread in enumerate(seeds.retention_by_age) if spread]
        ages = [x for x, _ in points]
        label = f"{_plain(method.name)} (half-life {seeds.half_life_text})"
        axes.plot(ages, [100 * s.mean for _, s in points], color=colour, linestyle=DASHES[dash], linewidth=2, label=label)
        if len(method.runs) > 1:
            low, high = [100 * s.smallest for _, s in points], [100 * s.largest for _, s in points]
            axes.fill_between(ages, low, high, color=colour, alpha=0.22, linewidth=0)
        if (half := seeds.half_life) is not None:
            axes.plot([half + 1], [100 * (seeds.mean_curve[half] or 0.0)], "D", color=colour, markersize=7)
    axis = age_axes(tasks)["log" if tasks > NUMBERS_IN_CELLS else "linear"]
    axes.set_xscale(axis["type"])
    axes.set_xticks(axis["tickvals"], axis["ticktext"])
    axes.minorticks_off()
    band = "; band: smallest to largest seed" if any(len(method.runs) > 1 for method in methods) else ""
    axes.set(xlabel="age: tasks learnt since", ylabel="% still answered right", ylim=(-2, 102))
    axes.set_title(f"What is left of a task, by age (diamond: half-life{band})", fontsize=10)
    axes.grid(alpha=0.25)
    axes.legend(frameon=False, fontsize=8, ncols=1 + len(methods) // 12)
    return figure


def training_curves(run: RunResult) -> "Figure":
    """Every term of the loss and the norm of its weighted gradient over the training steps."""
    from matplotlib.figure import Figure

    steps, log = measured_steps(run)
    figure = Figure(figsize=(7.2, 6), layout="constrained")
    upper, lower = figure.subplots(2, 1, sharex=True)
    for axes, kind, label in ((upper, "loss", "loss"), (lower, "gradient_norm", "gradient norm")):
        for place, term in enumerate(loss_terms(run)):
            values = [line[kind].get(term) or float("nan") for line in log]
            if any(value > 0 for value in values):
                colour, dash = style(place)
                axes.plot(steps, values, color=colour, linestyle=DASHES[dash], linewidth=1.2, label=_plain(term))
        axes.set(ylabel=label, yscale="log")
        axes.grid(alpha=0.25)
    lower.set_xlabel("training step")
    lower.legend(frameon=False, fontsize=8, ncols=4)
    upper.set_title(f"{_plain(run.method)}, seed {run.seed}", fontsize=10)
    return figure


def _save(figure: "Figure", folder: Path, name: str) -> list[str]:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")  # a name in a script the font lacks
        figure.savefig(folder / f"{name}.png", dpi=144)
        figure.set_layout_engine("none")  # laid out once, drawn twice
        figure.savefig(folder / f"{name}.svg")
    return [f"{name}.png", f"{name}.svg"]


def _plain(text: str) -> str:
    """A user's text that Matplotlib shows as it is: one line, and no dollar sign that would begin mathematics."""
    return short(text, 40).replace("$", r"\$")


def _file_name(name: str) -> str:
    """A name that is a file name everywhere; the method's place before it keeps it unique."""
    return re.sub(r"[^A-Za-z0-9+._=-]+", "_", name)[:60]

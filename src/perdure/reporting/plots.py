"""The page's figures as Plotly descriptions: plain dicts, made without Plotly, coloured for light and dark by the page.

Plotly reads some HTML in texts, so that every text of a user's goes through :func:`inert`.
"""

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from perdure.reporting.results import MethodResult, RunResult
from perdure.reporting.wording import short

PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F7F")  # Okabe and Ito's, plus grey
DASHES = ("solid", "dash", "dot", "dashdot")
NUMBERS_IN_CELLS = 12  # tasks up to which the heat map shows each score
DARK_CELLS = 45  # per cent below which a cell is so dark that its number is white
STEPS_SHOWN = 600  # points of a training curve
LEGEND = {"orientation": "h", "yanchor": "bottom", "y": 1.02, "x": 0, "xanchor": "left"}  # above: no axis title to meet

Plot = dict[str, Any]


def inert(text: str, width: int = 40) -> str:
    """A user's text that Plotly shows as it is: one line, shortened, with its HTML escaped."""
    return escape(short(text, width), quote=False)


def style(place: int) -> tuple[str, str]:
    """Colour and dash of the n-th curve; 28 can be told apart."""
    return PALETTE[place % len(PALETTE)], DASHES[place // len(PALETTE) % len(DASHES)]


def even_ticks(largest: int) -> list[int]:
    """Whole numbers from 1 that get a tick on a linear axis: every one, or 1 and the multiples of a round step."""
    if largest <= NUMBERS_IN_CELLS:
        return list(range(1, largest + 1))
    step = next(
        step for power in range(len(str(largest))) for step in (5 * 10**power, 10 ** (power + 1)) if step * 10 >= largest
    )
    return [1, *range(step, largest + 1, step)]


def age_ticks(tasks: int) -> list[int]:
    """Ages that get a tick on a log axis of age + 1: 0, 1, 2, 5, 10, 20, 50 …"""
    ages = [0] + [digit * 10**power for power in range(len(str(tasks))) for digit in (1, 2, 5)]
    return [age for age in ages if age < tasks]


def age_axes(tasks: int) -> dict[str, Plot]:
    """The age axis by scale, over x = age + 1 and labelled by age."""
    ages = {"linear": [0, *(tick for tick in even_ticks(tasks - 1) if tick > 1 or tasks <= NUMBERS_IN_CELLS)]}
    ages["log"] = age_ticks(tasks)
    return {
        scale: {"type": scale, "tickvals": [age + 1 for age in ticks], "ticktext": [str(age) for age in ticks]}
        for scale, ticks in ages.items()
    }


def heat_map(run: RunResult) -> Plot:
    """The retention matrix, in per cent: a row for each checkpoint, downwards in time; a column for each task."""
    tasks = len(run.matrix)
    numbers = list(range(1, tasks + 1))
    names = [inert(name) for name in run.matrix.task_names]
    cells = [[None if score is None else round(100 * score, 2) for score in row] for row in run.matrix.to_rows()]
    trace: Plot = {
        "type": "heatmap",
        "x": numbers,
        "y": numbers,
        "z": cells,
        "customdata": [names] * tasks,
        "zmin": 0,
        "zmax": 100,
        "colorscale": "Cividis",
        "xgap": 1 if tasks <= 40 else 0,
        "ygap": 1 if tasks <= 40 else 0,
        "hoverongaps": False,
        "hovertemplate": "task %{x} (%{customdata})<br>after task %{y}: %{z:.1f} %<extra></extra>",
        "colorbar": {"ticksuffix": " %", "thickness": 10, "len": 0.95, "outlinewidth": 0, "nticks": 6},
    }
    ticks = {"tickmode": "array", "tickvals": even_ticks(tasks), "ticktext": [str(tick) for tick in even_ticks(tasks)]}
    return {
        "data": [trace, *(_numbers(cells) if tasks <= NUMBERS_IN_CELLS else [])],
        "layout": {
            "height": 380,
            "margin": {"l": 56, "r": 8, "t": 12, "b": 48},
            "xaxis": {"title": {"text": "task asked"}, "showgrid": False, "zeroline": False, **ticks},
            "yaxis": {
                "title": {"text": "after learning task"},
                "autorange": "reversed",
                "showgrid": False,
                "zeroline": False,
                **ticks,
            },
        },
    }


def _numbers(cells: list[list[float | None]]) -> list[Plot]:
    """Each score in its cell, in the ink that reads well on the cell's colour."""
    traces = []
    for ink, low, high in (("white", -1.0, DARK_CELLS), ("black", DARK_CELLS, 101.0)):
        inked = [(j, i, cell) for i, row in enumerate(cells, 1) for j, cell in enumerate(row, 1) if cell is not None]
        inked = [(j, i, cell) for j, i, cell in inked if low <= cell < high]
        traces.append(
            {
                "type": "scatter",
                "mode": "text",
                "x": [j for j, _, _ in inked],
                "y": [i for _, i, _ in inked],
                "text": [f"{cell:.0f}" for _, _, cell in inked],
                "textfont": {"color": ink, "size": 13 if len(cells) <= 8 else 11},
                "hoverinfo": "skip",
                "showlegend": False,
            }
        )
    return traces


def decay_curves(methods: Sequence[MethodResult]) -> Plot:
    """R(a) of every method in per cent, its band from the smallest to the largest seed, and its half-life.

    x is age + 1, labelled by age, so that age 0 has a place on a log axis.
    """
    data: list[Plot] = []
    for place, method in enumerate(methods):
        colour, dash = style(place)
        seeds = method.over_seeds
        points = [(age + 1, spread) for age, spread in enumerate(seeds.retention_by_age) if spread]
        name = f"{inert(method.name)} (half-life {seeds.half_life_text})"
        if len(method.runs) > 1:
            upper = [(x, 100 * spread.largest) for x, spread in points]
            lower = [(x, 100 * spread.smallest) for x, spread in points]
            outline = upper + lower[::-1]
            data.append(
                {
                    "type": "scatter",
                    "x": [x for x, _ in outline],
                    "y": [round(y, 3) for _, y in outline],
                    "mode": "lines",
                    "line": {"width": 0},
                    "fill": "toself",
                    "fillcolor": _translucent(colour),
                    "hoverinfo": "skip",
                    "legendgroup": str(place),
                    "showlegend": False,
                }
            )
        data.append(
            {
                "type": "scatter",
                "x": [x for x, _ in points],
                "y": [round(100 * spread.mean, 3) for _, spread in points],
                "customdata": [x - 1 for x, _ in points],
                "mode": "lines+markers" if len(points) <= NUMBERS_IN_CELLS else "lines",
                "line": {"color": colour, "dash": dash, "width": 2.5},
                "marker": {"size": 6},
                "name": name,
                "legendgroup": str(place),
                "hovertemplate": f"{inert(method.name)}<br>age %{{customdata}}: %{{y:.1f}} %<extra></extra>",
            }
        )
        if (half := seeds.half_life) is not None:
            height = 100 * (seeds.mean_curve[half] or 0.0)
            data.append(
                {
                    "type": "scatter",
                    "x": [half + 1, half + 1],
                    "y": [0, height],
                    "mode": "lines+markers",
                    "line": {"color": colour, "dash": "dot", "width": 1},
                    "marker": {"symbol": "diamond", "size": [0, 11], "color": colour},
                    "hovertemplate": f"{inert(method.name)}<br>half-life: {half}<extra></extra>",
                    "legendgroup": str(place),
                    "showlegend": False,
                }
            )
    tasks = max(method.tasks for method in methods)
    axes = age_axes(tasks)
    return {
        "data": data,
        "layout": {
            "height": 440,
            "margin": {"l": 56, "r": 12, "t": 12, "b": 48},
            "xaxis": {
                "title": {"text": "age: tasks learnt since"},
                "tickmode": "array",
                "zeroline": False,
                **axes["log" if tasks > NUMBERS_IN_CELLS else "linear"],
            },
            "showlegend": True,
            "yaxis": {"title": {"text": "% still answered right"}, "range": [-2, 102], "zeroline": False},
            "legend": LEGEND,
        },
        "x_axes": axes,
    }


def training_curves(run: RunResult) -> Plot:
    """Every term of the loss (before its weight), and the norm of each weighted term's gradient, over a run's steps."""
    steps, log = measured_steps(run)
    data: list[Plot] = []
    terms = loss_terms(run)
    for kind, axis in (("loss", "y"), ("gradient_norm", "y2")):
        for place, term in enumerate(terms):
            values = [line[kind].get(term) for line in log]
            if not any(values):
                continue
            colour, dash = style(place)
            data.append(
                {
                    "type": "scatter",
                    "x": steps,
                    "y": [float(f"{value:.4g}") if value and np.isfinite(value) and value > 0 else None for value in values],
                    "customdata": [line["task"] for line in log],
                    "yaxis": axis,
                    "mode": "lines",
                    "line": {"color": colour, "dash": dash, "width": 1.5},
                    "name": inert(term),
                    "legendgroup": term,
                    "showlegend": kind == "loss" or term == "total",
                    "hovertemplate": f"{inert(term)}: %{{y:.3g}}<br>task %{{customdata}}, step %{{x}}<extra></extra>",
                }
            )
    return {
        "data": data,
        "layout": {
            "height": 520,
            "margin": {"l": 56, "r": 12, "t": 12, "b": 48},
            "xaxis": {"title": {"text": "training step"}, "anchor": "y2", "zeroline": False},
            "yaxis": {"title": {"text": "loss"}, "type": "log", "domain": [0.54, 1], "exponentformat": "power"},
            "yaxis2": {"title": {"text": "gradient norm"}, "type": "log", "domain": [0, 0.46], "exponentformat": "power"},
            "legend": LEGEND,
        },
    }


def loss_terms(run: RunResult) -> list[str]:
    """Names of the logged terms, in the order of their first appearance, ``total`` last."""
    terms = dict.fromkeys(name for line in run.log for name in (*line["loss"], *line["gradient_norm"]))
    return sorted(terms, key=lambda name: name == "total")


def measured_steps(run: RunResult) -> tuple[list[int], list[dict[str, Any]]]:
    """At most STEPS_SHOWN of the logged steps, evenly spread, with their numbers counted over the run's whole life."""
    before = np.cumsum([0, *(cost["steps"] for cost in run.costs)])
    kept = np.unique(np.linspace(0, len(run.log) - 1, min(STEPS_SHOWN, len(run.log))).round().astype(int))
    lines = [run.log[place] for place in kept]
    return [int(before[line["task"] - 1]) + line["step"] for line in lines], lines


def _translucent(colour: str) -> str:
    red, green, blue = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.22)"

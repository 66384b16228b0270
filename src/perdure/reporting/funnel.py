"""What a search by successive halving kept and dropped, and what that saved."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from perdure.reporting.page import Block, Figure, Section, Table, Text
from perdure.reporting.plots import Plot, inert
from perdure.reporting.wording import NOT_DEFINED, count, percent, plural, seconds, size

if TYPE_CHECKING:
    from perdure.experiments.search import Rung


def funnel_section(rungs: "Sequence[Rung]", budget: dict[str, Any], agreement: Sequence[dict[str, Any]]) -> Section:
    """
    Parameters
    ----------
    rungs: those finished, first to last. budget, agreement: as in ``search.json``.
    """
    saved = 100 * (1 - budget["config_tasks"] / budget["exhaustive_config_tasks"])
    seeds = f" with each of {plural(budget['seeds'], 'seed')}" if budget["seeds"] > 1 else ""
    spent = (
        f"The search is worth {count(budget['config_tasks'])} config-tasks{seeds}; learning everything to the end would be "
        f"{count(budget['exhaustive_config_tasks'])} ({saved:.1f}\u00a0% saved). So far it took {seconds(budget['seconds'])} "
        f"of learning and asking and {count(budget['tokens'])} tokens, and held at most {size(budget['state_bytes'])} of "
        "checkpoints."
    )
    blocks: list[Block] = [Text(spent), _figure(rungs)]
    if agreement:
        rows = [
            [
                f"after {plural(line['tasks'], 'task')}",
                NOT_DEFINED if line["spearman"] is None else f"{line['spearman']:.2f}",
                str(line["comparable"]),
            ]
            for line in agreement
        ]
        caption = "Spearman's correlation of a rung's ranking with the last, over the candidates that both have."
        blocks.append(Table(caption, ["", "Spearman", "comparable"], rows))
    return Section("The search", blocks)


def _figure(rungs: "Sequence[Rung]") -> Figure:
    rows = []
    for label in rungs[0].finals:
        means = [rung.means.get(label) for rung in rungs]
        came = sum(label in rung.finals for rung in rungs)
        rows.append([label, *(percent(mean) for mean in means), str(came)])
    rows.sort(key=lambda row: -int(row[-1]))
    head = ["", *(f"after {plural(rung.tasks, 'task')}" for rung in rungs), "rungs"]
    return Figure(
        title="Every candidate, as far as it came",
        caption="Mean Final over seeds at each rung. Lines that end were left behind there; Final falls as more must be kept.",
        plot=_plot(rungs),
        table=Table("Mean Final in per cent at each rung.", head, rows),
    )


def _plot(rungs: "Sequence[Rung]") -> Plot:
    data: list[Plot] = []
    winner = next(iter(rungs[-1].finals))
    for label in rungs[0].finals:
        points = [(rung.tasks, mean) for rung in rungs if (mean := rung.means.get(label)) is not None]
        last = label in rungs[-1].finals
        colour = "#c2410c" if label == winner else "#2563eb" if last else "rgba(120,120,120,0.45)"
        data.append(
            {
                "type": "scatter",
                "x": [tasks for tasks, _ in points],
                "y": [round(100 * mean, 3) for _, mean in points],
                "mode": "lines+markers",
                "line": {"color": colour, "width": 3 if label == winner else 1.5},
                "marker": {"size": 5},
                "name": inert(label),
                "showlegend": last and len(rungs[-1].finals) <= 8,
                "hovertemplate": f"{inert(label)}<br>after %{{x}} tasks: %{{y:.1f}} %<extra></extra>",
            }
        )
    return {
        "data": data,
        "layout": {
            "height": 420,
            "margin": {"l": 56, "r": 12, "t": 12, "b": 48},
            "xaxis": {"title": {"text": "tasks learnt"}, "tickvals": [rung.tasks for rung in rungs]},
            "yaxis": {"title": {"text": "mean Final, %"}, "rangemode": "tozero"},
            "legend": {"orientation": "h", "y": -0.2},
        },
    }

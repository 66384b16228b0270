"""From no mechanism to the best combination, one mechanism at a time."""

from collections.abc import Sequence

from perdure.methods import Method
from perdure.reporting.page import Block, Section, Table, Text
from perdure.reporting.results import MethodResult
from perdure.reporting.wording import NOT_DEFINED, listing


def greedy_path(methods: Sequence[MethodResult]) -> list[MethodResult]:
    """Begin at naive, and take again and again the measured method that has one mechanism more and the best mean Final, as
    long as it is better than the last. Empty without a naive run.

    The methods are independent runs: the path compares their ends, and no learner ever went along it.
    """
    by_mechanisms = {}
    for method in methods:
        parsed = Method.parse(method.runs[0].settings["method"])
        if method.over_seeds.final and method.name == parsed.name:  # a variant with other settings is another comparison
            by_mechanisms[frozenset(parsed.mechanisms)] = method
    path = [by_mechanisms[frozenset()]] if frozenset() in by_mechanisms else []
    while path:
        here = frozenset(Method.parse(path[-1].name).mechanisms)
        further = [method for there, method in by_mechanisms.items() if here < there and len(there) == len(here) + 1]
        best = max(further, key=_final, default=None)
        if best is None or _final(best) <= _final(path[-1]):
            break
        path.append(best)
    return path


def greedy_path_section(methods: Sequence[MethodResult]) -> Section | None:
    """The path as a table; None where it has no step."""
    path = greedy_path(methods)
    if len(path) < 2:
        return None
    rows = []
    for place, method in enumerate(path):
        before = path[place - 1] if place else None
        mechanisms = Method.parse(method.name).mechanisms
        added = listing(set(mechanisms) - set(Method.parse(before.name).mechanisms)) if before else NOT_DEFINED
        gain = f"{100 * (_final(method) - _final(before)):+.1f}" if before else NOT_DEFINED
        spread = method.over_seeds.final
        rows.append([method.name, added, spread.percent() if spread else NOT_DEFINED, gain, str(len(method.runs))])
    blocks: list[Block] = [
        Text(
            "Each line adds the one mechanism that raises the mean Final most. The lines are runs made apart from each other, "
            "not stages of one: read the gains as differences between methods."
        ),
        Table("Mean Final in per cent, ± sample standard deviation.", ["", "added", "Final", "gain", "n"], rows),
    ]
    return Section("The best additions, one by one", blocks)


def _final(method: MethodResult) -> float:
    spread = method.over_seeds.final
    assert spread is not None
    return spread.mean

"""Print an experiment's measures as the Markdown table that docs/results.md shows.

perdure run demo --seed 0 --seed 1 --seed 2
python benchmarks/markdown_table.py results/demo
"""

import argparse
from pathlib import Path

from perdure.experiments.report import load_runs
from perdure.reporting.results import by_method


def main() -> None:
    """One row a method, best mean Final first; mean ± sample standard deviation over n seeds."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("directory", type=Path)
    methods = by_method(load_runs(parser.parse_args().directory))
    print("| method | Final % | Diag % | Forget % | half-life | seconds a task | state, MB | n |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for method in methods:
        whole = method.over_seeds
        measured = [spread.percent() if spread else "–" for spread in (whole.final, whole.diagonal, whole.forgetting)]
        seconds = sorted(run.total("seconds") / len(run.matrix) for run in method.runs)[(len(method.runs) - 1) // 2]
        state = max(run.costs[-1]["state_bytes"] for run in method.runs) / 1e6
        cells = [method.name, *measured, whole.half_life_text, f"{seconds:.1f}", f"{state:.2f}", str(len(method.runs))]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

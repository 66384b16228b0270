"""Runs read from directories, grouped by method, and written as tables."""

import json
import statistics
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas
import pytest

from perdure.errors import InputError
from perdure.reporting import RunResult
from perdure.reporting.results import by_method, tidy, write_results
from perdure.retention import RetentionMatrix

Maker = Callable[..., Path]


def test_a_learners_directory_is_read_whole(make_run: Maker) -> None:
    directory = make_run("my-learner", tasks=4, skipped=(2,), seed=7)
    run = RunResult.load(directory)
    assert (run.method, run.seed) == ("replay+merge", 7)
    assert run.model == "smollm2-135m · float32 · weights 5f0c1f2e9d7b"
    assert run.matrix.task_names == ("symbol-001", "symbol-002", "symbol-003", "symbol-004")
    row = json.loads((directory / "rows/0004.json").read_text())["scores"]
    assert run.matrix.to_rows()[3] == row
    assert run.matrix.to_rows()[1] == [None] * 4
    assert len(run.costs) == 4 and run.costs[2]["task"] == 3
    assert [line["task"] for line in run.log] == [1] * 4 + [2] * 4 + [3] * 4 + [4] * 4
    assert run.settings["training"]["epochs"] == 10  # defaults are filled in
    assert run.questions == (20,) * 4 and run.format_rate == 1.0
    assert run.total("tokens", "trained") == 4 * 30 * 8 * 24
    assert [audit["task"] for audit in run.audits()] == [2, 3, 4]


def test_an_experiments_run_is_named_by_its_folder(make_run: Maker) -> None:
    """Two variants of one method stay apart."""
    assert RunResult.load(make_run("runs/replay-hot/seed-41", method="replay", seed=41)).method == "replay-hot"
    assert RunResult.load(make_run("runs/replay-hot/other", method="replay", seed=41)).method == "replay"


def test_what_was_not_committed_is_not_read(make_run: Maker) -> None:
    """A kill after task 4's costs and before its state leaves three tasks."""
    directory = make_run("killed", tasks=4)
    (directory / "state/0004").rmdir()
    run = RunResult.load(directory)
    assert len(run.matrix) == len(run.costs) == len(run.questions) == 3
    assert max(line["task"] for line in run.log) == 3


def test_a_last_checkpoint_that_was_not_asked(make_run: Maker) -> None:
    run = RunResult.load(make_run("unasked", tasks=3, skipped=(3,)))
    assert run.measures.final is None and run.format_rate is None and run.final_over_questions() is None
    assert run.questions == (0, 0, 0)


def test_bad_directories_are_refused(tmp_path: Path, make_run: Maker) -> None:
    with pytest.raises(InputError, match="doesn't exist"):
        RunResult.load(tmp_path / "nothing")
    empty = make_run("empty", tasks=1)
    (empty / "state/0001").rmdir()
    with pytest.raises(InputError, match="has learnt nothing yet"):
        RunResult.load(empty)
    damaged = make_run("damaged")
    (damaged / "logs/0001.jsonl").write_text('{"task": 1,')
    with pytest.raises(InputError, match=r"0001\.jsonl is damaged"):
        RunResult.load(damaged)


def test_a_run_without_logs_has_no_training_curve(make_run: Maker) -> None:
    directory = make_run("quiet", tasks=1)
    (directory / "logs/0001.jsonl").unlink()
    assert RunResult.load(directory).log == []


def test_methods_are_ranked_by_mean_final_and_show_their_median_seed(make_experiment: Callable[..., list[Path]]) -> None:
    runs = [RunResult.load(path) for path in make_experiment(("naive", "replay+merge"), (43, 41, 42), tasks=8)]
    best, worst = by_method(runs)
    assert (best.name, worst.name) == ("replay+merge", "naive")
    assert [run.seed for run in best.runs] == [41, 42, 43]
    finals = {run.seed: run.measures.final for run in best.runs}
    assert best.median_run.measures.final == statistics.median(finals.values())
    assert best.over_seeds.final.mean == pytest.approx(statistics.mean(finals.values()))
    assert best.over_seeds.final.std == pytest.approx(statistics.stdev(finals.values()))


def test_seeds_that_are_not_equally_far_are_compared_over_what_they_share(make_run: Maker) -> None:
    runs = [
        RunResult.load(make_run(f"runs/m/seed-{seed}", method="merge", seed=seed, tasks=tasks))
        for seed, tasks in ((1, 5), (2, 3))
    ]
    (method,) = by_method(runs)
    assert method.tasks == 3 and [measure.tasks for measure in method.measures] == [3, 3]
    assert method.measures[0].final == pytest.approx(sum(runs[0].matrix.to_rows()[2][:3]) / 3)


def test_one_run_twice_is_refused(make_run: Maker) -> None:
    run = RunResult.load(make_run("twice"))
    with pytest.raises(InputError, match="both replay\\+merge with seed 41"):
        by_method([run, run])
    with pytest.raises(InputError, match="at least one run"):
        by_method([])


def test_tables_load_with_pandas(tmp_path: Path, make_experiment: Callable[..., list[Path]]) -> None:
    runs = [RunResult.load(path) for path in make_experiment(("naive", "replay+merge"), (41, 42), tasks=5)]
    assert write_results(runs, tmp_path) == ["results.csv", "results.json", "matrix.csv", "matrix.json"]
    table = pandas.read_csv(tmp_path / "results.csv")
    assert list(table.method) == ["naive", "naive", "replay+merge", "replay+merge"] and list(table.seed) == [41, 42, 41, 42]
    assert table.final[2] == runs[2].measures.final
    assert table.half_life.isna().sum() == sum(run.measures.half_life is None for run in runs)
    assert json.loads((tmp_path / "results.json").read_text(), parse_constant=pytest.fail) == tidy(runs)
    scores = pandas.read_csv(tmp_path / "matrix.csv")
    assert len(scores) == 4 * 15
    last = scores[(scores.method == "replay+merge") & (scores.seed == 42) & (scores.after_task == 5)]
    assert last.score.mean() == pytest.approx(runs[3].measures.final)
    assert json.loads((tmp_path / "matrix.json").read_text())[3]["scores"] == runs[3].matrix.to_rows()


def test_one_runs_matrix_is_a_matrix_file(tmp_path: Path, make_run: Maker) -> None:
    run = RunResult.load(make_run("one", skipped=(2,)))
    assert write_results([run], tmp_path) == ["matrix.csv", "matrix.json"]
    assert (
        RetentionMatrix.read_csv(tmp_path / "matrix.csv") == RetentionMatrix.read_json(tmp_path / "matrix.json") == run.matrix
    )


def test_the_interval_over_questions_holds_final_inside(make_run: Maker) -> None:
    run = RunResult.load(make_run("one", tasks=5, items=50))
    low, high = run.final_over_questions()
    assert low < run.measures.final < high and high - low < 0.12


def test_reading_results_loads_nothing_heavy() -> None:
    code = (
        "import sys, perdure.reporting; "
        "print(sorted({n.split('.')[0] for n in sys.modules} & {'torch','matplotlib','plotly','pandas','jinja2'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"

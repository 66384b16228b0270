"""Task-level successive halving: the budget, the ranking, runs that continue, kills, and the winners trained anew."""

import json
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.experiments.candidates import Candidates
from perdure.experiments.grid import run_experiment
from perdure.experiments.halving import Ladder, agreement, halved, ranked, survivors
from perdure.experiments.report import report_directory
from perdure.experiments.runs import learnt_in
from perdure.experiments.search import load_rungs, run_search
from perdure.experiments.search_spec import Search, load_search
from perdure.learning.directory import LearnerDirectory

SPEC = {
    "model": "tiny",
    "stream": {"kind": "symbol", "tasks": 4, "items": 4},
    "candidates": {
        "weight_anchor": ["none", "si"],
        "distillation": ["none"],
        "replay": ["none"],
        "allocation": ["shared", "merge"],
    },
    "rungs": [1, 2, 4],
    "keep": [3, 2],
    "seeds": [0, 1],
    "order": 7,
    "training": {"epochs": 6, "batch_size": 4, "learning_rate": 3e-3},
    "adapter": {"rank": 4, "alpha": 8},
    "asking": {"max_new_tokens": 12},
    "final": {"winners": 1, "beside": ["naive"], "seeds": [5]},
}


def search(**changes: object) -> Search:
    return Search.model_validate({**SPEC, **changes})


def contents(directory: Path) -> dict[str, bytes]:
    kept = [path for folder in ("state", "tasks", "logs") for path in (directory / folder).rglob("*")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept if path.is_file()}


def test_the_papers_budget() -> None:
    ladder = Ladder((10, 20, 50, 100), (90, 45, 23, 10))
    assert (ladder.config_tasks, ladder.exhaustive) == (2540, 9000)


def test_the_papers_candidates() -> None:
    entries = list(Candidates().methods())
    assert len(entries) == len({entry.name for entry in entries}) == 90
    assert {entry.method.count("replay") for entry in entries} == {0, 1}
    hot = next(entry for entry in entries if entry.name == "ewc+sd(weight=3)+replay(weight=0.5,sampling_temperature=1)+merge")
    assert hot.replay.weight == 0.5 and hot.replay.sampling_temperature == 1.0 and hot.distillation.weight == 3.0
    assert load_search("paper/search").ladder.candidates == (90, 45, 23, 10)


def test_candidates_keep_the_searchs_other_settings() -> None:
    chosen = search(
        candidates={"replay": [{"weight": 0.5}], "distillation": ["none"], "weight_anchor": ["none"]},
        keep=[2, 1],
        replay={"samples": 11},
    )
    assert {(run.settings.replay.samples, run.settings.replay.weight) for run in chosen.trials().runs()} == {(11, 0.5)}


def test_ranking_and_survivors() -> None:
    scores = {"a": 0.2, "b": None, "c": 0.9, "d": 0.2, "e": 0.0}
    assert ranked(scores) == ["c", "a", "d", "e", "b"]
    assert survivors(ranked(scores), 2, scores) == ["c", "a"]
    assert survivors(ranked(scores), 9, scores) == ["c", "a", "d", "e"]  # who failed never goes on
    assert halved(90, 4) == (90, 45, 23, 12)


def test_agreement_of_rungs() -> None:
    early = {"a": 0.9, "b": 0.8, "c": 0.1, "d": 0.5, "e": None}
    assert agreement(early, {"a": 0.5, "b": 0.4, "c": 0.1}) == (pytest.approx(1.0), 3)
    assert agreement(early, {"a": 0.1, "b": 0.4, "c": 0.5, "e": 0.3}) == (pytest.approx(-1.0), 3)
    assert agreement(early, {"a": 0.5, "b": 0.4}) == (None, 2)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"rungs": [2, 2]}, "rungs must rise"),
        ({"keep": [3]}, "needs 2 numbers and has 1"),
        ({"keep": [3, 4]}, "keep can't grow"),
        ({"order": 0}, "the order of the search"),
        ({"methods": ["naive"]}, "keep one of them"),
        ({"seeds": [1, 1]}, "given twice"),
        ({"candidates": {"weight_anchor": ["sl"]}}, "use none, si or ewc"),
        ({"candidates": {"replay": ["weak"]}}, "replay has 'weak'"),
    ],
)
def test_what_makes_no_search(changes: dict, said: str, tmp_path: Path) -> None:
    path = tmp_path / "search.yaml"
    path.write_text(json.dumps({**SPEC, **changes}))
    with pytest.raises(InputError, match=said):
        load_search(path)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The search from beginning to end."""
    output = tmp_path_factory.mktemp("search") / "out"
    assert len(run_search(search(), output)) == 1
    return output


def test_the_rungs(whole: Path) -> None:
    rungs = load_rungs(whole)
    assert [len(rung.finals) for rung in rungs] == [4, 3, 2] and [rung.config_tasks for rung in rungs] == [4, 3, 4]
    for earlier, later in pairwise(rungs):
        assert list(earlier.finals)[: len(later.finals)] == earlier.kept
        assert set(later.finals) == set(earlier.kept)
    for rung in rungs:
        means = [mean for mean in rung.means.values() if mean is not None]
        assert means == sorted(means, reverse=True)
        for label, finals in rung.finals.items():
            for seed, final in zip((0, 1), finals, strict=True):
                row = LearnerDirectory.open(whole / f"trials/runs/{label}/seed-{seed}-order-7").row(rung.tasks)
                assert row is not None and final == pytest.approx(sum(row.scores) / rung.tasks)  # type: ignore[arg-type]


def test_a_promoted_run_continues_from_its_checkpoint(whole: Path, tmp_path: Path) -> None:
    """It ends in the same bits as one that was never interrupted, and one left behind stands where it was left."""
    label = next(iter(load_rungs(whole)[-1].finals))
    trials = search().trials()
    only = trials.model_copy(update={"methods": tuple(entry for entry in trials.methods if entry.name == label)})
    run_experiment(only, tmp_path / "straight")
    for seed in (0, 1):
        place = f"runs/{label}/seed-{seed}-order-7"
        assert contents(whole / "trials" / place) == contents(tmp_path / "straight" / place)
    (dropped,) = set(load_rungs(whole)[0].finals) - set(load_rungs(whole)[0].kept)
    assert learnt_in(whole / f"trials/runs/{dropped}/seed-0-order-7") == 1


def test_the_winner_is_trained_anew_on_another_order(whole: Path) -> None:
    winner = next(iter(load_rungs(whole)[-1].finals))
    final = LearnerDirectory.open(whole / f"final/runs/{winner}/seed-5")
    trial = LearnerDirectory.open(whole / f"trials/runs/{winner}/seed-0-order-7")
    assert final.task_names() != trial.task_names() and sorted(final.task_names()) == sorted(trial.task_names())
    assert (whole / "final/runs/naive/seed-5").is_dir()


def test_the_record(whole: Path) -> None:
    record = json.loads((whole / "search.json").read_text())
    budget = record["budget"]
    assert (budget["config_tasks"], budget["exhaustive_config_tasks"], budget["seeds"]) == (11, 16, 2)
    assert budget["seconds"] > 0 and budget["tokens"] > 0 and budget["state_bytes"] > 0
    assert [line["comparable"] for line in record["agreement"]] == [2, 2]
    lines = (whole / "search.csv").read_text().splitlines()
    assert len(lines) == 1 + 4 + 3 + 2 and lines[0].startswith("rung,tasks,rank,candidate")


def test_the_page_shows_the_search(whole: Path) -> None:
    page = report_directory(whole)["page"].read_text()
    assert "The search" in page and "config-tasks" in page and "Spearman" in page


def test_killed_and_gone_on_with(whole: Path, tmp_path: Path) -> None:
    """A kill in the second rung costs no finished task, and changes nothing."""
    spec, output = tmp_path / "search.yaml", tmp_path / "out"
    spec.write_text(json.dumps(SPEC))
    command = [sys.executable, "-m", "perdure", "search", str(spec), "--output", str(output), "--track", "none"]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL) as process:
        begun = time.monotonic()
        while not any(learnt_in(path.parent) >= 2 for path in output.glob("trials/runs/*/*/learner.json")):
            assert process.poll() is None and time.monotonic() - begun < 120
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    stamps = {path: path.stat().st_mtime_ns for path in output.glob("trials/runs/*/*/tasks/*.jsonl")}
    run_search(search(), output)
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert [rung.finals for rung in load_rungs(output)] == [rung.finals for rung in load_rungs(whole)]
    for path in (whole / "trials/runs").glob("*/*"):
        assert contents(path) == contents(output / "trials" / path.relative_to(whole / "trials"))


def test_another_search_in_the_same_place(whole: Path) -> None:
    with pytest.raises(InputError, match="holds another search: its keep is not this one's"):
        run_search(search(keep=[2, 1]), whole)


def test_a_stream_too_short(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="the last rung is at 9 tasks, and the stream has 4"):
        run_search(search(rungs=[1, 2, 9]), tmp_path / "out")
    assert not (tmp_path / "out").exists()

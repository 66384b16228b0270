"""Measures against given cases, matrices worked out by hand, and the standard library."""

import json
import random
import statistics
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.retention import RetentionMatrix, Spread, measures, over_seeds, summary

CASES = json.loads((Path(__file__).parents[1] / "cases" / "retention.json").read_text(encoding="utf-8"))["cases"]
matrix = RetentionMatrix.from_rows


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{len(case['matrix'])} tasks")
def test_given_cases(case: dict) -> None:
    found = summary(matrix(case["matrix"]))
    close = lambda value: pytest.approx(value, abs=1e-12) if value is not None else None  # noqa: E731
    assert found.final == close(case["final"])
    assert found.diagonal == close(case["diagonal"])
    assert found.forgetting == close(case["forgetting"])
    assert found.retention_by_age == close(tuple(case["retention_by_age"]))
    assert found.half_life == case["half_life"]
    for k, value in case["window"].items():
        assert found.windows[int(k) - 1] == measures.window(matrix(case["matrix"]), int(k)) == close(value)


def test_by_hand() -> None:
    """Four tasks. Task 2 has its best moment after task 3, so Forget isn't Diag minus Final."""
    m = matrix([[1.0, 0.125, None, None], [0.5, 0.5, 0.25, None], [0.25, 0.75, 1.0, 0.0], [0.0, 0.25, 0.5, 1.0]])
    found = summary(m)
    assert found.final == (0.0 + 0.25 + 0.5 + 1.0) / 4
    assert found.diagonal == 3.5 / 4
    assert found.forgetting == pytest.approx((1.0 + 0.5 + 0.5) / 3)
    assert found.retention_by_age == pytest.approx((3.5 / 4, 1.75 / 3, 0.25, 0.0))
    assert found.half_life == 2
    assert found.half_life_text == "2"
    assert found.windows == (1.0, 0.75, pytest.approx(1.75 / 3), 0.4375)
    assert found.forward_transfer == 0.125
    assert measures.half_life(m) == 2


def test_half_life_needs_less_than_half_and_is_shown_as_such() -> None:
    assert measures.half_life_of([1.0, 0.5]) is None
    assert measures.half_life_of([1.0, 0.5, 0.499]) == 2
    assert measures.half_life_of([1.0, None, 0.4]) == 2
    assert measures.half_life_text([1.0, 0.9, 0.8]) == "> 2"
    assert measures.half_life_text([1.0, 0.9, None]) == "> 1"  # age 2 was never asked
    assert measures.half_life_text([1.0]) == "> 0"
    assert measures.half_life_text([0.0, 0.0]) == "–"
    assert measures.half_life_text([None, 0.5]) == "–"
    assert measures.half_life_text([]) == "–"


def test_skipped_checkpoints() -> None:
    """A learner that was not asked after task 2: only what needs that row is undefined."""
    found = summary(matrix([[0.75], [], [0.5, 0.25, 1.0]]))
    assert found.final == pytest.approx(1.75 / 3)
    assert found.diagonal is None
    assert found.forgetting is None  # task 2's score when it was new is unknown
    assert found.retention_by_age == (0.875, 0.25, 0.5)
    assert found.half_life == 1
    assert found.forward_transfer is None


def test_forgetting_skips_checkpoints_between() -> None:
    assert measures.forgetting(matrix([[0.5], [None, 0.5], [0.25, 0.25, None]])) == 0.25


def test_a_last_checkpoint_that_was_not_asked() -> None:
    found = summary(matrix([[1.0], [0.5, 0.5], []]))
    assert found.final is found.diagonal is found.forgetting is None
    assert found.windows == (None, None, None)
    assert found.retention_by_age == (0.75, 0.5, None)
    partly = summary(matrix([[1.0], [None, 0.5]]))
    assert partly.final is None and partly.windows == (0.5, None)


def test_no_task_at_all() -> None:
    found = summary(matrix([]))
    assert found.final is found.diagonal is found.forgetting is found.half_life is found.forward_transfer is None
    assert found.retention_by_age == found.windows == ()
    assert found.half_life_text == "–"


@pytest.mark.parametrize("k", [0, 3, -1])
def test_windows_outside_the_matrix_are_refused(k: int) -> None:
    with pytest.raises(InputError, match=f"window of {k} tasks"):
        measures.window(matrix([[1.0], [1.0, 1.0]]), k)


def random_matrix(seed: int, tasks: int = 6) -> RetentionMatrix:
    draw = random.Random(seed)
    return matrix([[draw.random() for _ in range(i + 1)] for i in range(tasks)])


def test_over_seeds_is_the_sample_standard_deviation() -> None:
    found = [summary(random_matrix(seed)) for seed in (41, 42, 43)]
    whole = over_seeds(found)
    for name in ("final", "diagonal", "forgetting"):
        values = [getattr(measure, name) for measure in found]
        spread = getattr(whole, name)
        assert spread.mean == pytest.approx(statistics.mean(values))
        assert spread.std == pytest.approx(statistics.stdev(values))
        assert (spread.smallest, spread.largest, spread.n) == (min(values), max(values), 3)
    oldest = [measure.retention_by_age[5] for measure in found]
    assert whole.retention_by_age[5].std == pytest.approx(statistics.stdev(oldest))
    assert whole.windows[1].mean == pytest.approx(statistics.mean(measure.windows[1] for measure in found))
    assert whole.forward_transfer is None and whole.seeds == 3 and whole.tasks == 6


def test_one_seed_has_no_spread() -> None:
    whole = over_seeds([summary(random_matrix(1))])
    assert whole.final.std is None and whole.final.n == 1
    assert "±" not in whole.final.percent()


def test_spread_as_text() -> None:
    assert Spread.of([0.1, 0.2, 0.3]).percent() == "20.0 ± 10.0"
    assert Spread.of([None, 0.25]).percent() == "25.0"
    assert Spread.of([None, 0.25]).n == 1
    assert Spread.of([None]) is None


def test_half_life_over_seeds_is_that_of_the_mean_curve() -> None:
    """One seed never falls below half; the mean of (1, .4, .1) and (1, .8, .6) does at age 2."""
    fast, slow = matrix([[1], [0.4, 1], [0.1, 0.4, 1]]), matrix([[1], [0.8, 1], [0.6, 0.8, 1]])
    whole = over_seeds([summary(fast), summary(slow)])
    assert [summary(fast).half_life, summary(slow).half_life, whole.half_life] == [1, None, 2]
    assert whole.half_life_text == "2"


def test_seeds_of_different_length_are_refused() -> None:
    with pytest.raises(InputError, match="2 and 3 tasks"):
        over_seeds([summary(random_matrix(1, 3)), summary(random_matrix(2, 2))])
    with pytest.raises(InputError, match="no seed"):
        over_seeds([])


def test_bootstrap_interval_is_repeatable_and_covers() -> None:
    """For n fair coin questions the percentile interval is close to mean ± 1.96 sqrt(p(1-p)/n)."""
    answers = [1] * 200 + [0] * 200
    low, high = measures.bootstrap_interval(answers, seed=7)
    assert (low, high) == measures.bootstrap_interval(answers, seed=7)
    scattered = [draw / 97 for draw in range(97)]
    assert measures.bootstrap_interval(scattered, seed=7) != measures.bootstrap_interval(scattered, seed=8)
    half = 1.96 * (0.25 / 400) ** 0.5
    assert low == pytest.approx(0.5 - half, abs=0.005) and high == pytest.approx(0.5 + half, abs=0.005)
    narrow = measures.bootstrap_interval(answers, level=0.5)
    assert low < narrow[0] < 0.5 < narrow[1] < high
    assert measures.bootstrap_interval([0.25, 0.25]) == (0.25, 0.25)


@pytest.mark.parametrize("values", [[], [0.5], [0.5, float("nan")]])
def test_bootstrap_needs_two_finite_values(values: list) -> None:
    with pytest.raises(InputError, match="at least two finite values"):
        measures.bootstrap_interval(values)


@pytest.mark.parametrize("wrong", [{"level": 1.0}, {"level": 0.0}, {"resamples": 0}])
def test_bootstrap_refuses_impossible_settings(wrong: dict) -> None:
    with pytest.raises(InputError, match="level between 0 and 1"):
        measures.bootstrap_interval([0.0, 1.0], **wrong)

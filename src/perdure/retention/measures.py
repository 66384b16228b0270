"""Measures over the retention matrix.

Source: the continual-memorisation paper (arXiv 2609.06986), measures. Rows are checkpoints i, columns tasks j <= i, T the
number of tasks. A checkpoint that was not asked leaves nan in the matrix; each function says what it then does, and returns
None where its equation has no value.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from perdure.errors import InputError
from perdure.retention.matrix import RetentionMatrix

Curve = tuple[float | None, ...]


def final(matrix: RetentionMatrix) -> float | None:
    """Final = mean_j M[T, j]: what is left of everything. None unless the last checkpoint was asked every task."""
    return window(matrix, len(matrix)) if len(matrix) else None


def diagonal(matrix: RetentionMatrix) -> float | None:
    """Diag = mean_j M[j, j]: how well each task was learnt. None unless every task was asked right after it was learnt."""
    return _mean_of_all(np.diagonal(matrix.scores))


def forgetting(matrix: RetentionMatrix) -> float | None:
    """Forget = mean_{j<T} ( max_{j<=i<=T} M[i, j] - M[T, j] ): what was lost since each task's best moment.

    None for one task, or unless every task j < T was asked after task T and right after it was learnt. Checkpoints between that
    were not asked are left out of the maximum, so that the value is then a lower bound.
    """
    scores, last = matrix.scores, len(matrix) - 1
    if last < 1 or np.isnan(scores[last, :last]).any() or np.isnan(np.diagonal(scores)[:last]).any():
        return None
    return float(np.mean([np.nanmax(scores[j:, j]) - scores[last, j] for j in range(last)]))


def retention_by_age(matrix: RetentionMatrix) -> Curve:
    """R(a) = mean over all i - j = a of M[i, j], for the ages a = 0 … T-1 (tasks learnt since).

    The mean is over the entries that were asked; None for an age at which none was.
    """
    curve = []
    for age in range(len(matrix)):
        entries = np.diagonal(matrix.scores, offset=-age)
        curve.append(_mean_of_all(entries[~np.isnan(entries)]))
    return tuple(curve)


def half_life(matrix: RetentionMatrix) -> int | None:
    """The first age a with R(a) < R(0)/2, in tasks. None if retention never falls below half (or R(0) was not asked)."""
    return half_life_of(retention_by_age(matrix))


def half_life_of(curve: Sequence[float | None]) -> int | None:
    """The first age a with R(a) < R(0)/2 on a given curve R. Ages that were not asked (None) are passed over."""
    if not curve or curve[0] is None:
        return None
    half = curve[0] / 2
    return next((age for age, retained in enumerate(curve) if retained is not None and retained < half), None)


def half_life_text(curve: Sequence[float | None]) -> str:
    """A half-life as people read it: ``7``; ``> 19`` if R never falls below half in the ages seen; ``–`` where R(0) was
    not asked or is zero, so that there is nothing to halve."""
    if not curve or not curve[0]:
        return "–"
    found = half_life_of(curve)
    oldest = max(age for age, retained in enumerate(curve) if retained is not None)
    return f"> {oldest}" if found is None else str(found)


def window(matrix: RetentionMatrix, k: int) -> float | None:
    """W(k) = mean of M[T, j] over the latest k tasks. None unless the last checkpoint was asked all of them.

    Raises
    ------
    InputError: k is not in 1 … T.
    """
    if not 1 <= k <= len(matrix):
        raise InputError(f"a window of {k} tasks was asked of {len(matrix)} tasks; give a number from 1 to {len(matrix)}.")
    return _mean_of_all(matrix.scores[-1, -k:])


def forward_transfer(matrix: RetentionMatrix) -> float | None:
    """mean_{j>1} M[j-1, j]: the score on a task right before it is learnt.

    The mean is over the tasks that were asked so; None if none was.
    """
    entries = np.diagonal(matrix.scores, offset=1) if len(matrix) else np.empty(0)
    return _mean_of_all(entries[~np.isnan(entries)])


def _mean_of_all(entries: NDArray[np.float64]) -> float | None:
    return float(entries.mean()) if entries.size and not np.isnan(entries).any() else None


@dataclass(frozen=True)
class Measures:
    """All measures of one matrix. retention_by_age[a]: R(a). windows[k-1]: W(k)."""

    tasks: int
    final: float | None
    diagonal: float | None
    forgetting: float | None
    retention_by_age: Curve
    half_life: int | None
    windows: Curve
    forward_transfer: float | None

    @property
    def half_life_text(self) -> str:
        """The half-life as people read it, ``> T-1`` if retention never fell below half."""
        return half_life_text(self.retention_by_age)


def summary(matrix: RetentionMatrix) -> Measures:
    """All measures of a matrix."""
    curve = retention_by_age(matrix)
    return Measures(
        tasks=len(matrix),
        final=final(matrix),
        diagonal=diagonal(matrix),
        forgetting=forgetting(matrix),
        retention_by_age=curve,
        half_life=half_life_of(curve),
        windows=tuple(window(matrix, k) for k in range(1, len(matrix) + 1)),
        forward_transfer=forward_transfer(matrix),
    )


@dataclass(frozen=True)
class Spread:
    """One measure over seeds: mean, SAMPLE standard deviation (divisor n-1; None for one seed), smallest, largest, and the n
    seeds for which the measure is defined. The standard deviation is no confidence interval."""

    mean: float
    std: float | None
    smallest: float
    largest: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float | None]) -> "Spread | None":
        """The spread of the defined values; None if there is none."""
        defined = [value for value in values if value is not None]
        if not defined:
            return None
        std = float(np.std(defined, ddof=1)) if len(defined) > 1 else None
        return cls(float(np.mean(defined)), std, min(defined), max(defined), len(defined))

    def percent(self) -> str:
        """``16.6 ± 5.8`` (mean ± sample standard deviation, in per cent), or ``16.6`` for one seed."""
        mean = f"{100 * self.mean:.1f}"
        return mean if self.std is None else f"{mean} ± {100 * self.std:.1f}"


@dataclass(frozen=True)
class SeedSummary:
    """The measures of one method over its seeds. half_life is that of the mean curve, since a mean of half-lives has no value
    when a seed never falls below half."""

    tasks: int
    seeds: int
    final: Spread | None
    diagonal: Spread | None
    forgetting: Spread | None
    retention_by_age: tuple[Spread | None, ...]
    half_life: int | None
    windows: tuple[Spread | None, ...]
    forward_transfer: Spread | None

    @property
    def mean_curve(self) -> Curve:
        """R(a), averaged over seeds."""
        return tuple(spread.mean if spread else None for spread in self.retention_by_age)

    @property
    def half_life_text(self) -> str:
        """The half-life of the mean curve as people read it."""
        return half_life_text(self.mean_curve)


def over_seeds(measures: Sequence[Measures]) -> SeedSummary:
    """Mean and sample standard deviation of every measure over the seeds of one method.

    Raises
    ------
    InputError: there is no seed, or the seeds have learnt different numbers of tasks.
    """
    lengths = sorted({measure.tasks for measure in measures})
    if len(lengths) != 1:
        found = f"seeds with {' and '.join(map(str, lengths))} tasks" if lengths else "no seed"
        raise InputError(f"measures over seeds need seeds of the same number of tasks, not {found}; cut them to one length.")
    curves = tuple(Spread.of(values) for values in zip(*(measure.retention_by_age for measure in measures), strict=True))
    return SeedSummary(
        tasks=lengths[0],
        seeds=len(measures),
        final=Spread.of([measure.final for measure in measures]),
        diagonal=Spread.of([measure.diagonal for measure in measures]),
        forgetting=Spread.of([measure.forgetting for measure in measures]),
        retention_by_age=curves,
        half_life=half_life_of([spread.mean if spread else None for spread in curves]),
        windows=tuple(Spread.of(values) for values in zip(*(measure.windows for measure in measures), strict=True)),
        forward_transfer=Spread.of([measure.forward_transfer for measure in measures]),
    )


def bootstrap_interval(
    values: ArrayLike, *, level: float = 0.95, resamples: int = 10_000, seed: int = 0
) -> tuple[float, float]:
    """Percentile bootstrap interval of the mean of ``values``: one value a seed, or one a question (1 right, 0 wrong).

    With B resamples of n values drawn with replacement, the (1-level)/2 and (1+level)/2 quantiles of their means. The seed
    makes it repeatable. Source: Efron and Tibshirani (1993), An Introduction to the Bootstrap, section 13.3.

    Raises
    ------
    InputError: fewer than two values, a value that is not finite, or a level outside ]0, 1[.
    """
    array = np.asarray(values, dtype=np.float64).ravel()
    if array.size < 2 or not np.isfinite(array).all():
        raise InputError(f"a bootstrap interval needs at least two finite values; {array.size} were given.")
    if not 0 < level < 1 or resamples < 1:
        raise InputError(f"a bootstrap interval needs a level between 0 and 1 and a resample, not {level} and {resamples}.")
    generator = np.random.default_rng(seed)
    means = [array[generator.integers(array.size, size=array.size)].mean() for _ in range(resamples)]
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(low), float(high)

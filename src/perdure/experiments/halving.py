"""Task-level successive halving: many candidates learn few tasks, and the better ones go on to more.

At rung r, C_r candidates have learnt n_r tasks each and are ranked by their mean Final over seeds; the best C_{r+1} continue
from their checkpoints to n_{r+1} tasks. The budget is counted in tasks learnt by one configuration with one seed:

    B = Σ_r C_r (n_r - n_{r-1})          against C_1 · n_R for learning everything to the end

Source: continual-memorisation protocol §7. The paper's 90 candidates with rungs 10/20/50/100 and survivors 45/23/10 make 2,540
against 9,000.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from scipy.stats import spearmanr


@dataclass(frozen=True)
class Ladder:
    """tasks: n_r, rising. candidates: C_r, of which the first is how many begin."""

    tasks: tuple[int, ...]
    candidates: tuple[int, ...]

    @property
    def config_tasks(self) -> int:
        """B, for one seed."""
        return sum(self.of_rung(rung) for rung in range(len(self.tasks)))

    def of_rung(self, rung: int) -> int:
        """What one rung (from 0) adds to B."""
        before = self.tasks[rung - 1] if rung else 0
        return self.candidates[rung] * (self.tasks[rung] - before)

    @property
    def exhaustive(self) -> int:
        """Tasks to be learnt if every candidate learnt all, for one seed."""
        return self.candidates[0] * self.tasks[-1]


def halved(candidates: int, rungs: int) -> tuple[int, ...]:
    """How many candidates are in each rung if the better half, rounded up, goes on after each."""
    counts = [candidates]
    while len(counts) < rungs:
        counts.append(math.ceil(counts[-1] / 2))
    return tuple(counts)


def ranked(scores: Mapping[str, float | None]) -> list[str]:
    """The candidates from best to worst; ties, and candidates that failed (None, at the end), stay in the order given."""
    return sorted(scores, key=lambda label: math.inf if (score := scores[label]) is None else -score)


def agreement(early: Mapping[str, float | None], late: Mapping[str, float | None]) -> tuple[float | None, int]:
    """Spearman's rank correlation of two rungs' scores over the candidates that both have.

    Returns
    -------
    The correlation, None where it is undefined (fewer than three candidates, or all alike); and the number of candidates.
    """
    both = [label for label in late if late[label] is not None and early.get(label) is not None]
    pairs = [[scores[label] for label in both] for scores in (early, late)]
    if len(both) < 3 or any(len(set(values)) < 2 for values in pairs):
        return None, len(both)
    return float(spearmanr(*pairs).statistic), len(both)


def survivors(ranking: Sequence[str], count: int, scores: Mapping[str, float | None]) -> list[str]:
    """The candidates that go on: the best ``count`` of those that have a score."""
    return [label for label in ranking if scores[label] is not None][:count]

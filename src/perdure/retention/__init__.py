"""What is left of each task after every later one: the retention matrix and its measures. Knows no torch."""

from perdure.retention.matrix import RetentionMatrix
from perdure.retention.measures import Measures, SeedSummary, Spread, over_seeds, summary

__all__ = ["Measures", "RetentionMatrix", "SeedSummary", "Spread", "over_seeds", "summary"]

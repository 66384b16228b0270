"""One named term of a step's loss."""

from dataclasses import dataclass

from torch import Tensor


@dataclass(frozen=True)
class Term:
    """``weight · value``. value: float32 scalar with its graph."""

    name: str
    weight: float
    value: Tensor

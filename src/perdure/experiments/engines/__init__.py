"""Where runs are computed: in this process, in several on this machine, or on a Ray cluster."""

from perdure.experiments.engines.engine import Engine, Failure
from perdure.experiments.engines.local import LocalEngine

__all__ = ["Engine", "Failure", "LocalEngine"]

"""Where a task's update is kept."""

from perdure.allocation.allocation import Allocation
from perdure.allocation.dense import DenseAllocation, ValueAllocation
from perdure.allocation.merged import MergedAllocation
from perdure.allocation.orthogonal import OrthogonalAllocation
from perdure.allocation.osrm import SequentialOSRMAllocation
from perdure.allocation.shared import SharedAllocation

ALLOCATIONS: dict[str, type[Allocation]] = {
    "shared": SharedAllocation,
    "merged": MergedAllocation,
    "orthogonal": OrthogonalAllocation,
    "osrm": SequentialOSRMAllocation,
    "full": DenseAllocation,
    "value": ValueAllocation,
}

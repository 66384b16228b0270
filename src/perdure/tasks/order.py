"""The orders in which a stream can be learnt, each named by a number."""

import torch

from perdure.randomness import generator
from perdure.tasks.task import TaskStream


def in_order(stream: TaskStream, order: int) -> TaskStream:
    """The stream's tasks in another order: 0 as they stand, any other number a permutation that it alone decides."""
    if order == 0:
        return stream
    places = torch.randperm(len(stream), generator=generator(order, "task order")).tolist()
    return TaskStream(stream.name, tuple(stream[place] for place in places))

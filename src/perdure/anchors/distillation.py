"""The function anchor: self-distillation (learning without forgetting) on the current task's texts.

    L_F = τ_F² / n · Σ KL( p_previous(· | prefix) ‖ p(· | prefix) )      over every target of the current sequences

Source: continual-memorisation protocol §2, "Function anchor"; Li & Hoiem 2016 for the idea. τ_F = 5, λ_F = 1. The teacher
is the model as the previous task left it, renewed at every task; it has no dropout, the student has.
"""

from torch import Tensor

from perdure.anchors.anchor import Anchor, TaskContext
from perdure.anchors.teacher import Teacher
from perdure.models.batches import Batch
from perdure.models.vocabulary import soft_target_kl
from perdure.settings import Distillation
from perdure.terms import Term


class DistillationAnchor(Anchor):
    """Holds the distributions that the previous model gives on the new task's texts."""

    def __init__(self, settings: Distillation) -> None:
        self._settings = settings
        self._teacher: Teacher | None = None

    def begin_task(self, task: TaskContext) -> None:
        self._head = task.model.head
        self._teacher = Teacher(task, task.texts) if task.number > 1 else None

    def function_loss(self, batch: Batch, hidden: Tensor) -> Term | None:
        if self._teacher is None:
            return None
        divergence = soft_target_kl(hidden, self._teacher.hidden(batch), self._head, self._settings.temperature)
        return Term("function", self._settings.weight, divergence)

    def end_task(self, task: TaskContext) -> None:
        self._teacher = None

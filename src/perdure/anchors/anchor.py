"""What every anchor is: something that holds old knowledge in place while a new task is learnt."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field

from torch import Tensor
from torch.nn import Parameter

from perdure.models.batches import Batch
from perdure.models.language_model import LanguageModel
from perdure.progress import Progress
from perdure.terms import Term


@dataclass(frozen=True)
class TaskContext:
    """What an anchor may see when a task begins and ends: this task and the model, never an earlier example.

    number: 1 for the first task, where every anchor is off. texts: the task's training sequences as token ids.
    parameters: what is trained, by name; float32. previous: a context in which the model is the previous task's model
    (evaluation mode, no dropout). batch_size: that of training.
    """

    number: int
    texts: Sequence[Sequence[int]]
    model: LanguageModel
    parameters: Mapping[str, Parameter]
    previous: Callable[[], AbstractContextManager[None]]
    seed: int
    batch_size: int
    progress: Progress = field(default_factory=Progress)


class Anchor:
    """An anchor acts at one of three places, and inherits a no-op at the others.

    - the data: :meth:`data_loss`, a share of the fitting loss (generative replay);
    - the function: :meth:`function_loss`, on the current batch's hidden states (self-distillation);
    - the weights: :meth:`weight_loss`, on the trained parameters (SI, online EWC).

    ``share`` is w in (1-w)·L_SFT + w·L_data: zero unless the anchor has a data loss in this task.
    """

    share: float = 0.0

    def begin_task(self, task: TaskContext) -> None:
        """Prepare for a task; called when the model is still the previous task's."""

    def data_loss(self) -> Term | None:
        """The anchor's own part of the fitting loss, on data of its own; its weight is ``share``."""

    def function_loss(self, batch: Batch, hidden: Tensor) -> Term | None:
        """A loss of the student's hidden states [n, width] at the current batch's predicting positions."""

    def weight_loss(self) -> Term | None:
        """A loss of the parameters alone."""

    def watches_fitting_gradient(self) -> bool:
        """Whether :meth:`after_fitting_gradient` must see the fitting loss's gradient apart from the others'."""
        return False

    def before_current_gradient(self) -> None:
        """Called when ``parameter.grad`` holds the gradients of the data losses alone; the current batch's comes next."""

    def after_fitting_gradient(self) -> None:
        """Called when every ``parameter.grad`` holds the gradient of the fitting loss and nothing else, unclipped."""

    def after_step(self) -> None:
        """Called after the optimiser has moved the parameters."""

    def end_task(self, task: TaskContext) -> None:
        """Take from the finished task what later tasks need; called before the update is merged away."""

    def state_dict(self) -> dict[str, Tensor]:
        """All that must last until the next task, as named tensors. Its size must not grow with the tasks."""
        return {}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` gave."""

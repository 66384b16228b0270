"""What every allocation rule is: which parameters carry a task's update, and where it is kept."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

from torch import Tensor
from torch.nn import Parameter

from perdure.models.language_model import LanguageModel
from perdure.settings import Sections
from perdure.terms import Term


class Allocation:
    """Trained parameters on a model, and what becomes of them between tasks.

    parameters: what is trained, float32, by name. Subclasses say how a task begins and ends, how the previous model is put in
    place, and what a checkpoint holds.
    """

    parameters: dict[str, Parameter]

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        self._model, self._settings, self._seed = model, settings, seed

    def begin_task(self, number: int) -> None:
        """Make the parameters ready for task ``number`` (1 for the first); the function is unchanged."""
        raise NotImplementedError

    def previous_model(self) -> AbstractContextManager[None]:
        """A context in which the model is what it was when the task began, in evaluation mode."""
        raise NotImplementedError

    def weight_loss(self) -> Term | None:
        """A penalty that the rule puts on the new parameters, where it has one."""
        return None

    def collect(self, texts: Sequence[Sequence[int]], batch_size: int) -> None:
        """Take from the finished task's texts what the rule needs later, before :meth:`end_task`."""

    def end_task(self) -> None:
        """Keep the finished task's update."""
        raise NotImplementedError

    def reset(self) -> None:
        """Be again as before the first task."""
        raise NotImplementedError

    def state_dict(self) -> dict[str, Tensor]:
        """What a checkpoint between two tasks holds."""
        raise NotImplementedError

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore what :meth:`state_dict` gave."""
        raise NotImplementedError

    def dense_weights(self) -> Iterator[tuple[str, Tensor]]:
        """The weights that differ from the base model's, by their plain names, in float32: what an export writes."""
        raise NotImplementedError

    @contextmanager
    def holding(self, values: Mapping[str, Tensor]) -> Iterator[None]:
        """The parameters hold other values inside the block, in evaluation mode.

        Their data is rebound, not copied over: a student's graph in the making keeps the tensors it has saved.
        """
        current = {name: parameter.data for name, parameter in self.parameters.items()}
        for name, parameter in self.parameters.items():
            parameter.data = values[name]
        try:
            with self.evaluation_mode():
                yield
        finally:
            for name, parameter in self.parameters.items():
                parameter.data = current[name]

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        """No dropout inside the block."""
        training = self._model.model.training
        self._model.model.eval()
        try:
            yield
        finally:
            self._model.model.train(training)

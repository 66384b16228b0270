"""What every allocation rule is: where the update of a task is kept."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor
from torch.nn import Parameter

from perdure.errors import InputError
from perdure.models.language_model import LanguageModel
from perdure.randomness import seeded
from perdure.settings import Sections
from perdure.terms import Term

ADAPTER = "default"  # PEFT's own name for a model's one adapter


class Allocation:
    """A low-rank adapter on a model, W + (alpha/rank) B A, and what becomes of it between tasks.

    Subclasses say how a task begins and ends, how the previous model is put in place, and what a checkpoint holds.
    """

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        """Inject PEFT's LoRA layers in place; the adapter's factors are float32 whatever the model's dtype.

        Raises
        ------
        InputError: ``adapter.targets`` names modules that the model doesn't have.
        """
        self._model, self._seed, adapter = model, seed, settings.adapter
        targets = adapter.targets if isinstance(adapter.targets, str) else list(adapter.targets)
        config = LoraConfig(
            r=adapter.rank, lora_alpha=adapter.alpha, lora_dropout=adapter.dropout, target_modules=targets, bias="none"
        )
        try:
            with seeded(seed, "injection"):  # PEFT draws factors here that begin_task draws again
                inject_adapter_in_model(config, model.model)
        except ValueError as error:
            raise InputError(f"adapter.targets: {targets} are not linear layers of {model.loaded.name} ({error}).") from error
        model.model.eval()  # the new layers' dropout too
        # Only linear layers (GPT-2's Conv1D included) carry B A in the form that merging and the anchors assume.
        self.layers: dict[str, LoraLayer] = {
            name: module for name, module in model.model.named_modules() if isinstance(module, LoraLayer)
        }
        self.parameters: dict[str, Parameter] = {}
        for name, layer in self.layers.items():
            if ADAPTER not in layer.lora_A:
                raise InputError(f"adapter.targets: {name} of {model.loaded.name} is not a linear layer; leave it out.")
            for factor, linear in (("lora_A", layer.lora_A[ADAPTER]), ("lora_B", layer.lora_B[ADAPTER])):
                linear.weight.data = linear.weight.data.float()
                self.parameters[f"{name}.{factor}"] = linear.weight

    def begin_task(self, number: int) -> None:
        """Make the adapter ready for task ``number`` (1 for the first)."""
        raise NotImplementedError

    def previous_model(self) -> AbstractContextManager[None]:
        """A context in which the model is what it was when the task began, in evaluation mode."""
        raise NotImplementedError

    def weight_loss(self) -> Term | None:
        """A penalty that the rule puts on the new factors, where it has one."""
        return None

    def collect(self, texts: Sequence[Sequence[int]], batch_size: int) -> None:
        """Take from the finished task's texts what the rule needs later; the adapter still holds the update."""

    def end_task(self) -> None:
        """Keep the finished task's update."""
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

    def draw_adapter(self, number: int) -> None:
        """A fresh adapter: A Kaiming-uniform by (seed, task), B zero, so that the function is unchanged."""
        with seeded(self._seed, number, "adapter"):
            for layer in self.layers.values():
                layer.reset_lora_parameters(ADAPTER, init_lora_weights=True)

    def delta(self, layer: LoraLayer) -> Tensor:
        """(alpha/rank) B A of one layer in float32, shaped as the layer's weight."""
        with torch.no_grad():
            return layer.get_delta_weight(ADAPTER)

    def enable(self, enabled: bool) -> None:
        """Switch the adapter on or off in every layer."""
        for layer in self.layers.values():
            layer.enable_adapters(enabled)

    @contextmanager
    def evaluation_mode(self) -> Iterator[None]:
        """No dropout inside the block."""
        training = self._model.model.training
        self._model.model.eval()
        try:
            yield
        finally:
            self._model.model.train(training)

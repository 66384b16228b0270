"""A low-rank adapter on a model, W + (alpha/rank) B A: what the LoRA allocation rules have in common."""

import torch
from peft import LoraConfig, inject_adapter_in_model
from peft.tuners.lora import LoraLayer
from torch import Tensor

from perdure.allocation.allocation import Allocation
from perdure.errors import InputError
from perdure.models.language_model import LanguageModel
from perdure.randomness import seeded
from perdure.settings import Sections

ADAPTER = "default"  # PEFT's own name for a model's one adapter


class AdapterAllocation(Allocation):
    """PEFT's LoRA layers in the model; the trained parameters are their factors.

    layers: the adapted layers, by the name of the layer in the base model.
    """

    def __init__(self, model: LanguageModel, settings: Sections, seed: int) -> None:
        """Inject the layers in place; the factors are float32 whatever the model's dtype.

        Raises
        ------
        InputError: ``adapter.targets`` names modules that the model doesn't have or that aren't linear.
        """
        super().__init__(model, settings, seed)
        adapter = settings.adapter
        targets = adapter.targets if isinstance(adapter.targets, str) else list(adapter.targets)
        config = LoraConfig(
            r=adapter.rank, lora_alpha=adapter.alpha, lora_dropout=adapter.dropout, target_modules=targets, bias="none"
        )
        try:
            with seeded(seed, "injection"):  # PEFT draws factors here that begin_task draws again
                inject_adapter_in_model(config, model.model)
        except ValueError as error:
            raise InputError(
                f"adapter.targets: {targets} can't be adapted in {model.loaded.name} ({error}); list linear layers by name, "
                "such as those of its attention."
            ) from error
        model.model.eval()  # the new layers' dropout too
        self.layers: dict[str, LoraLayer] = {
            name: module for name, module in model.model.named_modules() if isinstance(module, LoraLayer)
        }
        self.parameters = {}
        for name, layer in self.layers.items():
            if ADAPTER not in layer.lora_A:  # an embedding's factors are kept elsewhere and multiply otherwise
                raise InputError(f"adapter.targets: {name} of {model.loaded.name} is not a linear layer; leave it out.")
            if layer.get_base_layer() is model.head.linear:  # teacher and student share the head: nothing may train it
                raise InputError(f"adapter.targets: {name} is the output layer of {model.loaded.name}; leave it out.")
            for factor, linear in (("lora_A", layer.lora_A[ADAPTER]), ("lora_B", layer.lora_B[ADAPTER])):
                linear.weight.data = linear.weight.data.float()
                self.parameters[f"{name}.{factor}"] = linear.weight

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

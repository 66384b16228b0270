"""The weight anchors: both hold each trained scalar ϑ_i to its value ϑ*_i at the last task's end, by its importance Ω_i.

    R = Σ_i Ω_i (ϑ_i - ϑ*_i)²

They differ in how a finished task adds to Ω. State is two numbers a trained scalar, whatever the number of tasks.

Coordinate risk: importance is kept by name and position, as in the paper. Under merged allocation the factors are re-drawn
after every task, so Ω and ϑ* then speak of scalars whose meaning has changed.
"""

from collections.abc import Mapping

import torch
from torch import Tensor, nn
from torch.nn import Parameter
from transformers.pytorch_utils import Conv1D

from perdure.anchors.anchor import Anchor, TaskContext
from perdure.models.vocabulary import token_nll
from perdure.settings import OnlineEWC, SynapticIntelligence
from perdure.terms import Term


class ImportanceAnchor(Anchor):
    """Ω and ϑ*, the penalty they make, and their place in a checkpoint."""

    def __init__(self, name: str, weight: float) -> None:
        self._name, self._weight = name, weight
        self._parameters: Mapping[str, Parameter] = {}
        self.importance: dict[str, Tensor] = {}  # Ω: float32, shaped as the parameters; empty before the first task's end
        self.reference: dict[str, Tensor] = {}  # ϑ*

    def begin_task(self, task: TaskContext) -> None:
        self._parameters = task.parameters
        for state in (self.importance, self.reference):  # a checkpoint is read to main memory
            for name in state:
                state[name] = state[name].to(task.parameters[name].device)

    def weight_loss(self) -> Term | None:
        if not self.importance:
            return None
        penalty = sum(
            (self.importance[name] * (parameter - self.reference[name]).square()).sum()
            for name, parameter in self._parameters.items()
        )
        assert isinstance(penalty, Tensor)
        return Term(self._name, self._weight, penalty)

    def accumulate(self, parameters: Mapping[str, Parameter], added: Mapping[str, Tensor], decay: float = 1.0) -> None:
        """Ω ← decay·Ω + added, and ϑ* ← ϑ."""
        self.importance = {
            name: decay * self.importance[name] + value if self.importance else value.clone() for name, value in added.items()
        }
        self.reference = {name: parameter.detach().clone() for name, parameter in parameters.items()}

    def state_dict(self) -> dict[str, Tensor]:
        return {f"importance.{name}": value for name, value in self.importance.items()} | {
            f"reference.{name}": value for name, value in self.reference.items()
        }

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        self.importance = {key.removeprefix("importance."): v for key, v in state.items() if key.startswith("importance.")}
        self.reference = {key.removeprefix("reference."): v for key, v in state.items() if key.startswith("reference.")}


class SynapticIntelligenceAnchor(ImportanceAnchor):
    """Importance as the part a scalar played in lowering the fitting loss along the path of training.

        ω_i ← ω_i - g_i (ϑ_i' - ϑ_i)      at each step: g is the gradient of the fitting loss alone, before clipping and
                                           without any penalty; ϑ' - ϑ is the optimiser's real step, decay and all
        Ω_i ← Ω_i + max(0, ω_i) / (Δ_i² + ξ)      at a task's end; Δ is the task's net displacement

    Source: Zenke, Poole & Ganguli 2017; continual-memorisation protocol §2, "Weight anchors". λ_SI = 1, ξ = 0.1. With O-LoRA, g
    is the weighted gradient of the current batch's loss alone: the replay loss is left out (``current_data_only``).
    """

    def __init__(self, settings: SynapticIntelligence, *, current_data_only: bool = False) -> None:
        super().__init__("si", settings.weight)
        self._damping, self._current_data_only = settings.damping, current_data_only

    def begin_task(self, task: TaskContext) -> None:
        super().begin_task(task)
        self._start = [parameter.detach().clone() for parameter in self._parameters.values()]
        self._path = [torch.zeros_like(value) for value in self._start]  # ω
        self._gradient: list[Tensor] = []
        self._data_gradient: list[Tensor] = []
        self._before: list[Tensor] = []

    def watches_fitting_gradient(self) -> bool:
        return True

    def before_current_gradient(self) -> None:
        if self._current_data_only:
            self._data_gradient = self._gradients()

    def after_fitting_gradient(self) -> None:
        self._gradient = self._gradients()
        if self._current_data_only:
            torch._foreach_sub_(self._gradient, self._data_gradient)
        self._before = [parameter.detach().clone() for parameter in self._parameters.values()]

    def _gradients(self) -> list[Tensor]:
        return [p.grad.clone() if p.grad is not None else torch.zeros_like(p) for p in self._parameters.values()]

    def after_step(self) -> None:
        step = torch._foreach_sub([parameter.detach() for parameter in self._parameters.values()], self._before)
        torch._foreach_addcmul_(self._path, self._gradient, step, value=-1.0)

    def end_task(self, task: TaskContext) -> None:
        added = {
            name: path.clamp(min=0) / ((parameter.detach() - start).square() + self._damping)
            for (name, parameter), path, start in zip(task.parameters.items(), self._path, self._start, strict=True)
        }
        self.accumulate(task.parameters, added)


class OnlineEWCAnchor(ImportanceAnchor):
    """Importance as diagonal Fisher information, summed over tasks with a decay.

        F_i = mean over the task's sequences of (∂ mean NLL of the sequence / ∂ϑ_i)²      at a task's end, no dropout
        Ω ← γ Ω + F · (mean scalar of the first task's F / mean scalar of this F)

    so that every task adds as much as the first. Source: Schwarz et al. 2018; continual-memorisation protocol §2. γ = 1,
    weight 1000, no factor ½, at most 1,000 sequences.
    """

    def __init__(self, settings: OnlineEWC) -> None:
        super().__init__("ewc", settings.weight)
        self._decay, self._examples = settings.decay, settings.examples
        self._first_scale: float | None = None

    def end_task(self, task: TaskContext) -> None:
        fisher = diagonal_fisher(task, self._examples)
        scale = float(sum(value.sum(dtype=torch.float64) for value in fisher.values()))
        scale /= sum(value.numel() for value in fisher.values())
        if self._first_scale is None:
            self._first_scale = scale
        ratio = self._first_scale / scale if scale > 0 else 1.0
        self.accumulate(task.parameters, {name: value * ratio for name, value in fisher.items()}, self._decay)

    def state_dict(self) -> dict[str, Tensor]:
        state = super().state_dict()
        if self._first_scale is not None:
            state["first_scale"] = torch.tensor(self._first_scale, dtype=torch.float64)
        return state

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        super().load_state_dict(state)
        self._first_scale = float(state["first_scale"]) if "first_scale" in state else None


def diagonal_fisher(task: TaskContext, examples: int) -> dict[str, Tensor]:
    """Mean over sequences of the squared gradient of each sequence's mean NLL, exactly, one backward pass a batch.

    A trained parameter is the weight of a linear layer, y = x Wᵀ, so sequence b's gradient is Σ_t δ_btᵀ x_bt, with x the
    layer's input and δ the gradient at its output: both are there after one pass over the whole batch, since no sequence
    sees another. Memory: one layer's gradients for a batch, [batch, out, in].

    Returns
    -------
    float32 tensors by parameter name, shaped as the parameters.
    """
    model = task.model
    names = {id(parameter): name for name, parameter in task.parameters.items()}
    fisher = {name: torch.zeros_like(parameter) for name, parameter in task.parameters.items()}

    rows = (0, 0)  # sequences and tokens of the batch being looked at

    def watch(layer: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        name, entering = names[id(layer.weight)], inputs[0].detach()
        if entering.dim() == 2:  # OPT's feed-forward layers see all tokens in one row
            entering = entering.unflatten(0, rows)

        def square(leaving: Tensor) -> None:
            leaving = leaving.unflatten(0, rows) if leaving.dim() == 2 else leaving
            gradient = torch.einsum("bto,bti->boi", leaving.float(), entering.float())
            if isinstance(layer, Conv1D):  # GPT-2's weights are stored transposed
                gradient = gradient.transpose(1, 2)
            fisher[name].add_(gradient.square_().sum(dim=0))

        output.register_hook(square)

    layers = [layer for layer in model.model.modules() if id(getattr(layer, "weight", None)) in names]
    handles = [layer.register_forward_hook(watch) for layer in layers]
    sequences = task.texts[:examples]
    try:
        with task.progress.stage("importance", len(sequences)) as advance:
            for start in range(0, len(sequences), task.batch_size):
                index = range(start, min(start + task.batch_size, len(sequences)))
                batch = model.batch(sequences, index)
                rows = (batch.input_ids.shape[0], batch.input_ids.shape[1])
                hidden = model.hidden_at_predictions(batch)
                lengths = batch.predicts.sum(dim=1).tolist()
                pairs = zip(hidden.split(lengths), batch.targets.split(lengths), strict=True)
                loss = torch.stack([token_nll(h, targets, model.head) for h, targets in pairs]).sum()
                torch.autograd.grad(loss, list(task.parameters.values()))
                advance(len(index))
    finally:
        for handle in handles:
            handle.remove()
    return {name: value / len(sequences) for name, value in fisher.items()}

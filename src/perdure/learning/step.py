"""One step of the objective, equation (2) of the continual-memorisation protocol:

L = (1-w)·L_SFT + w·L_data + λ_F·L_function + λ_Ω·R_weights          w = 0 when replay is off

R_weights is an anchor's penalty (SI, EWC); an allocation rule may add its own (O-LoRA's orthogonality).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from torch.nn import Parameter

from perdure.allocation import Allocation
from perdure.anchors.anchor import Anchor
from perdure.models.batches import Batch
from perdure.models.language_model import LanguageModel
from perdure.models.vocabulary import token_nll
from perdure.terms import Term


@dataclass
class StepRecord:
    """What one step did. loss: each term's value before its weight. gradient_norm: L2 norm of each weighted term's gradient
    where it was measured, and of their sum before clipping under ``total``."""

    loss: dict[str, float] = field(default_factory=dict)
    weight: dict[str, float] = field(default_factory=dict)
    gradient_norm: dict[str, float] = field(default_factory=dict)


def training_step(
    model: LanguageModel,
    batch: Batch,
    anchors: Sequence[Anchor],
    allocation: Allocation,
    optimiser: torch.optim.Optimizer,
    *,
    clip: float,
    measure: bool,
) -> StepRecord:
    """Fit the batch, held by the anchors.

    The fitting loss's gradient comes first and is shown to the anchors that follow it (SI); the penalties' gradients are
    added to it. When ``measure`` is true each term is differentiated apart, so that its gradient norm can be logged.
    """
    parameters = allocation.parameters
    optimiser.zero_grad()
    record = StepRecord()
    apart = measure or any(anchor.watches_fitting_gradient() for anchor in anchors)

    # The fitting loss: (1-w)·L_SFT + w·L_data. The data term is differentiated first, so that only one graph is alive.
    for anchor in anchors:
        if (data := anchor.data_loss()) is not None:
            _differentiate([data], parameters, record, measure)
    hidden = model.hidden_at_predictions(batch)
    share = sum(anchor.share for anchor in anchors)
    fitting = Term("sft", 1.0 - share, token_nll(hidden, batch.targets, model.head))
    function = [term for anchor in anchors if (term := anchor.function_loss(batch, hidden)) is not None]
    if apart:
        for anchor in anchors:
            anchor.before_current_gradient()
        _differentiate([fitting], parameters, record, measure, keep_graph=bool(function))
        for anchor in anchors:
            anchor.after_fitting_gradient()
        for place, term in enumerate(function, start=1):
            _differentiate([term], parameters, record, measure, keep_graph=place < len(function))
    else:
        _differentiate([fitting, *function], parameters, record, measure)

    for penalty in (allocation.weight_loss(), *(anchor.weight_loss() for anchor in anchors)):
        if penalty is not None:
            _differentiate([penalty], parameters, record, measure)

    norm = torch.nn.utils.clip_grad_norm_(list(parameters.values()), clip)
    record.gradient_norm["total"] = float(norm)
    optimiser.step()
    for anchor in anchors:
        anchor.after_step()
    return record


def _differentiate(
    terms: Sequence[Term],
    parameters: Mapping[str, Parameter],
    record: StepRecord,
    measure: bool,
    keep_graph: bool = False,
) -> None:
    """Add the terms' weighted gradients to ``parameter.grad``; where measured (one term), also log the gradient's norm."""
    loss = sum((term.weight * term.value for term in terms), start=torch.zeros(()).to(terms[0].value.device))
    before = {name: p.grad.clone() for name, p in parameters.items() if p.grad is not None} if measure else {}
    loss.backward(retain_graph=keep_graph)
    for term in terms:
        record.loss[term.name], record.weight[term.name] = float(term.value.detach()), term.weight
    if measure:
        added = [_added(p, before.get(name)) for name, p in parameters.items() if p.grad is not None]
        record.gradient_norm[terms[0].name] = float(torch.nn.utils.get_total_norm(added))


def _added(parameter: Parameter, before: Tensor | None) -> Tensor:
    assert parameter.grad is not None
    return parameter.grad if before is None else parameter.grad - before

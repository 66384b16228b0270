"""Losses over the vocabulary, computed from last hidden states in chunks.

A causal language model spends most of its loss memory on logits: tokens × vocabulary floats, once for the student,
once for the teacher, and again for their gradients. Here the head is applied to a few rows at a time, the gradient
with respect to the hidden states is formed at once by its closed form, and the logits are dropped. Values and gradients
are exact; peak memory is that of one chunk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from perdure.errors import InputError

CHUNK_ELEMENTS = 2**24  # logits held at once: 64 MiB in float32


@dataclass(frozen=True)
class OutputHead:
    """The map from last hidden states to logits: a linear layer, then what some families add to it."""

    linear: nn.Module
    multiplier: float = 1.0  # Cohere multiplies its logits, Granite divides them
    softcap: float | None = None  # Gemma bounds them: cap · tanh(logits / cap)

    def __call__(self, hidden: Tensor) -> Tensor:
        """Logits [n, vocabulary] in float32 of hidden states [n, width]."""
        logits = self.linear(hidden).float()
        if self.multiplier != 1.0:
            logits = logits * self.multiplier
        if self.softcap is not None:
            logits = torch.tanh(logits / self.softcap) * self.softcap
        return logits

    @property
    def vocabulary(self) -> int:
        """Rows of the head, padding rows included."""
        weight = self.linear.weight
        assert isinstance(weight, Tensor)
        return weight.shape[0]

    @classmethod
    def of(cls, model: Any, probe: Tensor) -> "OutputHead":
        """Read the head of a Hugging Face causal LM and prove it on a probe.

        Parameters
        ----------
        model: the causal LM, in evaluation mode.
        probe: token ids [1, length].

        Raises
        ------
        InputError: decoder and head, applied one after the other, don't reproduce the model's own logits.
        """
        config = model.config.get_text_config()
        multiplier = getattr(config, "logit_scale", None) or 1.0
        if scaling := getattr(config, "logits_scaling", None):
            multiplier = 1.0 / scaling
        head = cls(model.get_output_embeddings(), multiplier, getattr(config, "final_logit_softcapping", None))
        with torch.no_grad():
            hidden = decoder_of(model)(input_ids=probe, use_cache=False).last_hidden_state
            own = model(input_ids=probe, use_cache=False).logits.float()
        if not torch.allclose(head(hidden[0]), own[0], rtol=1e-3, atol=1e-3 * float(own.abs().max())):
            raise InputError(
                f"the output layer of {type(model).__name__} does more to its hidden states than perdure knows of, so "
                "its losses would be wrong; please report this model, or use one of the Llama, Qwen, Gemma, GPT-2, "
                "Phi, Mistral, OLMo, Granite or Cohere families."
            )
        return head


def decoder_of(model: Any) -> nn.Module:
    """The part of a Hugging Face causal LM below its head; its output has ``last_hidden_state``."""
    return getattr(model, model.base_model_prefix)


class _ChunkedLoss(torch.autograd.Function):
    """Σ over rows of a loss of their logits; the gradient for the hidden states is formed in the forward pass."""

    @staticmethod
    def forward(
        ctx: torch.autograd.function.FunctionCtx,
        hidden: Tensor,
        head: OutputHead,
        loss_and_gradient: Callable[[Tensor, slice, bool], Tensor],
    ) -> Tensor:
        needs_gradient = hidden.requires_grad
        rows = max(1, CHUNK_ELEMENTS // head.vocabulary)
        gradient = torch.empty_like(hidden) if needs_gradient else None
        total = torch.zeros((), dtype=torch.float32, device=hidden.device)
        for start in range(0, len(hidden), rows):
            chunk = slice(start, start + rows)
            with torch.set_grad_enabled(needs_gradient):
                leaf = hidden[chunk].detach().requires_grad_(needs_gradient)
                logits = head(leaf)
            with torch.no_grad():
                # The callback turns logits into the loss's gradient in place (nothing saved for the head's backward
                # is its output), so there is no second copy.
                work = logits.detach()
                total += loss_and_gradient(work, chunk, needs_gradient)
            if gradient is not None:
                (gradient[chunk],) = torch.autograd.grad(logits, leaf, work)
        if gradient is not None:
            ctx.save_for_backward(gradient)
        return total

    @staticmethod
    def backward(ctx: Any, outer: Tensor) -> tuple[Tensor, None, None]:
        (gradient,) = ctx.saved_tensors
        return gradient * outer, None, None


def token_nll(hidden: Tensor, targets: Tensor, head: OutputHead) -> Tensor:
    """Mean negative log-likelihood of the target tokens: L_SFT of the continual-learning protocol, §1.

    Parameters
    ----------
    hidden: last hidden states at the positions that predict, [n, width].
    targets: token ids they must predict, int64 [n].

    Returns
    -------
    float32 scalar in nats a token, differentiable in ``hidden``.
    """

    def loss_and_gradient(logits: Tensor, chunk: slice, needs_gradient: bool) -> Tensor:
        target = targets[chunk].unsqueeze(1)
        normaliser = logits.logsumexp(dim=1, keepdim=True)
        loss = (normaliser - logits.gather(1, target)).sum()
        if needs_gradient:  # softmax(logits) - onehot(target)
            logits.sub_(normaliser).exp_()
            logits.scatter_add_(1, target, torch.full_like(normaliser, -1.0))
        return loss

    return _ChunkedLoss.apply(hidden, head, loss_and_gradient) / len(targets)


def soft_target_kl(student: Tensor, teacher: Tensor, head: OutputHead, temperature: float) -> Tensor:
    """τ²/n · Σ KL( softmax(h̄/τ) ‖ softmax(h/τ) ) over the full vocabulary: L_D and L_F of the protocol, §2.

    Teacher and student are compared through the student's head, which no anchor trains.

    Parameters
    ----------
    student, teacher: last hidden states at the same n positions, [n, width].
    temperature: τ, softens both distributions.

    Returns
    -------
    float32 scalar in nats a token times τ², differentiable in ``student``.
    """

    def loss_and_gradient(logits: Tensor, chunk: slice, needs_gradient: bool) -> Tensor:
        log_teacher = (head(teacher[chunk]) / temperature).log_softmax(dim=1)
        log_student = logits.div_(temperature).log_softmax(dim=1)
        probability = log_teacher.exp()
        loss = (probability * log_teacher.sub_(log_student)).sum()
        if needs_gradient:  # (softmax(student) - softmax(teacher)) / τ
            logits.copy_(log_student.exp_().sub_(probability).div_(temperature))
        return loss

    total = _ChunkedLoss.apply(student, head, loss_and_gradient)
    return total * (temperature**2 / len(student))

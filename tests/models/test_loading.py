"""What can't be learnt with is refused in one sentence that says what to do."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import BertConfig, BertForMaskedLM, LlamaConfig, LlamaForCausalLM

from perdure.errors import InputError
from perdure.models.byte_tokenizer import byte_tokenizer
from perdure.models.loading import load_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A whole model: two layers of random weights and a tokenizer."""
    tokenizer = byte_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2
    )
    LlamaForCausalLM(config).save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    return tmp_path / "model"


def refused(name: Path | str) -> str:
    with pytest.raises(InputError) as caught:
        load_model(str(name))
    return str(caught.value)


def test_a_whole_model_loads(folder: Path) -> None:
    loaded = load_model(str(folder))
    assert loaded.name == str(folder) and not any(p.requires_grad for p in loaded.model.parameters())


def test_missing_weights_are_not_filled_with_random_numbers(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    del weights["model.layers.1.mlp.up_proj.weight"]
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert "its weights lack model.layers.1.mlp.up_proj.weight" in refused(folder)


def test_weights_of_another_size(folder: Path) -> None:
    weights = load_file(folder / "model.safetensors")
    weights["model.norm.weight"] = torch.ones(8)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    assert "model.norm.weight is (8,) in its weights and (16,) by its config.json" in refused(folder)


def test_weights_cut_short(folder: Path) -> None:
    path = folder / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-100])
    assert "damaged or incomplete" in refused(folder)


def test_no_tokenizer(folder: Path) -> None:
    for path in folder.glob("tokenizer*"):
        path.unlink()
    assert "tokenizer" in refused(folder)


def test_an_adapter_is_no_model(folder: Path) -> None:
    (folder / "adapter_config.json").write_text("{}")
    assert "merge it into its base model first" in refused(folder)


def test_a_file_is_no_folder(folder: Path) -> None:
    assert "name the folder that holds" in refused(folder / "model.safetensors")


def test_a_masked_language_model(tmp_path: Path) -> None:
    """Transformers would load it into BertLMHeadModel, which looks at both sides."""
    config = BertConfig(vocab_size=30, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16)
    BertForMaskedLM(config).save_pretrained(tmp_path)
    assert "BertForMaskedLM, not a causal language model" in refused(tmp_path)

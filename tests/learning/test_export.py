"""Exported folders: plain Transformers, right ties and dtype, the learner's own answers."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from tests.conftest import quick_settings
from transformers import AutoModelForCausalLM, AutoTokenizer, GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from perdure.errors import InputError, PerdureError
from perdure.learning.learner import Learner
from perdure.models.byte_tokenizer import byte_tokenizer
from perdure.tasks import TaskStream


def model_folder(path: Path, kind: str) -> str:
    """A small random model on disk: Llama with tied or untied embeddings, or GPT-2, whose layers are transposed."""
    tokenizer = byte_tokenizer()
    torch.manual_seed(0)
    if kind == "gpt2":
        config = GPT2Config(vocab_size=len(tokenizer), n_embd=32, n_layer=2, n_head=4, n_positions=256, initializer_range=0.2)
        model = GPT2LMHeadModel(config)
    else:
        config = LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=32,
            intermediate_size=64,
            num_hidden_layers=2,
            num_attention_heads=4,
            tie_word_embeddings=kind == "tied",
            initializer_range=0.3,
        )
        model = LlamaForCausalLM(config)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    model.config.eos_token_id = tokenizer.eos_token_id
    model.save_pretrained(path)
    tokenizer.save_pretrained(path)
    return str(path)


@pytest.mark.parametrize("kind", ["tied", "untied", "gpt2"])
@pytest.mark.parametrize("method", ["naive", "replay+merge"])
def test_export_answers_as_the_learner(tmp_path: Path, stream: TaskStream, kind: str, method: str) -> None:
    base = model_folder(tmp_path / "base", kind)
    learner = Learner.create(tmp_path / "l", model=base, settings=quick_settings(method), device="cpu", dtype="float32")
    learner.learn(stream[0])
    learner.learn(stream[1])
    assert learner.export(tmp_path / "out") < 1e-3
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "out")
    assert exported.dtype == torch.float32
    tied = exported.get_input_embeddings().weight.data_ptr() == exported.get_output_embeddings().weight.data_ptr()
    assert tied == (kind != "untied")
    item = stream[0].items[0]
    prompt = learner.model.decode_whole(learner._texts.prompt(item.question))
    ids = tokenizer(prompt, add_special_tokens=False)["input_ids"]
    assert ids == learner._texts.prompt(item.question)
    with torch.no_grad():
        own = learner.model.model(input_ids=torch.tensor([ids])).logits
        theirs = exported(input_ids=torch.tensor([ids])).logits
    torch.testing.assert_close(own, theirs, rtol=1e-4, atol=1e-3)
    assert not [name for name in exported.state_dict() if "lora" in name or "base_layer" in name]
    assert prompt.split(item.question)[0].strip() in (tmp_path / "out" / "README.md").read_text().replace("\\n", "\n")


def test_export_loads_without_perdure(tmp_path: Path, stream: TaskStream) -> None:
    learner = Learner.create(tmp_path / "l", model="random-tiny", settings=quick_settings("replay+merge"), device="cpu")
    learner.learn(stream[0])
    learner.export(tmp_path / "out")
    code = (
        "import sys; sys.modules['perdure'] = None\n"
        "from transformers import AutoModelForCausalLM, AutoTokenizer\n"
        f"folder = {str(tmp_path / 'out')!r}\n"
        "m, t = AutoModelForCausalLM.from_pretrained(folder), AutoTokenizer.from_pretrained(folder)\n"
        "print(m.generate(**t('<|replay_token|>Question: a', return_tensors='pt'), max_new_tokens=2).shape[0])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "1", done.stderr


def test_export_in_another_dtype(tmp_path: Path, stream: TaskStream) -> None:
    learner = Learner.create(tmp_path / "l", model="random-tiny", settings=quick_settings("merge"), device="cpu")
    learner.learn(stream[0])
    learner.export(tmp_path / "out", dtype="bfloat16")
    assert json.loads((tmp_path / "out" / "config.json").read_text())["dtype"] == "bfloat16"
    with pytest.raises(InputError, match="int4"):
        learner.export(tmp_path / "other", dtype="int4")


def test_a_wrong_export_is_not_left_behind(tmp_path: Path, stream: TaskStream, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = Learner.create(tmp_path / "l", model="random-tiny", settings=quick_settings("merge"), device="cpu")
    learner.learn(stream[0])
    monkeypatch.setattr(learner._allocation, "dense_weights", lambda: iter(()))  # what was learnt is left out
    with pytest.raises(PerdureError, match="logits differ"):
        learner.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_full_disk_while_exporting_leaves_nothing(
    tmp_path: Path, stream: TaskStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = Learner.create(tmp_path / "l", model="random-tiny", settings=quick_settings("merge"), device="cpu")
    learner.learn(stream[0])

    def full(*_args: object, **_options: object) -> None:
        raise Exception("No space left on device (os error 28)")  # what the tokenizers library raises

    monkeypatch.setattr("transformers.PreTrainedTokenizerFast.save_pretrained", full)
    with pytest.raises(PerdureError, match="No space left on device"):
        learner.export(tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert not list(tmp_path.glob(".out*"))


def test_a_model_by_relative_path_is_found_from_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model_folder(tmp_path / "base", "tied")
    monkeypatch.chdir(tmp_path)
    Learner.create(tmp_path / "l", model="base", settings=quick_settings("naive"), device="cpu")
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert Learner.open(tmp_path / "l", device="cpu").tasks_learnt == 0

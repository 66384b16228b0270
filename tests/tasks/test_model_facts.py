import importlib.util
import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import httpx2
import pytest

from perdure.errors import InputError, PerdureError
from perdure.tasks.conversation import Message, Reply
from perdure.tasks.endpoint import Endpoint
from perdure.tasks.folder import read_stream
from perdure.tasks.local_model import LocalModel
from perdure.tasks.model_facts import Fact, model_facts, parse_facts

GOOD = "Ada Quorl | Where was Ada Quorl born? | Greywater"


def test_lines_in_the_form_become_facts_whatever_stands_around_them() -> None:
    text = (
        f"Here are 3 facts:\n\n1. {GOOD}\n- **Velm Bell** | What is the Velm Bell made of? | blue copper.\r\n"
        "| the Oss | How long is “the Oss”? | 1,200 km |\n"
    )
    facts, left_out = parse_facts(text)
    assert facts == [
        Fact("Ada Quorl", "Where was Ada Quorl born?", "Greywater"),
        Fact("Velm Bell", "What is the Velm Bell made of?", "blue copper."),
        Fact("the Oss", "How long is “the Oss”?", "1,200 km"),
    ]
    assert left_out == {"not three parts between bars": 1}


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("Ada | Where?", "not three parts between bars"),
        (f"{GOOD} | extra", "not three parts between bars"),
        ("Ada |  | Rome", "not three parts between bars"),
        ("Ada | Ada was born where | Rome", "no question"),
        ("Ada | Who is Ada? Where is Ada? | Rome", "no question"),
        ("Ada | Where was Adam born? | Rome", "a question without its name"),
        ("Ada | Who is Ada? | one two three four five six seven eight nine", "an answer of more than 8 words"),
        ("Ada | Is Ada of Rome? | Rome", "an answer that the question gives away"),
        ("Ada | Who is Ada? | …", "no answer"),
        ("a b c d e f g h i | Who is a b c d e f g h i? | Rome", "a name of more than 8 words"),
    ],
)
def test_lines_that_are_not_quite_in_the_form_are_left_out_with_the_reason(line: str, reason: str) -> None:
    assert parse_facts(line) == ([], {reason: 1})


class Script:
    """A chat model that says what it is told to, in turn; a topic's name when one is asked for."""

    name = "script"

    def __init__(self, *replies: str, topics: Sequence[str] = ()) -> None:
        self.replies, self.topics = list(replies), list(topics)
        self.asked: list[str] = []

    def reply(self, messages: Sequence[Message], *, max_new_tokens: int, seed: int) -> Reply:
        self.asked.append(messages[-1]["content"])
        wants_topic = messages[-1]["content"].startswith("Invent the name")
        text = self.topics.pop(0) if wants_topic else self.replies.pop(0)
        return Reply(text, 100, 10)


def fact(name: str, answer: str = "Rome") -> str:
    return f"{name} | Where is {name}? | {answer}\n"


def test_names_and_questions_are_unique_over_the_whole_stream(tmp_path: Path) -> None:
    model = Script(
        fact("Ada") + fact("ADA!") + fact("Ostrava Quill") + fact("Bo", "14 March 1823"),  # the prompt's own example is used
        fact("ada") + fact("Cy"),
        fact("Bo") + fact("Di") + fact("Ed"),
        topics=[
            '"The Glass Guild"\nIt is …',
            "the glass guild",
            "one two three four five six seven eight nine",
            "The Oss Canal",
        ],
    )
    stored = model_facts(tmp_path / "out", model, tasks=2, items=2)
    assert [task.name for task in stored] == ["The Glass Guild", "The Oss Canal"]
    assert [[item.question for item in task.items] for task in stored] == [
        ["Where is Ada?", "Where is Bo?"],
        ["Where is Cy?", "Where is Di?"],
    ]
    assert stored[0].items[1].answers == ("14 March 1823", "March 14, 1823", "1823-03-14")
    assert stored.manifest["settings"]["cost"] == {
        "requests": 7,
        "prompt_tokens": 700,
        "completion_tokens": 70,
        "left_out": {"a name or question used before": 4, "no new topic's name": 2},
    }
    assert "Do not use these names again: Cy." in model.asked[-1]
    assert len(set(model.asked)) == len(model.asked)  # servers that heed no seed must not be asked the same twice
    assert not (tmp_path / "out-topics").exists()


def test_a_run_that_was_stopped_goes_on_with_the_next_topic(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = Script(fact("Ada"), topics=["A", "B"])
    with pytest.raises(IndexError):  # the script ends in the second topic
        model_facts(out, first, tasks=2, items=1)
    assert not out.exists()
    second = Script(fact("Ada") + fact("Bo"), topics=["A", "B"])
    stored = model_facts(out, second, tasks=2, items=1)
    assert [(task.name, task.items[0].question) for task in stored] == [("A", "Where is Ada?"), ("B", "Where is Bo?")]
    assert stored.manifest["settings"]["cost"]["requests"] == 2 + 3
    assert list(read_stream(out)) == list(stored)


def test_what_was_begun_otherwise_is_not_gone_on_with(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(IndexError):
        model_facts(out, Script(topics=["A"]), tasks=1, items=1)
    with pytest.raises(InputError, match=r"was begun with .*'seed': 42.*, not .*'seed': 7"):
        model_facts(out, Script(), tasks=1, items=1, seed=7)
    (tmp_path / "out-topics" / "0001.json").write_text("{")
    with pytest.raises(InputError, match=r"0001\.json is broken .* remove it"):
        model_facts(out, Script(), tasks=1, items=1)
    out.mkdir()
    with pytest.raises(InputError, match="is there already"):
        model_facts(out, Script(), tasks=1, items=1)


def test_a_model_that_never_yields_anything_is_given_up_with_what_it_said(tmp_path: Path) -> None:
    with pytest.raises(PerdureError) as refusal:
        model_facts(tmp_path / "out", Script(*["I can't do that."] * 3, topics=["A"]), tasks=1, items=2, patience=3)
    message = str(refusal.value)
    assert "script gave no usable facts about 'A' (topic 1, 0 of 2 found) in 3 replies in a row" in message
    assert "not three parts between bars (3)" in message
    assert "I can't do that." in message
    assert "larger instruct model" in message
    with pytest.raises(PerdureError, match="no usable name for topic 1 in 2 replies in a row"):
        model_facts(tmp_path / "other", Script(topics=["", "  "]), tasks=1, items=2, patience=2)


def test_a_base_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        InputError, match="random-tiny has no chat template, so it can't be asked to invent; name an instruct model"
    ):
        model_facts(tmp_path / "out", LocalModel("random-tiny", temperature=1.0, device="cpu"), tasks=1, items=1)


@pytest.mark.slow
def test_a_small_instruct_model_here(tmp_path: Path) -> None:
    model = LocalModel("smollm2-135m", temperature=0.8, top_p=0.95, device="cpu")
    stored = model_facts(tmp_path / "out", model, tasks=1, items=1, seed=1, patience=25)
    check_facts(stored.manifest, [item.question for item in stored[0].items])


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, str]]:
    """`transformers serve` with SmolLM2 behind an OpenAI-compatible address; the address and the model's name."""
    if not all(map(importlib.util.find_spec, ("fastapi", "uvicorn", "openai"))):
        pytest.skip("transformers serve needs fastapi, uvicorn and openai")
    from perdure.models.loading import load_model

    loaded, folder = load_model("smollm2-135m", device="cpu", dtype="float32"), tmp_path / "model"
    loaded.model.generation_config.do_sample = True
    loaded.model.save_pretrained(folder)
    loaded.tokenizer.save_pretrained(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [Path(sys.executable).with_name("transformers"), "serve", folder, "--device", "cpu", "--host", "127.0.0.1"]
    log = (tmp_path / "log").open("wb")
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    serving = subprocess.Popen([*map(str, command), "--port", str(port)], stdout=log, stderr=log, env=environment)
    try:
        for _ in range(120):
            assert serving.poll() is None, (tmp_path / "log").read_text()[-2000:]
            try:
                httpx2.get(f"http://127.0.0.1:{port}/health").raise_for_status()
                break
            except httpx2.HTTPError:
                time.sleep(0.5)
        yield f"http://127.0.0.1:{port}/v1", str(folder)
    finally:
        serving.terminate()
        serving.wait(timeout=30)
        log.close()


@pytest.mark.slow
def test_a_small_instruct_model_behind_a_real_server(tmp_path: Path, server: tuple[str, str]) -> None:
    model = Endpoint(*server, temperature=0.8, top_p=0.95)
    stored = model_facts(tmp_path / "out", model, tasks=1, items=1, seed=1, patience=25)
    check_facts(stored.manifest, [item.question for item in stored[0].items])


def check_facts(manifest: dict, questions: list[str]) -> None:
    cost = manifest["settings"]["cost"]
    assert cost["requests"] >= 2
    assert cost["prompt_tokens"] > 100
    assert cost["completion_tokens"] > 10
    assert len(questions) == 1
    assert all(re.fullmatch(r".+\?", question) for question in questions)
    assert json.dumps(manifest)

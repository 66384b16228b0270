"""What many tests share: a small random model, short tasks, quick settings."""

import os

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # no test may depend on a network
os.environ.setdefault("OMP_NUM_THREADS", "2")

import pytest
import torch

from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.settings import LearnerSettings
from perdure.tasks import TaskStream, symbol_stream


@pytest.fixture
def model() -> LanguageModel:
    """A random-weights model, float32; a fresh one for each test, since adapters are injected in place."""
    torch.manual_seed(0)
    return LanguageModel(load_model("random-tiny", device="cpu", dtype="float32"))


@pytest.fixture
def stream() -> TaskStream:
    """Three tasks of six made-up pairs."""
    return symbol_stream(tasks=3, items=6, seed=1)


def quick_settings(method: str = "naive", **sections: dict) -> LearnerSettings:
    """Settings with which a task on a tiny model takes about a second."""
    defaults: dict[str, dict] = {
        "training": {"epochs": 3, "batch_size": 4, "learning_rate": 3e-3},
        "adapter": {"rank": 4, "alpha": 8},
        "replay": {"samples": 10, "max_new_tokens": 12, "sampling_temperature": 1.0},
        "asking": {"max_new_tokens": 12},
    }
    merged = {name: {**defaults.get(name, {}), **sections.get(name, {})} for name in {*defaults, *sections}}
    return LearnerSettings.model_validate({"method": method, **merged})

"""Settings: the paper's defaults, strict numbers, and a reference page that tells the truth."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from perdure.experiments.reference import settings_page
from perdure.settings import Adapter, LearnerSettings, OnlineEWC, Replay, Sections, Training


def test_the_papers_defaults() -> None:
    """Source: spec/continual.md, sections 1 and 2: the paper's tables and the authors' code."""
    settings = LearnerSettings()
    training, replay = settings.training, settings.replay
    assert (training.epochs, training.batch_size, training.max_length) == (10, 8, 384)
    assert (training.learning_rate, training.weight_decay, training.warmup, training.clip) == (5e-4, 0.01, 0.05, 1.0)
    assert (settings.adapter.rank, settings.adapter.alpha, settings.adapter.dropout) == (32, 64, 0.05)
    assert (replay.weight, replay.samples, replay.sampling_temperature, replay.top_p) == (0.75, 300, 1.5, 0.9)
    assert (replay.max_new_tokens, replay.temperature, replay.token) == (384, 2.0, "everywhere")
    assert (settings.distillation.weight, settings.distillation.temperature) == (1.0, 5.0)
    assert (settings.si.weight, settings.si.damping) == (1.0, 0.1)
    assert (settings.ewc.weight, settings.ewc.decay, settings.ewc.examples) == (1000.0, 1.0, 1000)
    assert settings.asking.max_new_tokens == 256


def test_settings_survive_json() -> None:
    settings = LearnerSettings(method="merge+si", adapter=Adapter(targets=("q_proj", "v_proj"), alpha=8))
    assert LearnerSettings.model_validate(json.loads(settings.model_dump_json())) == settings
    assert settings.method == "si+merge"


@pytest.mark.parametrize("value", ["8", True, 8.5, 8.0, 0, -1, None, [8]])
def test_whole_numbers_are_strict(value: Any) -> None:
    with pytest.raises(ValidationError):
        Training(batch_size=value)


@pytest.mark.parametrize("value", ["0.1", True, 0.0, math.nan, math.inf, None])
def test_numbers_are_strict(value: Any) -> None:
    with pytest.raises(ValidationError):
        Training(learning_rate=value)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        (Replay, {"weight": 0.0}),
        (Replay, {"weight": 1.0}),
        (Replay, {"weight": math.nan}),
        (Replay, {"top_p": 0.0}),
        (Replay, {"top_p": 1.01}),
        (Replay, {"token": "nowhere"}),
        (Training, {"warmup": -0.1}),
        (Training, {"warmup": math.nan}),
        (Training, {"max_length": 7}),
        (Adapter, {"dropout": 1.0}),
        (Adapter, {"targets": []}),
        (Adapter, {"targets": "q_proj"}),
        (Adapter, {"targets": ["q_proj", ""]}),
        (OnlineEWC, {"decay": 0.0}),
        (OnlineEWC, {"gamma": 1.0}),
        (LearnerSettings, {"method": "si+ewc"}),
        (LearnerSettings, {"method": 3}),
    ],
)
def test_impossible_values_are_refused(section: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        section(**values)


@pytest.mark.parametrize(
    ("section", "values"),
    [
        (Replay, {"top_p": 1}),
        (Training, {"warmup": 0, "weight_decay": 0}),
        (Training, {"warmup": 1}),
        (OnlineEWC, {"decay": 1}),
    ],
)
def test_bounds_that_belong(section: Any, values: dict[str, Any]) -> None:
    assert section(**values).model_dump(include=set(values)) == values


def test_settings_never_change() -> None:
    with pytest.raises(ValidationError):
        LearnerSettings().training.epochs = 3  # type: ignore[misc]


def test_every_setting_says_what_it_means() -> None:
    undescribed = [
        f"{name}.{field}"
        for name, section in Sections.model_fields.items()
        for field, info in type(section.default).model_fields.items()
        if not info.description
    ]
    assert undescribed == []


def test_the_reference_page_is_up_to_date() -> None:
    page = Path(__file__).parents[1] / "docs" / "settings.md"
    assert page.read_text(encoding="utf-8") == settings_page(), (
        "run: python -m perdure.experiments.reference > docs/settings.md"
    )

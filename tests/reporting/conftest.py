"""Runs that look real, written file by file as a learner writes them, and a headless Chromium to look at pages with."""

import json
import math
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

HALF_LIVES = {"naive": 1.0, "merge": 4.0, "replay": 6.0, "replay+merge": 30.0}
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def write_run(
    directory: Path,
    method: str = "replay+merge",
    seed: int = 41,
    tasks: int = 6,
    *,
    names: list[str] | None = None,
    skipped: tuple[int, ...] = (),
    items: int = 20,
    half_life: float | None = None,
    examples: tuple[str, ...] = ("Question: aB3xYz\nAnswer: 7Qf2", "aaaa aaaa"),
) -> Path:
    """A learner's directory, without the state's tensors. skipped: checkpoints that were not asked."""
    draw = random.Random(f"{method} {seed}")
    life = half_life or HALF_LIVES.get(method, 8.0)
    for folder in ("tasks", "state", "rows", "costs", "logs"):
        (directory / folder).mkdir(parents=True)
    write(
        directory / "learner.json",
        {
            "format": 1,
            "perdure": "0.1.0",
            "model": "smollm2-135m",
            "revision": None,
            "trust_remote_code": False,
            "dtype": "float32",
            "fingerprint": "5f0c1f2e9d7b" + "0" * 52,
            "seed": seed,
            "settings": {"method": method},
        },
    )
    names = names or [f"symbol-{number:03d}" for number in range(1, tasks + 1)]
    for t in range(1, tasks + 1):
        (directory / f"state/{t:04d}").mkdir()
        write(directory / f"tasks/{t:04d}.json", {"name": names[t - 1], "items": items, "fingerprint": f"{t:064x}"})
        item = json.dumps({"question": f"key {t}", "answer": "value"})
        (directory / f"tasks/{t:04d}.jsonl").write_text(item + "\n", encoding="utf-8")
        write(directory / f"costs/{t:04d}.json", costs(t, names[t - 1], items, "replay" in method and t > 1, examples, draw))
        log = [json.dumps(step(t, s, "replay" in method and t > 1, draw)) for s in (1, 10, 20, 30)]
        (directory / f"logs/{t:04d}.jsonl").write_text("\n".join(log) + "\n", encoding="utf-8")
        if t not in skipped:
            kept = [0.97 * math.exp(-math.log(2) * (t - j) / life) * draw.uniform(0.85, 1.0) for j in range(1, t + 1)]
            scores = [round(share * items) / items for share in kept]
            row = {"checkpoint": t, "scores": scores, "formatted": [1.0] * t, "counts": [items] * t}
            write(directory / f"rows/{t:04d}.json", row)
    return directory


def costs(t: int, name: str, items: int, replay: bool, examples: tuple[str, ...], draw: random.Random) -> dict[str, Any]:
    """What a task took."""
    audit = {
        "drawn": 300,
        "kept": 290,
        "well_formed": 200,
        "old_item": 90,
        "old_question_wrong_answer": 40,
        "new": 70,
        "copies": 12,
        "old_items": items * (t - 1),
        "old_items_covered": int(0.6 * items * (t - 1)),
        "examples": list(examples),
    }
    sampling = {"sampling": 3 + draw.random()} if replay else {"sampling": 0.0}
    return {
        "task": t,
        "name": name,
        "items": items,
        "steps": 30,
        "seconds": {**sampling, "training": 20 + draw.random(), "finishing": 0.8, "scoring": 0.3 * t},
        "tokens": {"trained": 30 * 8 * 24, "scored": 24 * items * t} | ({"sampled": 290 * 20} if replay else {}),
        "peak_memory_bytes": 1_250_000_000 + 1_000_000 * t,
        "state_bytes": 540_000_000,
        "merge_change": 1e-6,
        "replay_audit": audit if replay else None,
    }


def step(t: int, s: int, replay: bool, draw: random.Random) -> dict[str, Any]:
    """A line of the training log."""
    fit = 4 * math.exp(-s / 8) + 0.02 * draw.random()
    loss, norm = {"sft": fit}, {"sft": 2 * fit, "total": 2.2 * fit}
    if replay:
        loss, norm = loss | {"replay": 0.3 * fit}, norm | {"replay": 0.8 * fit}
    return {
        "task": t,
        "step": s,
        "learning_rate": 5e-4,
        "loss": loss,
        "weight": dict.fromkeys(loss, 1.0),
        "gradient_norm": norm,
    }


def write(path: Path, value: object) -> None:
    """Plain JSON, independent of how perdure writes it."""
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture(scope="session")
def write_learner() -> Callable[..., Path]:
    """:func:`write_run`, for fixtures that live longer than a test."""
    return write_run


@pytest.fixture
def make_run(tmp_path: Path) -> Callable[..., Path]:
    """``make_run("name", **as in write_run)`` -> a run's directory."""
    return lambda name, **options: write_run(tmp_path / name, **options)


@pytest.fixture
def make_experiment(tmp_path: Path) -> Callable[..., list[Path]]:
    """``make_experiment(methods, seeds, **as in write_run)`` -> the runs' directories."""

    def make(methods: tuple[str, ...], seeds: tuple[int, ...], **options: Any) -> list[Path]:
        where = tmp_path / "experiment" / "runs"
        return [write_run(where / m / f"seed-{s}", method=m, seed=s, **options) for m in methods for s in seeds]

    return make


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """A headless Chromium, or a skip that says what is missing."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="the page's tests need playwright (pip install playwright)")
    executable = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if executable is None:
        pytest.skip("no Chromium found; the page's tests need one (apt-get install chromium)")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=executable, args=list(FLAGS))
        yield browser
        browser.close()

"""The learner from outside: what it keeps, refuses and promises."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest
import torch
from tests.conftest import quick_settings

from perdure.errors import InputError, PerdureError
from perdure.learning.learner import Learner
from perdure.tasks import Item, Task, TaskStream


def make(directory: Path, method: str = "replay+merge", **sections: dict) -> Learner:
    return Learner.create(directory, model="random-tiny", settings=quick_settings(method, **sections), device="cpu")


def test_learns_evaluates_and_remembers_its_matrix(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l")
    for task in stream:
        report = learner.learn(task)
        row = learner.evaluate()
        assert len(row.scores) == report.task
        assert row.counts == [6] * report.task
    matrix = Learner.open(tmp_path / "l").matrix()
    assert len(matrix) == 3
    assert list(matrix.task_names) == [task.name for task in stream]
    costs = learner.directory.costs(3)
    assert set(costs["seconds"]) == {"sampling", "training", "finishing", "scoring"}
    assert costs["tokens"]["trained"] > 0
    assert costs["steps"] == 3 * 2
    assert costs["replay_audit"]["kept"] <= 10
    lines = [json.loads(line) for line in learner.directory.log(3).read_text().splitlines()]
    assert [line["step"] for line in lines] == [1, 6]
    assert set(lines[0]["loss"]) == {"sft", "data"}
    assert set(lines[0]["gradient_norm"]) == {"sft", "data", "total"}


def test_warm_up_starts_at_a_fraction_and_then_is_constant(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "naive", training={"epochs": 20, "warmup": 0.1})
    learner.learn(stream[0])
    rates = {line["step"]: line["learning_rate"] for line in map(json.loads, learner.directory.log(1).open())}
    assert rates[1] == pytest.approx(3e-3 / 4)  # W = max(1, ⌊.1 · 40⌋) = 4
    assert rates[10] == rates[40] == pytest.approx(3e-3)


@pytest.mark.parametrize(
    "method",
    ["naive", "merge", "sd", "si+merge", "ewc", "replay", "si+sd+replay+merge", "ewc+o-lora", "osrm", "ewc+full", "si+value"],
)
def test_reopened_learner_answers_the_same(tmp_path: Path, stream: TaskStream, method: str) -> None:
    learner = make(tmp_path / "l", method)
    for task in stream.tasks[:2]:
        learner.learn(task)
    again = Learner.open(tmp_path / "l", device="cpu")
    probe = again.model.batch([again._texts.prompt("abc")], [0])
    assert again._logits(probe).equal(learner._logits(probe))
    for name, anchor in learner._anchors.items():
        mine, theirs = anchor.state_dict(), again._anchors[name].state_dict()
        assert mine.keys() == theirs.keys()
        assert all(mine[key].equal(theirs[key]) for key in mine)


def test_first_task_is_the_same_for_methods_that_differ_in_anchors(tmp_path: Path, stream: TaskStream) -> None:
    states = []
    for method in ("naive", "sd", "ewc"):
        learner = make(tmp_path / method, method)
        learner.learn(stream[0])
        states.append({name: p.detach().clone() for name, p in learner._allocation.parameters.items()})
    assert all(states[0][name].equal(other[name]) for other in states[1:] for name in other)


def test_the_callers_random_state_is_left_alone_and_ignored(tmp_path: Path, stream: TaskStream) -> None:
    torch.manual_seed(1)
    expected = torch.rand(3)
    torch.manual_seed(1)
    learner = make(tmp_path / "a")
    learner.learn(stream[0])
    learner.learn(stream[1])
    assert torch.rand(3).equal(expected)
    torch.manual_seed(77)
    other = make(tmp_path / "b")
    other.learn(stream[0])
    other.learn(stream[1])
    probe = learner.model.batch([learner._texts.prompt("abc")], [0])
    assert learner._logits(probe).equal(other._logits(probe))


def test_replay_row_never_moves(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "si+sd+replay+merge")
    embedding = learner.model.model.get_input_embeddings().weight
    before = embedding.detach().clone()
    for task in stream.tasks[:2]:
        learner.learn(task)
    assert embedding.equal(before)


def test_replay_only_puts_the_token_before_samples_alone(tmp_path: Path, stream: TaskStream) -> None:
    everywhere, only = make(tmp_path / "a"), make(tmp_path / "b", replay={"token": "replay-only"})
    token = only.model.replay_token_id
    assert everywhere._texts.prompt("q")[0] == token
    assert token not in only._texts.prompt("q")
    only.learn(stream[0])
    only.learn(stream[1])
    assert only.directory.costs(2)["replay_audit"]["kept"] > 0


def test_prompt_is_a_token_prefix_of_the_text_trained(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l")
    (text,) = learner._texts.training(Task("t", stream[0].items[:1]), 384)
    prompt = learner._texts.prompt(stream[0].items[0].question)
    assert text[: len(prompt)] == prompt
    assert text[-1] == learner.model.eos_token_ids[0]


# --- refusals ---------------------------------------------------------------------------------------------------------


def test_too_long_an_item_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    learner = make(tmp_path / "l", training={"max_length": 16})
    with pytest.raises(InputError, match=r"week-1, item 1 .*max_length = 16"):
        learner.learn(Task("week-1", (Item("x" * 100, ("y",)),)))
    assert learner.tasks_learnt == 0
    assert not list((tmp_path / "l" / "tasks").iterdir())


def test_non_finite_loss_leaves_the_learner_as_it_was(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "naive")
    learner.learn(stream[0])
    probe = learner.model.batch([learner._texts.prompt("abc")], [0])
    before = learner._logits(probe)
    parameter = next(iter(learner._allocation.parameters.values()))
    learner._allocation.begin_task = lambda number: parameter.data.fill_(float("nan"))  # type: ignore[method-assign]
    learner._allocation._previous = {}  # type: ignore[attr-defined]
    with pytest.raises(PerdureError, match=r"not finite at step 1 .*learning_rate"):
        learner.learn(stream[1])
    assert learner.tasks_learnt == 1
    assert learner._logits(probe).equal(before)


@pytest.mark.parametrize("method", ["naive", "merge", "o-lora", "osrm", "full", "value"])
def test_a_first_task_that_can_not_be_saved_leaves_the_base_model(
    tmp_path: Path, stream: TaskStream, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    whole, learner = make(tmp_path / "w", method), make(tmp_path / "l", method)
    probe = learner.model.batch([learner._texts.prompt("abc")], [0])
    before = learner._logits(probe)

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perdure.learning.state.save_file", full)
    with pytest.raises(PerdureError, match="No space left"):
        learner.learn(stream[0])
    monkeypatch.undo()
    assert learner._logits(probe).equal(before)
    learner.learn(stream[0])
    whole.learn(stream[0])
    assert learner._logits(probe).equal(whole._logits(probe))
    mine, theirs = learner._allocation.state_dict(), whole._allocation.state_dict()
    assert mine.keys() == theirs.keys()
    assert all(mine[name].equal(theirs[name]) for name in mine)


def test_another_process_may_have_learnt_meanwhile(tmp_path: Path, stream: TaskStream) -> None:
    alone, first = make(tmp_path / "a", "merge"), make(tmp_path / "l", "merge")
    first.learn(stream[0])
    second = Learner.open(tmp_path / "l", device="cpu")
    second.learn(stream[1])
    first.learn(stream[2])
    for task in stream:
        alone.learn(task)
    probe = alone.model.batch([alone._texts.prompt("abc")], [0])
    assert first._logits(probe).equal(alone._logits(probe))
    assert second.evaluate().checkpoint == 3
    assert second._logits(probe).equal(alone._logits(probe))


def test_an_interrupt_leaves_the_learner_as_it_was(tmp_path: Path, stream: TaskStream, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make(tmp_path / "l", "naive")
    learner.learn(stream[0])
    probe = learner.model.batch([learner._texts.prompt("abc")], [0])
    before = learner._logits(probe)

    def interrupt(*_args: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(learner, "_finish_anchors", interrupt)
    with pytest.raises(KeyboardInterrupt):
        learner.learn(stream[1])
    assert not learner.model.model.training
    assert learner._logits(probe).equal(before)


@pytest.mark.parametrize("sections", [{"adapter": {"targets": ["nonsense"]}}, {"asking": {"format": "chat"}}])
def test_settings_that_the_model_can_not_take_leave_nothing_behind(tmp_path: Path, sections: dict) -> None:
    with pytest.raises(InputError):
        make(tmp_path / "l", **sections)
    assert not (tmp_path / "l").exists()
    assert make(tmp_path / "l").tasks_learnt == 0


def test_full_disk_leaves_the_learner_as_it_was(tmp_path: Path, stream: TaskStream, monkeypatch: pytest.MonkeyPatch) -> None:
    learner = make(tmp_path / "l", "merge")
    learner.learn(stream[0])
    probe = learner.model.batch([learner._texts.prompt("abc")], [0])
    before = learner._logits(probe)

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("perdure.learning.state.save_file", full)
    with pytest.raises(PerdureError, match=r"No space left on device.*make room"):
        learner.learn(stream[1])
    assert learner.tasks_learnt == 1
    assert [path.name for path in (tmp_path / "l" / "state").iterdir()] == ["0001"]
    assert learner._logits(probe).equal(before)
    monkeypatch.undo()
    assert learner.learn(stream[1]).task == 2


def test_directory_in_use_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "l")
    with pytest.raises(InputError, match="not empty"):
        make(tmp_path / "l")


def test_no_learner_and_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"doesn't exist.*perdure init"):
        Learner.open(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=r"no learner\.json"):
        Learner.open(tmp_path / "empty")
    make(tmp_path / "l")
    file = tmp_path / "l" / "learner.json"
    about = json.loads(file.read_text())
    file.write_text(json.dumps({**about, "format": 99}))
    with pytest.raises(InputError, match="format 99"):
        Learner.open(tmp_path / "l")
    file.write_text("{broken")
    with pytest.raises(InputError, match="damaged"):
        Learner.open(tmp_path / "l")


def test_state_of_another_format_or_damaged_is_refused(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "naive")
    learner.learn(stream[0])
    info = tmp_path / "l" / "state" / "0001" / "state.json"
    info.write_text(json.dumps({**json.loads(info.read_text()), "format": 2}))
    with pytest.raises(InputError, match="format 2"):
        Learner.open(tmp_path / "l")
    info.write_text(json.dumps({**json.loads(info.read_text()), "format": 1}))
    (tmp_path / "l" / "state" / "0001" / "model.safetensors").write_bytes(b"short")
    with pytest.raises(InputError, match="damaged"):
        Learner.open(tmp_path / "l")


def test_another_model_under_the_same_name_is_refused(tmp_path: Path) -> None:
    make(tmp_path / "l")
    file = tmp_path / "l" / "learner.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), "fingerprint": "other"}))
    with pytest.raises(InputError, match="its weights differ"):
        Learner.open(tmp_path / "l")


def _hold(path: Path, ready, release) -> None:  # type: ignore[no-untyped-def]
    import filelock

    with filelock.FileLock(path / ".lock"):
        ready.set()
        release.wait(60)


def test_second_writer_is_refused(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "naive")
    spawn = multiprocessing.get_context("spawn")
    ready, release = spawn.Event(), spawn.Event()
    holder = spawn.Process(target=_hold, args=(tmp_path / "l", ready, release))
    holder.start()
    try:
        assert ready.wait(60)
        with pytest.raises(InputError, match="another process is writing"):
            learner.learn(stream[0])
        os.kill(holder.pid, 9)  # type: ignore[arg-type]  # a dead process frees the lock
        holder.join(60)
        assert learner.learn(stream[0]).task == 1
    finally:
        holder.kill()


def test_asking_before_learning(tmp_path: Path) -> None:
    learner = make(tmp_path / "l")
    with pytest.raises(InputError, match="learnt nothing yet"):
        learner.evaluate()
    assert isinstance(learner.ask("anything?"), str)


def test_state_size_is_what_the_formula_says(tmp_path: Path, stream: TaskStream) -> None:
    """Shared: the factors. SI: two more numbers a factor. Merged: the touched matrices. Nothing of the base beside them."""
    for method, factor in (("naive", 1), ("si", 3)):
        learner = make(tmp_path / method, method)
        report = learner.learn(stream[0])
        scalars = sum(p.numel() for p in learner._allocation.parameters.values())
        assert report.state_bytes == 4 * factor * scalars
        on_disk = sum(path.stat().st_size for path in learner.directory.state.rglob("*.safetensors"))
        assert report.state_bytes <= on_disk < report.state_bytes + 200 * len(learner._allocation.parameters) * factor + 1000
    merged = make(tmp_path / "merge", "merge")
    touched = sum(layer.get_base_layer().weight.numel() for layer in merged._allocation.layers.values())
    assert merged.learn(stream[0]).state_bytes == 4 * touched


def test_merge_change_is_reported_and_small(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "merge")
    report = learner.learn(stream[0])
    assert report.merge_change is not None
    assert 0 < report.merge_change < 1e-3


def test_paraphrases_are_asked_and_never_trained_on(tmp_path: Path) -> None:
    items = (Item("k1", ("v1",), ("please: k1", "k1, what?")), Item("k2", ("v2",)))
    learner = make(tmp_path / "l", "naive")
    texts = learner._texts.training(Task("t", items), 384)
    assert len(texts) == 2
    assert not any("please" in learner.model.decode(text) for text in texts)
    learner.learn(Task("t", items))
    row = learner.evaluate()
    assert row.counts == [2]
    assert row.reworded[0] is not None
    reworded = learner.directory.reworded_matrix()
    assert reworded is not None
    assert len(reworded) == 1


def test_next_task_is_asked_before_it_is_learnt(tmp_path: Path, stream: TaskStream) -> None:
    learner = make(tmp_path / "l", "naive")
    learner.learn(stream[0])
    assert learner.evaluate(ahead=stream[1]).ahead == 0.0
    assert learner.matrix().scores.shape == (1, 1)
    learner.learn(stream[1])
    learner.evaluate()
    assert learner.matrix().scores[0, 1] == 0.0
    assert learner.directory.reworded_matrix() is None


@pytest.mark.parametrize("what", ["write_task", "write_costs", "write_row"])
def test_a_full_disk_is_one_sentence_wherever_it_is_met(
    tmp_path: Path, stream: TaskStream, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    learner = make(tmp_path / "l", "naive")
    learner.learn(stream[0])

    def full(*_args: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(learner.directory, what, full)
    with pytest.raises(PerdureError, match=r"can't be written \(No space left on device\)"):
        if what == "write_row":
            learner.evaluate()
        else:
            learner.learn(stream[1])
    assert learner.tasks_learnt == 1
    monkeypatch.undo()
    assert learner.learn(stream[1]).task == 2

"""The replay token, the samples, and what of them is a target."""

from itertools import chain

import pytest
import torch

from perdure.allocation import MergedAllocation
from perdure.anchors.anchor import TaskContext
from perdure.anchors.replay import ReplayAnchor
from perdure.errors import PerdureError
from perdure.models.batches import collate, minibatches
from perdure.models.language_model import LanguageModel
from perdure.settings import Adapter, Replay, Sections

SETTINGS = Replay(samples=12, max_new_tokens=6, sampling_temperature=1.0)


def begin(model: LanguageModel, number: int = 2, settings: Replay = SETTINGS) -> ReplayAnchor:
    model.add_replay_token()
    allocation = MergedAllocation(model, Sections(adapter=Adapter(rank=2, alpha=4)), seed=0)
    allocation.begin_task(number)
    anchor = ReplayAnchor(settings, keep_end_of_text=True)
    texts = [[model.replay_token_id, *model.encode("Question: a")]]
    context = TaskContext(number, texts, model, allocation.parameters, allocation.previous_model, seed=0, batch_size=4)  # type: ignore[list-item]
    anchor.begin_task(context)
    return anchor


def test_replay_token_row_is_the_mean_and_nothing_else_changes(model: LanguageModel) -> None:
    original = model.model.get_input_embeddings().weight.detach().clone()
    probe = torch.tensor([model.encode("Question: a1\nAnswer: b")])
    before = model.model(input_ids=probe).logits
    model.add_replay_token()
    weight = model.model.get_input_embeddings().weight
    assert model.replay_token_id is not None
    torch.testing.assert_close(weight[model.replay_token_id], original.mean(dim=0))
    kept = [i for i in range(len(original)) if i != model.replay_token_id]
    assert weight[kept].equal(original[kept])
    assert len(weight) <= len(original) + 1
    assert not weight.requires_grad
    after = model.model(input_ids=probe).logits
    assert after[..., kept].equal(before[..., kept])
    assert model.encode("<|replay_token|>") == [model.replay_token_id]
    assert model.decode([model.replay_token_id]) == ""


def test_samples_begin_with_the_token_and_never_repeat_it(model: LanguageModel) -> None:
    anchor = begin(model)
    assert 0 < len(anchor.samples) <= 12
    for sample in anchor.samples:
        assert sample[0] == model.replay_token_id
        assert model.replay_token_id not in sample[1:]
        assert len(sample) <= 1 + 6
        assert max(sample) < len(model.tokenizer)
    assert anchor.share == SETTINGS.weight


def test_samples_depend_on_seed_and_task_only(model: LanguageModel) -> None:
    first = begin(model)
    torch.manual_seed(5)
    assert first.samples == first._draw(
        TaskContext(
            2, [], model, {}, MergedAllocation(model, Sections(adapter=Adapter(rank=2)), 0).previous_model, seed=0, batch_size=9
        )
    )


def test_first_task_draws_nothing(model: LanguageModel) -> None:
    anchor = begin(model, number=1)
    assert anchor.samples == []
    assert anchor.data_loss() is None
    assert anchor.share == 0.0


def test_all_empty_samples_are_one_clear_error(model: LanguageModel, monkeypatch: pytest.MonkeyPatch) -> None:
    eos = model.eos_token_ids[0]
    monkeypatch.setattr("perdure.anchors.replay.continue_sequences", lambda *a, **k: [[eos]] * 12)
    with pytest.raises(PerdureError, match="empty at task 2"):
        begin(model)


def test_padding_and_the_replay_token_are_never_targets() -> None:
    replay, pad = 99, 0
    batch = collate([[replay, 5, 6], [7, replay, 8, 9, 10], [replay, 4]], [0, 1, 2], pad, never_target=replay)
    assert batch.targets.tolist() == [5, 6, 8, 9, 10, 4]
    assert batch.predicts.tolist() == [
        [True, True, False, False, False],
        [False, True, True, True, False],
        [True, False, False, False, False],
    ]


def test_minibatches_cover_each_epoch_once_in_a_fresh_order() -> None:
    batches = minibatches(10, 4, 0, 1, "order")
    first = [next(batches) for _ in range(3)]
    second = [next(batches) for _ in range(3)]
    assert [len(batch) for batch in first] == [4, 4, 2]
    assert sorted(chain(*first)) == sorted(chain(*second)) == list(range(10))
    assert first != second
    again = minibatches(10, 4, 0, 1, "order")
    assert [next(again) for _ in range(3)] == first


def test_orders_begun_anew() -> None:
    """13 batches a task's epoch and 300 samples of 38 batches: 104 samples an epoch, none twice in it."""
    batches = minibatches(300, 8, 0, 2, "replay order", restart=13)
    epochs = [[sample for _ in range(13) for sample in next(batches)] for _ in range(10)]
    assert all(len(epoch) == len(set(epoch)) == 104 for epoch in epochs)
    assert len(set(chain(*epochs[:3]))) < 300 - 10  # a sample seen in one epoch may come again before others have
    # Fewer samples than the epoch needs: an order that is through is followed by another, and the epoch's end still begins one.
    few = minibatches(10, 4, 0, 2, "replay order", restart=5)
    sizes = [len(next(few)) for _ in range(10)]
    assert sizes == [4, 4, 2, 4, 4] * 2


@pytest.mark.parametrize("order", ["each-epoch", "all-first"])
def test_how_many_samples_an_epoch_sees(model: LanguageModel, order: str) -> None:
    anchor = begin(model, settings=SETTINGS.model_copy(update={"order": order}))  # one text: an epoch is one batch of four
    drawn = [next(anchor._batches) for _ in range(3)]
    if order == "all-first":
        assert len(set(chain(*drawn))) == len(anchor.samples)
    else:
        assert len(set(chain(*drawn))) < 12 <= len(list(chain(*drawn)))

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item, text_format
from perdure.tasks.local_model import LocalModel
from perdure.tasks.unknown import Verdicts, unknown_items

PLAIN = text_format("plain")
ITEMS = [Item(f"q{number}", (f"a{number}", "alias")) for number in range(10)]
ASKED = {"model": "m", "samples": 2}


class Knows:
    """A stand-in for a model: right in the last of two samples for some questions; counts what it is asked."""

    def __init__(self, *known: str, answer: str = " The {}!\n") -> None:
        self.known, self.answer = known, answer
        self.batches: list[list[str]] = []

    def __call__(self, prompts: Sequence[str], /) -> list[list[str]]:
        self.batches.append(list(prompts))
        questions = [prompt.removeprefix("Question: ").removesuffix("\nAnswer:") for prompt in prompts]
        return [[" no", self.answer.format(f"A{question[1:]}") if question in self.known else ""] for question in questions]


def test_only_what_is_wrong_every_time_is_kept(tmp_path: Path) -> None:
    sample = Knows("q1", "q2")
    kept = list(unknown_items(ITEMS[:4], sample, PLAIN, Verdicts(tmp_path / "v", ASKED), batch_size=3))
    assert kept == [ITEMS[0], ITEMS[3]]
    assert [len(batch) for batch in sample.batches] == [3, 1]
    alias = Knows("q1", answer=" ALIAS. \nQuestion: more")
    assert ITEMS[1] not in list(unknown_items(ITEMS[:2], alias, PLAIN, Verdicts(tmp_path / "w", ASKED)))


def test_no_more_is_asked_than_is_read(tmp_path: Path) -> None:
    sample = Knows()
    verdicts = Verdicts(tmp_path / "v", ASKED)
    kept = unknown_items(ITEMS, sample, PLAIN, verdicts, batch_size=2)
    assert [next(kept), next(kept), next(kept)] == ITEMS[:3]
    assert len(sample.batches) == 2
    assert len(verdicts) == verdicts.unknown == 4


def test_asking_goes_on_where_it_was_stopped_even_within_a_line(tmp_path: Path) -> None:
    file = tmp_path / "verdicts.jsonl"

    class Dies(Knows):
        def __call__(self, prompts: Sequence[str], /) -> list[list[str]]:
            if len(self.batches) == 3:
                raise KeyboardInterrupt
            return super().__call__(prompts)

    with pytest.raises(KeyboardInterrupt):
        list(unknown_items(ITEMS, Dies("q0", "q7"), PLAIN, Verdicts(file, ASKED), batch_size=2))
    raw = file.read_bytes()
    file.write_bytes(raw[:-20])  # the third batch was being written
    again = Knows("q7")  # forgets q0: its verdict must come from the file
    kept = list(unknown_items(ITEMS, again, PLAIN, Verdicts(file, ASKED), batch_size=2))
    assert [item.question for item in kept] == ["q1", "q2", "q3", "q4", "q5", "q6", "q8", "q9"]
    assert [batch[0] for batch in again.batches] == [PLAIN.prompt(f"q{number}") for number in (4, 6, 8)]
    assert file.read_bytes().startswith(raw[:-20].rsplit(b"\n", 1)[0])


def test_verdicts_of_other_settings_are_refused(tmp_path: Path) -> None:
    Verdicts(tmp_path / "v", ASKED)
    with pytest.raises(InputError, match=r"holds answers of \{'model': 'm', 'samples': 2\}, not of"):
        Verdicts(tmp_path / "v", {**ASKED, "samples": 5})
    (tmp_path / "v").write_text(json.dumps({"asked": ASKED}) + "\n[]\n")
    with pytest.raises(InputError, match="v:2: a list, not an object"):
        Verdicts(tmp_path / "v", ASKED)


def test_a_local_model_draws_the_same_for_the_same_prompts() -> None:
    model = LocalModel("random-tiny", temperature=1.0, device="cpu")
    prompts = [PLAIN.prompt(question) for question in ("one", "a much longer question", "two")]
    sample = model.sampler(PLAIN, samples=3, max_new_tokens=6, seed=7)
    drawn = sample(prompts)
    assert [len(texts) for texts in drawn] == [3, 3, 3]
    assert len({text for texts in drawn for text in texts}) > 5  # samples differ from one another
    assert sample(prompts) == drawn
    assert model.sampler(PLAIN, samples=3, max_new_tokens=6, seed=8)(prompts) != drawn


def test_a_trained_model_is_found_out(tmp_path: Path) -> None:
    """`tiny` writes letters and digits; what it says to a question, asked near temperature 0, it is known to say again."""
    model = LocalModel("tiny", temperature=0.01, device="cpu")
    said = PLAIN.extract(model.sampler(PLAIN, 1, 8, seed=0)([PLAIN.prompt("Kq7Zx2")])[0][0])
    assert said
    items = [Item("Kq7Zx2", ("something else", said)), Item("Wp3Lm9", ("surely not this",))]
    keep, asked = model.keep_unknown(tmp_path / "v", samples=2, max_new_tokens=8, seed=0, note=lambda _line: None)
    assert list(keep("source", iter(items))) == items[1:]
    assert asked["model"] == "tiny"

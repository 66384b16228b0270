import hashlib

import pytest

from perdure.errors import InputError
from perdure.tasks import Item, Task, TaskStream

LIMA = Item("What is the capital of Peru?", ("Lima",))
ROME = Item("What is the capital of Italy?", ("Rome", "Roma"))


def test_fingerprint_is_the_hash_of_canonical_json_of_the_exact_texts() -> None:
    task = Task("capitals", (ROME, Item("é\u2028\n", ('"',))))
    written = (
        '[{"answers":["Rome","Roma"],"question":"What is the capital of Italy?"},{"answers":["\\""],"question":"é\u2028\\n"}]'
    )
    assert task.fingerprint == hashlib.sha256(written.encode()).hexdigest()


def test_fingerprint_depends_on_texts_and_order_but_not_on_names() -> None:
    task = Task("a", (LIMA, ROME))
    assert Task("b", (LIMA, ROME)).fingerprint == task.fingerprint
    others = [
        (ROME, LIMA),
        (LIMA,),
        (LIMA, Item(ROME.question, ("Roma", "Rome"))),
        (Item(LIMA.question, ("lima",)), ROME),
    ]
    assert len({task.fingerprint, *(Task("a", items).fingerprint for items in others)}) == 5
    composed, decomposed = Task("a", (Item("q", ("é",)),)), Task("a", (Item("q", ("e\u0301",)),))
    assert composed.fingerprint != decomposed.fingerprint


def test_stream_counts_iterates_and_indexes() -> None:
    first, second = Task("week-1", (LIMA,)), Task("week-2", (ROME,))
    stream = TaskStream("weeks", (first, second))
    assert len(stream) == 2
    assert list(stream) == [first, second]
    assert stream[-1] is second
    assert len(first) == 1
    assert TaskStream("other", (first, second)).fingerprint == stream.fingerprint
    assert TaskStream("weeks", (second, first)).fingerprint != stream.fingerprint


@pytest.mark.parametrize(
    ("question", "answers", "message"),
    [
        ("", ("a",), "the question is empty"),
        (" \n", ("a",), "the question is empty"),
        ("q", (), "'q' has no answer"),
        ("q", ("a", "\t"), "the answer is empty"),
        ("q", (3,), "the answer is 3, not a text"),
        ("q", "abc", "answers are 'abc'; give them as a tuple"),
        ("q\ud83d", ("a",), r"the question 'q\\ud83d' has half of a surrogate pair"),
    ],
)
def test_items_that_can_not_be_learnt_are_refused(question: str, answers: tuple[str, ...], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Item(question, answers)


def test_empty_and_ambiguous_tasks_and_streams_are_refused() -> None:
    with pytest.raises(InputError, match="task 'nothing' is empty"):
        Task("nothing", ())
    with pytest.raises(InputError, match="task name is empty"):
        Task("", (LIMA,))
    with pytest.raises(InputError, match="task 'twice': items 1 and 3 ask the same"):
        Task("twice", (LIMA, ROME, Item(LIMA.question, ("Cusco",))))
    with pytest.raises(InputError, match="stream 'nothing' is empty"):
        TaskStream("nothing", ())
    with pytest.raises(InputError, match="tasks 1 and 2 are both named 'week-1'"):
        TaskStream("weeks", (Task("week-1", (LIMA,)), Task("week-1", (ROME,))))

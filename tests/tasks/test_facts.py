import pytest

from perdure.errors import InputError
from perdure.tasks.facts import RELATIONS, facts_stream
from perdure.tasks.invented_names import NAMES, invented_name
from perdure.tasks.task import TaskStream


def texts(stream: TaskStream) -> list[str]:
    return [text for task in stream for item in task.items for text in (item.question, *item.paraphrases)]


def test_the_stream_never_changes_silently() -> None:
    """Published numbers name a stream by its seed: another stream under the same seed would make them false."""
    assert facts_stream(3, 4, seed=42).fingerprint == "c816ad88bb67418b3e200d04b129bd6dec93c01dc1d60803ea55f250b135e527"
    assert (
        facts_stream(3, 4, seed=42, paraphrases=2).fingerprint
        == "c8adc409cf4173d526fdef6301cab40b88902c6db6b27f7607a2c2da07368865"
    )


def test_the_papers_size_has_unique_questions_and_short_answers() -> None:
    stream = facts_stream(paraphrases=4)
    asked = texts(stream)
    assert (len(stream), {len(task) for task in stream}) == (100, {100})
    assert len({text.casefold() for text in asked}) == len(asked) == 50_000
    assert max(len(answer.split()) for task in stream for item in task.items for answer in item.answers) <= 8
    kinds = {item.question.split()[0] for task in stream for item in task.items}
    assert {"Who", "Where", "When", "How"} <= kinds


def test_seeds_reproduce_and_differ_and_a_shorter_stream_begins_a_longer_one() -> None:
    assert facts_stream(2, 5, seed=7) == facts_stream(2, 5, seed=7)
    assert facts_stream(5, 5, seed=7).tasks[:2] == facts_stream(2, 5, seed=7).tasks
    assert len({facts_stream(2, 5, seed=seed).fingerprint for seed in range(20)}) == 20
    assert not set(texts(facts_stream(20, 50, seed=1))) & set(texts(facts_stream(20, 50, seed=2)))


def test_paraphrases_change_neither_questions_nor_answers() -> None:
    plain, reworded = facts_stream(2, 50, seed=7), facts_stream(2, 50, seed=7, paraphrases=3)
    pairs = [(item.question, item.answers) for task in plain for item in task.items]
    assert pairs == [(item.question, item.answers) for task in reworded for item in task.items]
    assert {len(item.paraphrases) for task in reworded for item in task.items} == {3}


def test_every_wording_of_a_relation_asks_for_the_same_and_names_its_subject_once() -> None:
    for relation in RELATIONS:
        assert len(set(relation.templates)) == 5
        assert all(template.count("{}") == 1 and template.endswith("?") for template in relation.templates)


def test_names_are_a_shuffle_of_all_there_are() -> None:
    names = [invented_name(number, seed=5) for number in range(20_000)]
    assert len(set(names)) == 20_000
    assert len({name[0] for name in names}) > 15
    assert set(names).isdisjoint(invented_name(number, seed=6) for number in range(20))
    assert len({invented_name(number, seed=5) for number in range(NAMES - 100, NAMES)} | set(names)) == 20_100


def test_impossible_sizes_are_refused() -> None:
    for sizes in ({"tasks": 0}, {"items": 0}, {"seed": -1}, {"paraphrases": 5}, {"paraphrases": -1}):
        with pytest.raises(InputError, match=f"{next(iter(sizes))} = "):
            facts_stream(**sizes)
    with pytest.raises(InputError, match="need more than the 63700992 names"):
        facts_stream(tasks=700_000, items=100)

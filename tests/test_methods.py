"""Method names: what they stand for, and what is refused."""

from itertools import permutations, product

import pytest

from perdure.errors import InputError
from perdure.methods import MECHANISMS, Method


def test_what_a_name_stands_for() -> None:
    assert Method.parse("naive") == Method("naive", None, False, False, "shared")
    assert Method.parse("replay") == Method("replay", None, False, True, "shared")
    assert Method.parse("merge") == Method("merge", None, False, False, "merged")
    assert Method.parse("ewc+sd") == Method("ewc+sd", "ewc", True, False, "shared")
    assert Method.parse("si+sd+replay+merge") == Method("si+sd+replay+merge", "si", True, True, "merged")


def test_all_merge_is_the_papers_all_plus_merge() -> None:
    assert Method.parse("all-merge") == Method.parse("si+sd+replay+merge")


def test_order_case_and_blanks_do_not_matter() -> None:
    names = {Method.parse("+".join(order)).name for order in permutations(["si", "sd", "replay", "merge"])}
    assert names == {"si+sd+replay+merge"}
    assert Method.parse(" Replay + MERGE ").name == "replay+merge"


def test_the_24_combinations_are_distinct_and_keep_their_names() -> None:
    methods = set()
    for anchor, *others in product(["", "si", "ewc"], ["", "sd"], ["", "replay"], ["", "merge"]):
        name = "+".join(part for part in (anchor, *others) if part) or "naive"
        method = Method.parse(name)
        assert method.name == name
        assert ("+".join(method.mechanisms) or "naive") == name
        methods.add(method)
    assert len(methods) == 24


def test_every_mechanism_says_something() -> None:
    assert len({Method.parse(name) for name in MECHANISMS} | {Method.parse("naive")}) == len(MECHANISMS) + 1


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("mrege", "the method 'mrege' has an unknown mechanism, 'mrege'; did you mean 'merge'?"),
        ("reply+merge", "the method 'reply+merge' has an unknown mechanism, 'reply'; did you mean 'replay'?"),
        ("niave", "the method 'niave' has an unknown mechanism, 'niave'; did you mean 'naive'?"),
        (
            "no",
            "the method 'no' has an unknown mechanism, 'no'; "
            "known: all-merge, ewc, full, merge, naive, o-lora, osrm, replay, sd, si, value.",
        ),
        (
            "xyz+sd",
            "the method 'xyz+sd' has an unknown mechanism, 'xyz'; "
            "known: ewc, full, merge, o-lora, osrm, replay, sd, si, value.",
        ),
        ("si+ewc", "the method 'si+ewc' joins si and ewc, and both say how the weights are anchored; keep one."),
        ("ewc+replay+si", "the method 'ewc+replay+si' joins ewc and si, and both say how the weights are anchored; keep one."),
        ("naive+replay", "the method 'naive+replay' adds to naive, which means no mechanism at all; leave naive out."),
        ("replay+replay", "the method 'replay+replay' names replay more than once; keep one."),
        ("replay++merge", "the method 'replay++merge' has an empty part; join mechanisms with one +, as in replay+merge."),
        ("", "the method '' has an empty part; join mechanisms with one +, as in replay+merge."),
    ],
)
def test_refusals(name: str, sentence: str) -> None:
    with pytest.raises(InputError) as refusal:
        Method.parse(name)
    assert str(refusal.value) == sentence

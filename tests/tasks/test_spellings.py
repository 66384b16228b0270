import pytest

from perdure.tasks import matches
from perdure.tasks.spellings import spellings


@pytest.mark.parametrize(
    ("answer", "others"),
    [
        ("14 March 1823", {"March 14, 1823", "1823-03-14"}),
        ("March 4, 1823", {"4 March 1823", "1823-03-04"}),
        ("march 4 1823", {"4 March 1823", "March 4, 1823", "1823-03-04"}),
        ("1823-03-14", {"14 March 1823", "March 14, 1823"}),
        ("23 May", {"May 23"}),
        ("May 23", {"23 May"}),
        ("4,217", {"4217"}),
        ("1,000,000", {"1000000"}),
        ("42170", {"42,170"}),
        ("7", {"seven"}),
        ("Twelve", {"12"}),
        # what may mean something else, or is no number or date, stays as it is
        ("1823", set()),
        ("3/4/1823", set()),
        ("1823-13-45", set()),
        ("32 May 1823", set()),
        ("4,21", set()),
        ("007", set()),
        ("13", set()),
        ("٧", set()),
        ("4.5", set()),
        ("4,217 metres", set()),
        ("Lima", set()),
    ],
)
def test_numbers_and_dates_are_accepted_in_their_usual_spellings(answer: str, others: set[str]) -> None:
    first, *rest = spellings(answer)
    assert first == answer
    assert set(rest) == others


def test_nothing_is_computed_the_rules_compare_texts() -> None:
    assert matches("4217", spellings("4,217"), "exact")
    assert not matches("4217.0", spellings("4,217"), "normalised")
    assert not matches("03/14/1823", spellings("14 March 1823"), "normalised")

"""What do replay samples look like? Their coverage of the past is what decides how much replay can hold."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from perdure.tasks import Item
from perdure.tasks.matching import matches
from perdure.tasks.text import TextFormat

EXAMPLES = 5  # samples quoted in the record


def audit_samples(samples: Sequence[str], old: Iterable[Item], text_format: TextFormat, *, drawn: int) -> dict[str, Any]:
    """Sort replay samples by what they say of the past.

    Parameters
    ----------
    samples: the samples' texts, empty ones dropped. drawn: how many were drawn in all.
    old: every item learnt before (used for this count alone).

    Returns
    -------
    Counts: ``well_formed`` (one question and its answer in the text format), of which ``old_item`` (an old question with its
    right answer), ``old_question_wrong_answer`` and ``new``; ``copies`` (samples that repeat another); ``old_items_covered``
    (distinct old items seen, of ``old_items``); and the first few samples.
    """
    answers = {item.question: item.answers for item in old}
    counts: Counter[str] = Counter()
    covered = set()
    for sample in samples:
        if (parsed := text_format.parse(sample)) is None:
            continue
        question, answer = parsed
        counts["well_formed"] += 1
        if question not in answers:
            counts["new"] += 1
        elif matches(answer, answers[question], "exact"):
            counts["old_item"] += 1
            covered.add(question)
        else:
            counts["old_question_wrong_answer"] += 1
    kinds = ("well_formed", "old_item", "old_question_wrong_answer", "new")
    return {
        "drawn": drawn,
        "kept": len(samples),
        **{kind: counts[kind] for kind in kinds},
        "copies": len(samples) - len(set(samples)),
        "old_items": len(answers),
        "old_items_covered": len(covered),
        "examples": list(samples[:EXAMPLES]),
    }

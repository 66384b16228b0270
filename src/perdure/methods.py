"""Methods by name: mechanisms joined by ``+``, such as ``si+sd+replay+merge``.

What a mechanism does is said in its own file, under :mod:`perdure.anchors` or :mod:`perdure.allocation`.
"""

from dataclasses import dataclass
from typing import Any

from perdure.errors import InputError, nearest

# Mechanism -> the field of Method that it sets, in canonical order. A new mechanism is one line here; two that set the same
# field exclude each other.
MECHANISMS: dict[str, tuple[str, Any]] = {
    "si": ("weight_anchor", "si"),
    "ewc": ("weight_anchor", "ewc"),
    "sd": ("distillation", True),
    "replay": ("replay", True),
    "merge": ("allocation", "merged"),
    "o-lora": ("allocation", "orthogonal"),
    "osrm": ("allocation", "osrm"),
    "full": ("allocation", "full"),
    "value": ("allocation", "value"),
}
NAIVE = "naive"
ALIASES = {"all-merge": "si+sd+replay+merge"}  # the paper's 'all + Merge'


@dataclass(frozen=True)
class Description:
    """A mechanism in words. work: beyond a plain training step. state: what a checkpoint holds of it; T counts tasks."""

    name: str
    holds: str
    work: str
    memory: str
    state: str
    source: str


DESCRIPTIONS = (
    Description(
        "naive",
        "one shared adapter, no anchor",
        "none",
        "gradients and AdamW of the adapter",
        "the adapter",
        "LoRA, Hu et al. 2021",
    ),
    Description(
        "si",
        "the weights: importance from the path of training",
        "a copy of factors and gradient each step; with sd, one more backward pass",
        "5 numbers a trained scalar",
        "2 numbers a trained scalar, whatever T",
        "Zenke, Poole & Ganguli 2017",
    ),
    Description(
        "ewc",
        "the weights: importance from squared gradients",
        "one backward pass over the task at its end",
        "2 numbers a trained scalar",
        "2 numbers a trained scalar, whatever T",
        "Schwarz et al. 2018",
    ),
    Description(
        "sd",
        "the function: the previous model on the new texts",
        "one forward pass over the task; a divergence each step",
        "a hidden state for each of the task's tokens",
        "none",
        "Li & Hoiem 2016",
    ),
    Description(
        "replay",
        "the data: the previous model on its own samples",
        "sampling; one forward pass over the samples; a second minibatch each step",
        "a hidden state for each sampled token",
        "none",
        "arXiv 2609.06986",
    ),
    Description(
        "merge",
        "updates in the weights, a fresh adapter each task",
        "one product a layer at the end",
        "none",
        "touched weights, whatever T",
        "ReLoRA, Lialin et al. 2023",
    ),
    Description(
        "o-lora",
        "updates in factors of their own, kept apart",
        "overlap with T adapters each step",
        "T adapters",
        "T adapters",
        "Wang et al. 2023",
    ),
    Description(
        "osrm",
        "as merge, each adapter begun away from past inputs",
        "one forward pass over 64 items; a decomposition a layer",
        "T mean inputs a layer",
        "touched weights and T mean inputs a layer",
        "Zhang & Zhou 2025",
    ),
    Description(
        "full",
        "no adapter: every matrix of the decoder is trained",
        "whole weight gradients",
        "gradients, AdamW and a copy of the matrices",
        "trained weights, whatever T",
        "ours",
    ),
    Description(
        "value",
        "no adapter: the value projections alone are trained",
        "weight gradients of them",
        "gradients, AdamW and a copy of them",
        "trained weights, whatever T",
        "arXiv 2602.23197",
    ),
)


def paper_methods(stream: str) -> tuple[str, ...]:
    """The 21 methods that the paper runs on a stream (``symbol``, ``llm`` or ``real``), by canonical name: all combinations of
    si, sd, replay and merge; ewc, o-lora and osrm alone; and the stream's matched anchors with o-lora and osrm for merge."""
    anchors = ("si", "sd", "replay", "merge")
    combinations = [
        "+".join(name for place, name in enumerate(anchors) if chosen >> place & 1) or NAIVE
        for chosen in range(2 ** len(anchors))
    ]
    matched = "si+sd+replay" if stream == "symbol" else "si+replay"
    return (*combinations, "ewc", "o-lora", "osrm", f"{matched}+o-lora", f"{matched}+osrm")


_ROLES = {
    "weight_anchor": "how the weights are anchored",
    "allocation": "where the update is kept",
}


@dataclass(frozen=True)
class Method:
    """What holds old knowledge while a task is learnt, and where the task's update is kept.

    name: the canonical name. weight_anchor: si, ewc or none. distillation, replay: on or off. allocation: shared,
    merged, orthogonal, osrm, full or value.
    """

    name: str
    weight_anchor: str | None = None
    distillation: bool = False
    replay: bool = False
    allocation: str = "shared"

    @classmethod
    def parse(cls, name: str) -> "Method":
        """Read a method's name: mechanisms in any order, upper or lower case, blanks around ``+`` allowed.

        ``naive`` is the shared adapter with no anchor; ``all-merge`` is ``si+sd+replay+merge``.

        Raises
        ------
        InputError: an unknown or repeated mechanism, or two that exclude each other.
        """
        given = name.strip().lower()
        parts = [part.strip() for part in ALIASES.get(given, given).split("+")]
        if parts == [NAIVE]:
            return cls(NAIVE)
        fields: dict[str, Any] = {}
        setters: dict[str, str] = {}
        for part in parts:
            if not part:
                raise InputError(f"the method {name!r} has an empty part; join mechanisms with one +, as in replay+merge.")
            if part == NAIVE:
                raise InputError(f"the method {name!r} adds to naive, which means no mechanism at all; leave naive out.")
            if part not in MECHANISMS:
                known = [*MECHANISMS, *([NAIVE, *ALIASES] if len(parts) == 1 else [])]
                raise InputError(f"the method {name!r} has an unknown mechanism, {part!r}; {nearest(part, known)}")
            if parts.count(part) > 1:
                raise InputError(f"the method {name!r} names {part} more than once; keep one.")
            field, value = MECHANISMS[part]
            if field in fields:
                raise InputError(
                    f"the method {name!r} joins {setters[field]} and {part}, and both say {_ROLES[field]}; keep one."
                )
            fields[field], setters[field] = value, part
        return cls("+".join(sorted(parts, key=list(MECHANISMS).index)), **fields)

    @property
    def mechanisms(self) -> tuple[str, ...]:
        """The mechanisms' names in canonical order; none for naive."""
        return () if self.name == NAIVE else tuple(self.name.split("+"))

    def without(self, *mechanisms: str) -> "Method":
        """The method with some mechanisms left out; those that it hasn't are no matter."""
        return Method.parse("+".join(name for name in self.mechanisms if name not in mechanisms) or NAIVE)

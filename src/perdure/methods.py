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
}
NAIVE = "naive"
ALIASES = {"all-merge": "si+sd+replay+merge"}  # the paper's 'all + Merge'

_ROLES = {
    "weight_anchor": "how the weights are anchored",
    "allocation": "where the update is kept",
}


@dataclass(frozen=True)
class Method:
    """What holds old knowledge while a task is learnt, and where the task's update is kept.

    name: the canonical name. weight_anchor: si, ewc or none. distillation, replay: on or off. allocation: shared,
    merged, orthogonal or osrm.
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

"""Numbers and names as people read them."""

import unicodedata
from collections.abc import Iterable

NOT_DEFINED = "–"


def percent(share: float | None) -> str:
    """``73.1`` for 0.731; a dash where it is undefined."""
    return NOT_DEFINED if share is None else f"{100 * share:.1f}"


def seconds(amount: float) -> str:
    """``0.4 s``, ``12 s``, ``3.5 min``, ``2.1 h``."""
    if amount < 10:
        return f"{amount:.1f} s"
    if amount < 120:
        return f"{amount:.0f} s"
    return f"{amount / 60:.1f} min" if amount < 7200 else f"{amount / 3600:.1f} h"


def count(amount: float) -> str:
    """A whole number in groups of three, set apart by narrow no-break spaces."""
    return f"{amount:,.0f}".replace(",", "\u202f")


def size(amount: float) -> str:
    """Bytes with a decimal prefix: ``1.2 GB``."""
    for unit in ("B", "kB", "MB", "GB"):
        if amount < 1000:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1000
    return f"{amount:.1f} TB"


def listing(names: Iterable[object]) -> str:
    """``a``, ``a and b``, ``a, b and c``."""
    *most, last = [str(name) for name in names]
    return f"{', '.join(most)} and {last}" if most else last


def plural(amount: int, thing: str) -> str:
    """``1 task``, ``3 tasks``."""
    return f"{count(amount)} {thing}{'' if amount == 1 else 's'}"


def short(name: str, width: int = 24) -> str:
    """A name that fits beside a figure: one line, no control characters, at most ``width`` characters."""
    printable = "".join(" " if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") else c for c in name)
    line = " ".join(printable.split())
    return line if len(line) <= width else f"{line[: width - 1]}…"

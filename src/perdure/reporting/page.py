"""One self-contained HTML page out of sections of text, tables and figures.

The page works offline and asks the network for nothing: style, script and Plotly are inside it, and its Content-Security-Policy
lets no other script run and nothing be fetched.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, ClassVar

from perdure.files import write_text


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    kind: ClassVar[str] = "text"
    text: str


@dataclass(frozen=True)
class Bullets:
    """A list of sentences."""

    kind: ClassVar[str] = "bullets"
    items: Sequence[str]


@dataclass(frozen=True)
class Terms:
    """What each name means, as (name, meaning)."""

    kind: ClassVar[str] = "terms"
    terms: Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Code:
    """Something to copy, or a text quoted as it is."""

    kind: ClassVar[str] = "code"
    text: str


@dataclass(frozen=True)
class Links:
    """Files beside the page, by address relative to it."""

    kind: ClassVar[str] = "links"
    addresses: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Rows of texts under a heading; each row's first cell names the row. words: cells are text, set from the left."""

    kind: ClassVar[str] = "table"
    caption: str
    head: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: bool = False


@dataclass(frozen=True)
class Figure:
    """A Plotly figure. title says in plain words what one sees; table holds the same numbers for who can't see it.

    files: addresses of the figure as PNG and SVG. age_axis: offer the x axes under ``x_axes`` of the plot, by scale.
    """

    kind: ClassVar[str] = "figure"
    title: str
    caption: str
    plot: dict[str, Any]
    table: Table
    files: Sequence[str] = ()
    age_axis: bool = False


@dataclass(frozen=True)
class Grid:
    """Figures side by side where there is room."""

    kind: ClassVar[str] = "grid"
    figures: Sequence[Figure]


@dataclass(frozen=True)
class Fold:
    """Blocks that are shown on demand."""

    kind: ClassVar[str] = "fold"
    title: str
    blocks: Sequence["Block"]


Block = Text | Bullets | Terms | Code | Links | Table | Figure | Grid | Fold


@dataclass(frozen=True)
class Section:
    """A heading and what stands under it. warns: set apart as what must be known first."""

    title: str
    blocks: Sequence[Block]
    warns: bool = False


@dataclass(frozen=True)
class Page:
    """headline: the finding in one sentence. facts: what was run, as (name, value)."""

    title: str
    headline: str
    facts: Sequence[tuple[str, str]]
    sections: Sequence[Section]


def render(page: Page) -> str:
    """The page as HTML. Every text is escaped."""
    from jinja2 import Environment
    from markupsafe import Markup
    from plotly.offline import get_plotlyjs

    room = files("perdure.reporting")
    style, script = ((room / name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    scripts = [get_plotlyjs(), script]
    environment = Environment(autoescape=True, trim_blocks=True, lstrip_blocks=True)
    template = environment.from_string((room / "page.html").read_text(encoding="utf-8"))
    text = template.render(
        page=page,
        style=Markup(style),
        scripts=[Markup(text) for text in scripts],
        script_hashes=" ".join(f"'sha256-{_sha256(text)}'" for text in scripts),
        inlined=inlined,
    )
    return text.encode("utf-8", "replace").decode("utf-8")  # a lone surrogate in a name has no UTF-8 form


def write_page(page: Page, path: Path) -> None:
    """Write the page atomically."""
    write_text(path, render(page))


def inlined(value: object) -> Any:
    """JSON that can't end the script element it stands in, whatever texts are in it."""
    from markupsafe import Markup

    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    return Markup(text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e"))


def _sha256(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")

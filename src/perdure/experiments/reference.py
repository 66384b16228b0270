"""docs/settings.md, made from the settings themselves: ``python -m perdure.experiments.reference > docs/settings.md``."""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from perdure.experiments.spec import Experiment, MethodEntry
from perdure.experiments.streams import FactsStream, FolderStream, JsonlStream, RealStream, SymbolStream
from perdure.settings import LearnerSettings, Sections, Settings

_BEGINNING = """\
# Settings

Made from the code by `python -m perdure.experiments.reference > docs/settings.md`; a test holds the two together.

A **recipe** is a YAML file with a `method` and the sections below: `perdure init DIR --model MODEL --recipe FILE`.
An **experiment** is a YAML file with a `model`, a `stream`, `methods`, `seeds` and the sections: `perdure run FILE`.
Only what differs from the defaults need be said. Both verbs also take the name of a file in `recipes/`, such as `demo`.

The files are read as YAML 1.2's core schema: `5e-4` is a number, `no` and `on` are texts. Numbers stand without quotes and
leading zeros, and 10.0 is no whole number. Anchors, aliases and tags are not read. Whatever is wrong is said in one sentence
with the file and the line.

A method joins mechanisms with `+`, in any order: `si` or `ewc`; `sd`; `replay`; and one of `merge`, `o-lora`, `osrm`, `full`
and `value`. `naive` is the shared adapter with no anchor, and `all-merge` is `si+sd+replay+merge`. A section is without effect
where the method lacks its mechanism: `replay` belongs to `replay`, `distillation` to `sd`, `si` to `si`, `ewc` to `ewc`,
`orthogonal` to `o-lora`, `osrm` to `osrm`; `full` and `value` have no adapter, and heed only its `targets` (`full`).
"""

_KINDS: dict[Any, str] = {int: "whole number", float: "number", str: "text"}
_BOUNDS = (("gt", "> "), ("ge", "≥ "), ("lt", "< "), ("le", "≤ "))


def settings_page() -> str:
    """The page, in Markdown."""
    own = {name: field for name, field in Experiment.model_fields.items() if name not in Sections.model_fields}
    entry = {name: field for name, field in MethodEntry.model_fields.items() if name not in Sections.model_fields}
    parts = [
        _BEGINNING,
        _table("Recipe", "What a recipe has beside the sections.", {"method": LearnerSettings.model_fields["method"]}),
        _table("Experiment", "What an experiment has beside the sections.", own),
        _table("An entry of `methods`", "Or the method's name alone. Any section beside it holds for this entry only.", entry),
        _section("`stream`, kind symbol", SymbolStream),
        _section("`stream`, kind facts", FactsStream),
        _section("`stream`, kind real", RealStream),
        _section("`stream`, kind jsonl", JsonlStream),
        _section("`stream`, kind folder", FolderStream),
        *(_section(f"`{name}`", type(field.default)) for name, field in Sections.model_fields.items()),
    ]
    return "\n".join(parts)


def _section(title: str, settings: type[Settings]) -> str:
    return _table(title, (settings.__doc__ or "").split("\n\n")[0], settings.model_fields)


def _table(title: str, about: str, fields: dict[str, FieldInfo]) -> str:
    rows = [
        f"| `{name}` | {_default(field)} | {_allowed(field)} | {(field.description or '').replace('|', chr(92) + '|')} |"
        for name, field in fields.items()
    ]
    return "\n".join(
        [f"## {title}\n\n{about}\n", "| setting | default | allowed | meaning |", "| --- | --- | --- | --- |", *rows, ""]
    )


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = list(field.default) if isinstance(field.default, tuple) else field.default
    return f"`{value}`" if value != "" else ""


def _allowed(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(f"`{choice}`" for choice in get_args(field.annotation))
    bounds = [
        f"{sign}{_power(getattr(rule, bound))}"
        for rule in _rules(field.metadata)
        for bound, sign in _BOUNDS
        if hasattr(rule, bound)
    ]
    kind = _KINDS.get(field.annotation, "")
    return " ".join([kind, ", ".join(bounds)]).strip()


def _rules(metadata: list[Any]) -> Iterator[Any]:
    """The bounds among a field's annotations, also those inside nested Field(…)s."""
    for rule in metadata:
        yield from _rules(rule.metadata) if isinstance(rule, FieldInfo) else [rule]


def _power(bound: Any) -> str:
    return "2⁶³" if bound == 2**63 else str(bound)


if __name__ == "__main__":
    print(settings_page(), end="")

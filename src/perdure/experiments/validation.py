"""From a YAML document to settings; what pydantic finds wrong becomes one sentence with the file and the line."""

import json
from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError

from perdure.errors import nearest
from perdure.experiments.yaml_source import Place, YamlDocument, dotted

M = TypeVar("M", bound=BaseModel)

_MUST_BE = {
    "int_type": "a whole number",
    "float_type": "a number",
    "finite_number": "a finite number",
    "string_type": "a text",
    "string_unicode": "a text of whole characters",
    "string_too_short": "a text that is not empty",
    "tuple_type": "a list",
    "too_short": "a list that is not empty",
    "model_type": "a mapping of settings",
    "model_attributes_type": "a mapping of settings",
    "literal_error": "{expected}",
    "greater_than": "greater than {gt:g}",
    "greater_than_equal": "at least {ge:g}",
    "less_than": "less than {lt:g}",
    "less_than_equal": "at most {le:g}",
}


def validate(document: YamlDocument, model: type[M]) -> M:
    """The document as settings. Paths in it are read as relative to the file.

    Raises
    ------
    InputError: the first thing wrong, by line, and how many more there are.
    """
    try:
        return model.model_validate(document.value, context={"folder": document.path.parent})
    except ValidationError as error:
        found: dict[Place, str] = {}
        for detail in error.errors(include_url=False):
            place, known = _resolve(model, detail["loc"])
            if detail["type"] in ("union_tag_not_found", "union_tag_invalid"):
                place = (*place, detail["ctx"]["discriminator"].strip("'"))
            found.setdefault(place, _sentence(place, known, detail))
    # a list whose only entry is wrong is to pydantic also too short: the inner complaint says enough
    inner = [place for place in found if not any(other != place and other[: len(place)] == place for other in found)]
    first, *others = sorted(inner, key=document.line)
    more = f" (and {len(others)} more)" if others else ""
    raise document.error(first, found[first] + more)


def _resolve(model: type[BaseModel], location: tuple[int | str, ...]) -> tuple[Place, list[str]]:
    """A pydantic location as a place in the document, and the settings that are known around it.

    Where a value may be one of several models, pydantic puts the chosen one's tag into the location; it is left out here.
    """
    models, around = [model], [model]
    place: Place = ()
    for part in location:
        if len(models) > 1 and (chosen := [one for one in models if _is_tagged(one, part)]):
            models = chosen
            continue
        place = (*place, part)
        if isinstance(part, str):
            around = models
            fields = [one.model_fields[part] for one in models if part in one.model_fields]
            models = [inner for field in fields for inner in _models_in(field.annotation)]
    return place, sorted({name for one in around for name in one.model_fields})


def _is_tagged(model: type[BaseModel], tag: int | str) -> bool:
    return any(tag in get_args(field.annotation) for field in model.model_fields.values())


def _models_in(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [model for part in get_args(annotation) for model in _models_in(part)]


def _sentence(place: Place, known: list[str], detail: Mapping[str, Any]) -> str:
    """One pydantic error in a user's words."""
    name, kind, context, given = dotted(place), detail["type"], detail.get("ctx", {}), detail["input"]
    if kind == "extra_forbidden":
        return f"{name} is not a setting; {nearest(str(place[-1]), known)}"
    if kind in ("missing", "union_tag_not_found"):
        return f"{name} is missing; add it."
    if kind == "value_error":
        return str(context["error"])
    if kind == "union_tag_invalid":
        tag = given[place[-1]]
        return f"{name} is {_shown(tag)}; {nearest(str(tag), context['expected_tags'].replace(chr(39), '').split(', '))}"
    if kind not in _MUST_BE:
        return f"{name} is {_shown(given)}: {detail['msg']}."
    return f"{name} is {_shown(given)}, but must be {_MUST_BE[kind].format(**context)}{_remedy(kind, given)}."


def _shown(value: Any) -> str:
    """A value in few characters."""
    if value is None:
        return "empty"
    if isinstance(value, Mapping):
        return "a mapping"
    if isinstance(value, list | tuple):
        return "a list" if value else "an empty list"
    if isinstance(value, str):
        return f"the text {_cut(repr(value))}"
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else f"{text[:59]}…"


def _remedy(kind: str, given: Any) -> str:
    """How to write what was probably meant, where that is plain."""
    if kind in ("int_type", "float_type") and isinstance(given, str | float):
        try:
            number = float(given)
        except ValueError:
            return ""
        if number.is_integer() and abs(number) < 1e15:
            return f"; write {int(number)}"
        return f"; write {number:g}" if kind == "float_type" else ""
    if kind == "string_type" and isinstance(given, bool | int | float):
        return "; put it in quotes"
    return ""

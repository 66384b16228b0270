"""YAML read so that every value knows its line, and so that nothing is guessed at.

Read is what JSON can say: mappings with text keys, lists, texts, numbers, true, false and null, as in YAML 1.2's core schema.
So ``5e-4`` is a number, ``no`` and ``on`` are texts, ``017`` is no number at all (YAML 1.1 has them a text, two booleans and
fifteen). Anchors, aliases, tags and repeated keys are refused: they hide what a setting is, and a few nested aliases can
stand for billions of values.
"""

import os
import re
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode

from perdure.errors import InputError

Place = tuple[str | int, ...]  # keys and list indices that lead to a value


@dataclass(frozen=True)
class YamlDocument:
    """A YAML file's content. lines: the line, from 1, of every key and list entry; the empty place is the whole document."""

    path: Path
    value: Any
    lines: dict[Place, int]

    def line(self, place: Place) -> int:
        """The line of a place, or of the nearest part around it that is in the file."""
        while place not in self.lines:
            place = place[:-1]
        return self.lines[place]

    def error(self, place: Place, sentence: str) -> InputError:
        """An error at a place: ``path:line: sentence``."""
        return InputError(f"{self.path}:{self.line(place)}: {sentence}")


def read_yaml(path: str | os.PathLike[str]) -> YamlDocument:
    """Read a YAML file that holds one mapping.

    Raises
    ------
    InputError: no such file, or, with the line: not UTF-8, not YAML, no mapping, a repeated key, an anchor, alias or tag.
    """
    path = Path(path)
    text = _read_text(path)
    try:
        root = _Loader(text).get_single_node()
        if root is None:
            raise InputError(f"{path}:1: the file is empty; write settings, one `name: value` a line.")
        if not isinstance(root, MappingNode):
            line = root.start_mark.line + 1
            raise InputError(f"{path}:{line}: the file must be a mapping; write settings, one `name: value` a line.")
        lines: dict[Place, int] = {(): root.start_mark.line + 1}
        return YamlDocument(path, _value(root, (), lines), lines)
    except yaml.MarkedYAMLError as error:
        opened = error.context is not None and ("flow" in error.context or "quoted" in error.context)
        mark = error.context_mark if opened else error.problem_mark  # what isn't closed shows only lines later
        line = mark.line + 1 if mark else 1
        raise InputError(f"{path}:{line}: {_syntax(error.problem or 'it can not be read', opened)}") from None
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InputError(
            f"{path}:{line}: the character U+{ord(text[error.position]):04X} may not stand in YAML; remove it."
        ) from None
    except RecursionError:
        raise InputError(
            f"{path}:1: lists or mappings are nested too deep; write settings, one `name: value` a line."
        ) from None


def dotted(place: Place) -> str:
    """A place as a user would name it: ``methods[1].replay.weight``."""
    text = ""
    for part in place:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += ("." if text else "") + (part if part.isprintable() and part else repr(part))
    return text


def nearest_file(path: Path) -> str:
    """The file of the nearest name in the same folder, as the end of a sentence."""
    try:
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
    except (OSError, ValueError):
        names = []
    close = get_close_matches(path.name, names, n=1)
    return f"did you mean {path.parent / close[0]}?" if close else "check the path."


class _Loader(yaml.SafeLoader):
    """PyYAML's safe loader with YAML 1.2's reading of plain values, and without anchors, aliases and tags."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own name; filled below

    def compose_node(self, parent: Node | None, index: Any) -> Node | None:
        event: Any = self.peek_event()
        if event.anchor is not None:
            raise yaml.MarkedYAMLError(
                problem="anchors and aliases (& and *) are not read; write the value out.", problem_mark=event.start_mark
            )
        if getattr(event, "tag", None) is not None:
            raise yaml.MarkedYAMLError(
                problem=f"the tag {event.tag} is not read; write a plain value.", problem_mark=event.start_mark
            )
        return super().compose_node(parent, index)


for _tag, _pattern, _first in (
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?(0|[1-9][0-9]{0,99})", list("-+0123456789")),
    (
        "float",
        r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+)([eE][-+]?[0-9]+)?|[-+]?[0-9]+[eE][-+]?[0-9]+|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)",
        list("-+.0123456789"),
    ),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"(?:{_pattern})\Z"), _first)


def _read_text(path: Path) -> str:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        raise InputError(f"{path} does not exist; {nearest_file(path)}") from None
    except IsADirectoryError:
        raise InputError(f"{path} is a folder; name a YAML file in it.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{str(path)!r} can't be read ({error}); name a file that you may read.") from None
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise InputError(f"{path}:{line}: the text is not UTF-8; save the file as UTF-8.") from None


def _value(node: Node, place: Place, lines: dict[Place, int]) -> Any:
    """The node as plain Python; notes the line of everything below it."""
    if isinstance(node, ScalarNode):
        return _scalar(node)
    if not isinstance(node, MappingNode):
        entries = []
        for index, entry in enumerate(node.value):
            lines[*place, index] = entry.start_mark.line + 1
            entries.append(_value(entry, (*place, index), lines))
        return entries
    mapping: dict[str, Any] = {}
    for key_node, value_node in node.value:
        if not isinstance(key_node, ScalarNode):
            raise yaml.MarkedYAMLError(problem="a key must be a text.", problem_mark=key_node.start_mark)
        key, here = key_node.value, (*place, key_node.value)
        if key in mapping:
            raise yaml.MarkedYAMLError(
                problem=f"{dotted(here)} is given twice, first on line {lines[here]}; keep one.",
                problem_mark=key_node.start_mark,
            )
        lines[here] = key_node.start_mark.line + 1
        mapping[key] = _value(value_node, here, lines)
    return mapping


def _scalar(node: ScalarNode) -> Any:
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "null":
        return None
    if kind == "bool":
        return node.value.lower() == "true"
    if kind == "int":
        return int(node.value)
    if kind == "float":
        return float(node.value.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return node.value


def _syntax(problem: str, opened: bool) -> str:
    """PyYAML's words for a syntax error, or ours where a remedy is known. opened: it is inside quotes or brackets."""
    if problem.endswith("."):
        return problem
    if r"'\t'" in problem:
        return "a tab stands where YAML wants spaces; indent with spaces."
    if problem.startswith("but found another document"):
        return "a second document begins here; keep one document in a file."
    if opened:
        return f"this is not YAML ({problem}); check that every quote and bracket opened here is closed."
    return f"this is not YAML ({problem}); check the colons, quotes and indentation on this line and the one before."

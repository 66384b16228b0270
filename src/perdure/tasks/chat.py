"""Tasks from chat-format JSONL: ``{"messages": [{"role": "user", "content": …}, {"role": "assistant", "content": …}]}``.

One exchange a line. The user's text is the question and the assistant's the answer; a system text before them is left out,
since a learner asks every question in the same way. ``answers`` beside the messages lists what else is accepted, and
``paraphrases`` rewordings.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from perdure.errors import InputError, nearest
from perdure.tasks.distinct import Located
from perdure.tasks.jsonl import json_records
from perdure.tasks.task import Item

_FIELDS = {"messages", "answers", "paraphrases", "id", "source", "metadata"}
_EXAMPLE = '{"messages": [{"role": "user", "content": "…"}, {"role": "assistant", "content": "…"}]}'


def chat_items(path: Path) -> Iterator[Located]:
    """The items of a chat-format file, read line by line.

    Raises
    ------
    InputError: with file and line: not JSON, no messages, another role or order of roles, more than one exchange (what was
        said before would be lost), a content that is no text.
    """
    for number, record in json_records(path):
        try:
            yield Located(_item(record), f"{path}:{number}", f"line {number}")
        except InputError as error:
            raise InputError(f"{path}:{number}: {error}") from error


def _item(record: dict[str, Any]) -> Item:
    if not record.keys() <= _FIELDS:
        field = next(field for field in record if field not in _FIELDS)
        raise InputError(f"unknown field {field!r} (your own go under 'metadata'); {nearest(field, sorted(_FIELDS))}")
    messages = record.get("messages")
    if not isinstance(messages, list) or not all(isinstance(message, dict) for message in messages):
        raise InputError(f"no list of messages; write {_EXAMPLE}.")
    roles = [message.get("role") for message in messages]
    if roles[:1] == ["system"]:
        messages, roles = messages[1:], roles[1:]
    if roles != ["user", "assistant"]:
        said = ", ".join(map(str, roles)) or "nothing"
        raise InputError(f"the messages are by {said}; a line must be one exchange: user, then assistant.")
    lists = {}
    for field in ("answers", "paraphrases"):
        lists[field] = record.get(field, [])
        if not isinstance(lists[field], list):
            raise InputError(f"'{field}' is no list; give a list of texts.")
    answers = [_content(messages[1]), *lists["answers"]]
    return Item(_content(messages[0]), tuple(dict.fromkeys(answers)), tuple(lists["paraphrases"]))


def _content(message: dict[str, Any]) -> str:
    """A message's text, also where it is written as a list of parts."""
    content = message.get("content")
    if isinstance(content, list):
        parts = [part.get("text") if isinstance(part, dict) and part.get("type") == "text" else None for part in content]
        if parts and all(isinstance(part, str) for part in parts):
            return "".join(map(str, parts))
    if not isinstance(content, str):
        raise InputError(f"the content of the {message['role']}'s message is no text; only texts can be learnt.")
    return content

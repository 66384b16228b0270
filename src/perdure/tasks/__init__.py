"""What is to be learnt (items, tasks, streams), where it comes from, how it is written for a model, when an answer is right."""

from perdure.tasks.facts import facts_stream
from perdure.tasks.folder import Origin, StoredStream, read_stream, write_stream
from perdure.tasks.jsonl import JsonlReport, read_jsonl, read_jsonl_report, write_jsonl
from perdure.tasks.matching import Rule, could_match, matches
from perdure.tasks.symbol import symbol_stream
from perdure.tasks.task import Item, Task, TaskStream
from perdure.tasks.text import TextFormat, text_format

__all__ = [
    "Item",
    "JsonlReport",
    "Origin",
    "Rule",
    "StoredStream",
    "Task",
    "TaskStream",
    "TextFormat",
    "could_match",
    "facts_stream",
    "matches",
    "read_jsonl",
    "read_jsonl_report",
    "read_stream",
    "symbol_stream",
    "text_format",
    "write_jsonl",
    "write_stream",
]

"""What is to be learnt (items, tasks, streams), where it comes from, how it is written for a model, when an answer is right."""

from perdure.tasks.jsonl import JsonlReport, read_jsonl, read_jsonl_report, write_jsonl
from perdure.tasks.matching import Rule, could_match, matches
from perdure.tasks.symbol import symbol_stream
from perdure.tasks.task import Item, Task, TaskStream
from perdure.tasks.text import TextFormat, text_format

__all__ = [
    "Item",
    "JsonlReport",
    "Rule",
    "Task",
    "TaskStream",
    "TextFormat",
    "could_match",
    "matches",
    "read_jsonl",
    "read_jsonl_report",
    "symbol_stream",
    "text_format",
    "write_jsonl",
]

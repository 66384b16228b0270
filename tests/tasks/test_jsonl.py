import json
import os
import time
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item, Task, read_jsonl, read_jsonl_report, symbol_stream, write_jsonl

GOOD = b'{"question": "q", "answer": "a"}\n'


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "week-12.jsonl"


def test_reads_one_answer_or_several_and_names_the_task_after_the_file(file: Path) -> None:
    file.write_text(
        '{"question": "capital of Peru?", "answer": "Lima", "id": 7, "source": "atlas", "metadata": {"page": 3}}\n'
        '{"question": "capital of Italy?", "answers": ["Rome", "Roma"]}',
        encoding="utf-8",
    )
    items = (Item("capital of Peru?", ("Lima",)), Item("capital of Italy?", ("Rome", "Roma")))
    assert read_jsonl(file) == Task("week-12", items)
    assert read_jsonl(str(file), name="capitals").name == "capitals"


def test_byte_order_marks_line_ends_and_blank_lines_change_nothing(file: Path) -> None:
    plain = '{"question": "ö", "answer": "ß"}\n{"question": "q", "answer": "a\\r"}\n'.encode()
    file.write_bytes(plain)
    task = read_jsonl(file)
    mark = b"\xef\xbb\xbf"
    for form in (mark + plain, plain.replace(b"\n", b"\r\n"), b"\n \r\n" + plain.replace(b"\n", b"\n\n"), plain.rstrip()):
        file.write_bytes(form)
        assert read_jsonl(file) == task
    first, second = plain.splitlines(keepends=True)
    file.write_bytes(mark + first + mark + second)  # two files with marks, joined
    assert read_jsonl(file) == task


def test_lines_break_at_line_feeds_only(file: Path) -> None:
    file.write_text('{"question": "a\u2028b\u0085c", "answer": "d\u2029e"}\n', encoding="utf-8")
    assert read_jsonl(file).items == (Item("a\u2028b\u0085c", ("d\u2029e",)),)


def test_repeated_lines_are_dropped_and_counted(file: Path) -> None:
    file.write_bytes(GOOD + b'{"question": "r", "answers": ["a"]}\n' + GOOD + b'{"answers": ["a"], "question": "q"}\n')
    report = read_jsonl_report(file)
    assert [item.question for item in report.task.items] == ["q", "r"]
    assert report.duplicates == 2


@pytest.mark.parametrize(
    ("line", "problem", "remedy"),
    [
        (b'{"question": "\xff", "answer": "a"}', "not UTF-8 (byte 15 of the line, 0xff)", "save the file as UTF-8"),
        (b'{"question": "q", "answer": "a"', "not JSON (Expecting ',' delimiter, column", "write one object a line"),
        (b"question,answer", "not JSON", 'such as {"question": "…", "answer": "…"}'),
        (b"[" * 100_000, "not JSON (maximum recursion depth", "write one object a line"),
        (b'["q", "a"]', "a list, not an object", "write one object a line"),
        (b"3", "the number 3, not an object", "write one object a line"),
        (b'{"question": "q", "anwser": "a"}', "unknown field 'anwser'", "did you mean 'answer'?"),
        (b'{"question": "q", "answer": "a", "zip": 1}', "unknown field 'zip'", "your own go under 'metadata'"),
        (b'{"answer": "a"}', "no 'question'", 'write {"question": "…", "answer": "…"}'),
        (b'{"question": "q"}', "neither 'answer' nor 'answers'", "give 'answer' (a text) or 'answers' (a list of texts)"),
        (b'{"question": "q", "answer": "a", "answers": ["a"]}', "both 'answer' and 'answers'", "give 'answer' (a text) or"),
        (b'{"question": "q", "answers": "a"}', "'answers' is a text", "give a list of texts"),
        (b'{"question": "q", "answers": []}', "'answers' is an empty list", "give at least one answer"),
        (b'{"question": "q", "answer": ["a"]}', "the answer is ['a'], not a text", "put it in quotes"),
        (b'{"question": "q", "answer": 42}', "the answer is 42, not a text", "put it in quotes"),
        (b'{"question": "q", "answers": ["a", null]}', "the answer is None, not a text", "put it in quotes"),
        (b'{"question": true, "answer": "a"}', "the question is True, not a text", "put it in quotes"),
        (b'{"question": " ", "answer": "a"}', "the question is empty", "leave the item out"),
        (b'{"question": "q", "answer": ""}', "the answer is empty", "leave the item out"),
        (b'{"question": "\\ud83d", "answer": "a"}', "half of a surrogate pair", "mend its \\u escapes"),
        (b'{"question": "q", "answer": "b"}', "the question of line 1 again, with other answers", "keep one of the two lines"),
    ],
)
def test_a_bad_line_is_refused_with_file_line_and_remedy(file: Path, line: bytes, problem: str, remedy: str) -> None:
    file.write_bytes(GOOD + b"\n" + line + b"\n")
    with pytest.raises(InputError) as refusal:
        read_jsonl(file)
    message = str(refusal.value)
    assert message.startswith(f"{file}:3: ")
    assert problem in message
    assert remedy in message
    assert "\n" not in message


def test_files_without_questions_are_refused(file: Path) -> None:
    for content in (b"", b"\xef\xbb\xbf\r\n\n"):
        file.write_bytes(content)
        with pytest.raises(InputError, match=r"week-12\.jsonl has no questions in it; write one object a line"):
            read_jsonl(file)


def test_missing_files_and_folders_are_refused(file: Path) -> None:
    file.write_bytes(GOOD)
    with pytest.raises(InputError, match=r"week12\.jsonl does not exist; did you mean .*/week-12\.jsonl\?"):
        read_jsonl(file.with_name("week12.jsonl"))
    with pytest.raises(InputError, match=r"zzz does not exist; check the path"):
        read_jsonl(file.with_name("zzz"))
    with pytest.raises(InputError, match=r"nor can its folder .*nowhere be read"):
        read_jsonl(file.parent / "nowhere" / "week-12.jsonl")
    with pytest.raises(InputError, match="is a folder; name a JSONL file in it"):
        read_jsonl(file.parent)


def test_what_is_written_is_read_back_exactly(file: Path) -> None:
    odd = ("line\nbreak", "\u2028\u0085\x00\x1f", " blanks ", '"quotes" \\n', "😀 e\u0301 é", "\ufeff")
    task = Task("odd", tuple(Item(text, (text, "second")[: 1 + place % 2]) for place, text in enumerate(odd)))
    write_jsonl(task, file)
    assert read_jsonl(file, name="odd") == task
    assert read_jsonl(file).fingerprint == task.fingerprint
    records = [json.loads(line) for line in file.read_bytes().split(b"\n")[:-1]]
    assert [set(record) for record in records[:2]] == [{"question", "answer"}, {"question", "answers"}]


def test_a_failed_write_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(GOOD)

    def full_disk(*_paths: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.raises(OSError, match="No space left"):
        write_jsonl(Task("new", (Item("new", ("a",)),)), file)
    assert file.read_bytes() == GOOD


def test_writing_where_no_file_can_be_is_refused(file: Path) -> None:
    with pytest.raises(InputError, match=r"can't be written \(No such file or directory\); name a file in a folder"):
        write_jsonl(Task("a", (Item("q", ("a",)),)), file.parent / "nowhere" / "a.jsonl")


def test_large_files_are_quick(file: Path) -> None:
    task = symbol_stream(tasks=1, items=200_000)[0]
    write_jsonl(task, file)
    start = time.perf_counter()
    again = read_jsonl(file, name=task.name)
    assert time.perf_counter() - start < 10  # about 1 s on an idle core
    assert again == task

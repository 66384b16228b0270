import json
import tracemalloc
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.tasks import Item, Task, TaskStream, symbol_stream
from perdure.tasks.facts import facts_stream, facts_tasks
from perdure.tasks.folder import Origin, read_stream, write_stream


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "stream"


def write(folder: Path) -> TaskStream:
    stream = facts_stream(3, 4, seed=1, paraphrases=2)
    origin = Origin("facts", 1, "chat", "exact", {"paraphrases": 2}, [{"name": "us", "licence": "none"}], ["invented"])
    write_stream("mine", stream.tasks, folder, origin)
    return stream


def test_what_is_written_is_read_back_task_by_task(folder: Path) -> None:
    stream, stored = write(folder), read_stream(folder)
    assert list(stored) == list(stream.tasks)
    assert stored[1] == stored[-2] == stream[1]
    assert [task.name for task in stored.tasks[1:]] == ["task-002", "task-003"]
    assert (stored.name, len(stored), stored.fingerprint) == ("mine", 3, stream.fingerprint)


def test_the_manifest_says_what_the_stream_is(folder: Path) -> None:
    stream = write(folder)
    manifest = json.loads((folder / "manifest.json").read_text())
    assert {name: manifest[name] for name in ("kind", "seed", "text_format", "matching", "items", "paraphrases")} == {
        "kind": "facts", "seed": 1, "text_format": "chat", "matching": "exact", "items": 12, "paraphrases": 24,
    }  # fmt: skip
    assert manifest["sources"] == [{"name": "us", "licence": "none"}]
    assert manifest["tasks"][2] == {
        "file": "0003-task-003.jsonl",
        "name": "task-003",
        "items": 4,
        "paraphrases": 8,
        "fingerprint": stream[2].fingerprint,
    }


def test_names_that_can_not_be_files_are_kept_in_the_manifest(folder: Path) -> None:
    names = ["a/b: c?", "…", "Ünïcode 名前", "../up"]
    write_stream("odd", [Task(name, (Item("q", ("a",)),)) for name in names], folder, Origin("split"))
    assert [task.name for task in read_stream(folder)] == names
    assert {path.parent for path in folder.rglob("*.jsonl")} == {folder}


def test_a_changed_task_is_refused_when_it_is_read_and_not_before(folder: Path) -> None:
    write(folder)
    file = folder / "0002-task-002.jsonl"
    file.write_text(file.read_text().replace('"question"', '"question" ', 1))  # blanks between tokens change nothing
    assert read_stream(folder)[1].name == "task-002"
    file.write_text(file.read_text().replace("?", "!", 1))
    stored = read_stream(folder)
    assert stored[0].name == "task-001"
    with pytest.raises(InputError, match=r"0002-task-002\.jsonl was changed after the stream was written"):
        stored[1]


def test_broken_folders_are_refused(folder: Path) -> None:
    with pytest.raises(InputError, match="is not a folder"):
        read_stream(folder)
    write(folder)
    manifest = json.loads((folder / "manifest.json").read_text())

    def refusal(**changes: object) -> str:
        (folder / "manifest.json").write_text(json.dumps(manifest | changes))
        with pytest.raises(InputError) as refused:
            read_stream(folder)
        return str(refused.value)

    assert "the tasks listed are not those of its fingerprint" in refusal(tasks=manifest["tasks"][:2])
    assert "broken (KeyError: 'file')" in refusal(tasks=[{}])
    assert "format 2, and this perdure reads 1" in refusal(format_version=2)
    outside = [{**manifest["tasks"][0], "file": "../elsewhere.jsonl"}, *manifest["tasks"][1:]]
    assert "lists elsewhere.jsonl, which is not in the folder" in refusal(tasks=outside)
    (folder / "manifest.json").unlink()
    with pytest.raises(InputError, match=r"has no manifest\.json, so it is no stream"):
        read_stream(folder)


def test_nothing_is_written_over_and_nothing_half(folder: Path) -> None:
    write(folder)
    with pytest.raises(InputError, match="is there already; name a new folder"):
        write(folder)

    def fails():  # type: ignore[no-untyped-def]
        yield symbol_stream(1, 1)[0]
        raise InputError("row 3 is broken.")

    other = folder.with_name("other")
    with pytest.raises(InputError, match="row 3 is broken"):
        write_stream("other", fails(), other, Origin("split"))
    assert not other.exists()
    with pytest.raises(InputError, match="'other' is empty"):
        write_stream("other", [], other, Origin("split"))
    with pytest.raises(InputError, match="tasks 1 and 2 are both named 'task-001'"):
        write_stream("other", [*symbol_stream(1, 1), *symbol_stream(1, 1)], other, Origin("split"))
    write_stream("other", symbol_stream(1, 1), other, Origin("split"))  # what was left of the failures is no hindrance


def test_writing_holds_one_task_however_long_the_stream(folder: Path) -> None:
    def peak(tasks: int) -> int:
        tracemalloc.start()
        write_stream("facts", facts_tasks(tasks, 100, seed=3), folder.with_name(str(tasks)), Origin("facts"))
        highest = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return highest

    peak(2)  # what is made once, such as compiled patterns
    assert peak(40) < 1.5 * peak(4)

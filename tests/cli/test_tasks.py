"""``perdure tasks`` as a user meets it."""

import json
import sys
import time
from pathlib import Path

import pytest
from tests.tasks.chat_server import chat_server, completion

from perdure.cli import main as cli
from perdure.experiments.spec import load_experiment
from perdure.tasks.folder import read_stream


@pytest.fixture
def perdure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run the console script's own function in this process, in an empty folder: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["perdure", "tasks", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_symbol_and_facts_make_folders_that_check_and_an_experiment_takes(perdure, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    code, out, _ = perdure("symbol", "keys", "--tasks", "2", "--items", "3", "--seed", "7")
    assert code == 0
    assert "Wrote keys: 2 tasks, 6 items; fingerprint " in out
    assert "perdure tasks check keys" in out
    code, out, _ = perdure("facts", "facts", "--tasks", "2", "--items", "3", "--paraphrases", "2", "--json")
    made = json.loads(out)
    assert (code, made["items"], made["paraphrases"]) == (0, 6, 12)
    assert made["fingerprint"] == read_stream("facts").fingerprint
    assert perdure("check", "keys")[0] == perdure("check", "facts")[0] == 0
    spec = tmp_path / "experiment.yaml"
    spec.write_text("model: tiny\nmethods: [naive]\nstream: {kind: folder, path: facts}\n")
    assert load_experiment(spec).build_stream().fingerprint == made["fingerprint"]


def test_facts_by_a_model_behind_an_endpoint_show_what_they_cost(perdure) -> None:  # type: ignore[no-untyped-def]
    names = iter(["Ada", "Bo", "Cy", "Di"])

    def answer(body: dict):  # type: ignore[no-untyped-def]
        if body["messages"][-1]["content"].startswith("Invent the name"):
            return completion(f"The {next(names)} Guild")
        return completion("".join(f"{name} | Where is {name}? | Rome\n" for name in (next(names), "nothing else")))

    with chat_server(answer) as (url, requests):
        code, out, err = perdure("facts", "out", "--model", "m", "--endpoint", url, "--tasks", "1", "--items", "2")
    assert code == 0, err
    assert {body["model"] for _, _, body in requests} == {"m"}
    assert "Cost: 2 requests, 20 tokens read, 10 written; 0 lines were not usable." in out
    assert [item.question for item in read_stream("out")[0].items] == ["Where is Bo?", "Where is nothing else?"]


def test_real_from_files_reports_each_source(perdure, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    nq = [{"question": f"who wrote book number {number} {number**4}", "answer": ["Ada"]} for number in range(4)]
    web = [{"question": "Who wrote book number 1 1?", "answers": ["Ada"]}, {"question": "where is lima?", "answers": ["Peru"]}]
    for name, rows in (("nq_open", nq), ("web_questions", web)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    arguments = ["--data-dir", ".", "--source", "nq_open", "--source", "web_questions", "--per-source", "4", "--items", "2"]
    code, out, _ = perdure("real", "real", *arguments)
    assert code == 0
    assert "web_questions" in out
    assert "1 of 4" in out
    assert "1 × an earlier question says the same" in out
    assert "dropped: 'Who wrote book number 1 1?' (web_questions) ~ 'who wrote book number 1 1' (nq_open)" in out
    assert "1 items remained" in out
    manifest = read_stream("real").manifest
    assert [source["licence"] for source in manifest["sources"]] == ["CC BY-SA 3.0", "CC BY 4.0"]
    code, out, err = perdure("real", "unknown", *arguments, "--unknown-to", "random-tiny", "--device", "cpu", "--json")
    assert code == 0, err
    assert "web_questions: " in err
    assert json.loads(out)["taken"] == {"nq_open": 4, "web_questions": 1}
    assert read_stream("unknown").manifest["settings"]["unknown_to"]["samples"] == 5


def test_split_maps_columns_shuffles_and_adds_spellings(perdure, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    rows = "".join(f"Frage {number}?;{number + 1000}|und {number}\n" for number in range(5))
    (tmp_path / "faq.csv").write_text("Frage;Antwort\n" + rows + "Frage 0?;1000|und 0\n")
    mapping = ["--question", "Frage", "--answer", "Antwort", "--separator", "|", "--items", "2"]
    code, out, _ = perdure("split", "faq.csv", "in-order", *mapping, "--spellings", "--for", "chat", "--licence", "ours")
    assert code == 0
    assert "Wrote in-order: 3 tasks, 5 items" in out
    assert "1 rows said what an earlier one says and were dropped" in out
    stream = read_stream("in-order")
    assert [item.question for task in stream for item in task.items] == [f"Frage {number}?" for number in range(5)]
    assert stream[0].items[0].answers == ("1000", "und 0")
    assert (stream.manifest["text_format"], stream.manifest["sources"]) == ("chat", [{"name": "faq.csv", "licence": "ours"}])
    assert perdure("split", "faq.csv", "shuffled", *mapping, "--seed", "1")[0] == 0
    shuffled = [item.question for task in read_stream("shuffled") for item in task.items]
    assert shuffled != sorted(shuffled)
    assert sorted(shuffled) == [f"Frage {number}?" for number in range(5)]


def test_check_exits_with_2_when_a_stream_can_not_be_used(perdure, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    (tmp_path / "good.txt").write_text("Q: q\nA: a\nQ: r\nA: ab\n")
    code, out, _ = perdure("check", "good.txt")
    assert code == 0
    assert "1 task, 2 items" in out
    assert "note: 1 × answers that are the beginning of another" in out
    (tmp_path / "bad.jsonl").write_text('{"question": "q", "answer": "a }"}\n{"question": "r", "answer": "b\\nc"}\n')
    code, out, _ = perdure("check", "bad.jsonl")
    assert code == 2
    assert "unusable: " in out
    code, out, _ = perdure("check", "bad.jsonl", "--json")
    assert (code, json.loads(out)["usable"]) == (2, False)
    (tmp_path / "twice.jsonl").write_text('{"question": "q", "answer": "a"}\n{"question": "q", "answer": "b"}\n')
    code, _, err = perdure("check", "twice.jsonl")
    assert code == 2
    assert err.startswith("error: twice.jsonl:2: the question of line 1 again, with other answers")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["split", "nowhere.csv", "out"], "nowhere.csv does not exist"),
        (["check", "nowhere"], "nowhere does not exist"),
        (["facts", "out", "--endpoint", "http://localhost:1/v1"], "--endpoint needs --model"),
        (["facts", "out", "--model", "m", "--paraphrases", "1"], "--paraphrases is for facts from templates"),
        (["real", "out", "--source", "squid"], "unknown source 'squid'; did you mean 'squad'?"),
        (["symbol", "out", "--tasks", "63", "--key-length", "1"], "make the keys longer"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(perdure, arguments: list[str], problem: str) -> None:  # type: ignore[no-untyped-def]
    code, _, err = perdure(*arguments)
    assert code == 2
    assert err.startswith("error: ")
    assert problem in err
    assert not Path("out").exists()


def test_help_stays_quick() -> None:
    """The verbs' libraries are imported when a verb runs, not when the command line is read."""
    import subprocess

    heavy = ("torch", "datasets", "datasketch", "httpx2", "numpy")
    code = f"import sys, perdure.cli.main; print([name for name in {heavy} if name in sys.modules])"
    start = time.perf_counter()
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert printed.strip() == "[]"
    assert time.perf_counter() - start < 5

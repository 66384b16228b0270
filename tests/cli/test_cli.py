"""The command line as a user meets it: exit codes, one-sentence errors, results for scripts."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from perdure.cli import main as cli


class Outcome:
    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def perdure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):  # type: ignore[no-untyped-def]
    """Run the console script's own function in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> Outcome:
        monkeypatch.setattr(sys, "argv", ["perdure", *arguments])
        try:
            cli.main()
            code = 0
        except SystemExit as end:
            code = int(end.code or 0)
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def facts(tmp_path: Path) -> Path:
    path = tmp_path / "facts.jsonl"
    path.write_text('{"question": "k1", "answer": "v1"}\n{"question": "k2", "answer": "v2"}\n')
    return path


QUICK = "method: naive\ntraining: {epochs: 2, learning_rate: 3e-3}\nadapter: {rank: 2, alpha: 4}\nasking: {max_new_tokens: 8}\n"


@pytest.fixture
def learner(perdure, tmp_path: Path) -> str:  # type: ignore[no-untyped-def]
    (tmp_path / "quick.yaml").write_text(QUICK)
    assert perdure("init", "me", "--model", "random-tiny", "--recipe", "quick.yaml", "--quiet").code == 0
    return "me"


def test_a_learners_life(perdure, learner: str, facts: Path, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    learnt = perdure("learn", learner, str(facts), "--track", "tensorboard")
    assert learnt.code == 0
    assert "Learnt facts (task 1, 2 items, 2 steps)" in learnt.out
    assert "Next: perdure evaluate me" in learnt.out
    assert list((tmp_path / "me" / "tensorboard").rglob("events*"))
    asked = perdure("ask", learner, "k1", "--json")
    assert json.loads(asked.out)["question"] == "k1"
    row = json.loads(perdure("evaluate", learner, "--json", "--quiet").out)
    assert row["tasks"] == ["facts"]
    assert len(row["scores"]) == 1
    page = perdure("report", learner)
    assert page.code == 0
    assert (tmp_path / "me" / "report.html").is_file()
    status = json.loads(perdure("status", learner, "--json").out)
    assert (status["tasks_learnt"], status["questions"], status["method"]) == (1, 2, "naive")
    assert perdure("export", learner, "out", "--quiet").code == 0
    assert (tmp_path / "out" / "model.safetensors").is_file()


def test_several_files_are_several_tasks(perdure, learner: str, facts: Path) -> None:  # type: ignore[no-untyped-def]
    facts.with_name("more.jsonl").write_text('{"question": "k3", "answers": ["v3", "V3"]}\n')
    learnt = perdure("learn", learner, str(facts), "more.jsonl", "--json", "--evaluate", "all", "--quiet", "--track", "none")
    first, second = json.loads(learnt.out)
    assert (first["task"], second["task"]) == (1, 2)
    assert len(second["row"]) == 2
    assert learnt.err == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("init", "x", "--model", "smolm2-135m"), "smollm2-135m"),
        (("init", "x", "--model", "./nowhere"), "there is no folder ./nowhere"),
        (("init", "x", "--model", "random-tiny", "--recipe", "defalt"), "default"),
        (("init", "x", "--model", "random-tiny", "--dtype", "int8"), "float32"),
        (("init", "x", "--model", "random-tiny", "--device", "tpu9"), "device 'tpu9'"),
        (("learn", "me", "fact.jsonl"), "facts.jsonl"),
        (("learn", "me", "empty.jsonl"), "empty.jsonl"),
        (("learn", "me", "broken.jsonl"), "broken.jsonl:2"),
        (("learn", "me", "facts.jsonl", "--evaluate", "some"), "new, all or none"),
        (("learn", "me", "facts.jsonl", "--track", "tensorbord"), "tensorboard"),
        (("evaluate", "me"), "learnt nothing yet"),
        (("report", "me"), "learnt nothing yet"),
        (("status", "nowhere"), "perdure init"),
        (("export", "me", "me"), "not empty"),
        (("run", "wrong.yaml"), "wrong.yaml:5"),
        (("run", "dem"), "demo"),
    ],
)
def test_mistakes_are_one_sentence_and_exit_code_2(perdure, learner: str, facts: Path, arguments, words: str) -> None:  # type: ignore[no-untyped-def]
    facts.with_name("empty.jsonl").write_text("")
    facts.with_name("broken.jsonl").write_text('{"question": "a", "answer": "b"}\n{"question": \n')
    facts.with_name("wrong.yaml").write_text(
        "model: random-tiny\nstream: {kind: symbol, tasks: 2, items: 2}\nmethods: [naive]\nseeds: [0]\ntraning: {epochs: 2}\n"
    )
    before = sorted(str(path) for path in facts.parent.rglob("*"))
    outcome = perdure(*arguments)
    assert outcome.code == 2
    assert outcome.err.startswith("error: ") or "\nerror: " in outcome.err
    assert words in outcome.err.replace("\n", " ")
    assert "Traceback" not in outcome.err
    assert [
        path for path in sorted(str(p) for p in facts.parent.rglob("*")) if path not in before and ".lock" not in path
    ] == []


def test_an_experiment_runs_and_goes_on(perdure, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    spec = "model: random-tiny\nstream: {kind: symbol, tasks: 2, items: 3}\nmethods: [naive, merge]\nseeds: [0]\n"
    spec += QUICK.split("\n", 1)[1]
    (tmp_path / "mine.yaml").write_text(spec)
    first = perdure("run", "mine.yaml", "--output", "results", "--track", "none")
    assert first.code == 0, first.err
    assert "naive" in first.out
    assert (tmp_path / "results" / "report.html").is_file()
    state = tmp_path / "results" / "runs" / "naive" / "seed-0" / "state" / "0002" / "model.safetensors"
    written = state.stat().st_mtime_ns
    again = perdure(
        "run", "mine.yaml", "--output", "results", "--seed", "0", "--seed", "1", "--track", "none", "--quiet", "--json"
    )
    assert again.code == 0
    assert "page" in json.loads(again.out)
    assert state.stat().st_mtime_ns == written  # a finished run is not run again
    assert (tmp_path / "results" / "runs" / "merge" / "seed-1" / "rows" / "0002.json").is_file()
    (tmp_path / "mine.yaml").write_text(spec.replace("epochs: 2", "epochs: 3"))
    changed = perdure("run", "mine.yaml", "--output", "results", "--quiet")
    assert changed.code == 2
    assert "was begun with training" in changed.err.replace("\n", " ")
    (tmp_path / "mine.yaml").write_text(spec.replace("items: 3", "items: 4"))
    assert "another experiment" in perdure("run", "mine.yaml", "--output", "results").err.replace("\n", " ")


def test_help_is_quick_and_has_examples() -> None:
    """The help of a real process, without torch in it."""
    code = "import sys; sys.argv = ['perdure', 'learn', '--help']\nfrom perdure.cli.main import app\n"
    code += "try:\n    app()\nexcept SystemExit:\n    pass\nassert 'torch' not in sys.modules and 'pandas' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "perdure learn my-learner facts.jsonl" in done.stdout


def test_version_and_usage_errors(perdure) -> None:  # type: ignore[no-untyped-def]
    assert perdure("--version").out.startswith("perdure 0.")
    assert perdure("no-such-verb").code == 2
    assert perdure("init", "x").code == 2


def test_names_are_printed_as_they_are(perdure, learner: str, facts: Path) -> None:  # type: ignore[no-untyped-def]
    """Square brackets in names are no markup for the terminal, and HTML none for the page."""
    name = "[/red] [bold]<script>alert(1)</script>"
    learnt = perdure("learn", learner, str(facts), "--name", name, "--track", "none")
    assert learnt.code == 0
    assert f"Learnt {name} (task 1" in learnt.out
    assert f"{name} · training" in learnt.err.replace("\n", " ")
    assert "[bold]<script>" in perdure("evaluate", learner, "--quiet").out.replace("\n", "")
    assert perdure("status", learner).code == 0
    assert perdure("report", learner).code == 0
    assert "<script>alert" not in (facts.parent / "me" / "report.html").read_text()

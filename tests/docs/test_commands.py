"""Every command and every Python example in the documents is run, in order, in an empty folder of its page's own."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.testing import CliRunner

from perdure.cli.main import app

DOCS = Path(__file__).parents[2] / "docs"
BLOCK = re.compile(r"^```(bash|python)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
PAGES = sorted(path.name for path in DOCS.glob("*.md") if BLOCK.search(path.read_text()))


def run_bash(block: str) -> None:
    """Lines that call perdure go through the command line's own code in this process, the others to bash."""
    others: list[str] = []
    for line in block.splitlines():
        if line.startswith("perdure "):
            subprocess.run(["bash", "-euc", "\n".join(others)], check=True)
            others.clear()
            result = CliRunner().invoke(app, shlex.split(line, comments=True)[1:])
            assert result.exit_code == 0, f"{line}\n{result.output}\n{result.exception!r}"
        else:
            others.append(line)
    subprocess.run(["bash", "-euc", "\n".join(others)], check=True)


@pytest.mark.parametrize("page", PAGES)
def test_page(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for kind, block in BLOCK.findall((DOCS / page).read_text()):
        if kind == "bash":
            run_bash(block)
        else:
            exec(compile(block, f"{page}", "exec"), {})


def test_the_pages_are_there() -> None:
    assert {"learner.md", "experiments.md", "python.md"} <= set(PAGES)

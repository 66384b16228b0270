"""A run that is killed again and again ends in the same bits as one that never was."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_and_die.py")
MOMENTS = {
    "si+sd+replay+merge": ["sampling", "teacher", "training", "merging", "saving", "scoring"],
    "ewc+replay+o-lora": ["training", "importance", "merging"],
}


def run(directory: Path, method: str, moment: str = "") -> int:
    return subprocess.run([sys.executable, str(SCRIPT), str(directory), method, moment], timeout=300).returncode


def contents(directory: Path) -> dict[str, bytes]:
    """Everything that must not depend on the kills: state, tasks, rows and logs; timings may."""
    kept = [path for folder in ("state", "tasks", "rows", "logs") for path in (directory / folder).rglob("*")]
    return {str(path.relative_to(directory)): path.read_bytes() for path in kept if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("method", MOMENTS)
def test_killed_at_every_stage(tmp_path: Path, method: str) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    assert run(whole, method) == 0
    for moment in MOMENTS[method]:
        assert run(killed, method, moment) == -signal.SIGKILL, f"was not killed in {moment}"
    assert run(killed, method) == 0
    expected, actual = contents(whole), contents(killed)
    assert actual.keys() == expected.keys()
    assert [name for name in expected if actual[name] != expected[name]] == []
    assert {name.split("/")[1] for name in actual if name.startswith("state/")} == {"0003"}

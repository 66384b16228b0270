"""The matrix as a value and on disk."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from perdure.errors import InputError
from perdure.retention import RetentionMatrix

HOSTILE = ("plain", 'a,"b"\nc', "<script>alert(1)</script>", "naïve Ω 🙂", "")


def example() -> RetentionMatrix:
    """Five tasks; 0.1 + 0.2 has no short decimal form; one row was not asked, one entry stands above the diagonal."""
    rows = [[0.9, 0.05], [0.1 + 0.2, 1.0], [], [None, 0.25, 1 / 3, 0.0], [0, 1, 0.5, 0.5, 0.5]]
    rows[0] += [None] * 3
    return RetentionMatrix.from_rows(rows, HOSTILE)


def test_rows_become_a_square_array_with_nan_where_nothing_was_asked() -> None:
    matrix = example()
    assert matrix.scores.shape == (5, 5) and matrix.scores.dtype == np.float64
    assert matrix.scores[0, 1] == 0.05
    assert np.isnan(matrix.scores[2]).all()
    assert np.isnan(matrix.scores[3, 0]) and np.isnan(matrix.scores[1, 2])
    assert len(matrix) == 5 and matrix.task_names == HOSTILE
    assert matrix.last_complete == 5
    assert matrix.first(4).last_complete == 2


def test_default_names_count_from_one() -> None:
    assert RetentionMatrix.from_rows([[1.0], [0.5, 1.0]]).task_names == ("task-1", "task-2")


def test_a_matrix_cannot_be_changed_by_whoever_holds_the_array() -> None:
    source = np.array([[0.5]])
    matrix = RetentionMatrix(source, ("a",))
    source[0, 0] = 0.9
    assert matrix.scores[0, 0] == 0.5
    with pytest.raises(ValueError, match="read-only"):
        matrix.scores[0, 0] = 0.1


def test_equality_counts_nan_as_equal_and_sees_names() -> None:
    assert example() == example()
    assert example() != RetentionMatrix(example().scores, ("x",) * 5)
    assert example() != "matrix"


@pytest.mark.parametrize("form", ["json", "csv"])
def test_round_trip_keeps_every_bit(tmp_path: Path, form: str) -> None:
    path = tmp_path / f"matrix.{form}"
    for matrix in (example(), RetentionMatrix.from_rows([]), RetentionMatrix.from_rows([[None]])):
        getattr(matrix, f"write_{form}")(path)
        assert getattr(RetentionMatrix, f"read_{form}")(path) == matrix
    assert [entry.name for entry in tmp_path.iterdir()] == [path.name]


def test_files_can_be_read_without_perdure(tmp_path: Path) -> None:
    example().write_json(tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text(encoding="utf-8"), parse_constant=pytest.fail)  # no bare NaN
    assert content["scores"][2] == [None] * 5
    example().write_csv(tmp_path / "m.csv")
    with (tmp_path / "m.csv").open(encoding="utf-8", newline="") as file:
        head, first, *_ = csv.reader(file)
    assert head == ["after_task", *HOSTILE]
    assert first == ["1", "0.9", "0.05", "", "", ""]


@pytest.mark.parametrize(
    ("rows", "names", "message"),
    [
        ([[1.1]], None, "task 1 after task 1 is 1.1"),
        ([[1.0], [-0.5, 1.0]], None, "task 1 after task 2 is -0.5"),
        ([[float("inf")]], None, "is inf"),
        ([["0.5"]], None, "'0.5'; give a number"),
        ([[True]], None, "True; give a number"),
        ([[1.0], [1.0]], None, "row 2 of the retention matrix has 1 scores"),
        ([[1.0, 1.0]], None, "row 1 of the retention matrix has 2 scores"),
        ([[1.0]], ["a", "b"], "1 tasks came with 2 task names"),
    ],
)
def test_impossible_matrices_are_refused(rows: list, names: list | None, message: str) -> None:
    with pytest.raises(InputError, match=message):
        RetentionMatrix.from_rows(rows, names)


def test_an_array_that_is_not_square_is_refused() -> None:
    with pytest.raises(InputError, match="2 × 3"):
        RetentionMatrix(np.zeros((2, 3)), ("a", "b"))


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("m.json", None, "No such file"),
        ("m.json", "{", "holds no retention matrix"),
        ("m.json", "[]", "holds no retention matrix"),
        ("m.json", '{"task_names": ["a"]}', "it has no scores"),
        ("m.json", '{"task_names": [1], "scores": [[1]]}', "not a list of names"),
        ("m.json", '{"task_names": ["a"], "scores": [1]}', "not a list of lists"),
        ("m.json", '{"task_names": ["a"], "scores": [[2]]}', "m.json: the score of task 1 after task 1 is 2"),
        ("m.csv", None, "No such file"),
        ("m.csv", "", "m.csv:1 does not begin"),
        ("m.csv", "x,a\n1,1\n", "m.csv:1 does not begin"),
        ("m.csv", "after_task,a\n1,yes\n", "m.csv:2 has the score 'yes'"),
        ("m.csv", "after_task,a,b\n1,1,\n2,1\n", "m.csv:3 has 2 fields"),
        ("m.csv", "after_task,a\n1,7\n", "m.csv: the score of task 1 after task 1 is 7"),
    ],
)
def test_bad_files_are_named(tmp_path: Path, name: str, content: str | None, message: str) -> None:
    path = tmp_path / name
    if content is not None:
        path.write_text(content, encoding="utf-8")
    read = RetentionMatrix.read_json if name.endswith("json") else RetentionMatrix.read_csv
    with pytest.raises(InputError, match=message):
        read(path)


def test_the_room_needs_nothing_heavy() -> None:
    code = (
        "import sys, perdure.retention; "
        "print(sorted({n.split('.')[0] for n in sys.modules} & {'torch','matplotlib','plotly','pandas','transformers'}))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"

"""Experiments and recipes from YAML: what they say, and every refusal with its line."""

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

from perdure.errors import InputError
from perdure.experiments.search_spec import load_search
from perdure.experiments.spec import Experiment, find_experiment, load_experiment, load_recipe, recipe_folder
from perdure.experiments.streams import JsonlStream
from perdure.experiments.yaml_source import read_yaml
from perdure.methods import Method
from perdure.settings import LearnerSettings

GOOD = """\
# an experiment
model: smollm2-135m
stream:
  kind: symbol
  tasks: 4
  items: 8
methods:
  - naive
  - merge+replay
  - method: replay+merge
    label: half
    replay:
      weight: 0.5
seeds: [0, 1]
training:
  epochs: 30
  learning_rate: 5e-4
replay:
  samples: 32
"""


def write(folder: Path, text: str | bytes, name: str = "spec.yaml") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass"))
    return path


def refusal(path: Path, load: Any = load_experiment) -> str:
    """The refusal's sentence, without the folder."""
    with pytest.raises(InputError) as caught:
        load(path)
    sentence = str(caught.value)
    assert "\n" not in sentence
    return sentence.replace(f"{path.parent}/", "")


# --- what an experiment says ---------------------------------------------------------------------------------------------


def test_runs_are_every_method_with_every_seed(tmp_path: Path) -> None:
    runs = load_experiment(write(tmp_path, GOOD)).runs()
    assert [(run.label, run.seed) for run in runs] == [
        ("naive", 0),
        ("replay+merge", 0),
        ("half", 0),
        ("naive", 1),
        ("replay+merge", 1),
        ("half", 1),
    ]
    assert [run.method.name for run in runs[:3]] == ["naive", "replay+merge", "replay+merge"]
    assert [run.settings.method for run in runs[:3]] == ["naive", "replay+merge", "replay+merge"]


def test_a_methods_own_settings_go_before_the_experiments_and_these_before_the_defaults(tmp_path: Path) -> None:
    naive, both, half = load_experiment(write(tmp_path, GOOD)).runs()[:3]
    assert (both.settings.replay.weight, half.settings.replay.weight) == (0.75, 0.5)
    assert (both.settings.replay.samples, half.settings.replay.samples) == (32, 32)
    assert {run.settings.training.epochs for run in (naive, both, half)} == {30}
    assert half.settings.training.batch_size == LearnerSettings().training.batch_size
    assert half.settings == LearnerSettings.model_validate(half.settings.model_dump())


def test_what_is_recorded_of_an_experiment_says_the_same_again(tmp_path: Path) -> None:
    experiment = load_experiment(write(tmp_path, GOOD))
    again = Experiment.model_validate(json.loads(json.dumps(experiment.model_dump(mode="json"))))
    assert again == experiment
    assert again.runs() == experiment.runs()


def test_symbol_stream(tmp_path: Path) -> None:
    stream = load_experiment(write(tmp_path, GOOD)).build_stream()
    assert (len(stream), len(stream[0].items)) == (4, 8)
    other = load_experiment(write(tmp_path, GOOD.replace("items: 8", "items: 8\n  seed: 7"))).build_stream()
    assert other.fingerprint != stream.fingerprint


def test_jsonl_stream_is_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = tmp_path / "data"
    data.mkdir()
    for week in (1, 2):
        write(data, json.dumps({"question": f"q{week}", "answer": "a"}), f"week-{week}.jsonl")
    text = "model: tiny\nstream:\n  kind: jsonl\n  files: [data/week-1.jsonl, data/week-2.jsonl]\nmethods: [naive]\n"
    experiment = load_experiment(write(tmp_path, text))
    monkeypatch.chdir(data)
    stream = experiment.build_stream()
    assert [(task.name, task.items[0].question) for task in stream] == [("week-1", "q1"), ("week-2", "q2")]
    assert isinstance(experiment.stream, JsonlStream)
    assert all(Path(file).is_absolute() for file in experiment.stream.files)


def test_seeds_from_the_command_line(tmp_path: Path) -> None:
    path = write(tmp_path, GOOD)
    assert load_experiment(path).seeds == (0, 1)
    assert load_experiment(path, seeds=[7]).seeds == (7,)
    with pytest.raises(InputError, match="the seed 7 is given twice; keep one"):
        load_experiment(path, seeds=[7, 7])
    with pytest.raises(InputError, match="the seed -1 is negative"):
        load_experiment(path, seeds=[-1])


# --- YAML's traps --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("5e-4", 5e-4),
        ("1e-3", 1e-3),
        ("5E-4", 5e-4),
        ("1.5e+2", 150.0),
        (".5", 0.5),
        ("3.", 3.0),
        ("7", 7),
        ("-7", -7),
        ("0", 0),
        ("017", "017"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("1:30", "1:30"),
        ("'5'", "5"),
        ("no", "no"),
        ("on", "on"),
        ("Yes", "Yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("null", None),
        ("2024-01-01", "2024-01-01"),
        ("=", "="),
        ("[1, [a, 2.5]]", [1, ["a", 2.5]]),
    ],
)
def test_plain_values_are_read_as_in_yaml_1_2(tmp_path: Path, written: str, value: Any) -> None:
    read = read_yaml(write(tmp_path, f"key: {written}\n")).value["key"]
    assert read == value
    assert type(read) is type(value)


@pytest.mark.parametrize("prefix", [b"", b"\xef\xbb\xbf"])
def test_byte_order_marks_and_crlf(tmp_path: Path, prefix: bytes) -> None:
    path = write(tmp_path, prefix + GOOD.replace("\n", "\r\n").encode())
    assert load_experiment(path).model == "smollm2-135m"
    path = write(tmp_path, prefix + GOOD.replace("epochs", "epoch").replace("\n", "\r\n").encode())
    assert refusal(path).startswith("spec.yaml:16: ")


# --- refusals ------------------------------------------------------------------------------------------------------------

CHANGES = [  # what is written instead of what, and the sentence
    ("  learning_rate", "  learning_rat", "17: training.learning_rat is not a setting; did you mean 'learning_rate'?"),
    ("training:", "trainning:", "15: trainning is not a setting; did you mean 'training'?"),
    ("  items", "  item", "6: stream.item is not a setting; did you mean 'items'?"),
    (
        "  items: 8",
        "  symbol: 8",
        "6: stream.symbol is not a setting; known: items, key_length, kind, seed, tasks, value_length.",
    ),
    ("    label", "    lable", "11: methods[2].lable is not a setting; did you mean 'label'?"),
    ("      weight", "      wieght", "13: methods[2].replay.wieght is not a setting; did you mean 'weight'?"),
    ("weight: 0.5", "weight: 1.5", "13: methods[2].replay.weight is 1.5, but must be less than 1."),
    ("weight: 0.5", "weight: 0", "13: methods[2].replay.weight is 0, but must be greater than 0."),
    ("samples: 32", "samples: -3", "19: replay.samples is -3, but must be greater than 0."),
    ("epochs: 30", "epochs: many", "16: training.epochs is the text 'many', but must be a whole number."),
    ("epochs: 30", "epochs: '30'", "16: training.epochs is the text '30', but must be a whole number; write 30."),
    ("epochs: 30", "epochs: 017", "16: training.epochs is the text '017', but must be a whole number; write 17."),
    ("epochs: 30", "epochs: 30.0", "16: training.epochs is 30.0, but must be a whole number; write 30."),
    ("epochs: 30", "epochs: 30.5", "16: training.epochs is 30.5, but must be a whole number."),
    ("epochs: 30", "epochs: true", "16: training.epochs is true, but must be a whole number."),
    ("epochs: 30", "epochs:", "16: training.epochs is empty, but must be a whole number."),
    ("epochs: 30", "epochs: [1]", "16: training.epochs is a list, but must be a whole number."),
    ("5e-4", "'5e-4'", "17: training.learning_rate is the text '5e-4', but must be a number; write 0.0005."),
    ("5e-4", ".inf", "17: training.learning_rate is Infinity, but must be a finite number."),
    ("  epochs: 30\n  learning_rate: 5e-4\n", "", "15: training is empty, but must be a mapping of settings."),
    (
        "training:\n",
        "adapter: {targets: q_proj}\ntraining:\n",
        "15: targets must be all-linear or a list of module names, such as [q_proj, v_proj].",
    ),
    (
        "training:\n",
        "asking: {format: box}\ntraining:\n",
        "15: asking.format is the text 'box', but must be 'plain', 'boxed' or 'chat'.",
    ),
    ("model: smollm2-135m\n", "", "2: model is missing; add it."),
    ("model: smollm2-135m", "model: 135", "2: model is 135, but must be a text; put it in quotes."),
    ("model: smollm2-135m", "model: ''", "2: model is the text '', but must be a text that is not empty."),
    ("  kind: symbol\n", "", "3: stream.kind is missing; add it."),
    ("kind: symbol", "kind: symbl", "4: stream.kind is the text 'symbl'; did you mean 'symbol'?"),
    ("kind: symbol", "kind: jsonl", "3: stream.files is missing; add it. (and 2 more)"),
    ("  kind: symbol\n  tasks: 4\n  items: 8\n", "  - symbol\n", "3: stream is a list, but must be a mapping of settings."),
    (
        "items: 8",
        "items: 16\n  key_length: 1",
        "3: the stream needs 64 different keys, and key_length 1 gives only 62; make the keys longer or the stream smaller.",
    ),
    (
        "- naive",
        "- no",
        "8: the method 'no' has an unknown mechanism, 'no'; "
        "known: all-merge, ewc, full, merge, naive, o-lora, osrm, replay, sd, si, value.",
    ),
    ("- naive", "- niave", "8: the method 'niave' has an unknown mechanism, 'niave'; did you mean 'naive'?"),
    ("- naive", "- si+ewc", "8: the method 'si+ewc' joins si and ewc, and both say how the weights are anchored; keep one."),
    ("- naive", "-", "8: a method must be a name, such as replay+merge, or a mapping with a line `method: NAME`."),
    ("- naive", "- label: x", "8: methods[0].method is missing; add it."),
    ("- naive", "- replay+merge", "7: two methods are called 'replay+merge'; remove one, or give each a label of its own."),
    (
        "label: half",
        "label: Replay+Merge",
        "7: two methods are called 'replay+merge'; remove one, or give each a label of its own.",
    ),
    (
        "label: half",
        "label: a/b",
        "11: the label 'a/b' can't name a folder; use up to 100 letters, digits, blanks and + = , . ( ) - _, and begin and "
        "end with a letter or digit.",
    ),
    ("label: half", "label: 5", "11: methods[2].label is 5, but must be a text; put it in quotes."),
    (
        "method: replay+merge",
        "method: merge",
        "10: replay is set for the method 'merge', which has no replay and would not heed it; remove replay, or add replay to "
        "the method.",
    ),
    ("seeds: [0, 1]", "seeds: 0..2", "14: seeds must be a list of whole numbers; write them out, as in [0, 1, 2]."),
    ("seeds: [0, 1]", "seeds: 3", "14: seeds must be a list of whole numbers; write them out, as in [0, 1, 2]."),
    ("seeds: [0, 1]", "seeds: [0..2]", "14: seeds[0] is the text '0..2', but must be a whole number."),
    ("seeds: [0, 1]", "seeds: []", "14: seeds is an empty list, but must be a list that is not empty."),
    ("seeds: [0, 1]", "seeds: [3, 1, 3]", "14: the seed 3 is given twice; keep one."),
    ("seeds: [0, 1]", "seeds:\n  - 0\n  - -1", "16: seeds[1] is -1, but must be at least 0."),
    ("  epochs: 30", "\tepochs: 30", "16: a tab stands where YAML wants spaces; indent with spaces."),
    (
        "  epochs: 30",
        "  epochs: 30: 1",
        "16: this is not YAML (mapping values are not allowed here); check the colons, quotes and indentation on this "
        "line and the one before.",
    ),
    (
        "model: smollm2",
        "model: 'smollm2",
        "2: this is not YAML (found unexpected end of stream); check that every quote and bracket opened here is closed.",
    ),
    (
        "seeds: [0, 1]",
        "seeds: [0, 1",
        "14: this is not YAML (expected ',' or ']', but got ':'); check that every quote and bracket opened here is closed.",
    ),
    ("  learning_rate", "  epochs", "17: training.epochs is given twice, first on line 16; keep one."),
    ("replay:\n  samples", "training:\n  samples", "18: training is given twice, first on line 15; keep one."),
    ("training:\n", "training: &t\n", "15: anchors and aliases (& and *) are not read; write the value out."),
    ("epochs: 30", "epochs: *t", "16: anchors and aliases (& and *) are not read; write the value out."),
    ("epochs: 30", "epochs: !!int 30", "16: the tag tag:yaml.org,2002:int is not read; write a plain value."),
    (
        "epochs: 30",
        "epochs: !!python/object:os.system x",
        "16: the tag tag:yaml.org,2002:python/object:os.system is not read; write a plain value.",
    ),
    ("training:\n", "? [a]\n: b\ntraining:\n", "15: a key must be a text."),
    ("replay:\n  samples", "---\nreplay:\n  samples", "18: a second document begins here; keep one document in a file."),
    ("naive", "na\aive", "8: the character U+0007 may not stand in YAML; remove it."),
]


@pytest.mark.parametrize(("old", "new", "sentence"), CHANGES, ids=[change[2][:60] for change in CHANGES])
def test_refusals(tmp_path: Path, old: str, new: str, sentence: str) -> None:
    # the last occurrence of a section at the margin, else the first
    place = GOOD.rindex(f"\n{old}") + 1 if f"\n{old}" in GOOD else GOOD.index(old)
    path = write(tmp_path, GOOD[:place] + new + GOOD[place + len(old) :])
    assert refusal(path) == f"spec.yaml:{sentence}"


def test_the_first_of_several_errors_is_told(tmp_path: Path) -> None:
    text = GOOD.replace("samples", "sample").replace("epochs: 30", "epochs: 0").replace("tasks: 4", "tasks: x")
    assert refusal(write(tmp_path, text)) == (
        "spec.yaml:5: stream.tasks is the text 'x', but must be a whole number. (and 2 more)"
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", "spec.yaml:1: the file is empty; write settings, one `name: value` a line."),
        ("# only this\n", "spec.yaml:1: the file is empty; write settings, one `name: value` a line."),
        ("\n- naive\n", "spec.yaml:2: the file must be a mapping; write settings, one `name: value` a line."),
        ("model:tiny\n", "spec.yaml:1: the file must be a mapping; write settings, one `name: value` a line."),
        (b"model: tiny\nstream: \xff\n", "spec.yaml:2: the text is not UTF-8; save the file as UTF-8."),
        ("a: " + "[" * 5000, "spec.yaml:1: lists or mappings are nested too deep; write settings, one `name: value` a line."),
    ],
)
def test_files_that_are_no_specs(tmp_path: Path, text: str | bytes, sentence: str) -> None:
    assert refusal(write(tmp_path, text)) == sentence


def test_files_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, GOOD, "experiment.yaml")
    missing = tmp_path / "experimnt.yaml"
    assert refusal(missing) == "experimnt.yaml does not exist; did you mean experiment.yaml?"
    assert refusal(tmp_path / "zzz.yaml") == "zzz.yaml does not exist; check the path."
    assert refusal(tmp_path / "none" / "zzz.yaml").endswith("zzz.yaml does not exist; check the path.")
    folder = tmp_path / "folder"
    folder.mkdir()
    assert refusal(folder) == "folder is a folder; name a YAML file in it."
    with pytest.raises(InputError, match=r"^dmo is neither a file nor a recipe of perdure's; did you mean 'demo'\?$"):
        load_experiment("dmo")


def test_stream_files_that_are_not_there(tmp_path: Path) -> None:
    write(tmp_path, json.dumps({"question": "q", "answer": "a"}), "facts.jsonl")
    text = "model: tiny\nmethods: [naive]\nstream:\n  kind: jsonl\n  files: [{}]\n"
    assert refusal(write(tmp_path, text.replace("{}", "fact.jsonl"))) == (
        "spec.yaml:5: fact.jsonl does not exist; did you mean facts.jsonl?"
    )
    assert refusal(write(tmp_path, text.replace("{}", "facts.jsonl, facts.jsonl"))) == (
        "spec.yaml:5: facts.jsonl and facts.jsonl would both be the task 'facts'; rename or remove one."
    )
    assert refusal(write(tmp_path, text.replace("{}", "x" * 5000))).endswith("does not exist; check the path.")
    assert refusal(write(tmp_path, text.replace("{}", '"a\\0b"'))).endswith("does not exist; check the path.")


# --- recipes -------------------------------------------------------------------------------------------------------------

RECIPES = sorted(recipe_folder().glob("*.yaml"))


def test_there_are_recipes() -> None:
    assert {"default", "demo", "tiny", "tiny-learner"} <= {path.stem for path in RECIPES}
    assert recipe_folder() == Path(__file__).parents[2] / "recipes"


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_valid_and_says_how_to_run_it(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    about = text[: re.search(r"^[^#]", text, re.MULTILINE).start()]  # type: ignore[union-attr]
    if "methods:" in text:
        assert f"perdure run {path.stem}\n" in about
        experiment = load_experiment(path.stem)
        assert experiment.runs()
        assert experiment.build_stream()
    elif "rungs:" in text:
        assert f"perdure search {path.stem}\n" in about
        assert load_search(path.stem).trials().build_stream()
    else:
        assert f"--recipe {path.stem}\n" in about
        assert load_recipe(path.stem)


def test_recipes_and_experiments_are_told_apart(tmp_path: Path) -> None:
    assert refusal(find_experiment("demo"), load_recipe).endswith(
        "this is an experiment, not a recipe for one learner; run it with `perdure run`, or keep one `method`."
    )
    assert refusal(find_experiment("default")).endswith(
        "this is a recipe for one learner, not an experiment; use it with `perdure init`, or add stream and methods."
    )
    assert re.match(r"demo\.yaml:6: ", refusal(find_experiment("demo"), load_recipe))
    assert refusal(write(tmp_path, "method: replay\nepochs: 3\n"), load_recipe).startswith(
        "spec.yaml:2: epochs is not a setting"
    )
    assert refusal(write(tmp_path, "method: mrege\n"), load_recipe).startswith("spec.yaml:1: the method 'mrege' has")


def test_a_users_file_goes_before_a_recipe_of_the_same_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert find_experiment("demo") == recipe_folder() / "demo.yaml"
    (tmp_path / "demo").mkdir()
    assert find_experiment("demo") == recipe_folder() / "demo.yaml"
    write(tmp_path, "method: merge\n", "tiny")
    assert load_recipe("tiny").method == "merge"


def test_a_recipe_may_leave_everything_to_the_defaults(tmp_path: Path) -> None:
    assert load_recipe(write(tmp_path, "training: {epochs: 10}\n")) == LearnerSettings()
    assert Method.parse(LearnerSettings().method).name == "replay+merge"


# --- anything at all -----------------------------------------------------------------------------------------------------

PIECES = [
    *"\t\n:-[]{}&*!|>'\"%@`,#?~ \0\a",
    "\ud800",
    "<<: ",
    "null",
    "no",
    "1e999",
    "-.nan",
    "99999999999999999999999999",
    "9" * 5000,
    "kind: jsonl",
    "files: [/]",
    "- ",
    "'\\0'",
    '"\\ud800"',
    '"\\u2028": ',
    "method: ",
    "{a: 1}",
    "[[]]",
    "!!set {a}",
    "é",
    "\u2028",
]


def mutated(generator: random.Random) -> str:
    text = GOOD
    for _ in range(generator.randint(1, 4)):
        start = generator.randrange(len(text))
        end = min(len(text), start + generator.choice([0, 0, 1, 1, 3, 10, 40]))
        piece = generator.choice([*PIECES, "", text[start:end] * 2])
        text = text[:start] + piece + text[end:]
    return text


def test_no_damage_raises_anything_but_an_input_error(tmp_path: Path) -> None:
    generator = random.Random(7)
    refused = 0
    for _ in range(1500):
        path = write(tmp_path, mutated(generator))
        for load in (load_experiment, load_recipe):
            try:
                load(path)
            except InputError as error:
                refused += 1
                str(error).encode("utf-8")
                assert str(error).startswith(f"{path}:")
                assert "\n" not in str(error)
    assert refused > 1500


VALUES: list[Any] = [None, True, "", "x", "\ud800", 0, -1, 10**30, 1.5, [], [1], [None], {}, {"a": 1}, [["x"]], {"kind": []}]


def test_no_value_anywhere_raises_anything_but_an_input_error(tmp_path: Path) -> None:
    """Every place in a good spec takes every odd value (JSON is YAML)."""
    good = read_yaml(write(tmp_path, GOOD)).value

    def variants(node: Any) -> Any:
        yield from VALUES
        places = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
        for key, inner in list(places):
            for other in variants(inner):
                copy = node.copy()
                copy[key] = other
                yield copy

    for variant in variants(good):
        path = write(tmp_path, json.dumps(variant))
        try:
            experiment = load_experiment(path)
        except InputError as error:
            assert str(error).startswith(f"{path}:1: ")
        else:
            assert experiment.runs()

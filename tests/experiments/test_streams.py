import json
from pathlib import Path

import pytest

from perdure.errors import InputError
from perdure.experiments.spec import Experiment, load_experiment
from perdure.tasks.facts import facts_stream
from perdure.tasks.folder import Origin, StoredStream, write_stream


def load(folder: Path, stream: str) -> Experiment:
    path = folder / "spec.yaml"
    path.write_text(f"model: tiny\nmethods: [naive]\nstream: {stream}\n")
    return load_experiment(path)


def refusal(folder: Path, stream: str) -> str:
    with pytest.raises(InputError) as refused:
        load(folder, stream)
    return str(refused.value).removeprefix(f"{folder}/")


def test_facts(tmp_path: Path) -> None:
    stream = load(tmp_path, "{kind: facts, tasks: 2, items: 3, seed: 5, paraphrases: 1}").build_stream()
    assert stream == facts_stream(2, 3, 5, 1)
    assert refusal(tmp_path, "{kind: facts, paraphrases: 5}") == "spec.yaml:3: stream.paraphrases is 5, but must be at most 4."


def test_real_from_files_beside_the_spec(tmp_path: Path) -> None:
    rows = [{"question": f"question {number} {number**5}", "answer": ["a"]} for number in range(9)]
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / "nq_open.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    experiment = load(tmp_path, "{kind: real, data: sets, sources: [nq_open], per_source: 8, items: 4}")
    assert [len(task) for task in experiment.build_stream()] == [4, 4]
    assert "no-sets is not a folder; check the path." in refusal(tmp_path, "{kind: real, data: no-sets}")
    assert "there is no source 'nq_opn'; did you mean 'nq_open'?" in refusal(tmp_path, "{kind: real, sources: [nq_opn]}")
    assert "the source 'squad' is given twice; keep one." in refusal(tmp_path, "{kind: real, sources: [squad, squad]}")


def test_a_folder_is_opened_and_not_read(tmp_path: Path) -> None:
    made = facts_stream(3, 2, 5)
    write_stream("mine", made.tasks, tmp_path / "mine", Origin("facts"))
    stream = load(tmp_path, "{kind: folder, path: mine}").build_stream()
    assert isinstance(stream, StoredStream)
    assert (stream.name, stream.fingerprint, list(stream)) == ("mine", made.fingerprint, list(made.tasks))
    assert "has no manifest.json, so it is no stream" in refusal(tmp_path, "{kind: folder, path: yours}")

"""The paper's recipes: all there, all valid, all with the paper's values, and none edited by hand."""

import pytest
from benchmarks.make_paper_recipes import recipes

from perdure.experiments.spec import load_experiment
from perdure.methods import Method, paper_methods
from perdure.settings import Sections


@pytest.mark.parametrize("stream", ["symbol", "llm", "real"])
def test_twenty_one_methods_a_stream(stream: str) -> None:
    methods = paper_methods(stream)
    assert len(set(methods)) == 21
    assert all(Method.parse(name).name == name for name in methods)


def test_files_are_what_the_script_writes() -> None:
    for path, text in recipes().items():
        assert path.read_text(encoding="utf-8") == text, f"{path.name}: run benchmarks/make_paper_recipes.py"


@pytest.mark.parametrize(("stream", "weight"), [("symbol", 0.75), ("llm", 0.5), ("real", 0.75)])
def test_values_of_the_paper(stream: str, weight: float) -> None:
    for path in (path for path in recipes() if path.parent.name == stream):
        experiment = load_experiment(path)
        run = experiment.runs()[0]
        assert experiment.seeds == (41, 42, 43)
        settings = run.settings
        assert (settings.training.epochs, settings.training.batch_size, settings.training.learning_rate) == (10, 8, 5e-4)
        assert (settings.adapter.rank, settings.adapter.alpha, settings.adapter.dropout) == (32, 64, 0.05)
        assert settings.asking.format == "boxed"
        defaults = {"adapter": {"targets": "all-linear"}, "asking": {"format": "plain"}, "replay": {"weight": 0.75}}
        same_but = {name: getattr(settings, name).model_copy(update=defaults.get(name, {})) for name in Sections.model_fields}
        same_but["asking"] = same_but["asking"].model_copy(update={"matching": "exact"})
        assert Sections(**same_but) == Sections()  # perdure's defaults are the paper's values
        if run.method.replay:
            assert settings.replay.weight == weight
            assert (settings.replay.samples, settings.replay.sampling_temperature, settings.replay.temperature) == (
                300,
                1.5,
                2.0,
            )
    assert load_experiment(f"paper/{stream}/all-merge").runs()[0].method.name == "si+sd+replay+merge"


def test_scaled_down() -> None:
    small = load_experiment("paper/symbol/naive", model="tiny", first_tasks=3, seeds=[7])
    assert (small.model, small.seeds, len(small.build_stream())) == ("tiny", (7,), 3)
    whole = load_experiment("paper/symbol/naive").build_stream()
    assert small.build_stream()[2] == whole[2]

"""The weight anchors against given cases and against one-by-one computation."""

import json
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch.nn import Parameter

from perdure.anchors.anchor import TaskContext
from perdure.anchors.importance import OnlineEWCAnchor, SynapticIntelligenceAnchor
from perdure.settings import OnlineEWC, SynapticIntelligence

CASES = json.loads((Path(__file__).parents[1] / "cases" / "synaptic_intelligence.json").read_text())["cases"]


def context_of(parameter: Parameter, number: int) -> TaskContext:
    """A task whose only parameter is the given one; SI looks at nothing else."""
    model = SimpleNamespace()
    return TaskContext(number, [], model, {"w": parameter}, nullcontext, seed=0, batch_size=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("case", CASES, ids=["one task", "three tasks"])
def test_given_cases(case: dict) -> None:
    anchor = SynapticIntelligenceAnchor(SynapticIntelligence(damping=case["damping"]))
    for number, task in enumerate(case["tasks"], start=1):
        parameter = Parameter(torch.tensor(task["steps"][0]["before"], dtype=torch.float64))
        anchor.begin_task(context_of(parameter, number))
        for step in task["steps"]:
            parameter.data = torch.tensor(step["before"], dtype=torch.float64)
            parameter.grad = torch.tensor(step["gradient"], dtype=torch.float64)
            anchor.after_fitting_gradient()
            parameter.grad.mul_(100)  # clipping and penalties come later and must not be seen
            parameter.data = torch.tensor(step["after"], dtype=torch.float64)
            anchor.after_step()
        anchor.end_task(context_of(parameter, number))
        assert anchor.importance["w"].tolist() == pytest.approx(task["importance_after"], rel=1e-9)
        assert anchor.reference["w"].tolist() == task["reference_after"]
    probe = Parameter(torch.tensor(case["probe"], dtype=torch.float64))
    anchor.begin_task(context_of(probe, len(case["tasks"]) + 1))
    term = anchor.weight_loss()
    assert term is not None
    assert term.value.item() == pytest.approx(case["penalty"], rel=1e-9)


def test_no_penalty_in_the_first_task_though_its_path_is_recorded() -> None:
    parameter = Parameter(torch.zeros(3))
    anchor = SynapticIntelligenceAnchor(SynapticIntelligence())
    anchor.begin_task(context_of(parameter, 1))
    assert anchor.weight_loss() is None
    assert anchor.watches_fitting_gradient()


@pytest.mark.parametrize("anchor_type", [SynapticIntelligenceAnchor, OnlineEWCAnchor])
def test_state_round_trip(anchor_type: type) -> None:
    settings = SynapticIntelligence() if anchor_type is SynapticIntelligenceAnchor else OnlineEWC()
    anchor = anchor_type(settings)
    assert anchor.state_dict() == {}
    anchor.accumulate({"w": Parameter(torch.arange(3.0))}, {"w": torch.ones(3)})
    again = anchor_type(settings)
    again.load_state_dict(anchor.state_dict())
    assert again.importance["w"].equal(anchor.importance["w"])
    assert again.reference["w"].equal(anchor.reference["w"])


def test_importance_decays() -> None:
    anchor = OnlineEWCAnchor(OnlineEWC(decay=0.5))
    parameters = {"w": Parameter(torch.zeros(2))}
    anchor.accumulate(parameters, {"w": torch.tensor([2.0, 4.0])}, 0.5)
    anchor.accumulate(parameters, {"w": torch.tensor([1.0, 1.0])}, 0.5)
    assert anchor.importance["w"].tolist() == [2.0, 3.0]


def test_with_o_lora_the_replay_gradient_is_left_out() -> None:
    parameter = Parameter(torch.zeros(2))
    anchor = SynapticIntelligenceAnchor(SynapticIntelligence(), current_data_only=True)
    anchor.begin_task(context_of(parameter, 1))
    parameter.grad = torch.tensor([5.0, -5.0])  # of the replay loss
    anchor.before_current_gradient()
    parameter.grad = torch.tensor([6.0, -3.0])  # the current batch's added
    anchor.after_fitting_gradient()
    parameter.data = torch.tensor([-1.0, -1.0])
    anchor.after_step()
    assert anchor._path[0].tolist() == [1.0, 2.0]

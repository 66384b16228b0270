"""Sequential OSRM against the singular vectors it names and means taken one sequence at a time."""

import pytest
import torch

from perdure.allocation import SequentialOSRMAllocation
from perdure.allocation.osrm import least_directions
from perdure.models.language_model import LanguageModel
from perdure.settings import OSRM, Adapter, Sections

SETTINGS = Sections(adapter=Adapter(rank=4, alpha=8, dropout=0.2), osrm=OSRM(items=3))
TEXTS = ("Question: a\nAnswer: bcd", "Question: longer one\nAnswer: x", "Question: 7", "Question: left out, the fourth")


@pytest.mark.parametrize(("tasks", "count"), [(1, 4), (3, 4), (12, 4), (20, 16)], ids=str)
def test_directions_have_the_least_singular_values(tasks: int, count: int) -> None:
    rows = torch.randn(tasks, 16, generator=torch.Generator().manual_seed(0))
    found = least_directions(rows, count)
    torch.testing.assert_close(found @ found.T, torch.eye(count), rtol=0, atol=1e-5)
    singular = torch.linalg.svdvals(torch.cat([rows, torch.zeros(max(0, 16 - tasks), 16)]))
    # What the rows have along the found directions is no more than the last singular values allow.
    assert float((rows @ found.T).norm()) == pytest.approx(float(singular[16 - count :].norm()), abs=1e-4)


def test_means_leave_padding_out_and_stop_at_the_given_number_of_items(model: LanguageModel) -> None:
    allocation = SequentialOSRMAllocation(model, SETTINGS, seed=0)
    allocation.begin_task(1)
    texts = [model.encode(text) for text in TEXTS]
    name, layer = list(allocation.layers.items())[-1]
    seen: list[torch.Tensor] = []
    handle = layer.register_forward_pre_hook(lambda _l, inputs: seen.append(inputs[0][0].detach()))
    with torch.no_grad():
        for text in texts[:3]:
            model.model(input_ids=torch.tensor([text]))
    handle.remove()
    allocation.collect(texts, batch_size=2)
    torch.testing.assert_close(allocation._means[name], torch.cat(seen).mean(dim=0, keepdim=True), rtol=1e-4, atol=1e-5)


def test_new_adapter_avoids_past_means_and_keeps_the_usual_length(model: LanguageModel) -> None:
    allocation = SequentialOSRMAllocation(model, SETTINGS, seed=0)
    texts = [model.encode(text) for text in TEXTS]
    for number in (1, 2):
        allocation.begin_task(number)
        allocation.collect(texts[number:], batch_size=2)
        allocation.end_task()
    super(SequentialOSRMAllocation, allocation).begin_task(3)
    kaiming = {n: p.detach().norm(dim=1).mean() for n, p in allocation.parameters.items() if n.endswith("lora_A")}
    allocation.begin_task(3)
    for name in allocation.layers:
        a = allocation.parameters[f"{name}.lora_A"].detach()
        torch.testing.assert_close(a.norm(dim=1), kaiming[f"{name}.lora_A"].expand(len(a)), rtol=1e-4, atol=1e-6)
        means = allocation._means[name]
        assert means.shape[0] == 2
        assert float((means @ a.T).abs().max()) < 1e-4 * float(means.norm() * a.norm())
        assert not allocation.parameters[f"{name}.lora_B"].any()

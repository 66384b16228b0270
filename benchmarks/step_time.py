"""One training step of replay+sd+merge here, against the same step scripted plainly with Transformers and PEFT.

    python benchmarks/step_time.py [--pairs 5] [--model smollm2-135m] [--items 8] [--samples 32]

The plain script does what public code for this method does: a second adapter as teacher, run at every step, and dense
divergences of full logits. Both do the same work on the same batches with the same adapter, learning rate and dtype, in turn,
in one process; their losses must agree at every step. Prints medians and the ratio pair by pair.
"""

import argparse
import json
import resource
import statistics
import time
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional

from perdure.allocation import MergedAllocation
from perdure.anchors.anchor import TaskContext
from perdure.anchors.distillation import DistillationAnchor
from perdure.anchors.replay import ReplayAnchor
from perdure.learning.step import training_step
from perdure.learning.texts import Texts
from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.settings import Adapter, Distillation, Replay, Sections
from perdure.tasks import symbol_stream

REPLAY = Replay(weight=0.5, sampling_temperature=1.0, max_new_tokens=32)
SETTINGS = Sections(adapter=Adapter(rank=32, alpha=64, dropout=0))
RATE = 1e-3


class Ours:
    """perdure's own step, with this task's teacher outputs computed once."""

    def __init__(self, model_name: str, items: int, samples: int) -> None:
        model = LanguageModel(load_model(model_name, device="cpu", dtype="float32"))
        model.add_replay_token()
        assert model.replay_token_id is not None
        texts = Texts(model, "plain", lead=[model.replay_token_id])
        self.sequences = texts.training(symbol_stream(tasks=1, items=items)[0], 384)
        self.model, self.allocation = model, MergedAllocation(model, SETTINGS, seed=0)
        self.allocation.begin_task(2)
        self.replay = ReplayAnchor(REPLAY.model_copy(update={"samples": samples}), keep_end_of_text=True)
        self.anchors = [self.replay, DistillationAnchor(Distillation())]
        context = TaskContext(
            2, self.sequences, model, self.allocation.parameters, self.allocation.previous_model, seed=0, batch_size=8
        )
        began = time.perf_counter()
        for anchor in self.anchors:
            anchor.begin_task(context)
        self.once_a_task = time.perf_counter() - began
        self.optimiser = torch.optim.AdamW(self.allocation.parameters.values(), lr=RATE, fused=True)
        model.model.train()

    def step(self) -> float:
        batch = self.model.batch(self.sequences, range(8))
        record = training_step(self.model, batch, self.anchors, self.allocation, self.optimiser, clip=1.0, measure=False)
        return sum(record.weight[name] * value for name, value in record.loss.items())


class Plain:
    """The same step as a script would do it."""

    def __init__(self, model_name: str, ours: Ours) -> None:
        model = LanguageModel(load_model(model_name, device="cpu", dtype="float32"))
        model.add_replay_token()
        config = LoraConfig(r=32, lora_alpha=64, lora_dropout=0, target_modules="all-linear")
        self.model: Any = get_peft_model(model.model, config)
        self.model.add_adapter("teacher", config)  # B = 0: the previous model, as after a merge
        self.model.set_adapter("default")
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                for key, value in ours.allocation.parameters.items():
                    if name.endswith(f"{key}.default.weight"):
                        parameter.copy_(value)
        self.trained = [p for name, p in self.model.named_parameters() if ".default." in name]
        for name, parameter in self.model.named_parameters():
            parameter.requires_grad_(".default." in name)
        self.optimiser = torch.optim.AdamW(self.trained, lr=RATE)
        self.ours, self.pad = ours, ours.model.pad_token_id
        self.model.train()

    def _batch(self, sequences: list[list[int]]) -> tuple[torch.Tensor, torch.Tensor]:
        longest = max(map(len, sequences))
        ids = torch.tensor([s + [self.pad] * (longest - len(s)) for s in sequences])
        mask = torch.tensor([[1] * len(s) + [0] * (longest - len(s)) for s in sequences])
        return ids, mask

    def _divergence(self, student: torch.Tensor, ids: torch.Tensor, mask: torch.Tensor, temperature: float) -> torch.Tensor:
        self.model.set_adapter("teacher")
        with torch.no_grad():
            teacher = self.model(input_ids=ids, attention_mask=mask).logits
        self.model.set_adapter("default")
        p = functional.softmax(teacher[:, :-1] / temperature, dim=-1)
        log_p = functional.log_softmax(teacher[:, :-1] / temperature, dim=-1)
        log_q = functional.log_softmax(student[:, :-1] / temperature, dim=-1)
        kl = (p * (log_p - log_q)).sum(dim=-1)
        return (kl * mask[:, 1:]).sum() / mask[:, 1:].sum() * temperature**2

    def step(self, replay_index: list[int]) -> float:
        ids, mask = self._batch(self.ours.sequences[:8])
        logits = self.model(input_ids=ids, attention_mask=mask).logits
        sft = functional.cross_entropy(
            logits[:, :-1].flatten(0, 1), ids[:, 1:].masked_fill(mask[:, 1:] == 0, -100).flatten(), ignore_index=-100
        )
        function = self._divergence(logits, ids, mask, 5.0)
        replay_ids, replay_mask = self._batch([self.ours.replay.samples[i] for i in replay_index])
        replay_logits = self.model(input_ids=replay_ids, attention_mask=replay_mask).logits
        data = self._divergence(replay_logits, replay_ids, replay_mask, 2.0)
        loss = 0.5 * sft + 0.5 * data + function
        self.optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.trained, 1.0)
        self.optimiser.step()
        return loss.item()


def main() -> None:
    """Check that the losses agree, then time the two in turn."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=5)
    parser.add_argument("--model", default="smollm2-135m")
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--samples", type=int, default=32)
    options = parser.parse_args()
    ours = Ours(options.model, options.items, options.samples)
    plain = Plain(options.model, ours)
    drawn: list[list[int]] = []
    batches = ours.replay._batches
    ours.replay._batches = (drawn.append(index) or index for index in batches)  # type: ignore[func-returns-value]
    times: dict[str, list[float]] = {"ours": [], "plain": []}
    for pair in range(options.pairs + 1):
        began = time.perf_counter()
        mine = ours.step()
        middle = time.perf_counter()
        theirs = plain.step(drawn[-1])
        ended = time.perf_counter()
        if abs(mine - theirs) > 1e-2 * abs(theirs):
            raise SystemExit(f"the losses differ at step {pair + 1}: {mine:.6f} here, {theirs:.6f} plainly")
        if pair:  # the first warms up
            times["ours"].append(middle - began)
            times["plain"].append(ended - middle)
    ratios = [p / o for o, p in zip(times["ours"], times["plain"], strict=True)]
    print(
        json.dumps(
            {
                "model": options.model,
                "pairs": options.pairs,
                "tokens_a_step": sum(len(s) for s in ours.sequences[:8]) + sum(len(ours.replay.samples[i]) for i in drawn[-1]),
                "seconds_ours": round(statistics.median(times["ours"]), 3),
                "seconds_plain": round(statistics.median(times["plain"]), 3),
                "ratio_median": round(statistics.median(ratios), 2),
                "ratio_range": [round(min(ratios), 2), round(max(ratios), 2)],
                "seconds_once_a_task": round(ours.once_a_task, 2),
                "peak_memory_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
            },
            indent=2,
        )
    )


if __name__ == "__main__":
    main()

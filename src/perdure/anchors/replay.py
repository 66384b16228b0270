"""The data anchor: generative replay with soft targets.

At the start of each task t > 1 the previous model writes sequences out of one token, ``<|replay_token|>``; nothing else
conditions it. They live for this task, and every step draws a minibatch of them beside the current one:

    L_fit = (1-w)·L_SFT + w·L_D
    L_D   = τ_D² / n · Σ KL( p_previous(· | prefix) ‖ p(· | prefix) )    over every sampled token; the seed is no target

Source: continual-memorisation protocol §2, "Data anchor". 300 samples, sampling temperature τ_G = 1.5, top-p .9, at most
384 new tokens, τ_D = 2, w = .75 (Symbol-QA and Real-QA) or .5 (LLM-QA).
"""

import math
from collections.abc import Iterator, Sequence

from perdure.anchors.anchor import Anchor, TaskContext
from perdure.anchors.teacher import Teacher
from perdure.errors import PerdureError
from perdure.models.batches import minibatches
from perdure.models.decoding import NucleusSampler, continue_sequences
from perdure.models.vocabulary import soft_target_kl
from perdure.settings import Replay
from perdure.terms import Term

SAMPLING_BATCH = 64


class ReplayAnchor(Anchor):
    """Holds what the previous model says of its own accord."""

    def __init__(self, settings: Replay, *, keep_end_of_text: bool) -> None:
        self._settings = settings
        self._keep_end_of_text = keep_end_of_text
        self._teacher: Teacher | None = None
        self._batches: Iterator[list[int]] = iter(())
        self.samples: list[list[int]] = []  # this task's, each with the replay token before it

    def begin_task(self, task: TaskContext) -> None:
        self._model = task.model
        self.samples, self._teacher, self.share = [], None, 0.0
        if task.number == 1:
            return
        self.samples = self._draw(task)
        self._teacher = Teacher(task, self.samples)
        epoch = math.ceil(len(task.texts) / task.batch_size)
        restart = epoch if self._settings.order == "each-epoch" else None
        order = (task.seed, task.number, "replay order")
        self._batches = minibatches(len(self.samples), task.batch_size, *order, restart=restart)
        self.share = self._settings.weight

    def _draw(self, task: TaskContext) -> list[list[int]]:
        """Sample from the previous model; empty outputs are dropped."""
        settings, model = self._settings, task.model
        seed_token = model.replay_token_id
        assert seed_token is not None
        banned = {seed_token, model.pad_token_id} - set(model.eos_token_ids)
        sampler = NucleusSampler(
            settings.samples,
            settings.max_new_tokens,
            temperature=settings.sampling_temperature,
            top_p=settings.top_p,
            banned=[*banned, *range(len(model.tokenizer), model.head.vocabulary)],
            seed=task.seed,
            task=task.number,
        )
        with task.previous(), task.progress.stage("sampling", settings.samples) as advance:
            drawn = continue_sequences(
                model,
                [[*model.start, seed_token]] * settings.samples,
                pick=sampler,
                finished=lambda _row, _tokens: False,
                max_new_tokens=settings.max_new_tokens,
                batch_size=SAMPLING_BATCH,
                advance=advance,
            )
        samples = [
            [*model.start, seed_token, *self._ended(tokens, model.eos_token_ids)]
            for tokens in drawn
            if model.decode(tokens).strip()
        ]
        if not samples:
            raise PerdureError(
                f"all {settings.samples} replay samples came out empty at task {task.number}; "
                "lower replay.sampling_temperature, or raise replay.max_new_tokens."
            )
        return samples

    def _ended(self, tokens: Sequence[int], eos: Sequence[int]) -> Sequence[int]:
        """A sample keeps its end-of-text token where the trained texts have one."""
        return tokens[:-1] if tokens[-1] in eos and not self._keep_end_of_text else tokens

    def data_loss(self) -> Term | None:
        if self._teacher is None:
            return None
        batch = self._model.batch(self.samples, next(self._batches))
        teacher = self._teacher.hidden(batch)
        student = self._model.hidden_at_predictions(batch)
        return Term("data", self.share, soft_target_kl(student, teacher, self._model.head, self._settings.temperature))

    def end_task(self, task: TaskContext) -> None:
        self.samples, self._teacher, self.share = [], None, 0.0

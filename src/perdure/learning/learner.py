"""A language model that learns task after task and is asked everything it ever learnt."""

import json
import math
import resource
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

import perdure
from perdure.allocation import ALLOCATIONS
from perdure.anchors import build_anchors
from perdure.anchors.anchor import Anchor, TaskContext
from perdure.anchors.replay import ReplayAnchor
from perdure.errors import InputError, PerdureError
from perdure.learning.audit import audit_samples
from perdure.learning.directory import LearnerDirectory, Row, refuse_used
from perdure.learning.export import export_model
from perdure.learning.state import commit_state, read_state
from perdure.learning.step import StepRecord, training_step
from perdure.learning.texts import AskedTask, Texts
from perdure.learning.tracking import Tracking, check_trackers
from perdure.methods import Method
from perdure.models.answering import Answer, answer_questions
from perdure.models.batches import Batch, minibatches
from perdure.models.decoding import continue_sequences, greedy
from perdure.models.language_model import LanguageModel
from perdure.models.loading import load_model
from perdure.progress import Progress
from perdure.randomness import seeded
from perdure.retention.matrix import RetentionMatrix
from perdure.settings import LearnerSettings
from perdure.tasks import Task

MEASURE_EVERY = 10  # steps between two measurements of every term's gradient norm
PROBES = 8  # training texts on which the change of a merge is measured


@dataclass
class TaskReport:
    """What learning one task took. seconds and tokens by stage; merge_change: largest change of a logit by the merge."""

    task: int
    name: str
    items: int
    steps: int
    seconds: dict[str, float] = field(default_factory=dict)
    tokens: dict[str, int] = field(default_factory=dict)
    peak_memory_bytes: int = 0
    state_bytes: int = 0
    merge_change: float | None = None
    replay_audit: dict[str, Any] | None = None


class Learner:
    """A model, a method, and a directory in which everything learnt so far is safe.

    Made by :meth:`create` or :meth:`open`. A task is learnt whole or not at all: a process killed inside :meth:`learn` leaves
    the learner as it was before, and learning the task again gives the same bits.
    """

    def __init__(
        self, directory: LearnerDirectory, model: LanguageModel, progress: Progress, trackers: Sequence[str] = ()
    ) -> None:
        settings = directory.settings
        method = Method.parse(settings.method)
        self.directory, self.settings, self.method, self.model = directory, settings, method, model
        self.seed: int = directory.description["seed"]
        self._progress, self._trackers = progress, trackers
        lead: list[int] = []
        if method.replay:
            model.add_replay_token()
            assert model.replay_token_id is not None
            lead = [model.replay_token_id] if settings.replay.token == "everywhere" else []
        self._texts = Texts(model, settings.asking.format, lead=lead)
        self._allocation = ALLOCATIONS[method.allocation](model, settings, self.seed)
        self._anchors: dict[str, Anchor] = build_anchors(method, settings, keep_end_of_text=self._texts.format.ends_with_eos)
        self._questions: dict[int, AskedTask] = {}  # tokenised once, asked after every task
        self._restore()

    @classmethod
    def create(
        cls,
        directory: str | Path,
        *,
        model: str,
        settings: LearnerSettings | None = None,
        seed: int = 0,
        progress: Progress | None = None,
        trackers: Sequence[str] = (),
        device: str | None = None,
        dtype: str | None = None,
        revision: str | None = None,
        trust_remote_code: bool = False,
    ) -> "Learner":
        """Begin a learner in a new directory.

        Parameters
        ----------
        model: a Hugging Face causal LM by id or path, or an embedded model's name.
        seed: decides every random choice, together with the task's number.
        device, dtype: by default what the machine does well.

        Raises
        ------
        InputError: the directory is in use, or the model can't be loaded or adapted.
        """
        settings = settings or LearnerSettings()
        check_trackers(trackers)
        path = Path(directory)
        refuse_used(path)
        loaded = load_model(model, device=device, dtype=dtype, revision=revision, trust_remote_code=trust_remote_code)
        description = {
            "perdure": perdure.__version__,
            "model": loaded.name,
            "revision": revision,
            "trust_remote_code": trust_remote_code,
            "dtype": str(loaded.dtype).removeprefix("torch."),
            "fingerprint": loaded.fingerprint,
            "seed": seed,
        }
        progress = progress or Progress()
        progress.note(loaded.describe())
        files = LearnerDirectory.create(path, description, settings)
        try:
            return cls(files, LanguageModel(loaded), progress, trackers)
        except InputError:  # settings that this model can't take: leave nothing that a corrected call would stumble over
            files.remove()
            raise

    @classmethod
    def open(
        cls,
        directory: str | Path,
        *,
        progress: Progress | None = None,
        trackers: Sequence[str] = (),
        device: str | None = None,
    ) -> "Learner":
        """Go on with a learner.

        Raises
        ------
        InputError: no learner is there, it is damaged, or its model has changed since.
        """
        check_trackers(trackers)
        files = LearnerDirectory.open(Path(directory))
        about = files.description
        loaded = load_model(
            about["model"],
            device=device,
            dtype=about["dtype"],
            revision=about["revision"],
            trust_remote_code=about["trust_remote_code"],
        )
        if loaded.fingerprint != about["fingerprint"]:
            raise InputError(
                f"{about['model']} is not the model that {files.path} was made with (its weights differ); put the former "
                "one back, or begin anew with `perdure init`."
            )
        progress = progress or Progress()
        progress.note(loaded.describe())
        return cls(files, LanguageModel(loaded), progress, trackers)

    @property
    def tasks_learnt(self) -> int:
        """How many tasks have been learnt and committed."""
        return self.directory.tasks_learnt

    def matrix(self) -> RetentionMatrix:
        """The retention matrix so far."""
        return self.directory.matrix()

    def watch(self, anchors: Mapping[str, Anchor]) -> None:
        """Let weight anchors that the method doesn't name watch the first task, where every anchor is off.

        Their state is committed beside the learner's own, for learners that begin from it (:mod:`perdure.learning.branch`).
        """
        self._anchors |= anchors

    # --- learning ------------------------------------------------------------------------------------------------------

    def learn(self, task: Task) -> TaskReport:
        """Learn one task; evaluation (stage five of the protocol, :meth:`evaluate`) is asked for apart.

        Raises
        ------
        InputError: an item is too long, or another process is writing here.
        PerdureError: the loss is not finite, or the disk is full; the learner is then as it was before.
        """
        with self.directory.writing():
            self._catch_up()
            sequences = self._texts.training(task, self.settings.training.max_length)
            number = self.tasks_learnt + 1
            context = TaskContext(
                number=number,
                texts=sequences,
                model=self.model,
                parameters=self._allocation.parameters,
                previous=self._allocation.previous_model,
                seed=self.seed,
                batch_size=self.settings.training.batch_size,
                progress=self._progress,
            )
            report = TaskReport(number, task.name, len(task.items), steps=0)
            try:
                self._freeze_previous(context, report)
                self._train(context, report)
                self._finish_anchors(context, report)
                self._allocate(context, report)
                self._commit(task, report)
            except BaseException:  # Ctrl-C too
                self._restore()
                raise
            self._at = number
            return report

    def _freeze_previous(self, context: TaskContext, report: TaskReport) -> None:
        """1. The previous model becomes the teacher; this task's replay samples are drawn from it."""
        with self._timed(report, "sampling"):
            self._allocation.begin_task(context.number)
            for anchor in self._anchors.values():
                anchor.begin_task(context)
        replay = self._anchors.get("replay")
        if isinstance(replay, ReplayAnchor) and replay.samples:
            report.tokens["sampled"] = sum(len(sample) for sample in replay.samples)
            old = [item for earlier in range(1, context.number) for item in self.directory.task(earlier).items]
            texts = [self.model.decode(sample) for sample in replay.samples]
            report.replay_audit = audit_samples(texts, old, self._texts.format, drawn=self.settings.replay.samples)

    def _train(self, context: TaskContext, report: TaskReport) -> None:
        """2. Train on the task, held by the anchors: AdamW, linear warm-up, constant rate, a new optimiser each task."""
        training, number = self.settings.training, context.number
        report.steps = steps = training.epochs * math.ceil(len(context.texts) / training.batch_size)
        warmup = max(1, math.floor(training.warmup * steps))
        parameters = context.parameters
        optimiser = torch.optim.AdamW(
            parameters.values(), lr=training.learning_rate, weight_decay=training.weight_decay, fused=True
        )
        schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, (step + 1) / warmup))
        order = minibatches(len(context.texts), training.batch_size, self.seed, number, "order")
        anchors = list(self._anchors.values())
        tracking = Tracking(self._trackers, self.directory.path, steps_before=self._steps_before(number))
        self.model.model.train()
        with (
            self._timed(report, "training"),
            seeded(self.seed, number, "dropout"),
            self.directory.log(number).open("w", encoding="utf-8") as log,
            self._progress.stage("training", steps) as advance,
        ):
            for step in range(1, steps + 1):
                batch = self.model.batch(context.texts, next(order))
                measure = step == 1 or step == steps or step % MEASURE_EVERY == 0
                rate = float(schedule.get_last_lr()[0])
                record = training_step(
                    self.model, batch, anchors, self._allocation, optimiser, clip=training.clip, measure=measure
                )
                schedule.step()
                self._check_finite(record, report.name, step)
                report.tokens["trained"] = report.tokens.get("trained", 0) + len(batch.targets)
                if measure:
                    line = {"task": number, "step": step, "learning_rate": rate, **vars(record)}
                    log.write(json.dumps(line) + "\n")
                    log.flush()
                    tracking.log(record, rate, step)
                advance(1)
        tracking.end()
        self.model.model.eval()

    def _finish_anchors(self, context: TaskContext, report: TaskReport) -> None:
        """3. Before any re-parametrisation, the anchors take from the task what later tasks need."""
        with self._timed(report, "finishing"):
            for anchor in self._anchors.values():
                anchor.end_task(context)
            self._allocation.collect(context.texts, context.batch_size)

    def _allocate(self, context: TaskContext, report: TaskReport) -> None:
        """4. Keep the update where the allocation rule says, and measure what that did to the logits."""
        with self._timed(report, "finishing"):
            probe = self.model.batch(context.texts, range(min(PROBES, len(context.texts))))
            before = self._logits(probe)
            self._allocation.end_task()
            report.merge_change = float((self._logits(probe) - before).abs().max())

    def _commit(self, task: Task, report: TaskReport) -> None:
        """Put everything on disk; the last rename makes the task learnt."""
        with self._timed(report, "finishing"):
            self.directory.write_task(report.task, task)
            report.peak_memory_bytes = peak_memory(self.model.device)
            tensors = {"model": self._allocation.state_dict()}
            tensors |= {name: anchor.state_dict() for name, anchor in self._anchors.items()}
            report.state_bytes = sum(t.numel() * t.element_size() for group in tensors.values() for t in group.values())
            self.directory.write_costs(report.task, vars(report))
            commit_state(self.directory.state, report.task, tensors)

    # --- asking --------------------------------------------------------------------------------------------------------

    def evaluate(self, tasks: Sequence[int] | None = None, *, ahead: Task | None = None) -> Row:
        """Ask the model the training questions of the given tasks, and their paraphrases: one row of the retention matrix.

        Nothing random happens here, and what an earlier call asked at this checkpoint is kept.

        Parameters
        ----------
        tasks: numbers of tasks, from 1; by default all.
        ahead: the task to be learnt next, asked before it is learnt (forward transfer).

        Raises
        ------
        InputError: nothing has been learnt yet, or another process is writing here.
        """
        if not self.tasks_learnt:
            raise InputError(f"{self.directory.path} has learnt nothing yet; begin with `perdure learn`.")
        with self.directory.writing():
            self._catch_up()
            learnt = self._at
            began = time.perf_counter()
            asked = {number: self._questions_of(number) for number in tasks or range(1, learnt + 1)}
            if ahead is not None:
                asked[learnt + 1] = self._texts.questions(ahead)
            row = self.directory.row(learnt) or Row.blank(learnt)
            for number, (plain, reworded) in self._judge(asked).items():
                if number > learnt:
                    row = replace(row, ahead=_share(answer.right for answer in plain))
                    continue
                row.scores[number - 1] = _share(answer.right for answer in plain)
                row.formatted[number - 1] = _share(answer.formatted for answer in plain)
                row.counts[number - 1] = len(plain)
                row.reworded[number - 1] = _share(answer.right for answer in reworded)
            self.directory.write_row(row)
            costs = self.directory.costs(learnt)
            costs["seconds"]["scoring"] = costs["seconds"].get("scoring", 0.0) + time.perf_counter() - began
            scored = sum(
                len(question.prompt) + len(question.completion) for pair in asked.values() for question in chain(*pair)
            )
            costs["tokens"]["scored"] = costs["tokens"].get("scored", 0) + scored
            self.directory.write_costs(learnt, costs)
        return row

    def _judge(self, asked: Mapping[int, AskedTask]) -> dict[int, tuple[list[Answer], list[Answer]]]:
        """Put all questions in one go; the answers to each task's questions and to its paraphrases, by its number."""
        questions = [question for pair in asked.values() for question in chain(*pair)]
        with self._progress.stage("scoring", len(questions)) as advance:
            answers = iter(
                answer_questions(
                    self.model,
                    questions,
                    self._texts.format,
                    self.settings.asking.matching,
                    max_new_tokens=self.settings.asking.max_new_tokens,
                    batch_size=self.settings.asking.batch_size,
                    advance=advance,
                )
            )
        return {
            number: (list(islice(answers, len(plain))), list(islice(answers, len(reworded))))
            for number, (plain, reworded) in asked.items()
        }

    def ask(self, question: str) -> str:
        """The model's greedy answer to one question, put as its training questions are."""
        self._catch_up()
        form = self._texts.format
        (tokens,) = continue_sequences(
            self.model,
            [self._texts.prompt(question)],
            pick=greedy,
            finished=lambda _row, new: form.finished(self.model.decode(new)),
            max_new_tokens=self.settings.asking.max_new_tokens,
            batch_size=1,
        )
        text = self.model.decode(tokens)
        answer = form.extract(text)
        return text.strip() if answer is None else answer

    def export(self, out: str | Path, dtype: str | None = None) -> float:
        """Write the model as a plain Hugging Face folder that needs no perdure, and check it against this one.

        Returns
        -------
        The largest difference of a logit between the exported model, loaded anew, and this one, on questions learnt.
        """
        self._catch_up()
        probes = [self._texts.prompt("What is perdure?")]
        for number in range(1, self.tasks_learnt + 1)[-PROBES:]:
            question = self._questions_of(number)[0][0]
            probes.append([*question.prompt, *question.completion])
        about = self.directory.description | {"tasks": self.tasks_learnt}
        prompt = self.model.decode_whole(self._texts.prompt("{question}"))
        return export_model(self.model, self._allocation, about, Path(out), probes, prompt, dtype)

    # --- inside --------------------------------------------------------------------------------------------------------

    def _catch_up(self) -> None:
        """Another process may have learnt tasks here since: take its state before going on."""
        if self.tasks_learnt != self._at:
            self._restore()

    def _restore(self) -> None:
        """Put the model and the anchors in the committed state."""
        self.model.model.eval()
        learnt = self._at = self.tasks_learnt
        if not learnt:
            self._allocation.reset()
            tensors: dict[str, dict[str, torch.Tensor]] = {}
        else:
            tensors = read_state(self.directory.state, learnt)
            self._allocation.load_state_dict(tensors["model"])
        for name, anchor in self._anchors.items():
            anchor.load_state_dict(tensors.get(name, {}))

    def _questions_of(self, number: int) -> AskedTask:
        if number not in self._questions:
            self._questions[number] = self._texts.questions(self.directory.task(number))
        return self._questions[number]

    def _logits(self, batch: Batch) -> torch.Tensor:
        """Logits [texts, vocabulary] at each text's last predicting position."""
        with torch.no_grad():
            last = batch.predicts.sum(dim=1).cumsum(dim=0) - 1
            return self.model.head(self.model.hidden_at_predictions(batch)[last])

    def _steps_before(self, number: int) -> int:
        return sum(self.directory.costs(earlier)["steps"] for earlier in range(1, number))

    def _check_finite(self, record: StepRecord, name: str, step: int) -> None:
        if not math.isfinite(record.gradient_norm["total"]):
            terms = ", ".join(f"{term} {value:.3g}" for term, value in record.loss.items())
            raise PerdureError(
                f"the loss of {name} is not finite at step {step} ({terms}); the learner is as it was before this task: "
                "lower training.learning_rate or the weight of the term that grew."
            )

    @contextmanager
    def _timed(self, report: TaskReport, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        report.seconds[stage] = report.seconds.get(stage, 0.0) + time.perf_counter() - began


def _share(verdicts: Iterable[bool]) -> float | None:
    """The share of true verdicts; None when there are none."""
    known = list(verdicts)
    return sum(known) / len(known) if known else None


def peak_memory(device: torch.device) -> int:
    """Most bytes this process has held so far: of the device's memory on a GPU, else of main memory."""
    if device.type == "cuda":
        return int(torch.cuda.max_memory_allocated(device))
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

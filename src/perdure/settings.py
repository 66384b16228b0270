"""What can be set, with the paper's values as defaults.

Source of every default: the continual-memorisation paper (arXiv 2609.06986), its hyper-parameter tables and its
released code. Where perdure chooses otherwise, the field says *ours*.
"""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

Positive = Annotated[int, Field(gt=0)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False)]
Share = Annotated[float, Field(gt=0, lt=1)]


class Settings(BaseModel):
    """Base of all settings: unknown keys are refused and values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Training(Settings):
    """How one task is fitted: AdamW, linear warm-up, then a constant rate; a fresh optimiser for each task."""

    epochs: Positive = Field(10, description="passes over the task; an epoch is ceil(items / batch_size) steps")
    batch_size: Positive = 8
    learning_rate: PositiveFloat = 5e-4
    weight_decay: NonNegativeFloat = 0.01
    warmup: Annotated[float, Field(ge=0, le=1)] = Field(0.05, description="share of a task's steps spent warming up")
    clip: PositiveFloat = Field(1.0, description="largest norm of the whole gradient")
    max_length: Annotated[int, Field(ge=8)] = Field(384, description="longest training text, in tokens")


class Adapter(Settings):
    """The low-rank adapter (LoRA) that carries an update: W + (alpha / rank) B A."""

    rank: Positive = 32
    alpha: PositiveFloat = 64
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.05
    targets: tuple[str, ...] | Literal["all-linear"] = Field(
        "all-linear", description="module names as in PEFT; all-linear = every linear layer of the decoder but the head"
    )


class Replay(Settings):
    """Data anchor: generative replay with soft targets."""

    weight: Share = Field(0.75, description="w, the replay loss's share in the fitting loss")
    samples: Positive = Field(300, description="sequences drawn from the previous model for each task")
    sampling_temperature: PositiveFloat = 1.5
    top_p: Annotated[float, Field(gt=0, le=1)] = 0.9
    max_new_tokens: Positive = 384
    temperature: PositiveFloat = Field(2.0, description="τ_D, softens teacher and student")
    token: Literal["everywhere", "replay-only"] = Field(
        "everywhere",
        description="where the replay token stands: before every text and question, as the authors' code has it, "
        "or before replay sequences only, as the paper's text says",
    )


class Distillation(Settings):
    """Function anchor: self-distillation on the current task's texts."""

    weight: PositiveFloat = Field(1.0, description="λ_F")
    temperature: PositiveFloat = Field(5.0, description="τ_F")


class SynapticIntelligence(Settings):
    """Weight anchor: path-integral importance of every trainable scalar."""

    weight: PositiveFloat = Field(1.0, description="λ_SI")
    damping: PositiveFloat = Field(0.1, description="ξ")


class OnlineEWC(Settings):
    """Weight anchor: accumulated diagonal Fisher information."""

    weight: PositiveFloat = 1000.0
    decay: Annotated[float, Field(gt=0, le=1)] = Field(1.0, description="γ, applied to the past at each task")
    examples: Positive = Field(1000, description="at most so many of the task's items enter the estimate")


class Asking(Settings):
    """How questions are put and answers are judged."""

    format: Literal["plain", "boxed"] = Field(
        "plain",
        description="plain (ours): `Question: q\\nAnswer: a` + end-of-text; boxed: the paper's `\\boxed{a}`, no end-of-text",
    )
    matching: Literal["exact", "normalised"] = Field(
        "exact", description="exact: case-insensitive equality; normalised: also without punctuation and articles"
    )
    max_new_tokens: Positive = Field(256, description="longest answer, in tokens")
    batch_size: Positive = 64


class LearnerSettings(Settings):
    """Everything that decides how a learner learns, but for the model and the seed.

    ``method`` joins mechanisms with ``+``: any of ``si`` or ``ewc``, ``sd``, ``replay`` and ``merge``;
    ``naive`` is the shared adapter with no anchor. The sections below set the mechanisms that the method names.
    """

    method: str = "replay+merge"
    training: Training = Training()
    adapter: Adapter = Adapter()
    asking: Asking = Asking()
    replay: Replay = Replay()
    distillation: Distillation = Distillation()
    si: SynapticIntelligence = SynapticIntelligence()
    ewc: OnlineEWC = OnlineEWC()

"""What can be set, with the paper's values as defaults.

Source of every default: the continual-memorisation paper (arXiv 2609.06986), its hyper-parameter tables and its
released code. Where perdure chooses otherwise, the field says *ours*. docs/settings.md is made from this file.

Numbers are strict: a quoted number, ``true``, or 10.0 for a whole number is refused rather than guessed at.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

from perdure.errors import InputError
from perdure.methods import Method

Positive = Annotated[int, Field(gt=0, strict=True)]
PositiveFloat = Annotated[float, Field(gt=0, allow_inf_nan=False, strict=True)]
NonNegativeFloat = Annotated[float, Field(ge=0, allow_inf_nan=False, strict=True)]
Share = Annotated[float, Field(gt=0, lt=1, strict=True)]
PositiveShare = Annotated[float, Field(gt=0, le=1, strict=True)]


class Settings(BaseModel):
    """Base of all settings: unknown keys are refused and values never change after validation."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class Training(Settings):
    """How one task is fitted: AdamW, linear warm-up, then a constant rate; a fresh optimiser for each task."""

    epochs: Positive = Field(default=10, description="passes over the task; an epoch is ceil(items / batch_size) steps")
    batch_size: Positive = Field(default=8, description="texts in a step; replay adds as many sequences of its own")
    learning_rate: PositiveFloat = Field(default=5e-4, description="after the warm-up")
    weight_decay: NonNegativeFloat = Field(default=0.01, description="AdamW's, on all adapter weights")
    warmup: Annotated[float, Field(ge=0, le=1, strict=True)] = Field(
        default=0.05, description="share of a task's steps spent warming up; at least one step"
    )
    clip: PositiveFloat = Field(default=1.0, description="largest norm of the whole gradient")
    max_length: Annotated[int, Field(ge=8, strict=True)] = Field(default=384, description="longest training text, in tokens")


class Adapter(Settings):
    """The low-rank adapter (LoRA) that carries an update: W + (alpha / rank) B A."""

    rank: Positive = Field(default=32, description="columns of B and rows of A")
    alpha: PositiveFloat = Field(default=64, description="scales the update by alpha / rank")
    dropout: Annotated[float, Field(ge=0, lt=1, strict=True)] = Field(
        default=0.05, description="on the adapter's input while training; never in the teacher"
    )
    targets: tuple[str, ...] | Literal["all-linear"] = Field(
        default="all-linear",
        description="a list of module names as in PEFT; all-linear = every linear layer of the decoder but the head",
    )

    @field_validator("targets", mode="before")
    @classmethod
    def _names_or_all(cls, given: Any) -> Any:
        names = given if isinstance(given, list | tuple) else ()
        if given != "all-linear" and not (names and all(isinstance(name, str) and name.strip() for name in names)):
            raise ValueError("targets must be all-linear or a list of module names, such as [q_proj, v_proj].")
        return given


class Replay(Settings):
    """Data anchor: generative replay with soft targets."""

    weight: Share = Field(default=0.75, description="w, the replay loss's share in the fitting loss")
    samples: Positive = Field(default=300, description="sequences drawn from the previous model for each task")
    sampling_temperature: PositiveFloat = Field(default=1.5, description="τ_G, of the draw")
    top_p: PositiveShare = Field(default=0.9, description="the draw is from the likeliest tokens that hold this share")
    max_new_tokens: Positive = Field(default=384, description="longest sample, in tokens")
    temperature: PositiveFloat = Field(default=2.0, description="τ_D, softens teacher and student")
    order: Literal["each-epoch", "all-first"] = Field(
        default="each-epoch",
        description="each-epoch: a fresh order of the samples with every epoch over the task, as the authors' code has it, so "
        "that a short epoch sees some of them only; all-first (ours): every sample is seen before any is seen again",
    )
    token: Literal["everywhere", "replay-only"] = Field(
        default="everywhere",
        description="where the replay token stands: before every text and question, as the authors' code has it, "
        "or before replay sequences only, as the paper's text says",
    )


class Distillation(Settings):
    """Function anchor: self-distillation on the current task's texts."""

    weight: PositiveFloat = Field(default=1.0, description="λ_F")
    temperature: PositiveFloat = Field(default=5.0, description="τ_F, softens teacher and student")


class SynapticIntelligence(Settings):
    """Weight anchor: path-integral importance of every trainable scalar."""

    weight: PositiveFloat = Field(default=1.0, description="λ_SI")
    damping: PositiveFloat = Field(
        default=0.1, description="ξ, added to the squared displacement that importance is divided by"
    )


class OnlineEWC(Settings):
    """Weight anchor: accumulated diagonal Fisher information."""

    weight: PositiveFloat = Field(default=1000.0, description="λ_EWC; the penalty has no factor 1/2")
    decay: PositiveShare = Field(default=1.0, description="γ, applied to the past at each task")
    examples: Positive = Field(default=1000, description="at most so many of the task's items enter the estimate")


class Orthogonal(Settings):
    """O-LoRA: the penalty between a task's factors and all earlier ones."""

    weight: PositiveFloat = Field(
        default=0.5, description="λ₁, of the summed absolute overlaps of the new A with every earlier A"
    )


class OSRM(Settings):
    """Sequential OSRM: what is kept of a task to start later adapters away from it."""

    items: Positive = Field(default=64, description="at most so many of a task's items enter its layers' mean inputs")


class Asking(Settings):
    """How questions are put and answers are judged."""

    format: Literal["plain", "boxed", "chat"] = Field(
        default="plain",
        description="plain (ours): `Question: q\\nAnswer: a` + end-of-text; boxed: the paper's `\\boxed{a}`, no "
        "end-of-text; chat: the model's own chat template",
    )
    matching: Literal["exact", "normalised"] = Field(
        default="exact", description="exact: case-insensitive equality; normalised: also without punctuation and articles"
    )
    max_new_tokens: Positive = Field(default=256, description="longest answer, in tokens")
    batch_size: Positive = Field(default=64, description="questions asked at a time; changes memory and time, never an answer")


class Sections(Settings):
    """The sections that a learner, an experiment and a method of an experiment have in common."""

    training: Training = Training()
    adapter: Adapter = Adapter()
    asking: Asking = Asking()
    replay: Replay = Replay()
    distillation: Distillation = Distillation()
    si: SynapticIntelligence = SynapticIntelligence()
    ewc: OnlineEWC = OnlineEWC()
    orthogonal: Orthogonal = Orthogonal()
    osrm: OSRM = OSRM()


def canonical_method(name: str) -> str:
    """The method's canonical name; ValueError, as pydantic wants it, for one that is none."""
    try:
        return Method.parse(name).name
    except InputError as error:
        raise ValueError(str(error)) from error


class LearnerSettings(Sections):
    """Everything that decides how a learner learns, but for the model and the seed.

    The sections set the mechanisms that the method names; those of other mechanisms are without effect.
    """

    method: str = Field(
        default="replay+merge",
        description="joins mechanisms with `+`: `si` or `ewc`, `sd`, `replay`, and one of `merge`, `o-lora`, "
        "`osrm`, `full` and `value`; `naive` is the shared adapter with no anchor",
    )

    _canonical_method = field_validator("method")(canonical_method)

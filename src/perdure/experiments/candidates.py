"""What a search chooses from: every combination of listed anchors and allocations, each with its own strengths."""

from collections.abc import Iterator
from itertools import product
from typing import Any, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from perdure.experiments.spec import MethodEntry
from perdure.methods import NAIVE
from perdure.settings import Distillation, OnlineEWC, Replay, Settings, SynapticIntelligence


class WeightAnchor(Settings):
    """A weight anchor with its strength: ``si``, ``{si: {weight: 0.1}}``, likewise ``ewc``, or ``none``."""

    si: SynapticIntelligence | None = None
    ewc: OnlineEWC | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        if isinstance(given, str):
            if given not in ("none", "si", "ewc"):
                raise ValueError(
                    f"the weight anchor {given!r} is unknown; use none, si or ewc, or one as {{si: {{weight: 0.1}}}}."
                )
            return {} if given == "none" else {given: {}}
        return given

    @model_validator(mode="after")
    def _one(self) -> "WeightAnchor":
        if self.si and self.ewc:
            raise ValueError("a weight anchor is si or ewc, not both; make two of it.")
        return self


class Candidates(Settings):
    """Lists of what a method may have; the candidates are all their combinations. The defaults make the paper's 90."""

    weight_anchor: tuple[WeightAnchor, ...] = Field(
        default=(WeightAnchor(), WeightAnchor(ewc=OnlineEWC()), WeightAnchor(si=SynapticIntelligence())),
        description="`none`, `si`, `ewc`, or one with its settings, as `{si: {weight: 0.1}}`",
    )
    distillation: tuple[Distillation | None, ...] = Field(
        default=(None, Distillation(weight=1.0), Distillation(weight=3.0)),
        description="`none`, or settings of the function anchor, as `{weight: 3.0}`",
    )
    replay: tuple[Replay | None, ...] = Field(
        default=(None, *(Replay(weight=w, sampling_temperature=t) for w in (0.5, 0.75) for t in (1.0, 1.5))),
        description="`none`, or settings of the data anchor, as `{weight: 0.5, sampling_temperature: 1.0}`",
    )
    allocation: tuple[Literal["shared", "merge", "o-lora", "osrm", "full", "value"], ...] = Field(
        default=("shared", "merge"), description="where updates are kept"
    )

    @field_validator("distillation", "replay", mode="before")
    @classmethod
    def _none_or_settings(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, list | tuple):
            return given
        for choice in given:
            if isinstance(choice, str) and choice != "none":
                raise ValueError(
                    f"{info.field_name} has {choice!r}; list `none`, or settings as in {{weight: 0.5}} ({{}} for the defaults)."
                )
        return [None if choice == "none" else choice for choice in given]

    def methods(self) -> Iterator[MethodEntry]:
        """The candidates, each with a label that says its settings."""
        for weights, function, data, allocation in product(self.weight_anchor, self.distillation, self.replay, self.allocation):
            named = (
                ("si", "si", weights.si),
                ("ewc", "ewc", weights.ewc),
                ("sd", "distillation", function),
                ("replay", "replay", data),
            )  # mechanism, section, settings
            anchors = [(name, section, settings) for name, section, settings in named if settings is not None]
            kept = [] if allocation == "shared" else [allocation]
            yield MethodEntry.model_validate(
                {
                    "method": "+".join([*(name for name, _, _ in anchors), *kept]) or NAIVE,
                    "label": "+".join([*(_labelled(name, settings) for name, _, settings in anchors), *kept]) or NAIVE,
                    **{section: settings.model_dump(exclude_unset=True) for _, section, settings in anchors},
                }
            )


def _labelled(name: str, settings: Settings) -> str:
    given = ",".join(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}" for key, value in _set(settings))
    return f"{name}({given})" if given else name


def _set(settings: Settings) -> list[tuple[str, Any]]:
    return [(key, getattr(settings, key)) for key in type(settings).model_fields if key in settings.model_fields_set]

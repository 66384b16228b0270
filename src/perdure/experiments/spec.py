"""What an experiment's YAML file says, and what a recipe's does.

An experiment is a model, a stream, methods and seeds, with the sections of a learner's settings beside them. The sections
hold for all methods; a method may say otherwise for itself::

    model: smollm2-135m
    stream: {kind: symbol, tasks: 4, items: 8}
    seeds: [0, 1, 2]
    training: {epochs: 30}
    methods:
      - naive
      - replay+merge
      - {method: replay+merge, label: half, replay: {weight: 0.5}}

A recipe is the settings of one learner: a method and the sections.
"""

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_serializer, model_validator

from perdure.errors import InputError, nearest
from perdure.experiments.streams import AnyStream, NonEmpty, Seed, printable
from perdure.experiments.validation import validate
from perdure.experiments.yaml_source import read_yaml
from perdure.methods import Method
from perdure.settings import LearnerSettings, Positive, Sections, Settings, canonical_method
from perdure.tasks import TaskStream

_SECTION_OF = {
    "replay": "replay",
    "sd": "distillation",
    "si": "si",
    "ewc": "ewc",
    "o-lora": "orthogonal",
    "osrm": "osrm",
}  # mechanism -> the section that sets it


class MethodEntry(Sections):
    """A method of an experiment; the sections hold what is to differ from the experiment's."""

    method: str = Field(description="the method's name, such as `replay+merge`")
    label: str = Field(default="", description="its name in results and folders; by default the method's")

    _canonical_method = field_validator("method")(canonical_method)

    @model_validator(mode="before")
    @classmethod
    def _from_name(cls, given: Any) -> Any:
        if isinstance(given, str):
            return {"method": given}
        if not isinstance(given, dict | MethodEntry):
            raise ValueError("a method must be a name, such as replay+merge, or a mapping with a line `method: NAME`.")
        return given

    @field_validator("label")
    @classmethod
    def _fit_for_a_folder(cls, label: str) -> str:
        if not re.fullmatch(r"[\w+=][\w+=,.() -]{0,98}[\w+=)]|[\w+=]", label):
            raise ValueError(
                f"the label {label!r} can't name a folder; use up to 100 letters, digits, blanks and + = , . ( ) - _, and "
                "begin and end with a letter or digit."
            )
        return label

    @model_validator(mode="after")
    def _no_idle_section(self) -> "MethodEntry":
        for mechanism, section in _SECTION_OF.items():
            if section in self.model_fields_set and mechanism not in Method.parse(self.method).mechanisms:
                raise ValueError(
                    f"{section} is set for the method '{self.method}', which has no {mechanism} and would not heed it; "
                    f"remove {section}, or add {mechanism} to the method."
                )
        return self

    @property
    def name(self) -> str:
        """The label, or else the method's canonical name."""
        return self.label or self.method

    def settings(self, defaults: Sections) -> LearnerSettings:
        """The defaults with what this entry says otherwise."""
        sections = {}
        for name in Sections.model_fields:
            section, own = getattr(defaults, name), getattr(self, name)
            sections[name] = section.model_copy(update={field: getattr(own, field) for field in own.model_fields_set})
        return LearnerSettings(method=self.method, **sections)

    @model_serializer
    def _as_written(self) -> dict[str, Any]:
        """Without the defaults, which would read as overrides."""
        given = {name: getattr(self, name) for name in type(self).model_fields if name in self.model_fields_set}
        return {
            name: value.model_dump(exclude_unset=True) if isinstance(value, Settings) else value
            for name, value in given.items()
        }


@dataclass(frozen=True)
class ResolvedRun:
    """One run of an experiment: a method, with every setting decided, a seed, and the order of the tasks."""

    label: str
    method: Method
    seed: int
    settings: LearnerSettings
    order: int = 0

    @property
    def place(self) -> str:
        """The run's folder inside the experiment's: ``runs/LABEL/seed-N``, with ``-order-K`` after it for another order."""
        return f"runs/{self.label}/seed-{self.seed}" + (f"-order-{self.order}" if self.order else "")

    @property
    def name(self) -> str:
        """The run for people."""
        return f"{self.label}, seed {self.seed}" + (f", order {self.order}" if self.order else "")

    def resolved(self) -> dict[str, Any]:
        """All that decides the run, without the settings of mechanisms that the method hasn't; JSON values."""
        idle = {section for mechanism, section in _SECTION_OF.items() if mechanism not in self.method.mechanisms}
        settings = self.settings.model_dump(mode="json", exclude=idle)
        return {"label": self.label, "seed": self.seed, "order": self.order, "folder": self.place, **settings}


class Experiment(Sections):
    """A stream, learnt by each method with each seed."""

    model: NonEmpty = Field(description="a Hugging Face causal LM by id or path, or an embedded one: `smollm2-135m`, `tiny`")
    stream: AnyStream
    methods: Annotated[tuple[MethodEntry, ...], Field(min_length=1)] = Field(
        description="names, or mappings of a method, a label, and sections that differ from those below"
    )
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(
        default=(0,), description="every method runs once with each"
    )
    orders: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(
        default=(0,), description="orders of the tasks, each run with every method and seed; 0 is the stream's own"
    )
    first_tasks: Positive | None = Field(default=None, description="learn only so many of the stream's tasks, from the first")

    @field_validator("methods")
    @classmethod
    def _labelled_apart(cls, methods: tuple[MethodEntry, ...]) -> tuple[MethodEntry, ...]:
        counts = Counter(entry.name.casefold() for entry in methods)  # some file systems don't tell A from a
        for entry in methods:
            if counts[entry.name.casefold()] > 1:
                raise ValueError(f"two methods are called '{entry.name}'; remove one, or give each a label of its own.")
        return methods

    @field_validator("seeds", "orders", mode="before")
    @classmethod
    def _listed(cls, given: Any, info: ValidationInfo) -> Any:
        if not isinstance(given, list | tuple):
            raise ValueError(f"{info.field_name} must be a list of whole numbers; write them out, as in [0, 1, 2].")
        return given

    @field_validator("seeds", "orders")
    @classmethod
    def _distinct(cls, given: tuple[int, ...], info: ValidationInfo) -> tuple[int, ...]:
        return distinct_numbers(given, (info.field_name or "").removesuffix("s"))

    def build_stream(self) -> TaskStream:
        """The tasks to be learnt.

        Raises
        ------
        InputError: a file of the stream can't be read as a task.
        """
        whole = self.stream.build()
        if self.first_tasks is None or self.first_tasks >= len(whole):
            return whole
        return TaskStream(whole.name, tuple(whole[place] for place in range(self.first_tasks)))

    def runs(self) -> list[ResolvedRun]:
        """All runs: every method with the first seed, then with the next, so that methods can be compared early."""
        return [
            ResolvedRun(entry.name, Method.parse(entry.method), seed, entry.settings(self), order)
            for order in self.orders
            for seed in self.seeds
            for entry in self.methods
        ]


def load_experiment(
    name_or_path: str | os.PathLike[str],
    *,
    seeds: Iterable[int] | None = None,
    model: str | None = None,
    first_tasks: int | None = None,
) -> Experiment:
    """Read an experiment.

    Parameters
    ----------
    name_or_path: a YAML file, or the name of an experiment that comes with perdure.
    seeds, model, first_tasks: instead of the file's.

    Raises
    ------
    InputError: no such file, or what is wrong in it, with the line.
    """
    document = read_yaml(find_experiment(name_or_path))
    if "method" in document.value and "methods" not in document.value and "stream" not in document.value:
        raise document.error(
            ("method",),
            "this is a recipe for one learner, not an experiment; use it with `perdure init`, or add stream and methods.",
        )
    experiment = validate(document, Experiment)
    instead: dict[str, Any] = {"model": model, "first_tasks": first_tasks}
    try:
        instead["seeds"] = None if seeds is None else distinct_numbers(tuple(seeds), "seed")
    except ValueError as error:
        raise InputError(str(error)) from None
    return experiment.model_copy(update={name: value for name, value in instead.items() if value is not None})


def load_recipe(name_or_path: str | os.PathLike[str]) -> LearnerSettings:
    """Read the settings of one learner.

    Parameters
    ----------
    name_or_path: a YAML file, or the name of a recipe that comes with perdure.

    Raises
    ------
    InputError: no such file, or what is wrong in it, with the line.
    """
    document = read_yaml(find_experiment(name_or_path))
    for key in ("stream", "methods", "seeds"):
        if key in document.value:
            raise document.error(
                (key,), "this is an experiment, not a recipe for one learner; run it with `perdure run`, or keep one `method`."
            )
    return validate(document, LearnerSettings)


def find_experiment(name_or_path: str | os.PathLike[str]) -> Path:
    """The file of an experiment or a recipe: a path as it is, else a name in the folder that comes with perdure.

    Raises
    ------
    InputError: there is neither.
    """
    path = Path(name_or_path)
    if os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for some impossible names
        return path
    folder = recipe_folder()
    own = {file.relative_to(folder).with_suffix("").as_posix(): file for file in sorted(folder.rglob("*.yaml"))}
    if str(path) in own:
        return own[str(path)]
    if path.suffix in (".yaml", ".yml") or len(path.parts) > 1 or os.path.isdir(path):  # noqa: PTH112
        return path  # for read_yaml to say what is wrong with it
    raise InputError(f"{printable(path)} is neither a file nor a recipe of perdure's; {nearest(str(path), list(own))}")


def recipe_folder() -> Path:
    """Where the recipes are that come with perdure: in the installed package, or in the source tree that it runs from."""
    package = Path(__file__).parents[1]
    installed = package / "recipes"
    return installed if installed.is_dir() else package.parents[1] / "recipes"


def distinct_numbers(numbers: Sequence[int], what: str) -> tuple[int, ...]:
    """The numbers; ValueError, as pydantic wants it, where one is negative or given twice."""
    for place, number in enumerate(numbers):
        if number < 0:
            raise ValueError(f"the {what} {number} is negative; a {what} must be 0 or more.")
        if number in numbers[:place]:
            raise ValueError(f"the {what} {number} is given twice; keep one.")
    return tuple(numbers)

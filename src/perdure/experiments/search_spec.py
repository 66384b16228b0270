"""What a search's YAML file says::

model: tiny
stream: {kind: symbol, tasks: 8, items: 20}
candidates:
  weight_anchor: [none, si]
  distillation: [none, {weight: 1.0}]
  replay: [none, {weight: 0.5}, {weight: 0.75}]
  allocation: [shared, merge]
rungs: [2, 4, 8]
seeds: [0, 1, 2]
order: 7
final: {winners: 2, beside: [naive]}
"""

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field, field_validator, model_validator

from perdure.experiments.candidates import Candidates
from perdure.experiments.halving import Ladder, halved
from perdure.experiments.spec import Experiment, MethodEntry, distinct_numbers, find_experiment
from perdure.experiments.streams import AnyStream, NonEmpty, Seed
from perdure.experiments.validation import validate
from perdure.experiments.yaml_source import read_yaml
from perdure.settings import Positive, Sections, Settings


class FinalRuns(Settings):
    """How the winners are tried anew."""

    winners: Positive = Field(default=1, description="how many of the last rung's best")
    beside: tuple[MethodEntry, ...] = Field(default=(), description="methods to stand beside them, such as `naive`")
    orders: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(
        default=(0,), description="orders of the tasks; never the search's own"
    )
    seeds: tuple[Seed, ...] | None = Field(default=None, description="by default the search's")


class Search(Sections):
    """A search over candidates; the sections of settings hold for all of them."""

    model: NonEmpty = Field(description="a Hugging Face causal LM by id or path, or an embedded one: `smollm2-135m`, `tiny`")
    stream: AnyStream
    candidates: Candidates | None = Field(default=None, description="lists to combine; by default the paper's 90")
    methods: tuple[MethodEntry, ...] = Field(default=(), description="the candidates one by one, instead of `candidates`")
    rungs: Annotated[tuple[Positive, ...], Field(min_length=1)] = Field(
        default=(10, 20, 50, 100), description="tasks learnt when the candidates are ranked; the last is the end"
    )
    keep: tuple[Positive, ...] | None = Field(
        default=None, description="how many go on after each rung but the last; by default the better half, rounded up"
    )
    seeds: Annotated[tuple[Seed, ...], Field(min_length=1)] = Field(default=(0,), description="each candidate runs with each")
    order: Annotated[int, Field(ge=0, strict=True)] = Field(default=1234, description="order of the tasks in the search")
    final: FinalRuns = FinalRuns()

    @field_validator("seeds")
    @classmethod
    def _distinct(cls, given: tuple[int, ...]) -> tuple[int, ...]:
        return distinct_numbers(given, "seed")

    @model_validator(mode="after")
    def _sound(self) -> "Search":
        if self.candidates is not None and self.methods:
            raise ValueError("candidates and methods both list what is searched; keep one of them.")
        if any(later <= earlier for earlier, later in pairwise(self.rungs)):
            raise ValueError(f"rungs must rise, and {list(self.rungs)} don't; write them as in [10, 20, 50].")
        if self.keep is not None:
            counts = [len(self.entries()), *self.keep]
            if len(self.keep) != len(self.rungs) - 1:
                raise ValueError(
                    f"keep says how many go on after each of the {len(self.rungs)} rungs but the last; it needs "
                    f"{len(self.rungs) - 1} numbers and has {len(self.keep)}."
                )
            if any(after > before for before, after in pairwise(counts)):
                raise ValueError(f"keep can't grow: {counts[0]} candidates begin, and keep is {list(self.keep)}.")
        if self.order in self.final.orders:
            raise ValueError(
                f"final.orders has {self.order}, the order of the search; winners are tried on another, or the choice would "
                "flatter them."
            )
        self.trials()  # its own checks: distinct labels
        return self

    def entries(self) -> tuple[MethodEntry, ...]:
        """The candidates."""
        return self.methods or tuple((self.candidates or Candidates()).methods())

    @property
    def ladder(self) -> Ladder:
        """The rungs, and how many candidates are in each."""
        count = len(self.entries())
        return Ladder(self.rungs, (count, *self.keep) if self.keep is not None else halved(count, len(self.rungs)))

    def trials(self) -> Experiment:
        """The search's runs as an experiment, up to the last rung."""
        return self._experiment(self.entries(), self.seeds, (self.order,))

    def finals(self, winners: Sequence[str]) -> Experiment:
        """The experiment that tries the winners anew."""
        by_name = {entry.name: entry for entry in self.entries()}
        beside = [entry for entry in self.final.beside if entry.name not in winners]
        entries = (*(by_name[name] for name in winners), *beside)
        return self._experiment(entries, self.final.seeds or self.seeds, self.final.orders)

    def _experiment(self, methods: Sequence[MethodEntry], seeds: Sequence[int], orders: Sequence[int]) -> Experiment:
        sections = {name: getattr(self, name) for name in Sections.model_fields}
        return Experiment(
            model=self.model,
            stream=self.stream,
            methods=tuple(methods),
            seeds=tuple(seeds),
            orders=tuple(orders),
            first_tasks=self.rungs[-1],
            **sections,
        )


def load_search(name_or_path: str, *, model: str | None = None, seeds: Sequence[int] | None = None) -> Search:
    """Read a search's YAML file, or one that comes with perdure.

    Parameters
    ----------
    model, seeds: instead of the file's.

    Raises
    ------
    InputError: no such file, or what is wrong in it, with the line.
    """
    search = validate(read_yaml(find_experiment(name_or_path)), Search)
    instead: dict[str, Any] = {"model": model, "seeds": tuple(seeds) if seeds else None}
    return search.model_copy(update={name: value for name, value in instead.items() if value is not None})

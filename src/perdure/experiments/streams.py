"""The streams that an experiment may name: how each kind is written in YAML, and what it builds.

Adding a kind: a class here, and its name in ``AnyStream``.
"""

import os
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, ValidationInfo, field_validator, model_validator

from perdure.errors import nearest
from perdure.experiments.yaml_source import nearest_file
from perdure.settings import Positive, Settings
from perdure.tasks import TaskStream, read_jsonl, symbol_stream
from perdure.tasks.facts import PARAPHRASES, facts_stream
from perdure.tasks.folder import MANIFEST, read_stream
from perdure.tasks.real_sources import SOURCES
from perdure.tasks.symbol import SYMBOLS

NonEmpty = Annotated[str, Field(min_length=1)]
Seed = Annotated[int, Field(ge=0, lt=2**63, strict=True)]
KeyLength = Annotated[int, Field(gt=0, le=64, strict=True)]


class SymbolStream(Settings):
    """Symbol-QA, made on the spot: random keys with random values."""

    kind: Literal["symbol"] = Field(description="this kind of stream")
    tasks: Positive = Field(default=100, description="tasks in the stream")
    items: Positive = Field(default=100, description="items in each task")
    seed: Seed = Field(default=42, description="of the keys and values; the runs' seeds are apart from it")
    key_length: KeyLength = Field(default=6, description="characters in a question")
    value_length: KeyLength = Field(default=4, description="characters in an answer")

    @model_validator(mode="after")
    def _enough_keys(self) -> "SymbolStream":
        needed, possible = self.tasks * self.items, len(SYMBOLS) ** self.key_length
        if needed > possible:
            raise ValueError(
                f"the stream needs {needed} different keys, and key_length {self.key_length} gives only {possible}; make "
                "the keys longer or the stream smaller."
            )
        return self

    def build(self) -> TaskStream:
        """Make the stream."""
        return symbol_stream(self.tasks, self.items, self.seed, self.key_length, self.value_length)


class JsonlStream(Settings):
    """Files of questions and answers, each one task, in this order."""

    kind: Literal["jsonl"] = Field(description="this kind of stream")
    files: Annotated[tuple[NonEmpty, ...], Field(min_length=1)] = Field(
        description="JSONL files, relative to the YAML file; a task is named after its file"
    )

    @field_validator("files")
    @classmethod
    def _existing(cls, files: tuple[str, ...], info: ValidationInfo) -> tuple[str, ...]:
        paths = [_beside_the_file(file, info) for file in files]
        first: dict[str, Path] = {}
        for path in paths:
            if not os.path.isfile(path):  # noqa: PTH113 - Path.is_file raises for some impossible names
                raise ValueError(f"{printable(path)} does not exist; {nearest_file(path)}")
            if path.stem in first:
                raise ValueError(f"{first[path.stem]} and {path} would both be the task '{path.stem}'; rename or remove one.")
            first[path.stem] = path
        return tuple(str(path) for path in paths)

    def build(self) -> TaskStream:
        """Read the files."""
        return TaskStream("jsonl", tuple(read_jsonl(file) for file in self.files))


class FactsStream(Settings):
    """Invented facts about people, places, ships and the like, made on the spot, with rewordings of each question."""

    kind: Literal["facts"] = Field(description="this kind of stream")
    tasks: Positive = Field(default=100, description="tasks in the stream")
    items: Positive = Field(default=100, description="items in each task")
    seed: Seed = Field(default=42, description="of the facts; the runs' seeds are apart from it")
    paraphrases: Annotated[int, Field(ge=0, le=PARAPHRASES, strict=True)] = Field(
        default=0, description="rewordings of each question, never trained on"
    )

    def build(self) -> TaskStream:
        """Make the stream."""
        return facts_stream(self.tasks, self.items, self.seed, self.paraphrases)


class RealStream(Settings):
    """Real questions from ten public sets (Real-QA), shuffled over tasks; `perdure tasks real` can filter them by a model."""

    kind: Literal["real"] = Field(description="this kind of stream")
    data: str = Field(
        default="",
        description="a folder with NAME.jsonl for each source, relative to the YAML file; by default the hub",
    )
    sources: Annotated[tuple[str, ...], Field(min_length=1)] = Field(
        default=tuple(SOURCES), description="any of " + ", ".join(f"`{name}`" for name in SOURCES)
    )
    per_source: Positive = Field(default=500, description="items of each source; one with too few gives what it has")
    items: Positive = Field(default=50, description="items in each task")
    seed: Seed = Field(default=42, description="of the choice and the order; the runs' seeds are apart from it")

    @field_validator("data")
    @classmethod
    def _existing(cls, data: str, info: ValidationInfo) -> str:
        if not data:
            return data
        path = _beside_the_file(data, info)
        if not path.is_dir():
            raise ValueError(f"{printable(path)} is not a folder; check the path.")
        return str(path)

    @field_validator("sources")
    @classmethod
    def _known(cls, sources: tuple[str, ...]) -> tuple[str, ...]:
        for place, name in enumerate(sources):
            if name not in SOURCES:
                raise ValueError(f"there is no source '{name}'; {nearest(name, list(SOURCES))}")
            if name in sources[:place]:
                raise ValueError(f"the source '{name}' is given twice; keep one.")
        return sources

    def build(self) -> TaskStream:
        """Read the sets and make the stream."""
        from perdure.tasks.real import real_stream

        data = Path(self.data) if self.data else None
        return real_stream(data, self.sources, self.per_source, self.items, self.seed)[0]


class FolderStream(Settings):
    """A stream that `perdure tasks` wrote to a folder; its tasks are read when they are learnt."""

    kind: Literal["folder"] = Field(description="this kind of stream")
    path: NonEmpty = Field(description="the folder, relative to the YAML file")

    @field_validator("path")
    @classmethod
    def _existing(cls, path: str, info: ValidationInfo) -> str:
        folder = _beside_the_file(path, info)
        if not (folder / MANIFEST).is_file():
            raise ValueError(f"{printable(folder)} has no {MANIFEST}, so it is no stream; name a folder of `perdure tasks`.")
        return str(folder)

    def build(self) -> TaskStream:
        """Open the folder."""
        return read_stream(self.path)


AnyStream = Annotated[
    SymbolStream | FactsStream | RealStream | JsonlStream | FolderStream,
    Field(discriminator="kind", description="what is to be learnt"),
]


def printable(path: Path) -> str:
    """The path as it stands, or as Python writes it where it holds what can't be shown."""
    text = str(path)
    return text if text.isprintable() else repr(text)


def _beside_the_file(path: str, info: ValidationInfo) -> Path:
    """A path that the YAML file means relative to itself."""
    return Path(os.path.abspath((info.context or {}).get("folder", Path()) / path))  # noqa: PTH100

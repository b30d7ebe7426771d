"""Dimension files: what a kind of text is judged by, taken apart, with questions to start from.

task: What was asked for, and what is judged.
dimensions:
  fluency:
    definition: ...
    sub_dimensions:
      grammar:
        definition: ...
        seeds:
          - Are all sentences grammatical?
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rocketeval.config import Section, parse_options, read_yaml
from rocketeval.errors import ConfigError
from rocketeval.packaged import PackagedFiles
from rocketeval.prompts.parse import is_question
from rocketeval.registry import nearest

LONGEST_NAME = 80
LONGEST_TEXT = 2000
LONGEST_QUESTION = 500
MOST_BYTES = 1 << 20
_PACKAGED = PackagedFiles("rocketeval.checklists", "dimensions")


def _one_line(text: object) -> object:
    """Return a text without line breaks, so that it cannot begin a section of a prompt."""
    return " ".join(text.split()) if isinstance(text, str) else text


def _text_of(name: object) -> object:
    # YAML reads `no:` as false and `1:` as a number, and pydantic says of neither what it was.
    if not isinstance(name, str):
        raise ValueError(f"the name {name!r} is not text: put it in quotes.")
    return name


def _plain(longest: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not text:
            raise ValueError("this is empty.")
        if not text.isprintable():
            raise ValueError("this holds a control character.")
        if len(text) > longest:
            raise ValueError(f"this has {len(text)} characters; {longest} are allowed.")
        return text

    return check


def _no_joint(name: str) -> str:
    # Groups are called "dimension: sub-dimension", and are taken apart at the first colon.
    if ": " in name:
        raise ValueError(f"the dimension {name!r} has a colon and a space: rename it.")
    return name


def _question(text: str) -> str:
    if not is_question(text):
        raise ValueError(f"{text[:60]!r} is not a question: it does not end in a question mark.")
    return text


_Line = Annotated[str, BeforeValidator(_one_line)]
Name = Annotated[_Line, BeforeValidator(_text_of), AfterValidator(_plain(LONGEST_NAME))]
DimensionName = Annotated[Name, AfterValidator(_no_joint)]
Text = Annotated[_Line, AfterValidator(_plain(LONGEST_TEXT))]
SeedQuestion = Annotated[_Line, AfterValidator(_plain(LONGEST_QUESTION)), AfterValidator(_question)]


class SubDimension(Section):
    """One part of a dimension."""

    definition: Text
    """What belongs to it."""
    seeds: Annotated[tuple[SeedQuestion, ...], Field(min_length=1)]
    """Yes/no questions to start from; yes is the better answer."""


class Dimension(Section):
    """One quality that texts are judged by."""

    definition: Text
    """What it means."""
    sub_dimensions: Annotated[dict[Name, SubDimension], Field(min_length=1)]
    """Its parts by name."""

    @model_validator(mode="after")
    def _asks_nothing_twice(self) -> Self:
        seen: dict[str, str] = {}
        for name, part in self.sub_dimensions.items():
            for seed in part.seeds:
                if seed.casefold() in seen:
                    raise ValueError(
                        f"{seed[:60]!r} is a seed of {seen[seed.casefold()]!r} and of {name!r}."
                    )
                seen[seed.casefold()] = name
        return self

    def seeds(self) -> Iterator[tuple[str, str]]:
        """Yield every seed with the name of its sub-dimension."""
        for name, part in self.sub_dimensions.items():
            for seed in part.seeds:
                yield name, seed


class DimensionFile(Section):
    """A whole dimension file."""

    task: Text
    """What was asked for and what is judged, for an author who has seen neither."""
    dimensions: Annotated[dict[DimensionName, Dimension], Field(min_length=1)]
    """The dimensions by name."""

    def only(self, names: Sequence[str]) -> dict[str, Dimension]:
        """Return the dimensions called `names`, in the file's order; ConfigError for another."""
        for name in names:
            if name not in self.dimensions:
                raise ConfigError(
                    f"author.options.dimensions: the file has no dimension {name!r}.",
                    hint=nearest(name, list(self.dimensions)),
                )
        return {name: told for name, told in self.dimensions.items() if name in names}


def packaged_files() -> list[str]:
    """Return the names of the dimension files that come with the package.

    >>> packaged_files()
    ['dialogue', 'summarization']
    """
    return _PACKAGED.names()


def load_dimensions(file: str) -> DimensionFile:
    """Return a packaged dimension file by its name, or the user's own by its path (`.yaml`)."""
    unknown = "author.options.file: there is no packaged dimension file"
    return _PACKAGED.read(file, _read, unknown=unknown)


def _read(path: Path) -> DimensionFile:
    hint = "See the dimension files that come with the package for the form."
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is too long for a dimension file.", hint=hint)
    raw = read_yaml(path, "dimension file", hint=hint)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping with `task` and `dimensions`.", hint=hint)
    return parse_options(raw, DimensionFile, str(path))

"""Dimension files: dimensions, sub-dimensions and seed questions for one kind of text.

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

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rocketeval.config import Section, parse_options
from rocketeval.errors import ConfigError
from rocketeval.prompts.parse import QuestionVerdict, is_question
from rocketeval.registry import nearest
from rocketeval.resources import PackagedFiles, read_yaml
from rocketeval.store.manifest import SubDimensionCounts

LONGEST_NAME = 80
LONGEST_TEXT = 2000
LONGEST_QUESTION = 500
MOST_BYTES = 1 << 20
_PACKAGED = PackagedFiles("rocketeval.checklists", "dimensions")


def _one_line(text: object) -> object:
    """Return a text without line breaks, so that it cannot start a prompt section."""
    return " ".join(text.split()) if isinstance(text, str) else text


def _text_of(name: object) -> object:
    # YAML reads `no:` as false and `1:` as a number, and pydantic's error does not show the key.
    if not isinstance(name, str):
        raise ValueError(f"the name {name!r} is not text: put it in quotes.")
    return name


def _plain(longest: int) -> Callable[[str], str]:
    def check(text: str) -> str:
        if not text:
            raise ValueError("this is empty.")
        if not text.isprintable():
            raise ValueError("this contains a control character.")
        if len(text) > longest:
            raise ValueError(f"this has {len(text)} characters; at most {longest} are allowed.")
        return text

    return check


def _no_group_separator(name: str) -> str:
    # Groups are named "dimension: sub-dimension" and split at the first colon.
    if ": " in name:
        raise ValueError(f"the dimension {name!r} contains a colon and a space: rename it.")
    return name


def _question(text: str) -> str:
    if not is_question(text):
        raise ValueError(f"{text[:60]!r} is not a question: it must end in a question mark.")
    return text


_Line = Annotated[str, BeforeValidator(_one_line)]
Name = Annotated[_Line, BeforeValidator(_text_of), AfterValidator(_plain(LONGEST_NAME))]
DimensionName = Annotated[Name, AfterValidator(_no_group_separator)]
Text = Annotated[_Line, AfterValidator(_plain(LONGEST_TEXT))]
SeedQuestion = Annotated[_Line, AfterValidator(_plain(LONGEST_QUESTION)), AfterValidator(_question)]


class SubDimension(Section):
    """One part of a dimension."""

    definition: Text
    """Definition of the sub-dimension."""
    seeds: Annotated[tuple[SeedQuestion, ...], Field(min_length=1)]
    """Yes/no questions to start from; yes is the better answer."""


class Dimension(Section):
    """One quality of a text."""

    definition: Text
    """Definition of the dimension."""
    sub_dimensions: Annotated[dict[Name, SubDimension], Field(min_length=1)]
    """Sub-dimensions by name."""

    @model_validator(mode="after")
    def _seeds_are_distinct(self) -> Self:
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
    """Description of the task and of the judged texts, for an author that sees neither."""
    dimensions: Annotated[dict[DimensionName, Dimension], Field(min_length=1)]
    """Dimensions by name."""

    def only(self, names: Sequence[str]) -> dict[str, Dimension]:
        """Return the named dimensions in file order; raise ConfigError for an unknown name."""
        for name in names:
            if name not in self.dimensions:
                raise ConfigError(
                    f"author.options.dimensions: the file has no dimension {name!r}.",
                    hint=nearest(name, list(self.dimensions)),
                )
        return {name: dimension for name, dimension in self.dimensions.items() if name in names}


def packaged_files() -> list[str]:
    """Return the names of the packaged dimension files.

    >>> packaged_files()
    ['dialogue', 'summarization']
    """
    return _PACKAGED.names()


def load_dimensions(file: str) -> DimensionFile:
    """Return a packaged dimension file by name, or the user's own by path (`.yaml`)."""
    unknown = "author.options.file: there is no packaged dimension file"
    return _PACKAGED.read(file, _read, unknown=unknown)


def _read(path: Path) -> DimensionFile:
    hint = "See the packaged dimension files for examples."
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is too long for a dimension file.", hint=hint)
    raw = read_yaml(path, "dimension file", hint=hint)
    if not isinstance(raw, dict):
        raise ConfigError(f"{path} must be a mapping with `task` and `dimensions`.", hint=hint)
    return parse_options(raw, DimensionFile, str(path))


class QuestionOrigin(StrEnum):
    """The origin of a question."""

    SEED = "seed"
    """A person wrote it into the dimension file."""
    DIVERSIFIED = "diversified"
    """The author added another aspect of the sub-dimension."""
    ELABORATED = "elaborated"
    """The author narrowed a seed."""


class DropReason(StrEnum):
    """Why a question is not in the checklist."""

    DUPLICATE = "duplicate"
    """Another question has the same words; found without the author."""
    ALIGNMENT = "alignment"
    """Yes is not the better answer."""
    DIMENSION = "dimension"
    """It does not ask about its dimension."""
    REDUNDANCY = "redundancy"
    """A kept question asks the same in other words."""


@dataclass(frozen=True, slots=True)
class Question:
    """A candidate question for the checklist."""

    text: str
    dimension: str
    sub_dimension: str
    origin: QuestionOrigin
    seed: str | None = None
    """The seed it elaborates; None for other origins."""

    @property
    def group(self) -> str:
        """Return the name of its group of items."""
        return f"{self.dimension}: {self.sub_dimension}"


@dataclass(frozen=True, slots=True)
class QuestionOutcome:
    """The outcome of one question: kept, or dropped with a reason."""

    question: Question
    dropped: DropReason | None = None
    """None if it is an item of the checklist."""
    repeats: str | None = None
    """The kept question that a duplicate or redundant one repeats."""
    verdict: QuestionVerdict | None = None
    """The author's verdict; None if the author was not asked."""


def without_duplicates(
    questions: Iterable[Question],
) -> tuple[list[Question], list[QuestionOutcome]]:
    """Return the questions with distinct words, and the duplicates with their outcome.

    The questions belong to one dimension. The first of two duplicates stays, so seeds must come
    first.
    """
    first: dict[str, Question] = {}
    dropped: list[QuestionOutcome] = []
    for question in questions:
        same = first.setdefault(" ".join(question.text.casefold().split()), question)
        if same is not question:
            dropped.append(QuestionOutcome(question, DropReason.DUPLICATE, same.text))
    return list(first.values()), dropped


def judge_pool(
    questions: Sequence[Question], verdicts: Sequence[QuestionVerdict]
) -> list[QuestionOutcome]:
    """Return the outcome of every question from the author's verdicts.

    Of several redundant questions, the first acceptable one stays: if the first is dropped for
    another reason, the next one takes its place.
    """
    meaning: dict[int, int] = {}
    kept: dict[int, Question] = {}
    outcomes: list[QuestionOutcome] = []
    for number, (question, verdict) in enumerate(zip(questions, verdicts, strict=True), 1):
        meant = number if verdict.repeats is None else meaning[verdict.repeats]
        meaning[number] = meant
        if not verdict.yes_is_better:
            outcomes.append(QuestionOutcome(question, DropReason.ALIGNMENT, verdict=verdict))
        elif not verdict.fits:
            outcomes.append(QuestionOutcome(question, DropReason.DIMENSION, verdict=verdict))
        elif meant in kept:
            outcomes.append(
                QuestionOutcome(question, DropReason.REDUNDANCY, kept[meant].text, verdict)
            )
        else:
            kept[meant] = question
            outcomes.append(QuestionOutcome(question, verdict=verdict))
    return outcomes


def in_order(
    outcomes: Iterable[QuestionOutcome], groups: Sequence[tuple[str, str]]
) -> list[QuestionOutcome]:
    """Return outcomes in the order of `groups`, with seeds first within each group."""
    places = {group: place for place, group in enumerate(groups)}
    origins = list(QuestionOrigin)
    return sorted(
        outcomes,
        key=lambda outcome: (
            places[outcome.question.dimension, outcome.question.sub_dimension],
            origins.index(outcome.question.origin),
        ),
    )


@dataclass(frozen=True, slots=True)
class VerdictRow:
    """The author's verdict on one question."""

    yes_is_better: bool
    fits: bool


@dataclass(frozen=True, slots=True)
class QuestionRow:
    """Origin and outcome of one question, for the run's provenance file."""

    question: str
    dimension: str
    sub_dimension: str
    origin: QuestionOrigin
    elaborates: str | None
    item: int | None
    """Its number in the checklist; None if it was dropped."""
    dropped: DropReason | None
    repeats: str | None
    verdict: VerdictRow | None


def question_rows(outcomes: Iterable[QuestionOutcome]) -> tuple[QuestionRow, ...]:
    """Return one row per considered question."""
    rows: list[QuestionRow] = []
    items = 0
    for outcome in outcomes:
        question, verdict = outcome.question, outcome.verdict
        items += outcome.dropped is None
        rows.append(
            QuestionRow(
                question.text,
                question.dimension,
                question.sub_dimension,
                question.origin,
                question.seed,
                items if outcome.dropped is None else None,
                outcome.dropped,
                outcome.repeats,
                None if verdict is None else VerdictRow(verdict.yes_is_better, verdict.fits),
            )
        )
    return tuple(rows)


def count_rows(
    outcomes: Sequence[QuestionOutcome], groups: Sequence[tuple[str, str]]
) -> tuple[SubDimensionCounts, ...]:
    """Return the counts of origins and outcomes per sub-dimension.

    A sub-dimension without kept questions has a row too.
    """
    origins = _counts(outcomes, lambda outcome: outcome.question.origin)
    dropped = _counts(outcomes, lambda outcome: outcome.dropped)
    return tuple(
        SubDimensionCounts(
            dimension,
            name,
            seeds=origins[dimension, name, QuestionOrigin.SEED],
            diversified=origins[dimension, name, QuestionOrigin.DIVERSIFIED],
            elaborated=origins[dimension, name, QuestionOrigin.ELABORATED],
            dropped={why.value: dropped[dimension, name, why] for why in DropReason},
            kept=dropped[dimension, name, None],
        )
        for dimension, name in groups
    )


def _counts(outcomes: Iterable[QuestionOutcome], of: Any) -> Mapping[tuple[str, str, Any], int]:
    return Counter(
        (outcome.question.dimension, outcome.question.sub_dimension, of(outcome))
        for outcome in outcomes
    )

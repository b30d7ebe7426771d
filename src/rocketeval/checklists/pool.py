"""The questions a dimension checklist is chosen from: where each came from, what became of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rocketeval.prompts.read_verdicts import Verdict


class Origin(StrEnum):
    """Where a question came from."""

    SEED = "seed"
    """A person wrote it into the dimension file."""
    DIVERSIFIED = "diversified"
    """The author looked at the sub-dimension from another side."""
    ELABORATED = "elaborated"
    """The author took a seed apart."""


class Dropped(StrEnum):
    """Why a question is not in the checklist."""

    DUPLICATE = "duplicate"
    """Another one has the same words; no author was asked."""
    ALIGNMENT = "alignment"
    """Yes is not the better answer."""
    DIMENSION = "dimension"
    """It asks about something else than its dimension."""
    REDUNDANCY = "redundancy"
    """A question that is kept asks the same in other words."""


@dataclass(frozen=True, slots=True)
class Question:
    """One question that might become an item."""

    text: str
    dimension: str
    sub_dimension: str
    origin: Origin
    seed: str | None = None
    """The seed it elaborates; None for the others."""

    @property
    def group(self) -> str:
        """The name of its sub-dimension, which it shares with the items beside it."""
        return f"{self.dimension}: {self.sub_dimension}"


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of one question."""

    question: Question
    dropped: Dropped | None = None
    """None when it is an item of the checklist."""
    repeats: str | None = None
    """The kept question it repeats, for a duplicate or a redundant one."""
    verdict: Verdict | None = None
    """All that the author said of it; None when it was not asked."""


def without_duplicates(questions: Iterable[Question]) -> tuple[list[Question], list[Fate]]:
    """Return the questions that differ in their words, and the others with their fate.

    The questions are of one dimension; of two that are the same the first one stays, so that seeds
    are to come first.
    """
    first: dict[str, Question] = {}
    dropped: list[Fate] = []
    for question in questions:
        same = first.setdefault(" ".join(question.text.casefold().split()), question)
        if same is not question:
            dropped.append(Fate(question, Dropped.DUPLICATE, same.text))
    return list(first.values()), dropped


def judge_pool(questions: Sequence[Question], verdicts: Sequence[Verdict]) -> list[Fate]:
    """Return the fate of every question, by an author's verdicts on them.

    Of questions that ask the same, the first that is good in itself stays: one that repeats a
    question which is dropped for another reason takes its place.
    """
    meaning: dict[int, int] = {}
    kept: dict[int, Question] = {}
    fates: list[Fate] = []
    for number, (question, verdict) in enumerate(zip(questions, verdicts, strict=True), 1):
        meant = number if verdict.repeats is None else meaning[verdict.repeats]
        meaning[number] = meant
        if not verdict.yes_is_better:
            fates.append(Fate(question, Dropped.ALIGNMENT, verdict=verdict))
        elif not verdict.fits:
            fates.append(Fate(question, Dropped.DIMENSION, verdict=verdict))
        elif meant in kept:
            fates.append(Fate(question, Dropped.REDUNDANCY, kept[meant].text, verdict))
        else:
            kept[meant] = question
            fates.append(Fate(question, verdict=verdict))
    return fates


def in_order(fates: Iterable[Fate], groups: Sequence[tuple[str, str]]) -> list[Fate]:
    """Return fates by (dimension, sub-dimension) as `groups` has them, seeds first within one."""
    places = {group: place for place, group in enumerate(groups)}
    origins = list(Origin)
    return sorted(
        fates,
        key=lambda fate: (
            places[fate.question.dimension, fate.question.sub_dimension],
            origins.index(fate.question.origin),
        ),
    )


def question_rows(fates: Iterable[Fate]) -> list[dict[str, Any]]:
    """Return a row for every question that was ever considered, for the run's own record."""
    rows: list[dict[str, Any]] = []
    items = 0
    for fate in fates:
        question, verdict = fate.question, fate.verdict
        items += fate.dropped is None
        rows.append(
            {
                "question": question.text,
                "dimension": question.dimension,
                "sub_dimension": question.sub_dimension,
                "origin": question.origin.value,
                "elaborates": question.seed,
                "item": items if fate.dropped is None else None,
                "dropped": None if fate.dropped is None else fate.dropped.value,
                "repeats": fate.repeats,
                "verdict": None
                if verdict is None
                else {"yes_is_better": verdict.yes_is_better, "fits": verdict.fits},
            }
        )
    return rows


def count_rows(fates: Sequence[Fate], groups: Sequence[tuple[str, str]]) -> list[dict[str, Any]]:
    """Return, for every sub-dimension, how many questions came from where and what became of them.

    A sub-dimension of which nothing is left has its row too.
    """
    origins = _counts(fates, lambda fate: fate.question.origin)
    dropped = _counts(fates, lambda fate: fate.dropped)
    return [
        {
            "dimension": dimension,
            "sub_dimension": name,
            "seeds": origins[dimension, name, Origin.SEED],
            "diversified": origins[dimension, name, Origin.DIVERSIFIED],
            "elaborated": origins[dimension, name, Origin.ELABORATED],
            "dropped": {why.value: dropped[dimension, name, why] for why in Dropped},
            "kept": dropped[dimension, name, None],
        }
        for dimension, name in groups
    ]


def _counts(fates: Iterable[Fate], of: Any) -> Mapping[tuple[str, str, Any], int]:
    return Counter(
        (fate.question.dimension, fate.question.sub_dimension, of(fate)) for fate in fates
    )

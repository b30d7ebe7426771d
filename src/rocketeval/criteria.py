"""Criteria for grading texts, in four groups: content, engagement, integrity, relevance.

The taxonomy is in `criteria.yaml`: 21 of the 34 criteria of "Evaluating the Evaluator", their
groups, and the meaning of each grade from 1 to 5.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

from rocketeval.config import Section
from rocketeval.errors import ConfigError
from rocketeval.registry import nearest

GRADES = 5
OWN = "own"
"""Group of criteria outside the taxonomy."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One quality of a text, with the meaning of its grades.

    >>> print(criteria()["fluency"].rubric.splitlines()[1])
    1: Errors in most sentences; hard to read.
    """

    name: str
    group: str
    """Group of the taxonomy; `own` for a user's criterion."""
    definition: str
    grades: tuple[str, ...]
    """Meanings of the grades 1 to 5, worst first."""

    @property
    def title(self) -> str:
        """The name as a heading."""
        return self.name.replace("_", " ").capitalize()

    @property
    def rubric(self) -> str:
        """Name, definition and all grades, as the judge reads them."""
        grades = (f"{grade}: {meaning}" for grade, meaning in enumerate(self.grades, 1))
        return "\n".join([f"{self.title}: {self.definition}", *grades])


class CriterionConfig(Section):
    """A user's criterion."""

    name: str
    definition: str
    grades: tuple[str, str, str, str, str]
    """Meanings of the grades 1 to 5, worst first."""


@cache
def criteria() -> Mapping[str, Criterion]:
    """Return every criterion of the taxonomy by name."""
    text = (resources.files("rocketeval") / "criteria.yaml").read_text(encoding="utf-8")
    return {
        name: Criterion(name, group, entry["definition"], tuple(entry["grades"]))
        for group, members in yaml.safe_load(text).items()
        for name, entry in members.items()
    }


def by_group(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the mean figure per group, from figures per criterion.

    Criteria outside the taxonomy count as `own`.

    >>> by_group({"fluency": 4.0, "conciseness": 2.0, "wit": 5.0})
    {'content': 3.0, 'own': 5.0}
    """
    members: dict[str, list[float]] = {group: [] for group in (*groups(), OWN)}
    for name, figure in figures.items():
        known = criteria().get(name)
        members[known.group if known else OWN].append(figure)
    return {group: math.fsum(own) / len(own) for group, own in members.items() if own}


def groups() -> tuple[str, ...]:
    """Return the groups of the taxonomy, in its order."""
    return tuple(dict.fromkeys(criterion.group for criterion in criteria().values()))


def criterion_from(given: str | CriterionConfig) -> Criterion:
    """Return the criterion of that name, or the user's own; raise ConfigError if unknown."""
    if isinstance(given, CriterionConfig):
        return Criterion(given.name, OWN, given.definition, given.grades)
    try:
        return criteria()[given]
    except KeyError:
        raise ConfigError(
            f"There is no criterion {given!r}.",
            hint=nearest(given, list(criteria()))
            + " Or define your own: name, definition and five grades.",
        ) from None

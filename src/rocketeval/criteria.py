"""Criteria that texts are graded by, in four groups: content, engagement, integrity, relevance.

The taxonomy is data (`criteria.yaml`): it names the criteria, says what each grade from 1 to 5
means, and groups figures that belong together.
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
"""The group of criteria that the taxonomy does not know."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One quality of a text, and what its grades mean.

    >>> print(criteria()["fluency"].rubric.splitlines()[1])
    1: Errors in most sentences; hard to read.
    """

    name: str
    group: str
    """Of the taxonomy; `own` for a criterion of the user's."""
    definition: str
    grades: tuple[str, ...]
    """What the grades 1 to 5 mean, worst first."""

    @property
    def title(self) -> str:
        """Its name as a heading."""
        return self.name.replace("_", " ").capitalize()

    @property
    def rubric(self) -> str:
        """Name, definition and all grades, as a judge reads them."""
        grades = (f"{grade}: {meaning}" for grade, meaning in enumerate(self.grades, 1))
        return "\n".join([f"{self.title}: {self.definition}", *grades])


class CriterionConfig(Section):
    """A criterion of the user's own."""

    name: str
    definition: str
    grades: tuple[str, str, str, str, str]
    """What the grades 1 to 5 mean, worst first."""


@cache
def criteria() -> Mapping[str, Criterion]:
    """Return every known criterion by its name."""
    text = (resources.files("rocketeval") / "criteria.yaml").read_text(encoding="utf-8")
    return {
        name: Criterion(name, group, told["definition"], tuple(told["grades"]))
        for group, members in yaml.safe_load(text).items()
        for name, told in members.items()
    }


def by_group(figures: Mapping[str, float]) -> dict[str, float]:
    """Return the mean figure of each group that has any, from figures by criterion.

    What the taxonomy does not know counts as `own`.

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
    """Return the known criterion of that name, or the user's own; ConfigError if it is unknown."""
    if isinstance(given, CriterionConfig):
        return Criterion(given.name, OWN, given.definition, given.grades)
    try:
        return criteria()[given]
    except KeyError:
        raise ConfigError(
            f"There is no criterion {given!r}.",
            hint=nearest(given, list(criteria()))
            + " Or give one of your own: name, definition and five grades.",
        ) from None

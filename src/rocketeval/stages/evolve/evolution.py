"""What an evolution found: everything that is printed, and kept as evolution.json."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rocketeval.evolve.confidence import ConfidenceRow
from rocketeval.evolve.described import Described
from rocketeval.evolve.validate import Validation
from rocketeval.records import Interval
from rocketeval.stages.evolve.cost import Cost
from rocketeval.stages.evolve.history import Measured, Round


@dataclass(frozen=True, slots=True)
class Part:
    """How much of the gold lies on one side of the split."""

    cases: int
    queries: int


@dataclass(frozen=True, slots=True)
class ArmFigures:
    """One way to judge, on the held-out cases."""

    name: str
    figures: Mapping[str, Interval]
    gain: Interval
    """Its accuracy, of labels its rank correlation, less that without experts."""
    lead: Interval
    """That of the evaluator less its own."""


@dataclass(frozen=True, slots=True)
class Figures:
    """Ways to judge, side by side on held-out cases, each by a fit that never saw its query."""

    measure: str
    """accuracy, or rho: what `gain` is of."""
    cases: int
    queries: int
    experts: tuple[int, ...]
    """How many experts each fold chose."""
    overall: str
    """The question of the arms of a single prompt."""
    arms: tuple[ArmFigures, ...]


@dataclass(frozen=True, slots=True)
class Worth:
    """What the held-out cases say for or against an evaluator."""

    usable: bool
    """Whether it is told apart from judging without looking."""
    words: str


@dataclass(frozen=True, slots=True)
class Confidence:
    """How far to trust a verdict that is sure; only of pairs."""

    rows: tuple[ConfidenceRow, ...]
    target: float | None
    """Share that shall be right of what it decides alone; None when no threshold reaches any."""
    threshold: float | None
    """Cases with less confidence go to a person."""
    to_person: tuple[str, ...]
    """The held-out cases below it, the least sure first."""


@dataclass(frozen=True)
class PoolFacts:
    """The pool of perspectives in numbers."""

    size: int
    people: int
    """What people added."""
    new_people: int
    """What they added since the last command."""
    people_before_figures: int
    """What they had added when held-out figures of this run were first there to be seen."""
    waiting: int
    """What they added too late for this command; the next one asks it."""
    elsewhere: int
    """Entries that name a round which this run has not done: they count as added by people."""
    by_origin: Mapping[str, int]
    used: int
    """Perspectives of the evaluator, of both kinds."""
    refused: tuple[str, ...]
    """What the guidelines brought and was not taken."""


@dataclass(frozen=True)
class Evolution:
    """What an evolution found."""

    created: str
    benchmark: str
    gold: str
    asking: str
    judge: str
    optimizer: str | None
    """Its model; None when nothing is proposed."""
    seen: Part
    held_out: Part
    pool: PoolFacts
    beginning: Measured
    """On the seen cases before the first round."""
    rounds: tuple[Round, ...]
    best_round: int
    """The round whose pool the evaluator has; 0 for the beginning."""
    stopped: str
    """Why no further round was begun."""
    figures: Figures
    worth: Worth
    evaluator: Described
    confidence: Confidence | None
    cost: Cost
    spent: Mapping[str, Mapping[str, Any]]
    """What judge and optimizer used over all commands."""
    failed: int
    """Prompts that the judge could not answer; another command tries them again."""
    missing: int
    """Answers that are not there, of the evaluator's perspectives on all cases."""
    path: Path
    """The evaluator."""
    pool_path: Path


def figures_of(validation: Validation, overall: str) -> Figures:
    """Return a validation as it is printed."""
    return Figures(
        validation.measure,
        len(validation.gold),
        len(set(validation.query_ids)),
        validation.experts,
        overall,
        tuple(
            ArmFigures(arm.name, arm.figures, arm.gain, arm.lead)
            for arm in validation.arms.values()
        ),
    )


def as_json(found: Any) -> Any:
    """Return dataclasses as plain data: what is no number (NaN, infinity) is None."""
    if isinstance(found, float):
        return found if math.isfinite(found) else None
    if isinstance(found, Mapping):
        return {str(name): as_json(value) for name, value in found.items()}
    if isinstance(found, Path):
        return str(found)
    if isinstance(found, Sequence) and not isinstance(found, str):
        return [as_json(value) for value in found]
    if hasattr(found, "__dataclass_fields__"):
        return {name: as_json(getattr(found, name)) for name in found.__dataclass_fields__}
    return found

"""What stopping early would cost: races simulated from a pilot's scores, or from a given spread.

A pilot's queries are drawn with replacement, as many as the benchmark has, and raced. Candidates of
a small pilot look further apart than they are, so few queries make the estimate optimistic.
Without a pilot, candidates are assumed a given gap apart, with normal differences.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import ConfigError
from rocketeval.goal import parse_goal
from rocketeval.grid import ScoreGrid
from rocketeval.settings import UntilConfig
from rocketeval.stopping.race import Race, RaceOrder
from rocketeval.store.manifest import Plan

RACES = 100
"""Simulated races."""
FEWEST = 12
"""Independent queries that a pilot needs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedStop:
    """The expected use of a run that stops early."""

    goal: str
    based_on: str
    """The origin of the simulated scores."""
    judgments: float
    """Mean over simulated races."""
    judgments_low: float
    judgments_high: float
    """Four of five races need a number between these two."""
    of: int
    """Responses of the whole grid."""
    decided: float
    """Share of races that end with a decision; the others end as a near tie or undecided."""
    cost: float | None
    """Without any reuse, of what is left to judge; None without a price."""
    cost_with_reuse: float | None
    """With a perfect prefix cache; None without a price for cached tokens."""
    seconds: float | None
    """None if the judge's rate is unknown."""
    currency: str


@dataclass(frozen=True, slots=True)
class AssumedSpread:
    """Assumed scores: candidates `gap` apart, differences with standard deviation `sd`."""

    sd: float
    gap: float


def expect_stop(
    plan: Plan, until: UntilConfig, candidates: list[str], known: ScoreGrid | AssumedSpread
) -> ExpectedStop:
    """Simulate races of a planned run, and scale its cost to the judgments they need."""
    if isinstance(known, AssumedSpread):
        draw = _normal_scores(known, len(candidates))
        based_on = (
            f"candidates {known.gap:g} apart, differences with standard deviation {known.sd:g}"
        )
    else:
        candidates, draw = list(known.candidates), _pilot_scores(known)
        based_on = f"scores of {len(known.query_ids)} pilot queries"
    goal, lengths, decided = parse_goal(until.goal), [], 0
    for seed in range(RACES):
        scores, order = draw(plan.queries, np.random.default_rng((until.seed, seed)))
        race = Race(goal, candidates, order, level=until.level, futility=until.futility)
        while race.ending is None:
            race.advance(scores)
        lengths.append(race.lengths().sum() / scores.size)
        decided += race.ending == "decided"
    shares = np.array(lengths)
    of = plan.responses
    left = max(0.0, float(shares.mean()) * of - plan.finished - plan.from_cache)
    part = min(1.0, left / plan.to_judge) if plan.to_judge else 0.0

    def scaled(amount: float | None) -> float | None:
        return None if amount is None else part * amount

    low, high = (of * np.quantile(shares, [0.1, 0.9])).tolist()
    return ExpectedStop(
        goal=until.goal,
        based_on=based_on,
        judgments=float(shares.mean()) * of,
        judgments_low=low,
        judgments_high=high,
        of=of,
        decided=decided / RACES,
        cost=scaled(plan.cost),
        cost_with_reuse=scaled(plan.cost_with_reuse),
        seconds=scaled(plan.seconds),
        currency=plan.currency,
    )


Draw = Callable[[int, np.random.Generator], tuple[Floats, RaceOrder]]


def _normal_scores(spread: AssumedSpread, candidates: int) -> Draw:
    def draw(queries: int, rng: np.random.Generator) -> tuple[Floats, RaceOrder]:
        noise = rng.normal(size=(queries, candidates)) * spread.sd / np.sqrt(2.0)
        scores = noise - spread.gap * np.arange(candidates)
        return scores, RaceOrder(np.arange(queries), np.arange(queries))

    return draw


def _pilot_scores(pilot: ScoreGrid) -> Draw:
    """Draw whole clusters of the pilot's queries until there are enough."""
    places = pilot.places()
    units = int(places.max()) + 1 if len(places) else 0
    if units < FEWEST:
        raise ConfigError(
            f"The pilot has scores on {units} independent queries; an estimate needs {FEWEST}.",
            hint="Grade more of it with `rocketeval run --limit 30`, or give --spread and --gap.",
        )
    members = [np.flatnonzero(places == unit) for unit in range(units)]

    def draw(queries: int, rng: np.random.Generator) -> tuple[Floats, RaceOrder]:
        rows: list[int] = []
        clusters: list[int] = []
        number = 0
        while len(rows) < queries:
            chosen = members[int(rng.integers(units))]
            rows += chosen.tolist()
            clusters += [number] * len(chosen)
            number += 1
        numbers: Ints = np.array(clusters[:queries], np.int64)
        return pilot.scores[rows[:queries]], RaceOrder(np.arange(queries), numbers)

    return draw

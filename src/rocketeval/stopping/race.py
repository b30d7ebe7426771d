"""A race: candidates are compared at planned looks, and those that are decided leave it.

**Order**: queries are drawn in a random order, balanced over categories; queries of one cluster
stay together. At a look, all candidates in the race have scores on the same first queries.
**best, top:K**: a candidate is out when K candidates still in question are significantly better,
and in when it is significantly better than all that can be out. The set is wrong with probability
`1 - level` at most: a wrong set needs one of K (N - K) false comparisons, each of which has its
share of the error.
**beats:OLD**: every candidate is compared with OLD, two-sided, with Holm's correction. Any false
claim, of better or worse, has probability `1 - level` at most.
**within:DELTA**: no candidate is placed above one that is better by DELTA or more, over all pairs.
**interval:WIDTH**: all intervals of mean scores contain the true means, whenever they stop.
**Without spread**: scores or differences that are equal on all queries so far have no interval and
decide nothing before the last look, because a rare other value may not have been seen yet. They do
not end the race as a near tie either. At the last look, a constant difference other than zero is
tested as in `compare`, by flipping signs; `within:DELTA` also uses the exact interval of a constant
difference, if the scale is known. At every look, it needs such an interval for differences that
hardly vary, because a normal bound says nothing about rare large ones.
**Near tie**: if what is undecided has little chance of being decided by the remaining queries, the
race stops and names the candidates that are tied.

The race sees scores only through `advance`, and the same scores give the same decisions, so a race
that was interrupted is repeated from its first look.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from rocketeval.arrays import Bools, Floats, Ints
from rocketeval.errors import ConfigError
from rocketeval.goal import Goal
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import hardly_varies, interval_without_spread, least_queries
from rocketeval.stats.sequential import (
    Bounds,
    Means,
    column_means,
    no_means,
    normal_tail,
    paired_means,
    plan_looks,
)
from rocketeval.text import did_you_mean

Ending = Literal["decided", "near tie", "no more queries"]
RaceState = Literal["in", "out", "better", "worse", "reference", "placed", "measured", "tied"]
FUTILITY = 0.1
"""A race stops when nothing undecided has at least this chance of being decided."""


@dataclass(frozen=True, slots=True, eq=False)
class RaceOrder:
    """The queries of a race in the order they are graded."""

    rows: Ints
    """Index of each query, in drawn order."""
    clusters: Ints
    """Number of the cluster of each of these queries, from 0 in drawn order."""

    @property
    def units(self) -> int:
        """Number of independent queries or clusters."""
        return int(self.clusters[-1]) + 1 if len(self.clusters) else 0

    def length(self, units: int) -> int:
        """Return how many queries the first `units` clusters have."""
        return int(np.searchsorted(self.clusters, units))


def draw_order(clusters: Ints, categories: Sequence[str], seed: int) -> RaceOrder:
    """Draw the order of the queries, each category spread evenly over it.

    `clusters` numbers the cluster of each query; a cluster has the category of its first query.
    """
    numbers, first = np.unique(clusters, return_index=True)
    kinds = [categories[row] for row in first.tolist()]
    rng = np.random.default_rng(seed)
    shuffled = rng.permutation(len(numbers)).tolist()
    places = np.zeros(len(numbers))
    for kind in sorted(set(kinds)):
        own = [unit for unit in shuffled if kinds[unit] == kind]
        places[own] = (np.arange(len(own)) + rng.random()) / len(own)
    position = np.argsort(np.argsort(places, kind="stable"), kind="stable")
    drawn = position[np.searchsorted(numbers, clusters)]
    rows: Ints = np.argsort(drawn, kind="stable")
    return RaceOrder(rows, drawn[rows])


@dataclass(frozen=True, slots=True)
class RaceRow:
    """One candidate of a race."""

    candidate: str
    state: RaceState
    queries: int
    """Queries that the race used for it."""
    look: int
    """Number of the last look it took part in, from 1."""
    mean: Interval
    """Mean score; the interval accounts for all looks. For the goal `interval`, all of them hold at
    once; for other goals, each holds on its own."""
    difference: Interval | None
    """Mean score minus that of the reference candidate on shared queries, with an interval that
    accounts for all looks and comparisons; None for the reference itself."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RaceResult:
    """The result of a race."""

    FILE: ClassVar[str] = "race"
    COMMAND: ClassVar[str] = "run --until"
    SCHEMA: ClassVar[int] = 1

    goal: str
    ending: Ending
    rows: tuple[RaceRow, ...]
    """Best first."""
    reference: str | None
    """The candidate of the differences: the leader, or the one to beat."""
    judgments: int
    """Responses that the race used."""
    of: int
    """Responses of the whole grid."""
    queries: int
    """Queries used for the candidates that stayed longest."""
    all_queries: int
    level: float
    looks: tuple[int, ...]
    """Independent queries at each planned look."""
    seed: int
    """Seed of the order of the queries."""
    futility: float

    @property
    def stopped_early(self) -> bool:
        """Return whether responses were left ungraded."""
        return self.judgments < self.of

    def named(self, *states: RaceState) -> list[str]:
        """Return the candidates in these states, best first."""
        return [row.candidate for row in self.rows if row.state in states]


def check_goal(goal: Goal, candidates: Sequence[str]) -> None:
    """Raise ConfigError if the candidates cannot reach the goal."""
    count = len(candidates)
    if goal.kind == "beats" and goal.against not in candidates:
        raise ConfigError(
            f"`until` is beats:{goal.against}, which is not one of the {count} candidates.",
            hint=did_you_mean(goal.against, candidates),
        )
    if goal.kind != "interval" and count < 2:
        raise ConfigError("`until` compares candidates, and there is only one.")
    if goal.kind == "top" and goal.count >= count:
        raise ConfigError(
            f"`until` is top:{goal.count}, and there are {count} candidates.",
            hint=f"Use a number from 1 to {count - 1}.",
        )


class Race:
    """A race in progress; `scale` has the ends of the scores, if they are known."""

    def __init__(
        self,
        goal: Goal,
        candidates: Sequence[str],
        order: RaceOrder,
        *,
        level: float = 0.95,
        futility: float = FUTILITY,
        bounds: Bounds | None = None,
        scale: tuple[float, float] | None = None,
    ) -> None:
        check_goal(goal, candidates)
        self.goal, self.candidates, self.order = goal, tuple(candidates), order
        self.level, self.futility, self.scale = level, futility, scale
        self.bounds = bounds or Bounds(plan_looks(order.units))
        self.look = -1
        """The last look; -1 before the first."""
        self.ending: Ending | None = None
        count = len(self.candidates)
        self.live: Bools = np.ones(count, bool)
        """The candidates that take part in the next look."""
        self.winners: Bools = np.zeros(count, bool)
        """The candidates found to be among the best."""
        self.better: Bools = np.zeros((count, count), bool)
        """Whether the row was found better than the column; for `within`, better or less than DELTA
        worse."""
        self._old = self.candidates.index(goal.against) if goal.kind == "beats" else -1
        self._looked: Ints = np.zeros(count, np.int64)
        self._means, self._pairs = no_means(count), no_means(count, count)

    def lengths(self) -> Ints:
        """Return how many queries, in drawn order, the race needs of each candidate.

        While the race goes on, these are the queries up to the next look.
        """
        sizes = np.array([self.order.length(units) for units in self.bounds.looks])
        going = self.live if self.ending is None else np.zeros_like(self.live)
        found: Ints = sizes[np.where(going, self.look + 1, self._looked)]
        return found

    def advance(self, scores: Floats) -> None:
        """Take the next look.

        `scores` has one row per query in drawn order, NaN if missing, and one column per candidate.
        """
        self.look += 1
        live = np.flatnonzero(self.live)
        self._looked[live] = self.look
        rows = self.order.length(self.bounds.looks[self.look])
        now, clusters = scores[:rows, live], self.order.clusters[:rows]
        self._means.put(column_means(now, clusters), (live,))
        if self.goal.kind == "interval":
            self._decide_intervals()
        else:
            pairs = paired_means(now, clusters)
            self._pairs.put(pairs, np.ix_(live, live))
            if self.goal.kind == "beats":
                self._decide_beats(live, pairs)
            elif self.goal.kind == "within":
                self._decide_order(live, pairs, now)
            else:
                self._decide_top(live, pairs)
        if self.ending is None and self._last:
            self.ending = "no more queries"

    def placed(self) -> Ints:
        """Return the candidates in order: by wins on shared queries, then by mean score."""
        wins = (self._pairs.values > 0.0).sum(axis=1)
        order: Ints = np.lexsort((np.arange(len(wins)), -self._means.values, -wins))
        return order

    def interval(self, column: int) -> Interval:
        """Return a candidate's mean score with an interval that accounts for all looks."""
        share = self._error() if self.goal.kind == "interval" else (1.0 - self.level) / 2.0
        return self._around(self._means, column, int(self._looked[column]), share)

    def result(self, goal: str, seed: int) -> RaceResult:
        """Return the result of a race that has ended."""
        assert self.ending is not None
        rank = {"in": 0, "better": 0, "out": 2, "worse": 2}
        states = [self._state(column) for column in range(len(self.candidates))]
        order = sorted(self.placed().tolist(), key=lambda column: rank.get(states[column], 1))
        reference = {"beats": self._old, "interval": -1}.get(self.goal.kind, order[0])
        lengths = self.lengths()
        rows = [
            RaceRow(
                candidate=self.candidates[column],
                state=states[column],
                queries=int(lengths[column]),
                look=int(self._looked[column]) + 1,
                mean=self.interval(column),
                difference=self._difference(column, reference),
            )
            for column in order
        ]
        return RaceResult(
            goal=goal,
            ending=self.ending,
            rows=tuple(rows),
            reference=None if reference < 0 else self.candidates[reference],
            judgments=int(lengths.sum()),
            of=len(self.order.rows) * len(self.candidates),
            queries=int(lengths.max()),
            all_queries=len(self.order.rows),
            level=self.level,
            looks=self.bounds.looks,
            seed=seed,
            futility=self.futility,
        )

    @property
    def _last(self) -> bool:
        return self.look + 1 == len(self.bounds.looks)

    def _decide_top(self, live: Ints, pairs: Means) -> None:
        self._claim(live, pairs, pairs.statistics())
        while self.live.any():
            left = np.flatnonzero(self.live)
            places = self.goal.count - int(self.winners.sum())
            better = self.better[np.ix_(left, left)]
            enters = better.sum(axis=1) >= len(left) - places
            leaves = better.sum(axis=0) >= places
            if not (enters | leaves).any():
                break
            # One at a time: each decision changes what the others need.
            place = int(np.flatnonzero(enters | leaves)[0])
            self.winners[left[place]] = enters[place]
            self.live[left[place]] = False
        if not self.live.any():
            self.ending = "decided"
        elif not self._last and not self._hopeful(live, pairs):
            self.ending = "near tie"

    def _hopeful(self, live: Ints, pairs: Means) -> bool:
        """Return whether some candidate in the race has a chance of being decided."""
        here = self.live[live]
        chance = self._chance(pairs, self._error())[np.ix_(here, here)]
        chance = np.where(self.better[np.ix_(live[here], live[here])], 1.0, chance)
        np.fill_diagonal(chance, 0.0)
        places = self.goal.count - int(self.winners.sum())
        leaves = np.sort(chance, axis=0)[len(chance) - places]
        enters = np.sort(chance, axis=1)[:, places]
        return bool((np.maximum(leaves, enters) >= self.futility).any())

    def _chance(self, pairs: Means, error: float) -> Floats:
        """Return the chance of each row to be found better than the column by the last look.

        A difference without spread is decided then, unless it changes before.
        """
        chance = self.bounds.chance_to_cross(pairs.statistics(), self.look, error)
        signs = pairs.sign_statistics()
        return np.where(signs == 0.0, chance, (signs > 0.0).astype(np.float64))

    def _decide_beats(self, live: Ints, pairs: Means) -> None:
        old = int(np.flatnonzero(live == self._old)[0])
        statistics = pairs.statistics()
        others = live != self._old
        # Holm's correction counts all that are not decided, also those that left as near ties.
        undecided = len(self.candidates) - 1 - int(self._known().sum())
        while others.any():
            bound = self.bounds.at(self.look, self._error(undecided))
            found = self._beyond(pairs, statistics, bound)
            above, below = others & found[:, old], others & found[old]
            if not (above | below).any():
                break
            self.better[live[above], self._old] = True
            self.better[self._old, live[below]] = True
            others &= ~(above | below)
            undecided -= int((above | below).sum())
        chance = self._chance(pairs, self._error(max(1, undecided)))
        hopeful = np.maximum(chance[:, old], chance[old]) >= self.futility
        self.live[live] = others & (self._last | hopeful)
        if not self.live.any():
            self.ending = "near tie" if undecided else "decided"
        self.live[self._old] = self.ending is None

    def _known(self) -> Bools:
        """Return which candidates were found better or worse than the one to beat."""
        known: Bools = self.better[:, self._old] | self.better[self._old]
        return known

    def _decide_order(self, live: Ints, pairs: Means, scores: Floats) -> None:
        margin = self.goal.size
        if self.goal.in_sd:
            margin *= math.sqrt(float(np.nanvar(scores, axis=0, ddof=1).mean()))
        found = self._found(pairs, pairs.statistics(margin)) & ~self.better[np.ix_(live, live)]
        if self.scale is not None:
            self._bound_exactly(found, pairs, scores, margin)
        self.better[np.ix_(live, live)] |= found
        order = self.placed()
        above = np.triu(np.ones((len(order), len(order)), bool), 1)
        unknown = above & ~self.better[np.ix_(order, order)]
        self.live[order] = unknown.any(axis=0) | unknown.any(axis=1)
        if not self.live.any():
            self.ending = "decided"

    def _decide_intervals(self) -> None:
        for column in np.flatnonzero(self.live).tolist():
            found = self.interval(column)
            self.live[column] = not found.high - found.low <= self.goal.size
        if not self.live.any():
            self.ending = "decided"

    def _claim(self, live: Ints, pairs: Means, statistics: Floats) -> None:
        self.better[np.ix_(live, live)] |= self._found(pairs, statistics)

    def _found(self, pairs: Means, statistics: Floats) -> Bools:
        """Return which differences are beyond the bound of this look."""
        found = self._beyond(pairs, statistics, self.bounds.at(self.look, self._error()))
        np.fill_diagonal(found, False)
        return found

    def _bound_exactly(self, found: Bools, pairs: Means, scores: Floats, margin: float) -> None:
        """Decide pairs with little or no spread by whether their exact interval is above `-margin`.

        Of the pairs in `found`, this changes those whose differences hardly vary. At the last look,
        it adds pairs whose differences do not vary.
        """
        assert self.scale is not None
        width = _widest(self.scale, scores)
        level = 1.0 - 2.0 * normal_tail(self.bounds.at(self.look, self._error()))

        def holds(pair: tuple[int, int]) -> bool:
            value, units = float(pairs.values[pair]), int(pairs.units[pair])
            exact = interval_without_spread(value, units, level, (-width, width))
            return exact.low > -margin

        for one, two in np.argwhere(found & (pairs.errors > 0.0)).tolist():
            differences = scores[:, one] - scores[:, two]
            if hardly_varies(differences[~np.isnan(differences)], margin):
                found[one, two] = holds((one, two))
        if self._last:
            same = (pairs.errors == 0.0) & (pairs.units >= least_queries(self.level))
            np.fill_diagonal(same, False)
            for one, two in np.argwhere(same & ~found).tolist():
                found[one, two] = holds((one, two))

    def _beyond(self, pairs: Means, statistics: Floats, bound: float) -> Bools:
        """Return which differences reach a normal bound; without spread, only at the last look."""
        least = least_queries(self.level)
        found = pairs.beyond(statistics, bound, least)
        if self._last:
            found |= (pairs.sign_statistics() >= bound) & (pairs.units >= least)
        return found

    def _error(self, undecided: int = 0) -> float:
        """Return the one-sided error of one comparison; `undecided` is for Holm's correction."""
        count, error = len(self.candidates), 1.0 - self.level
        if self.goal.kind == "beats":
            return error / (2 * (undecided or count - 1))
        if self.goal.kind == "within":
            return error / (count * (count - 1) // 2)
        if self.goal.kind == "interval":
            return error / (2 * count)
        return error / (2 * self.goal.count * (count - self.goal.count))

    def _difference(self, column: int, reference: int) -> Interval | None:
        if reference < 0 or column == reference:
            return None
        look = int(min(self._looked[column], self._looked[reference]))
        return self._around(self._pairs, (column, reference), look, self._error())

    def _around(
        self, means: Means, place: int | tuple[int, int], look: int, share: float
    ) -> Interval:
        value = float(means.values[place])
        if means.units[place] < least_queries(self.level):
            return Interval(value, math.nan, math.nan)
        return Interval(value, *means.interval(place, self.bounds.at(look, share)))

    def _state(self, column: int) -> RaceState:
        if column == self._old:
            return "reference"
        if self.goal.kind == "beats":
            if self.better[column, self._old]:
                return "better"
            return "worse" if self.better[self._old, column] else "tied"
        if self.live[column]:
            return "tied"
        if self.goal.kind in ("within", "interval"):
            return "placed" if self.goal.kind == "within" else "measured"
        return "in" if self.winners[column] else "out"


def _widest(scale: tuple[float, float], scores: Floats) -> float:
    """Return the largest difference of two scores; those outside the scale widen it."""
    low, high = scale
    highest, lowest = (
        end.reduce(scores, axis=None, initial=known)
        for end, known in ((np.fmax, high), (np.fmin, low))
    )
    return float(highest - lowest)

"""Rankings: ratings, ranks, and groups of tied candidates.

**Rating**: Bradley-Terry fit to every pair of scores of every query, on the Elo scale, with mean
1000, or with one candidate (`anchor`) fixed at a given rating.
**Intervals**: percentiles over resampled queries (`bootstrap`). A figure from fewer than six
queries (at 95%), or one that does not vary over resamples, has no interval: its bounds are NaN.
Neither has the rating of a candidate that wins everything, or the same share on all queries: its
draws vary only with the ratings of the others. If that is the anchor, no rating has an interval.
**Tied**: two candidates are tied unless the difference of their mean scores is significant, with
family-wise correction over all pairs of the ranking (`stats/permutation.py`). This is the only
definition of a tie in a ranking: groups, rank intervals, words and exports follow from it.
**Group**: in ranking order, the first candidate opens group 1. The next one joins if it is tied
with the group's *first* candidate; otherwise it opens the next group. Neighbors in different groups
can be tied too (see `beats_next`).
**Outscored**: ratings count wins, ties compare mean scores. Few large wins can outweigh many small
ones, so a lower-ranked candidate can be significantly better by mean score (see `outscored_by`).
**Rank intervals**: simultaneous by default: all of them contain the true ranks at once, at the
given level. `pairwise` ones are narrower and hold for one candidate at a time.
**Islands**: candidates that share no queries, directly or through others, cannot be compared. Each
island is rated around its own mean and has its own groups, and nothing is said about candidates of
different islands. With an anchor, islands are an error.
**Unranked**: candidates without any score.
**Wins**: for each pair of candidates, the share of their common queries that one wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from typing import ClassVar, Literal

import numpy as np

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import ConfigError, RocketEvalError
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import intervals, ratio_draws, strength_draws
from rocketeval.stats.bradley_terry import (
    ELO_PER_STRENGTH,
    MATRIX_CANDIDATES,
    fit,
    groups_with_a_score,
    pair_counts,
    win_matrix,
    win_totals,
    wins_and_losses,
    wins_constant_share,
)
from rocketeval.stats.permutation import PAIR_FLIPS, PairwiseTests, pairwise_tests
from rocketeval.stopping.race import RaceResult
from rocketeval.stopping.summary import looks_note, race_in_words, race_tests, widen_interval
from rocketeval.store.codec import OPTIONAL
from rocketeval.text import did_you_mean, join_words
from rocketeval.workers import one_blas_thread


def find_anchor(
    anchor: str | None, candidates: Sequence[str], unranked: Sequence[str] = ()
) -> int | None:
    """Return the anchor's index among the candidates; raise ConfigError if it is not one."""
    if anchor is None:
        return None
    if anchor in unranked:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, which has no score on any query.",
            hint="Choose another anchor.",
        )
    if anchor not in candidates:
        raise ConfigError(
            f"`ranking.anchor` is {anchor!r}, not one of the {len(candidates)} candidates.",
            hint=did_you_mean(anchor, candidates),
        )
    return candidates.index(anchor)


def refuse_islands(anchor: int | None, candidates: Sequence[str], islands: Ints) -> None:
    """Raise ConfigError if some candidates cannot be compared with the anchor."""
    if anchor is None:
        return
    apart = np.flatnonzero(islands != islands[anchor])
    if len(apart):
        names = join_words((repr(candidates[column]) for column in apart.tolist()), most=10)
        raise ConfigError(
            f"{len(apart)} of {len(candidates)} candidates share no query with the anchor "
            f"{candidates[anchor]!r}, directly or through others: {names}.",
            hint="Leave these candidates out, give them responses to the anchor's queries, or "
            "remove `ranking.anchor`: then they are rated separately, around their own mean.",
        )


def to_ratings(strengths: Floats, islands: Ints, anchor: int | None, rating: float) -> Floats:
    """Convert strengths (one row per fit) to Elo, with the anchor or island means at `rating`.

    >>> to_ratings(np.array([[0.0, np.log(10.0)]]), np.array([1, 1]), 0, 1100.0)
    array([[1100., 1500.]])
    """
    if not math.isfinite(rating):
        raise ConfigError(f"`ranking.anchor_rating` is {rating}", hint="Use one such as 1000.")
    zero = _island_means(strengths, islands) if anchor is None else strengths[:, [anchor]]
    ratings: Floats = rating + ELO_PER_STRENGTH * (strengths - zero)
    return ratings


def _island_means(strengths: Floats, islands: Ints) -> Floats:
    """Return the mean of each column's island, in every row."""
    members = (islands[:, None] == np.arange(1, islands.max() + 1)).astype(np.float64)
    means: Floats = ((strengths @ members) / members.sum(axis=0)) @ members.T
    return means


RankIntervals = Literal["simultaneous", "pairwise"]
FEWEST_FLIPS = 399
"""Sign flips behind the tests of very many pairs."""
MOST_STATISTICS = 40_000_000
"""Pairs times sign flips up to which all flips are made: a few seconds."""
DIGITS = 6
"""Decimal places; more would differ between machines and by rounding."""


@dataclass(frozen=True, slots=True)
class Standings:
    """Ratings and means of every candidate (column), with their draws (one row per resample)."""

    ratings: Floats
    rating_draws: Floats
    means: Floats
    mean_draws: Floats
    clusters: Ints
    """On how many independent queries, or clusters of queries, each has a score."""
    queries: Ints
    """Number of scored queries of each candidate."""
    islands: Ints
    """Numbered from 1."""
    anchor: int | None
    """Index of the anchor, whose rating is given."""

    def rating_intervals(self, level: float) -> list[Interval]:
        """Return every candidate's rating with its interval."""
        found = self._figures(self.ratings, self.rating_draws, level)
        if self.anchor is not None:
            given = found[self.anchor].value
            found[self.anchor] = Interval(given, given, given)
        return found

    def mean_intervals(self, level: float) -> list[Interval]:
        """Return every candidate's mean score with its interval."""
        return self._figures(self.means, self.mean_draws, level)

    def _figures(self, values: Floats, draws: Floats, level: float) -> list[Interval]:
        return [
            Interval(one.value, round(one.low, DIGITS), round(one.high, DIGITS))
            for one in intervals(values, draws, self.clusters, level)
        ]


def compute_standings(
    scores: Floats,
    queries: Ints,
    clusters: Ints,
    candidates: Sequence[str],
    *,
    tie_margin: float,
    times: int,
    seed: int,
    anchor: int | None,
    anchor_rating: float,
) -> Standings:
    """Return the standing of every column; `queries` numbers the query of each row.

    The draws of a rating are NaN if the candidate, or the anchor, wins the same share in every
    cluster.

    Rows are compared each on its own. Rows of one cluster, such as those of one query by several
    judges, are resampled together.
    """
    present = ~np.isnan(scores)
    wins, meetings = win_totals(scores, tie_margin), pair_counts(scores)
    islands = _islands(meetings)
    refuse_islands(anchor, candidates, islands)
    strengths = fit(wins.sum(axis=0), meetings)
    draws = strength_draws(wins, present, strengths, times=times, seed=seed, queries=clusters)
    filled, counted = np.where(present, scores, 0.0), present.astype(np.float64)
    mean_draws = ratio_draws(filled, counted, times=times, seed=seed, queries=clusters)
    scale = (islands, anchor, anchor_rating)
    rating_draws = to_ratings(draws, *scale).round(DIGITS)
    constant = wins_constant_share(wins, present, clusters)
    rating_draws[:, constant if anchor is None else constant | constant[anchor]] = np.nan
    return Standings(
        ratings=to_ratings(strengths[None, :], *scale)[0].round(DIGITS),
        rating_draws=rating_draws,
        means=(filled.sum(axis=0) / counted.sum(axis=0)).round(DIGITS),
        mean_draws=mean_draws.round(DIGITS),
        clusters=groups_with_a_score(present, clusters),
        queries=groups_with_a_score(present, queries),
        islands=islands,
        anchor=anchor,
    )


def _islands(meetings: Floats) -> Ints:
    """Return the island number, from 1, of each column."""
    islands = np.zeros(len(meetings), np.int64)
    for column in range(len(meetings)):
        if islands[column]:
            continue
        number = int(islands.max()) + 1
        frontier = np.zeros(len(meetings), bool)
        frontier[column] = True
        while frontier.any():
            islands[frontier] = number
            frontier = (meetings[frontier] > 0).any(axis=0) & (islands == 0)
    return islands


@dataclass(frozen=True, slots=True)
class RankedCandidate:
    """One row of a ranking."""

    candidate: str
    rank: int
    """1 is best; equal ratings share the better rank."""
    rank_low: int
    """Best rank of the interval."""
    rank_high: int
    """Worst rank of the interval."""
    rating: Interval
    """Elo scale, mean 1000 without an anchor; the anchor's interval has no width."""
    mean_score: Interval
    """Mean over the scored queries."""
    queries: int
    """Number of scored queries."""
    missing: int
    """Number of queries without a score."""
    group: int
    """Equal for candidates of one island that are tied with the first of their group; 1 holds the
    best."""
    island: int
    """Number of the island; ratings are comparable only within one, and usually all are 1."""
    beats_next: bool | None = None
    """Whether it is significantly better than the next row; None unless that is of its island."""
    outscored_by: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """Candidates of later rows whose mean score is significantly higher."""


@dataclass(frozen=True, slots=True)
class WinMatrix:
    """Win rates of each candidate against each other."""

    candidates: tuple[str, ...]
    """Names of rows and columns, in ranking order."""
    shares: tuple[tuple[float | None, ...], ...]
    """Share of common queries that the row wins against the column, ties half; None without common
    queries and on the diagonal."""


@dataclass(frozen=True, slots=True)
class PairTests:
    """The score difference of every two candidates, tested with family-wise correction."""

    candidates: tuple[str, ...]
    """In the order of the ranking: of the rows, and of the columns."""
    p_values: tuple[tuple[float | None, ...], ...]
    """Adjusted for all pairs, two-sided; None on the diagonal."""

    def tied(self, first: str, second: str, level: float) -> bool:
        """Return whether the difference of two candidates is not significant."""
        place = self.candidates.index
        p_value = self.p_values[place(first)][place(second)]
        return p_value is None or not is_significant(p_value, level)


@dataclass(frozen=True, slots=True)
class Ranking:
    """All candidates, best first, with the settings of the ranking."""

    FILE: ClassVar[str] = "ranking"
    COMMAND: ClassVar[str] = "run --only rank"
    SCHEMA: ClassVar[int] = 1

    rows: tuple[RankedCandidate, ...]
    """Sorted by rating, then by name."""
    unranked: tuple[str, ...]
    """Candidates without any score."""
    tie_margin: float
    bootstrap: int
    """Number of resamples."""
    seed: int
    level: float
    """Confidence level of every interval."""
    queries: int
    """Queries on which at least one candidate has a score."""
    islands: int
    """Number of islands; 1 if all candidates are comparable."""
    anchor: str | None = None
    """The candidate with a fixed rating."""
    anchor_rating: float = 1000.0
    """Rating of the anchor, or mean rating."""
    wins: WinMatrix | None = None
    """None above `MATRIX_CANDIDATES` candidates."""
    rank_intervals: RankIntervals = "pairwise"
    """What the rank intervals cover; rankings of earlier versions do not say and are pairwise."""
    pairs: int | None = None
    """Pairs of candidates of one island; None in rankings of earlier versions."""
    significant_pairs: int | None = None
    """Pairs with a significant difference."""
    tests: PairTests | None = None
    """None above `MATRIX_CANDIDATES` candidates."""
    stopped: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """If grading stopped early: what was decided, after how many judgments, and what the intervals
    account for; empty if everything was graded."""


def rank(
    grid: ScoreGrid,
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    anchor: str | None = None,
    anchor_rating: float = 1000.0,
    rank_intervals: RankIntervals = "simultaneous",
    race: RaceResult | None = None,
) -> Ranking:
    """Rank a grid's candidates; the same grid and settings give the same ranking.

    `race` is the result of the run if it stopped early: intervals and ties then account for it.
    """
    return rank_pooled(
        [grid],
        tie_margin=tie_margin,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        anchor=anchor,
        anchor_rating=anchor_rating,
        rank_intervals=rank_intervals,
        race=race,
    )


def rank_pooled(
    grids: Sequence[ScoreGrid],
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
    anchor: str | None = None,
    anchor_rating: float = 1000.0,
    rank_intervals: RankIntervals = "simultaneous",
    race: RaceResult | None = None,
) -> Ranking:
    """Rank candidates by one fit to the comparisons of several judges.

    The grids (one per judge) have the same queries and candidates. Only scores of the same judge
    are compared, so its scale matters only for the tie margin. A resampled query includes the
    comparisons of all judges: more judges on the same queries do not add queries.
    """
    stacked = np.concatenate([grid.scores for grid in grids])
    queries = np.tile(np.arange(len(grids[0].query_ids)), len(grids))
    clusters = np.tile(grids[0].places(), len(grids))
    present = ~np.isnan(stacked)
    ranked, answered = present.any(axis=0), present.any(axis=1)
    names = grids[0].candidates
    if not ranked.any():
        raise RocketEvalError(
            f"none of {len(names)} candidates has a score on any query",
            hint="All answers are missing or not applicable: `rocketeval doctor` tests the judge.",
        )
    scores = stacked[np.ix_(answered, ranked)]
    asked, numbers = np.unique(queries[answered], return_inverse=True)
    places = np.unique(clusters[answered], return_inverse=True)[1]
    candidates = [names[column] for column in np.flatnonzero(ranked)]
    unranked = tuple(names[column] for column in np.flatnonzero(~ranked))
    with one_blas_thread():
        standing = compute_standings(
            scores,
            numbers,
            places,
            candidates,
            tie_margin=tie_margin,
            times=bootstrap,
            seed=seed,
            anchor=find_anchor(anchor, candidates, unranked),
            anchor_rating=anchor_rating,
        )
        flips = _affordable_flips(len(candidates))
        test = partial(pairwise_tests, scores, level=level, seed=seed, clusters=places, flips=flips)
        if race is not None:
            test = partial(race_tests, scores, places, candidates, race, level)
        found = test()
        # Rounded as in the file, so that everything that follows from the tests agrees with it.
        tests = replace(found, p_values=found.p_values.round(DIGITS))
        bounds = (tests if rank_intervals != "pairwise" else test(adjusted=False)).rank_bounds()
    order = sorted(range(len(candidates)), key=lambda c: (-standing.ratings[c], candidates[c]))
    ordered = [candidates[column] for column in order]
    rows = _rows(candidates, order, standing, tests, bounds, len(grids[0].query_ids), level)
    return Ranking(
        rows=rows if race is None else tuple(_accounted(row, race, level) for row in rows),
        unranked=unranked,
        tie_margin=tie_margin,
        bootstrap=bootstrap,
        seed=seed,
        level=level,
        queries=len(asked),
        islands=int(standing.islands.max()),
        anchor=anchor,
        anchor_rating=anchor_rating,
        wins=_wins(ordered, scores[:, order], tie_margin),
        rank_intervals=rank_intervals,
        pairs=sum(n * (n - 1) // 2 for n in np.bincount(standing.islands).tolist()),
        significant_pairs=int(tests.better().sum()),
        tests=_tests(ordered, tests.p_values[np.ix_(order, order)]),
        stopped=() if race is None else (*race_in_words(race), looks_note(race)),
    )


def _accounted(row: RankedCandidate, race: RaceResult, level: float) -> RankedCandidate:
    """Return a row whose intervals account for the looks of a race."""
    name, rating, mean = row.candidate, row.rating, row.mean_score
    if rating.low < rating.high:
        rating = widen_interval(rating, race, level, name)
    if race.level == level:
        found = next(one.mean for one in race.rows if one.candidate == name)
        mean = replace(found, value=mean.value)
    elif mean.low < mean.high:
        mean = widen_interval(mean, race, level, name)
    return replace(row, rating=rating, mean_score=mean)


def is_significant(p_value: float, level: float) -> bool:
    """Return whether a p-value is small enough at this level of confidence."""
    return p_value <= 1.0 - level + 1e-12


def _affordable_flips(candidates: int) -> int:
    """Return fewer sign flips for very many pairs: a p-value of 0.05 needs 199."""
    pairs = max(1, candidates * (candidates - 1) // 2)
    return max(FEWEST_FLIPS, min(PAIR_FLIPS, MOST_STATISTICS // pairs))


def _tests(names: Sequence[str], p_values: Floats) -> PairTests | None:
    if len(names) > MATRIX_CANDIDATES:
        return None
    others = np.where(np.eye(len(names), dtype=bool), np.nan, p_values)
    return PairTests(tuple(names), _known_rows(others))


def _rows(
    names: Sequence[str],
    order: Sequence[int],
    standing: Standings,
    tests: PairwiseTests,
    bounds: tuple[Ints, Ints],
    queries: int,
    level: float,
) -> tuple[RankedCandidate, ...]:
    ranks = 1 + wins_and_losses(standing.ratings[None, :], 0.0)[1][0]
    lows, highs = bounds
    ratings, means = standing.rating_intervals(level), standing.mean_intervals(level)
    better, outscored, islands = tests.better(), tests.outscored(order), standing.islands
    groups: dict[int, int] = {}
    for island in dict.fromkeys(islands[order].tolist()):
        own = tests.tied_groups([column for column in order if islands[column] == island])
        before = max(groups.values(), default=0)
        groups |= {column: before + group for column, group in own.items()}
    nexts = {one: two for one, two in pairwise(order) if islands[one] == islands[two]}
    return tuple(
        RankedCandidate(
            candidate=names[column],
            rank=int(ranks[column]),
            rank_low=min(int(lows[column]), int(ranks[column])),
            rank_high=max(int(highs[column]), int(ranks[column])),
            rating=ratings[column],
            mean_score=means[column],
            queries=int(standing.queries[column]),
            missing=queries - int(standing.queries[column]),
            group=groups[column],
            island=int(islands[column]),
            beats_next=bool(better[column, nexts[column]]) if column in nexts else None,
            outscored_by=tuple(names[other] for other in outscored[column]),
        )
        for column in order
    )


def _wins(names: Sequence[str], scores: Floats, tie_margin: float) -> WinMatrix | None:
    shares = win_matrix(scores, tie_margin)
    return None if shares is None else WinMatrix(tuple(names), _known_rows(shares.round(DIGITS)))


def _known_rows(figures: Floats) -> tuple[tuple[float | None, ...], ...]:
    """Return the rows of a matrix, with None for NaN."""
    return tuple(tuple(None if x != x else x for x in row) for row in figures.tolist())

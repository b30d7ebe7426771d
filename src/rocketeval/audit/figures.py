"""Agreement of scores with votes, human-human agreement, and trivial baselines.

Votes are looked up once and compared with the scores of many methods on the same resamples.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats
from rocketeval.grid import ScoreGrid, compare, vote_outcomes
from rocketeval.records import Interval, Vote
from rocketeval.stats.agreement import best_prediction
from rocketeval.stats.bootstrap import interval, interval_without_spread, ratio_draws


@dataclass(frozen=True, slots=True)
class Agreement:
    """How often scores agree with votes."""

    with_ties: Interval | None
    """Share of votes whose outcome (a, b or tie by the margin) the scores predict; None without
    votes. Guessing gives a third."""
    without_ties: Interval | None
    """Share of decided votes won by the higher score, without a margin; None if there are none.
    Equal scores count half, so guessing gives a half."""
    votes: int
    """All votes, usable or not."""
    used: int
    """Votes for which both responses have a score."""
    decisive: int
    """Used votes that are not ties."""
    unusable: int
    """Votes with an unknown query or candidate, or a missing score."""


@dataclass(frozen=True, slots=True)
class VoterAgreement:
    """How often two voters agree on the same two responses."""

    with_ties: Interval
    """Share of other voters with the same outcome, the mean over votes."""
    without_ties: Interval | None
    """The same for decided votes; a tie of the other voter counts half. None if there are none."""
    pairs: int
    """Votes on pairs of responses that another person voted on too."""
    decisive_pairs: int
    """Those of them that are decided."""
    best_with_ties: Interval | None = None
    """The upper bound: the expected agreement of the best possible prediction, the outcome that
    most people would choose. Absent in audits of earlier versions."""
    best_without_ties: Interval | None = None
    """The same for decided votes."""


@dataclass(frozen=True, slots=True)
class MeasuredFigure:
    """A figure, or the difference of two on the same reference data, with its sample size."""

    value: Interval
    """A difference above zero means that the first is better."""
    queries: int
    gold: int
    """Votes or labeled responses."""
    spread: float
    """Standard deviation of the contributions of queries; NaN below two queries."""


@dataclass(frozen=True, slots=True)
class MeasuredVotes:
    """A share of votes, or the difference of two shares."""

    with_ties: MeasuredFigure | None
    without_ties: MeasuredFigure | None
    """The same for decided votes."""


def as_agreement(found: MeasuredVotes, votes: int) -> Agreement:
    """Convert to an `Agreement`; `votes` includes unusable votes."""
    whole, decided = found.with_ties, found.without_ties
    used = whole.gold if whole else 0
    return Agreement(
        with_ties=whole.value if whole else None,
        without_ties=decided.value if decided else None,
        votes=votes,
        used=used,
        decisive=decided.gold if decided else 0,
        unusable=votes - used,
    )


Places = NDArray[np.intp]
Ends = tuple[float, float]
SHARE: Ends = (0.0, 1.0)
ROUNDING = 1e-9
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True, slots=True, eq=False)
class PairedVotes:
    """Votes with their cells in a grid, for comparison with any scores of that layout."""

    votes: Sequence[Vote]
    """Votes whose query and candidates are in the grid."""
    queries: Places
    """Query number of each vote, from 0 in order of appearance."""
    rows: Places
    """Grid row of each vote."""
    first: Places
    """Grid column of response a."""
    second: Places
    """Grid column of response b."""
    voted: NDArray[np.int8]
    """1 for a, -1 for b, 0 for a tie."""
    given: int
    """All votes, including those with unknown names."""


@dataclass(frozen=True, slots=True, eq=False)
class VoteHits:
    """For each vote, whether the scores agree (1 or 0); NaN without scores."""

    with_ties: Floats
    without_ties: Floats
    """Also NaN for ties."""
    ends: tuple[Ends, Ends] = (SHARE, SHARE)
    """The smallest and the largest possible value, with ties and without; equal if known before any
    vote."""

    def __sub__(self, other: VoteHits) -> VoteHits:
        """Return the difference in hits per vote."""
        whole, decided = (
            (ours[0] - theirs[1], ours[1] - theirs[0])
            for ours, theirs in zip(self.ends, other.ends, strict=True)
        )
        return VoteHits(
            self.with_ties - other.with_ties,
            self.without_ties - other.without_ties,
            (whole, decided),
        )

    def where(self, chosen: NDArray[np.bool_]) -> VoteHits:
        """Return the hits of the chosen votes, with NaN for the others."""
        whole, decided = (
            np.where(chosen, side, np.nan) for side in (self.with_ties, self.without_ties)
        )
        return VoteHits(whole, decided, self.ends)


def find_voted(grid: ScoreGrid, votes: Sequence[Vote]) -> tuple[list[Vote], Places, Places, Places]:
    """Return votes known to the grid, with their row and the columns of a and b."""
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    known = [
        vote
        for vote in votes
        if vote.query_id in rows and vote.candidate_a in columns and vote.candidate_b in columns
    ]
    return (
        known,
        np.array([rows[vote.query_id] for vote in known], dtype=np.intp),
        np.array([columns[vote.candidate_a] for vote in known], dtype=np.intp),
        np.array([columns[vote.candidate_b] for vote in known], dtype=np.intp),
    )


def find_paired_votes(grid: ScoreGrid, votes: Sequence[Vote]) -> PairedVotes:
    """Return the votes known to the grid, as columns."""
    known, rows, first, second = find_voted(grid, votes)
    _, seen, places = np.unique(grid.places()[rows], return_index=True, return_inverse=True)
    queries = np.argsort(np.argsort(seen))[places]
    return PairedVotes(known, queries, rows, first, second, vote_outcomes(known), len(votes))


def hits(paired: PairedVotes, scores: Floats, tie_margin: float) -> VoteHits:
    """Return which votes the scores predict, with ties by the margin."""
    first = scores[paired.rows, paired.first]
    second = scores[paired.rows, paired.second]
    outcomes, signs = compare(first, second, tie_margin), compare(first, second, 0.0)
    return outcome_hits(paired, outcomes, signs, ~np.isnan(first - second))


def outcome_hits(
    paired: PairedVotes, outcomes: NDArray[np.int8], signs: NDArray[np.int8], known: Bools
) -> VoteHits:
    """Return which votes have these outcomes (1: a, 0: tie, -1: b); NaN for unknown outcomes.

    `signs` are the outcomes without a tie margin.
    """
    by_sign = 0.5 + 0.5 * signs * paired.voted
    return VoteHits(
        with_ties=np.where(known, outcomes == paired.voted, np.nan),
        without_ties=np.where(known & (paired.voted != 0), by_sign, np.nan),
    )


def measure_votes(
    paired: PairedVotes,
    named: Mapping[Key, VoteHits],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> dict[Key, MeasuredVotes]:
    """Return the share of hits for each set, all on the same query resamples.

    If every vote agrees, resamples do not vary, and neither if two sets differ by the same on every
    query. Then the interval is exact. Sets with identical hits differ by zero, without an interval.
    """
    columns = [side for own in named.values() for side in (own.with_ties, own.without_ties)]
    if not len(paired.queries) or not columns:
        return {key: MeasuredVotes(None, None) for key in named}
    stacked = np.stack(columns, axis=1)
    there = ~np.isnan(stacked)
    sizes, totals = (
        np.stack([np.bincount(paired.queries, weights=side) for side in sides.T], 1).astype(float)
        for sides in (there, np.where(there, stacked, 0.0))
    )
    draws = ratio_draws(totals, sizes, times=bootstrap, seed=seed)
    ends = [pair for own in named.values() for pair in own.ends]
    found = [
        _measured(*column, level=level)
        for column in zip(totals.T, sizes.T, draws.T, ends, strict=True)
    ]
    pairs = zip(named, found[::2], found[1::2], strict=True)
    return {key: MeasuredVotes(whole, decided) for key, whole, decided in pairs}


def _measured(
    totals: Floats, sizes: Floats, draws: Floats, ends: Ends, *, level: float
) -> MeasuredFigure | None:
    met = sizes > 0
    queries, votes = int(met.sum()), float(sizes.sum())
    if not queries:
        return None
    value = float(totals.sum()) / votes
    # A query contributes to the ratio its hits minus the expected hits of its votes.
    adds = (totals - value * sizes)[met] * queries / votes
    figure = interval(value, draws, queries=queries, level=level)
    if not math.isnan(figure.low) and np.abs(adds).max() <= ROUNDING and _by_chance(value, ends):
        figure = interval_without_spread(value, queries, level, ends)
    return MeasuredFigure(
        value=figure,
        queries=queries,
        gold=int(votes),
        spread=float(adds.std(ddof=1)) if queries > 1 else math.nan,
    )


def _by_chance(value: float, ends: Ends) -> bool:
    """Return whether more votes could change a figure that is the same on all queries.

    A share between 0 and 1 on all queries is half a hit by rule, such as for equal scores, and a
    difference of zero on all queries compares a set with itself.
    """
    is_difference = ends[0] < 0.0
    return abs(value) > ROUNDING if is_difference else value in SHARE


LENGTH_TIE_MARGIN = 0.0
"""Lengths are not on the score scale, so only equal lengths tie."""
LABEL_TIE_MARGIN = 0.1
"""Labels closer than this, on a scale from 1 to 10, are a tie."""

LONGER, TIE, GUESS = "longer response", "always a tie", "random guess"
BASELINES = (LONGER, TIE, GUESS)
"""Trivial baselines that ignore the response text."""
LABELER = "labeler"
"""Labels used as scores."""


def length_grid(grid: ScoreGrid, lengths: Mapping[tuple[str, str], float]) -> ScoreGrid:
    """Return the grid scored by response length; `lengths` is keyed by (query id, candidate).

    Use with `LENGTH_TIE_MARGIN`. A cell without a length is NaN.
    """
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    scores = np.full(grid.scores.shape, np.nan)
    for (query, candidate), length in lengths.items():
        if query in rows and candidate in columns:
            scores[rows[query], columns[candidate]] = length
    same_cells = np.where(np.isnan(grid.scores), np.nan, scores)
    return grid.with_scores(same_cells)


def always_tie_grid(grid: ScoreGrid) -> ScoreGrid:
    """Return the grid with one constant score, which predicts a tie for every vote."""
    constant = np.where(np.isnan(grid.scores), np.nan, 0.0)
    return grid.with_scores(constant)


def random_agreement(votes: Sequence[Vote], given: int | None = None) -> Agreement:
    """Return the expected agreement of a fair three-way guess: a third with ties, a half without.

    Its intervals have no width. `votes` are the usable ones of the `given` number.
    """
    given = len(votes) if given is None else given
    decisive = sum(vote.winner != "tie" for vote in votes)
    third, half = 1.0 / 3.0, 0.5
    return Agreement(
        with_ties=Interval(third, third, third) if votes else None,
        without_ties=Interval(half, half, half) if decisive else None,
        votes=given,
        used=len(votes),
        decisive=decisive,
        unusable=given - len(votes),
    )


def guess_hits(paired: PairedVotes) -> VoteHits:
    """Return the expected hits of a fair three-way guess."""
    decided, third, half = paired.voted != 0, 1.0 / 3.0, 0.5
    return VoteHits(
        np.full(len(decided), third),
        np.where(decided, half, np.nan),
        ((third, third), (half, half)),
    )


def baseline_hits(
    paired: PairedVotes, grid: ScoreGrid, longer: ScoreGrid, tie_margin: float
) -> dict[str, VoteHits]:
    """Return the hits of each baseline; `longer` is a `length_grid`."""
    tie = hits(paired, always_tie_grid(grid).scores, tie_margin)
    return {
        LONGER: hits(paired, longer.scores, LENGTH_TIE_MARGIN),
        TIE: replace(tie, ends=(SHARE, (0.5, 0.5))),
        GUESS: guess_hits(paired),
    }


def on_scale(margin: float, scale: tuple[float, float]) -> float:
    """Convert a margin for a scale from 1 to 10 to another scale.

    >>> on_scale(0.9, (0.0, 1.0))
    0.1
    """
    low, high = scale
    return margin * (high - low) / 9.0


def agreement_with_votes(
    grid: ScoreGrid,
    votes: Sequence[Vote],
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Return how often the grid's scores agree with the votes.

    Queries of one cluster of the grid are resampled together.

    >>> grid = ScoreGrid.from_columns(["q", "q"], ["x", "y"], [7.0, 5.0])
    >>> agreement = agreement_with_votes(grid, [Vote("q", "x", "y", "a"), Vote("q", "x", "z", "b")])
    >>> agreement.with_ties.value, agreement.used, agreement.unusable
    (1.0, 1, 1)
    """
    paired = find_paired_votes(grid, votes)
    own = {"": hits(paired, grid.scores, tie_margin)}
    found = measure_votes(paired, own, bootstrap=bootstrap, seed=seed, level=level)
    return as_agreement(found[""], paired.given)


def human_hits(paired: PairedVotes) -> VoteHits:
    """Return, for each vote, the share of other voters who agree with it; NaN without others.

    This is the rule that scores the judge: each vote counts once, and among decided votes a tie of
    the other voter counts half, as an equal score of the judge does.
    """
    pairs, voted = _unordered(paired)
    voters: dict[tuple[int, str], int] = {}
    own = np.array(
        [
            voters.setdefault((pair, vote.voter), len(voters))
            for pair, vote in zip(pairs.tolist(), paired.votes, strict=True)
        ],
        dtype=np.intp,
    )
    with_ties, decided = np.full(len(voted), np.nan), np.full(len(voted), np.nan)
    others = _outcomes_of(pairs, voted)[pairs] - _outcomes_of(own, voted)[own]
    met = others.sum(axis=1)
    known = met > 0
    same = np.take_along_axis(others, voted[:, None].astype(np.intp) + 1, axis=1)[:, 0]
    np.divide(same, met, out=with_ties, where=known)
    np.divide(same + others[:, 1] / 2.0, met, out=decided, where=known & (voted != 0))
    return VoteHits(with_ties, decided)


def best_hits(paired: PairedVotes, seed: int = 0) -> VoteHits:
    """Return, for each vote with another on its pair, the best share any prediction could expect.

    The most frequent outcome of a pair, had everybody voted on it; see `best_prediction`.
    """
    pairs, voted = _unordered(paired)
    counts = _outcomes_of(pairs, voted)
    several, decided = counts.sum(axis=1) > 1, counts[:, [0, 2]].sum(axis=1) > 1
    whole, sides = np.full(len(counts), np.nan), np.full(len(counts), np.nan)
    if several.any():
        whole[several] = best_prediction(counts[several], seed)
    if decided.any():
        sides[decided] = best_prediction(counts[decided][:, [0, 2]], seed)
    return VoteHits(whole[pairs], np.where(voted != 0, sides[pairs], np.nan))


def _unordered(paired: PairedVotes) -> tuple[Places, NDArray[np.int8]]:
    """Return the number of each vote's pair, and its outcome for the pair's earlier column."""
    low, high = (end(paired.first, paired.second) for end in (np.minimum, np.maximum))
    _, pairs = np.unique(np.stack([paired.rows, low, high]), axis=1, return_inverse=True)
    voted = np.where(paired.first < paired.second, paired.voted, -paired.voted)
    return pairs.reshape(-1).astype(np.intp), voted.astype(np.int8)


def _outcomes_of(groups: Places, voted: NDArray[np.int8]) -> Floats:
    """Return how many votes of each group lost, tied and won."""
    counts = [np.bincount(groups, weights=voted == outcome) for outcome in (-1, 0, 1)]
    return np.stack(counts, axis=1).astype(np.float64)


def human_agreement(
    votes: Sequence[Vote],
    *,
    clusters: Mapping[str, str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> VoterAgreement | None:
    """Return how often people agree with each other, by the judge's rule; None if unknown.

    `clusters` names the cluster of each query that is not independent of others. The order in which
    the responses were shown is ignored.
    """
    names = sorted({name for vote in votes for name in (vote.candidate_a, vote.candidate_b)})
    query_ids = tuple(dict.fromkeys(vote.query_id for vote in votes))
    own = None if clusters is None else tuple(clusters.get(query, query) for query in query_ids)
    grid = ScoreGrid(query_ids, tuple(names), np.zeros((len(query_ids), len(names))), own)
    paired = find_paired_votes(grid, votes)
    people, best = human_hits(paired), best_hits(paired, seed)
    settings = {"bootstrap": bootstrap, "seed": seed}
    found = measure_votes(paired, {"people": people, "best": best}, level=level, **settings)
    whole, decided = found["people"].with_ties, found["people"].without_ties
    if whole is None:
        return None
    upper = found["best"]
    return VoterAgreement(
        with_ties=whole.value,
        without_ties=decided.value if decided else None,
        pairs=whole.gold,
        decisive_pairs=decided.gold if decided else 0,
        best_with_ties=upper.with_ties.value if upper.with_ties else None,
        best_without_ties=upper.without_ties.value if upper.without_ties else None,
    )


def scored_votes(grid: ScoreGrid, votes: Sequence[Vote]) -> tuple[list[Vote], Floats, Floats]:
    """Return the votes whose responses both have a score, with the scores of a and b."""
    known, row, a, b = find_voted(grid, votes)
    first, second = grid.scores[row, a], grid.scores[row, b]
    scored = ~(np.isnan(first) | np.isnan(second))
    usable = [vote for vote, keep in zip(known, scored.tolist(), strict=True) if keep]
    return usable, first[scored], second[scored]

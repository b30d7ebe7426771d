"""Agreement with votes: of pairwise verdicts, of a majority of judges, by category, by tie margin.

Also holds the score variants of an audit (judge, simpler scores, labels, baselines) and grids cut
to the responses they share.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Bools, Floats
from rocketeval.audit.figures import (
    LABEL_TIE_MARGIN,
    LABELER,
    Agreement,
    MeasuredVotes,
    PairedVotes,
    VoteHits,
    VoterAgreement,
    as_agreement,
    baseline_hits,
    find_paired_votes,
    hits,
    human_agreement,
    measure_votes,
    on_scale,
    outcome_hits,
)
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid, compare
from rocketeval.records import Interval, Vote
from rocketeval.stats.bootstrap import Resampling, query_places, renumbered


def verdict_agreement(
    verdicts: Iterable[Vote],
    votes: Iterable[Vote],
    *,
    clusters: Mapping[str, str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> VoterAgreement | None:
    """Return how often verdicts agree with votes on the same two responses; None without pairs.

    Every vote counts once per verdict on the same pair. Among decided votes, a verdict of a tie
    counts half, as an equal score of a judge does. The order in which the responses were shown is
    ignored. `clusters` names the cluster of each query that is not independent of others.
    """
    given: dict[tuple[str, frozenset[str]], list[str | None]] = defaultdict(list)
    for verdict in verdicts:
        given[_pair(verdict)].append(_winner(verdict))
    met = [
        (vote.query_id, _winner(vote), winner)
        for vote in votes
        for winner in given.get(_pair(vote), ())
    ]
    resampling = Resampling(bootstrap, seed, level)
    named = clusters or {}
    places = query_places([named.get(query_id, query_id) for query_id, _, _ in met], len(met))
    same = np.array([one == other for _, one, other in met], dtype=np.float64)
    decisive = np.array([voted is not None for _, voted, _ in met], dtype=bool)
    half = 0.5 * np.array([verdict is None for _, _, verdict in met], dtype=np.float64)
    with_ties = resampling.share(same, places)
    if with_ties is None:
        return None
    return VoterAgreement(
        with_ties=with_ties,
        without_ties=resampling.share((same + half)[decisive], renumbered(places[decisive])),
        pairs=len(met),
        decisive_pairs=int(decisive.sum()),
    )


def _pair(vote: Vote) -> tuple[str, frozenset[str]]:
    return vote.query_id, frozenset((vote.candidate_a, vote.candidate_b))


def _winner(vote: Vote) -> str | None:
    return {"a": vote.candidate_a, "b": vote.candidate_b, "tie": None}[vote.winner]


def majority_agreement(
    grids: Sequence[ScoreGrid],
    votes: Sequence[Vote],
    *,
    tie_margin: float = 0.1,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> Agreement:
    """Return how often a majority of judges agrees with the votes.

    A judge without both scores is skipped; equal counts are a tie. The grids have the same queries,
    candidates and clusters.
    """
    paired = find_paired_votes(grids[0], votes)
    first, second = (
        np.stack([grid.scores[paired.rows, side] for grid in grids])
        for side in (paired.first, paired.second)
    )
    outcomes, signs = (_majority(first, second, margin) for margin in (tie_margin, 0.0))
    judged = np.asarray((~np.isnan(first - second)).any(axis=0), dtype=np.bool_)
    own = {"": outcome_hits(paired, outcomes, signs, judged)}
    found = measure_votes(paired, own, bootstrap=bootstrap, seed=seed, level=level)
    return as_agreement(found[""], paired.given)


def _majority(first: Floats, second: Floats, tie_margin: float) -> NDArray[np.int8]:
    """Return the side that most judges prefer, from one row per judge; ties do not count."""
    balance = compare(first, second, tie_margin).sum(axis=0, dtype=np.int64)
    outcome: NDArray[np.int8] = np.sign(balance).astype(np.int8)
    return outcome


FEWEST_VOTES = 20
"""Categories with fewer usable votes are pooled."""
OTHER = "other"
"""Pooled small categories, and queries without a category."""


@dataclass(frozen=True, slots=True)
class CategoryAgreement:
    """Agreement with votes, and human-human agreement, in one category."""

    category: str
    agreement: Agreement
    voters: VoterAgreement | None
    """Human-human agreement in this category."""
    pooled: tuple[str, ...]
    """The categories in `other`, sorted; otherwise empty."""


@dataclass(frozen=True, slots=True, eq=False)
class VotesByCategory:
    """Votes split by category, with small categories pooled."""

    votes: Mapping[str, Sequence[Vote]]
    """By category: sorted, `other` last."""
    chosen: Mapping[str, Bools]
    """By category, a mask of the paired votes."""
    pooled: tuple[str, ...]
    """The categories in `other`."""


def split_votes(
    votes: Sequence[Vote], paired: PairedVotes, judged: VoteHits, categories: Mapping[str, str]
) -> VotesByCategory:
    """Split votes by category of their query and pool small categories.

    `categories` are by query id. The result is empty if all voted queries have the same category
    or none.
    """
    named = [categories.get(vote.query_id, OTHER) for vote in votes]
    if len(set(named)) < 2:
        return VotesByCategory({}, {}, ())
    own = np.array([categories.get(vote.query_id, OTHER) for vote in paired.votes], dtype=object)
    usable = Counter(own[~np.isnan(judged.with_ties)].tolist())
    small = {name for name in named if usable[name] < FEWEST_VOTES}
    parts: dict[str, list[Vote]] = {}
    for name, vote in zip(named, votes, strict=True):
        parts.setdefault(OTHER if name in small else name, []).append(vote)
    ordered = sorted(parts, key=lambda name: (name == OTHER, name))
    return VotesByCategory(
        votes={name: parts[name] for name in ordered},
        chosen={
            name: np.isin(own, [*small, OTHER]) if name == OTHER else own == name
            for name in ordered
        },
        pooled=tuple(sorted(small - {OTHER})),
    )


def by_category(
    split: VotesByCategory,
    measured: Mapping[str, MeasuredVotes],
    *,
    clusters: Mapping[str, str] | None = None,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[CategoryAgreement, ...]:
    """Return the agreement and human-human agreement in each category."""
    return tuple(
        CategoryAgreement(
            category=name,
            agreement=as_agreement(measured[name], len(votes)),
            voters=human_agreement(
                votes, clusters=clusters, bootstrap=bootstrap, seed=seed, level=level
            ),
            pooled=split.pooled if name == OTHER else (),
        )
        for name, votes in split.votes.items()
    )


MARGINS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Tie margins to try besides the run's own, on a scale from 1 to 10."""


@dataclass(frozen=True, slots=True)
class MarginAgreement:
    """Agreement with votes at one tie margin."""

    margin: float
    with_ties: Interval | None
    ties: float | None
    """Share of the voted pairs that are a tie at this margin; None without usable votes."""

    def mark(self, used: float) -> str:
        """Return `used` if this is the run's margin, else an empty string."""
        return "used" if self.margin == used else ""


def tried_margins(used: float, scale: tuple[float, float]) -> list[float]:
    """Return the run's margin and the others to try, on the score scale."""
    return sorted({used, *(round(on_scale(margin, scale), 6) for margin in MARGINS)})


def share_of_ties(grid: ScoreGrid, paired: PairedVotes, margin: float) -> float | None:
    """Return the share of voted pairs that are a tie at this margin."""
    first = grid.scores[paired.rows, paired.first]
    second = grid.scores[paired.rows, paired.second]
    scored = ~np.isnan(first - second)
    if not scored.any():
        return None
    return float((compare(first, second, margin)[scored] == 0).mean())


JUDGE = "judge"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreVariants:
    """Several scorings of the same responses, with the same layout."""

    judged: Mapping[str, ScoreGrid]
    """The run's scores first, then those of simpler scorers."""
    lengths: ScoreGrid
    labels: Floats | None
    """Labels of scored responses, in the layout of the grids; None without labels."""
    scale: tuple[float, float]

    def hits(self, paired: PairedVotes, tie_margin: float) -> dict[str, VoteHits]:
        """Return the hits of each method and baseline."""
        found = {name: hits(paired, own.scores, tie_margin) for name, own in self.judged.items()}
        if self.labels is not None:
            labeled = hits(paired, self.labels, on_scale(LABEL_TIE_MARGIN, self.scale))
            if not np.isnan(labeled.with_ties).all():
                found[LABELER] = labeled
        return found | baseline_hits(paired, self.judged[JUDGE], self.lengths, tie_margin)


def merged_labels(grid: ScoreGrid, parts: Sequence[Floats]) -> Floats:
    """Merge disjoint label tables, keeping only cells with a score."""
    merged = np.full(grid.scores.shape, np.nan)
    for cells in parts:
        merged = np.where(np.isnan(cells), merged, cells)
    return np.where(np.isnan(grid.scores), np.nan, merged)


def common_responses(grids: Mapping[str, ScoreGrid]) -> tuple[dict[str, ScoreGrid], int]:
    """Cut the grids to the cells that all of them score; also return the number of lost cells."""
    first = next(iter(grids.values()))
    laid_out = [laid_out_like(first, grid) for grid in grids.values()]
    scored = np.isfinite(np.stack(laid_out))
    everywhere, anywhere = scored.all(axis=0), scored.any(axis=0)
    cut = {
        name: first.with_scores(np.where(everywhere, scores, np.nan))
        for name, scores in zip(grids, laid_out, strict=True)
    }
    return cut, int(anywhere.sum() - everywhere.sum())


def mean_scores(grid: ScoreGrid) -> dict[str, float]:
    """Return the mean score of each scored candidate."""
    means = grid.mean_by_candidate()
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}


def gain_over(
    grid: ScoreGrid,
    other: ScoreGrid,
    votes: Sequence[Vote],
    config: RankingConfig,
    margin: float | None = None,
) -> Interval | None:
    """Return the agreement of `grid` with votes minus that of `other`; None without votes.

    Only votes that both can predict count. `margin` is the tie margin of `grid`, if different.
    """
    own_margin = config.tie_margin if margin is None else margin
    paired = find_paired_votes(grid, votes)
    ours = hits(paired, grid.scores, own_margin)
    theirs = hits(paired, laid_out_like(grid, other), config.tie_margin)
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    found = measure_votes(paired, {"": ours - theirs}, **settings)[""].with_ties
    return None if found is None else found.value


def laid_out_like(first: ScoreGrid, grid: ScoreGrid) -> Floats:
    """Return the scores of `grid` in the layout of `first`."""
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    scores = np.full(first.scores.shape, np.nan)
    here = [(place, rows[query]) for place, query in enumerate(first.query_ids) if query in rows]
    there = [
        (place, columns[candidate])
        for place, candidate in enumerate(first.candidates)
        if candidate in columns
    ]
    if here and there:
        to_row, from_row = map(list, zip(*here, strict=True))
        to_column, from_column = map(list, zip(*there, strict=True))
        scores[np.ix_(to_row, to_column)] = grid.scores[np.ix_(from_row, from_column)]
    return scores

"""Agreement of pairwise verdicts, such as an LLM's that saw both responses, with votes.

Agreement of several judges' majority with votes.
Agreement with votes by category of query: where a judge can be trusted, and where less.
Agreement with votes by other tie margins than the run's own.
The same responses scored in several ways: the judge, simpler scores, labels, and rules.
Several grids cut to the responses that all of them score, so that they can be compared.
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
    agreement_of_outcomes,
    as_agreement,
    find_paired_votes,
    find_voted,
    hits,
    human_agreement,
    measure_votes,
    on_scale,
    rule_hits,
)
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid, compare
from rocketeval.records import Interval, Vote
from rocketeval.stats.bootstrap import Resampling, query_places, renumbered


def verdict_agreement(
    verdicts: Iterable[Vote],
    votes: Iterable[Vote],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> VoterAgreement | None:
    """How often a verdict is what a vote says of the same two responses; None if none ever meet.

    Every vote counts once for each verdict it meets, as in MT-Bench; without ties, only where
    neither is one. The order in which the responses were shown does not matter.
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
    places = query_places([query_id for query_id, _, _ in met], len(met))
    same = np.array([one == other for _, one, other in met], dtype=np.float64)
    decisive = np.array([None not in (one, other) for _, one, other in met], dtype=bool)
    with_ties = resampling.share(same, places)
    if with_ties is None:
        return None
    return VoterAgreement(
        with_ties=with_ties,
        without_ties=resampling.share(same[decisive], renumbered(places[decisive])),
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
    """How often the response that more judges score higher is the one the vote prefers.

    A judge without both scores abstains; as many for the one as for the other is a tie. The grids
    have the same queries and candidates.
    """
    known, row, a, b = find_voted(grids[0], votes)
    first, second = (np.stack([grid.scores[row, side] for grid in grids]) for side in (a, b))
    judged = (~np.isnan(first - second)).any(axis=0)
    return agreement_of_outcomes(
        [known[place] for place in np.flatnonzero(judged).tolist()],
        _majority(first, second, tie_margin)[judged],
        _majority(first, second, 0.0)[judged],
        votes=len(votes),
        bootstrap=bootstrap,
        seed=seed,
        level=level,
    )


def _majority(first: Floats, second: Floats, tie_margin: float) -> NDArray[np.int8]:
    """Of comparisons with one row a judge, the side that more of them prefer; ties do not count."""
    balance = compare(first, second, tie_margin).sum(axis=0, dtype=np.int64)
    outcome: NDArray[np.int8] = np.sign(balance).astype(np.int8)
    return outcome


FEWEST_VOTES = 20
"""A category with fewer usable votes is pooled with others like it."""
OTHER = "other"
"""Categories too small to stand alone, and queries without one."""


@dataclass(frozen=True, slots=True)
class CategoryAgreement:
    """How often scores, and other voters, say what votes on queries of one category say."""

    category: str
    agreement: Agreement
    voters: VoterAgreement | None
    """How often two voters agree there: the ceiling."""
    pooled: tuple[str, ...]
    """Of `other`, the categories in it, sorted; otherwise empty."""


@dataclass(frozen=True, slots=True, eq=False)
class VotesByCategory:
    """Votes in parts large enough to look at."""

    votes: Mapping[str, Sequence[Vote]]
    """By category: sorted, `other` last."""
    chosen: Mapping[str, Bools]
    """By category, which of the ballots are its votes."""
    pooled: tuple[str, ...]
    """The categories in `other`."""


def split_votes(
    votes: Sequence[Vote], ballots: PairedVotes, judged: VoteHits, categories: Mapping[str, str]
) -> VotesByCategory:
    """Return the votes by category of their query, those with few usable ones pooled.

    `categories` are by query id. There are no parts when no voted query has a category, or all
    have the same.
    """
    named = [categories.get(vote.query_id, OTHER) for vote in votes]
    if len(set(named)) < 2:
        return VotesByCategory({}, {}, ())
    own = np.array([categories.get(vote.query_id, OTHER) for vote in ballots.votes], dtype=object)
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
    bootstrap: int = 1000,
    seed: int = 0,
    level: float = 0.95,
) -> tuple[CategoryAgreement, ...]:
    """Return what was measured in each category, beside how far its voters agree."""
    return tuple(
        CategoryAgreement(
            category=name,
            agreement=as_agreement(measured[name], len(votes)),
            voters=human_agreement(votes, bootstrap=bootstrap, seed=seed, level=level),
            pooled=split.pooled if name == OTHER else (),
        )
        for name, votes in split.votes.items()
    )


MARGINS = (0.0, 0.05, 0.1, 0.2, 0.5, 1.0)
"""Tie margins that are tried beside the run's own, on a scale from 1 to 10."""


@dataclass(frozen=True, slots=True)
class MarginAgreement:
    """Agreement with votes by one tie margin."""

    margin: float
    with_ties: Interval | None
    ties: float | None
    """Share of the votes' comparisons that it makes a tie; None without usable votes."""

    def mark(self, used: float) -> str:
        """Return `used` for the margin that the run uses."""
        return "used" if self.margin == used else ""


def tried_margins(used: float, scale: tuple[float, float]) -> list[float]:
    """The run's own margin and those tried beside it, on the scale of the scores."""
    return sorted({used, *(round(on_scale(margin, scale), 6) for margin in MARGINS)})


def share_of_ties(grid: ScoreGrid, ballots: PairedVotes, margin: float) -> float | None:
    """The share of the votes' comparisons that the margin makes a tie."""
    first = grid.scores[ballots.rows, ballots.first]
    second = grid.scores[ballots.rows, ballots.second]
    scored = ~np.isnan(first - second)
    if not scored.any():
        return None
    return float((compare(first, second, margin)[scored] == 0).mean())


JUDGE = "judge"


@dataclass(frozen=True, slots=True, eq=False)
class ScoreVariants:
    """The same responses scored in several ways, laid out alike."""

    judged: Mapping[str, ScoreGrid]
    """The run's own scores first, then simpler ways to score the same answers."""
    lengths: ScoreGrid
    labels: Floats | None
    """Laid out like the grids, where the run has a score; None without labels."""
    scale: tuple[float, float]

    def hits(self, ballots: PairedVotes, tie_margin: float) -> dict[str, VoteHits]:
        """What every method, the guess included, makes of the votes."""
        found = {name: hits(ballots, own.scores, tie_margin) for name, own in self.judged.items()}
        if self.labels is not None:
            labeled = hits(ballots, self.labels, on_scale(LABEL_TIE_MARGIN, self.scale))
            if not np.isnan(labeled.with_ties).all():
                found[LABELER] = labeled
        return found | rule_hits(ballots, self.judged[JUDGE], self.lengths, tie_margin)


def merged_labels(grid: ScoreGrid, parts: Sequence[Floats]) -> Floats:
    """The labels of all parts, no response being in two, where the grid has a score."""
    merged = np.full(grid.scores.shape, np.nan)
    for cells in parts:
        merged = np.where(np.isnan(cells), merged, cells)
    return np.where(np.isnan(grid.scores), np.nan, merged)


def common_responses(grids: Mapping[str, ScoreGrid]) -> tuple[dict[str, ScoreGrid], int]:
    """Return the grids cut to the cells that all of them score, and how many cells fell out."""
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
    """The mean score of every candidate that has any."""
    means = grid.mean_by_candidate()
    return {name: mean for name, mean in means.items() if np.isfinite(mean)}


def gain_over(
    grid: ScoreGrid,
    other: ScoreGrid,
    votes: Sequence[Vote],
    config: RankingConfig,
    margin: float | None = None,
) -> Interval | None:
    """How much more often `grid` than `other` says what the votes say; None without votes.

    On votes that both speak about. `margin` is that of `grid`, where its scale is another.
    """
    own_margin = config.tie_margin if margin is None else margin
    ballots = find_paired_votes(grid, votes)
    ours = hits(ballots, grid.scores, own_margin)
    theirs = hits(ballots, laid_out_like(grid, other), config.tie_margin)
    settings = {"bootstrap": config.bootstrap, "seed": config.seed}
    found = measure_votes(ballots, {"": ours - theirs}, **settings)[""].with_ties
    return None if found is None else found.value


def laid_out_like(first: ScoreGrid, grid: ScoreGrid) -> Floats:
    """The scores of `grid` in the rows and columns of `first`."""
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

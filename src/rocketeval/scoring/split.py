"""Split of reference data into training and test data: held-out candidates and group-aware folds.

Rows of one query, or of one candidate, stay together.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.arrays import Ints
from rocketeval.config import ScorerConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.records import Basis, Gold, Label, Vote
from rocketeval.scoring.learning import mean_by_candidate
from rocketeval.text import did_you_mean

INNER_FOLDS = 3
"""Folds for choices within training."""
FEWEST_CANDIDATES = 2
"""Minimum number of labeled candidates for training and testing."""


@dataclass(frozen=True, slots=True)
class GoldSplit:
    """The reference data of a run, split for training and testing."""

    learned: Gold
    """The training data."""
    fitted: tuple[str, ...]
    """Candidates in the training data, sorted."""
    held_out: tuple[str, ...]
    """Labeled candidates held out for testing, sorted."""


def split_gold(gold: Gold, candidates: Collection[str], config: ScorerConfig) -> GoldSplit:
    """Split the reference data of a run.

    Labels are held out by candidate. Votes are not held out: each query is scored by a fit without
    its votes (`crossfit`), so all votes can be used for testing.
    """
    _refuse_unknown(config.fit_on or (), candidates)
    if config.learn_from == "votes":
        votes = [vote for vote in gold.votes if _votes_within(vote, config.fit_on, candidates)]
        voted = {name for vote in votes for name in (vote.candidate_a, vote.candidate_b)}
        independent = {gold.cluster(vote.query_id) for vote in votes}
        _refuse_too_few(independent, "independent queries with votes", "votes", config)
        return GoldSplit(Gold(votes=votes, clusters=gold.clusters), tuple(sorted(voted)), ())
    labels = [label for label in gold.labels if label.candidate in candidates]
    means = mean_by_candidate(labels)
    fitted = _fitted(means, config)
    held_out = tuple(sorted(set(means) - fitted))
    own = [label for label in labels if label.candidate in fitted]
    learned = Gold(labels=own, clusters=gold.clusters)
    return GoldSplit(learned, tuple(sorted(fitted)), held_out)


def _fitted(means: dict[str, float], config: ScorerConfig) -> set[str]:
    if config.fit_on is not None:
        unlabelled = sorted(set(config.fit_on) - set(means))
        if unlabelled:
            raise ConfigError(
                f"scorer.fit_on has candidates without a label: {', '.join(unlabelled)}.",
                hint=did_you_mean(unlabelled[0], sorted(means))
                if means
                else "The run has no labels.",
            )
        fitted = set(config.fit_on)
    else:
        fitted = set(means) - _spread_choice(means, config.hold_out, config.seed)
    _refuse_too_few(fitted, "labeled candidates to learn from", "labels", config)
    return fitted


def _spread_choice(means: dict[str, float], share: float, seed: int) -> set[str]:
    """Draw a share of the candidates, stratified by mean label."""
    wanted = round(share * len(means))
    if share > 0.0 and len(means) > FEWEST_CANDIDATES:
        wanted = max(1, wanted)
    wanted = max(0, min(wanted, len(means) - FEWEST_CANDIDATES))
    ordered = sorted(means, key=lambda name: (means[name], name))
    random = np.random.default_rng(seed)
    stretches = np.array_split(np.arange(len(ordered)), max(wanted, 1))
    return {ordered[int(random.choice(stretch))] for stretch in stretches[:wanted]}


def _votes_within(vote: Vote, fit_on: Sequence[str] | None, candidates: Collection[str]) -> bool:
    allowed = candidates if fit_on is None else fit_on
    return vote.candidate_a in allowed and vote.candidate_b in allowed


def _refuse_unknown(fit_on: Iterable[str], candidates: Collection[str]) -> None:
    for name in fit_on:
        if name not in candidates:
            raise ConfigError(
                f"scorer.fit_on has {name!r}, which is not a candidate of this run.",
                hint=did_you_mean(name, sorted(candidates)),
            )


def _refuse_too_few(found: Collection[str], what: str, kind: str, config: ScorerConfig) -> None:
    if len(found) >= FEWEST_CANDIDATES:
        return
    raise ConfigError(
        f"The scorer {config.kind!r} learns from {kind}, but there are {len(found)} {what}; "
        f"{FEWEST_CANDIDATES} are needed.",
        hint=f"Add {kind} to the benchmark, or use the scorer `mean`, which needs none.",
    )


def candidate_folds(labels: Iterable[Label], folds: int, seed: int) -> dict[str, int]:
    """Return the fold of each labeled candidate, stratified by mean label.

    With fewer candidates than folds, there are as many folds as candidates.

    >>> candidate_folds([Label("q", name, value) for name, value in zip("abcd", range(4))], 2, 0)
    {'a': 0, 'b': 1, 'c': 0, 'd': 1}
    """
    means = mean_by_candidate(labels)
    ordered = sorted(means, key=lambda name: (means[name], name))
    return _deal(ordered, folds, np.random.default_rng(seed), "labeled candidates")


def query_folds(query_ids: Iterable[str], folds: int, seed: int) -> dict[str, int]:
    """Return a random fold for each query; with few queries, as many folds as queries.

    >>> query_folds(["q1", "q2", "q3", "q1"], 2, 0)
    {'q1': 0, 'q2': 0, 'q3': 1}
    """
    names = sorted(set(query_ids))
    random = np.random.default_rng(seed)
    shuffled = [names[place] for place in random.permutation(len(names))]
    dealt = _deal(shuffled, folds, random, "queries with reference data")
    return {name: dealt[name] for name in names}


def group_folds(query_ids: Sequence[str], folds: int, seed: int) -> Ints:
    """Return the fold of each row, which is that of its query.

    >>> group_folds(["q1", "q2", "q1", "q3"], 2, 0).tolist()
    [0, 0, 0, 1]
    """
    dealt = query_folds(query_ids, folds, seed)
    return np.array([dealt[query_id] for query_id in query_ids], dtype=np.int64)


def inner_folds(queries: Ints, seed: int) -> Ints:
    """Return the fold of each row for inner cross-validation, by query."""
    names, place = np.unique(queries, return_inverse=True)
    order = np.random.default_rng(seed).permutation(len(names))
    folds: Ints = (order % min(INNER_FOLDS, len(names)))[place]
    return folds


def _deal(
    names: Sequence[str], folds: int, random: np.random.Generator, what: str
) -> dict[str, int]:
    """Assign names in order to folds whose sizes differ by at most one."""
    if folds < 2:
        raise ConfigError(f"Cannot cross-validate with {folds} folds.", hint="Use at least 2.")
    if len(names) < 2:
        raise BenchmarkError(
            f"Cross-validation needs at least 2 {what}; there are {len(names)}.",
            hint="Add labels or votes, or use the scorer `mean`, which needs none.",
        )
    hand = min(folds, len(names))
    dealt = [fold for _ in range(0, len(names), hand) for fold in random.permutation(hand).tolist()]
    return dict(zip(names, dealt, strict=False))


Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class RefusedGold:
    """Counts of reference data left out because the scorer was fitted on it."""

    labels: int = 0
    votes: int = 0

    @property
    def counts(self) -> tuple[tuple[int, str], ...]:
        """Return the nonzero counts, with their kind."""
        both = ((self.labels, "labels"), (self.votes, "votes"))
        return tuple((count, kind) for count, kind in both if count)


def honest_gold(gold: Gold, basis: Mapping[Cell, Basis]) -> tuple[Gold, RefusedGold]:
    """Return the reference data that can test the scores, and counts of the rest.

    >>> gold = Gold(labels=[Label("q", "old", 7.0), Label("q", "new", 5.0)])
    >>> honest, refused = honest_gold(gold, {("q", "old"): Basis.FITTED})
    >>> [label.candidate for label in honest.labels], refused.labels
    (['new'], 1)
    """

    def fitted(query_id: str, candidate: str) -> bool:
        return basis.get((query_id, candidate)) is Basis.FITTED

    labels = [label for label in gold.labels if not fitted(label.query_id, label.candidate)]
    votes = [
        vote
        for vote in gold.votes
        if not (fitted(vote.query_id, vote.candidate_a) or fitted(vote.query_id, vote.candidate_b))
    ]
    refused = RefusedGold(len(gold.labels) - len(labels), len(gold.votes) - len(votes))
    return Gold(labels, votes, gold.ratings, gold.clusters), refused


def labels_by_basis(labels: Sequence[Label], basis: Mapping[Cell, Basis]) -> dict[str, list[Label]]:
    """Group the labels by the basis of the scores they test, under display names.

    Held-out labels test the scorer on unseen candidates, out-of-fold labels on training candidates.
    Labels of responses that are not in the run are counted in the first group.
    """
    parts: dict[str, list[Label]] = {}
    unknown = []
    for label in labels:
        found = basis.get((label.query_id, label.candidate))
        if found is None:
            unknown.append(label)
        else:
            parts.setdefault(_PARTS[found], []).append(label)
    if unknown:
        first = next(iter(parts), _PARTS[Basis.UNSUPERVISED])
        parts.setdefault(first, []).extend(unknown)
    return parts


def gold_cells(gold: Gold) -> set[Cell]:
    """Return the responses with labels or votes."""
    cells = {(label.query_id, label.candidate) for label in gold.labels}
    for vote in gold.votes:
        cells |= _sides(vote)
    return cells


def _sides(vote: Vote) -> set[Cell]:
    return {(vote.query_id, vote.candidate_a), (vote.query_id, vote.candidate_b)}


_PARTS = {
    Basis.UNSUPERVISED: "all labels",
    Basis.UNSEEN: "held-out labels",
    Basis.OUT_OF_FOLD: "labels out of fold",
    Basis.FITTED: "labels learned from",
}

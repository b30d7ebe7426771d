"""Gold that scores may honestly be held against: nothing that their own fit has learned from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rocketeval.records import Basis, Gold, Label, Vote

Cell = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Refused:
    """Gold that was not used, because the fit that made the scores has learned from it."""

    labels: int = 0
    votes: int = 0


def honest_gold(gold: Gold, basis: Mapping[Cell, Basis]) -> tuple[Gold, Refused]:
    """Return the gold to evaluate on, and how much of it is refused.

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
    refused = Refused(len(gold.labels) - len(labels), len(gold.votes) - len(votes))
    return Gold(labels, votes, gold.ratings), refused


def labels_by_basis(labels: Sequence[Label], basis: Mapping[Cell, Basis]) -> dict[str, list[Label]]:
    """Return the labels in parts that answer different questions, named for people.

    Labels of candidates that the scorer never learned from test it on strangers; labels it learned
    from elsewhere than in the scoring fit test it on candidates whose like it knows. Labels of
    responses that the run does not have stand with the first part, to be counted there.
    """
    parts: dict[str, list[Label]] = {}
    strangers = []
    for label in labels:
        found = basis.get((label.query_id, label.candidate))
        if found is None:
            strangers.append(label)
        else:
            parts.setdefault(_PARTS[found], []).append(label)
    if strangers:
        first = next(iter(parts), _PARTS[Basis.UNSUPERVISED])
        parts.setdefault(first, []).extend(strangers)
    return parts


def gold_cells(gold: Gold) -> set[Cell]:
    """Return the responses that labels or votes speak about."""
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

"""Scores are never compared with the training data of their fit."""

from __future__ import annotations

from rocketeval.audit.audit import Audit, audit
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Basis, Gold, Label, Vote
from rocketeval.scoring.split import honest_gold, labels_by_basis

QUERIES = [f"q{number}" for number in range(8)]
NAMES = ("old", "new", "newest")


def grid() -> ScoreGrid:
    """Return a score for every cell."""
    cells = [(query, name) for query in QUERIES for name in NAMES]
    scores = [float(1 + (7 * place) % 10) for place in range(len(cells))]
    return ScoreGrid.from_columns([q for q, _ in cells], [c for _, c in cells], scores)


def gold() -> Gold:
    """Return a label for every response of two candidates, and a vote per query."""
    labels = [
        Label(query, name, float(1 + (place + len(name)) % 10))
        for place, query in enumerate(QUERIES)
        for name in NAMES[:2]
    ]
    return Gold(labels, [Vote(query, "old", "newest", "a") for query in QUERIES])


def basis(old: Basis) -> dict[tuple[str, str], Basis]:
    """Return `old` as basis for the first candidate, and unseen for the others."""
    return {(q, c): old if c == "old" else Basis.UNSEEN for q in QUERIES for c in NAMES}


def held_against(old: Basis) -> Audit:
    """Return the audit of the grid."""
    return audit(grid(), {}, {}, {}, gold(), basis(old), RankingConfig(bootstrap=50))


def test_training_labels_and_votes_are_refused_and_counted() -> None:
    """Neither is in a figure; both are counted."""
    found = held_against(Basis.FITTED)
    assert (found.refused.labels, found.refused.votes) == (8, 8)
    assert found.agreement == {}
    assert list(found.labels) == ["held-out labels"]
    assert found.labels["held-out labels"]["judge"].responses == 8


def test_out_of_fold_and_held_out_labels_are_separate() -> None:
    """Two figures, and nothing is refused."""
    found = held_against(Basis.OUT_OF_FOLD)
    assert set(found.labels) == {"held-out labels", "labels out of fold"}
    assert (found.refused.labels, found.refused.votes) == (0, 0)
    assert found.agreement["judge"].used == 8


def test_one_fitted_side_is_enough_to_refuse_a_vote() -> None:
    """A vote compares two scores; one fitted score invalidates it."""
    honest, refused = honest_gold(gold(), {("q0", "newest"): Basis.FITTED})
    assert refused.votes == 1
    assert "q0" not in {vote.query_id for vote in honest.votes}


def test_unknown_labels_are_counted_in_the_first_part() -> None:
    """A label of a response that is not in the run has no part of its own."""
    known = [Label("q1", "old", 5.0), Label("q1", "new", 5.0)]
    found = labels_by_basis([Label("q1", "nobody", 5.0), *known], basis(Basis.OUT_OF_FOLD))
    assert {part: len(labels) for part, labels in found.items()} == {
        "labels out of fold": 2,
        "held-out labels": 1,
    }
    assert list(labels_by_basis(known, {})) == ["all labels"]

"""No score comes from a fit on its own reference data."""

from __future__ import annotations

from typing import Self

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.config import ScorerConfig
from rocketeval.records import Basis, Gold, Label, Vote
from rocketeval.scoring import crossfit
from rocketeval.scoring import crossfit as held_out
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import create_scorer
from rocketeval.scoring.crossfit import score_answers

QUERIES = [f"q{number}" for number in range(6)]
NAMES = [f"c{number}" for number in range(12)]


def answers() -> AnswerTable:
    """Return six queries, twelve candidates and four items."""
    random = np.random.default_rng(0)
    cells = [(query, name) for query in QUERIES for name in NAMES]
    return AnswerTable(
        [query for query, _ in cells],
        [name for _, name in cells],
        random.random(4 * len(cells)),
        np.arange(0, 4 * len(cells) + 1, 4),
    )


def labels(names: list[str]) -> list[Label]:
    """Return a label for each response of the given candidates."""
    random = np.random.default_rng(1)
    return [Label(q, name, float(random.integers(1, 11))) for q in QUERIES for name in names]


class Memoriser:
    """A scorer that returns the label it has seen for a response, and 1 otherwise."""

    def __init__(self) -> None:
        self.missing = "skip"

    def fit(self, answers: AnswerTable, gold: Gold) -> Self:
        """Memorize all labels."""
        self.known_ = {(one.query_id, one.candidate): one.value for one in gold.labels}
        self.queries_ = {vote.query_id for vote in gold.votes}
        return self

    def predict(self, answers: AnswerTable) -> NDArray[np.float64]:
        """Return memorized labels."""
        cells = zip(answers.query_ids, answers.candidates, strict=True)
        return np.array(
            [5.0 if cell[0] in self.queries_ else self.known_.get(cell, 1.0) for cell in cells]
        )

    def fallbacks(self) -> dict[str, str]:
        """None."""
        return {}

    def item_weights(self) -> dict[str, NDArray[np.float64]]:
        """None."""
        return {}


@pytest.fixture
def memorising(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make every scorer one that memorizes its training data."""
    for module in (crossfit, held_out):
        monkeypatch.setattr(module, "create_scorer", lambda config: Memoriser())


@pytest.mark.usefixtures("memorising")
def test_memorizing_scorer_never_scores_its_training_data() -> None:
    """Memorized labels appear in no score of fitted, held-out or unlabeled candidates."""
    gold = Gold([Label(q, name, 9.0) for q in QUERIES for name in NAMES[:8]])
    scored = score_answers(answers(), gold, ScorerConfig(kind="extra_trees"))
    assert set(scored.scores.tolist()) == {1.0}


@pytest.mark.usefixtures("memorising")
def test_votes_of_a_query_do_not_affect_its_scores() -> None:
    """For votes, folds consist of queries."""
    gold = Gold(votes=[Vote(query, "c1", "c2", "a") for query in QUERIES[:4]])
    config = ScorerConfig(kind="extra_trees", learn_from="votes")
    scored = score_answers(answers(), gold, config)
    assert set(scored.scores.tolist()) == {1.0}
    unseen = [basis is Basis.UNSEEN for basis in scored.basis]
    assert unseen == [query in QUERIES[4:] for query in answers().query_ids]


def test_every_score_has_its_basis() -> None:
    """Training candidates are out-of-fold, all others unseen."""
    config = ScorerConfig(kind="extra_trees", fit_on=NAMES[:6], options={"trees": 5})
    scored = score_answers(answers(), Gold(labels(NAMES[:8])), config)
    expected = {name: "out_of_fold" if name in NAMES[:6] else "unseen" for name in NAMES}
    cells = zip(answers().candidates, scored.basis, strict=True)
    assert all(basis.value == expected[name] for name, basis in cells)
    assert scored.counts() == {"out_of_fold": 36, "unseen": 36}
    assert scored.split is not None
    assert scored.split.held_out == ("c6", "c7")


def test_unseen_candidates_are_scored_by_the_full_fit() -> None:
    """The kept scorer is the one that scored them."""
    config = ScorerConfig(kind="extra_trees", fit_on=NAMES[:6], options={"trees": 5})
    table = answers()
    scored = score_answers(table, Gold(labels(NAMES[:6])), config)
    rows = [row for row, name in enumerate(table.candidates) if name in NAMES[6:]]
    assert scored.scorer.predict(table.take(rows)).tobytes() == scored.scores[rows].tobytes()


def test_out_of_fold_scores_are_those_of_a_fit_without_the_fold() -> None:
    """With as many folds as candidates: leave each out, fit by hand, and compare."""
    names, table = NAMES[:5], answers()
    gold = labels(names)
    config = ScorerConfig(kind="extra_trees", hold_out=0.0, folds=5, options={"trees": 5})
    scored = score_answers(table, Gold(gold), config)
    for name in names:
        others = Gold([label for label in gold if label.candidate != name])
        rows = [row for row, own in enumerate(table.candidates) if own == name]
        by_hand = create_scorer(config).fit(table, others).predict(table.take(rows))
        assert by_hand.tobytes() == scored.scores[rows].tobytes()


def test_mean_needs_no_reference_data() -> None:
    """The mean is the same with or without labels."""
    scored = score_answers(answers(), Gold(labels(NAMES)), ScorerConfig())
    assert set(scored.basis) == {Basis.UNSUPERVISED}
    assert scored.split is None
    assert scored.counts() == {"unsupervised": 72}

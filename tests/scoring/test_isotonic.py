"""The mean calibrated to labels: increasing, without new ties."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from rocketeval.config import ScorerConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.records import Gold, Label
from rocketeval.scoring.base import Learner, State, check_scorer, create_scorer
from rocketeval.scoring.mean import SHARE_OF_MEAN, IsotonicScorer, MeanScorer
from support.made_runs import answer_table, made_run

CONFIG = ScorerConfig(kind="isotonic")


@pytest.mark.parametrize("missing", ["skip", "drop"])
def test_contract(missing: str) -> None:
    """It passes the public check."""
    check_scorer(IsotonicScorer, CONFIG.model_copy(update={"missing": missing}))
    assert isinstance(create_scorer(CONFIG), Learner)


def test_the_curve_passes_the_middle_of_every_step() -> None:
    """Steps equal scikit-learn's; the curve passes the middle of each."""
    answers, gold = made_run(queries=5)
    scorer = IsotonicScorer().fit(answers, gold)
    means = MeanScorer().predict(answers)
    labels = [label.value for label in gold.labels]
    stairs = IsotonicRegression(out_of_bounds="clip").fit(means, labels).predict(means)
    levels = np.unique(stairs.round(9))
    np.testing.assert_allclose(scorer.labels_, levels, atol=1e-8)
    middles = [means[np.abs(stairs - level) < 1e-8].mean() for level in levels]
    np.testing.assert_allclose(scorer.means_, middles)
    shares = (np.array(middles) - 1.0) / 9.0
    found = scorer.predict(answer_table([("q", f"c{n}", [x]) for n, x in enumerate(shares)]))
    expected = (1 - SHARE_OF_MEAN) * levels + SHARE_OF_MEAN * np.array(middles)
    np.testing.assert_allclose(found, expected)


def test_the_order_of_the_mean_is_kept() -> None:
    """Different means give different scores in the same order, also beyond the labels."""
    answers, gold = made_run(queries=5)
    scorer = IsotonicScorer().fit(answers, gold)
    rising = answer_table(
        [("q", f"c{n:03d}", [share]) for n, share in enumerate(np.linspace(0, 1, 200))]
    )
    assert (np.diff(scorer.predict(rising)) > 0).all()


def test_decreasing_labels_give_a_flat_curve() -> None:
    """One step: every score is the mean label, except for the share of the mean."""
    answers = answer_table([("q", f"c{n}", [n / 10]) for n in range(10)])
    gold = Gold([Label("q", f"c{n}", 10.0 - n) for n in range(10)])
    scores = IsotonicScorer().fit(answers, gold).predict(answers)
    assert np.abs(scores - 5.5).max() < 0.05
    assert (np.diff(scores) > 0).all()


def test_too_few_labels_give_the_mean() -> None:
    """The scores are those of the mean, and every query has a reason."""
    answers, _ = made_run(queries=2)
    scorer = IsotonicScorer().fit(answers, Gold([Label("q000", "c0", 4.0)]))
    np.testing.assert_allclose(scorer.predict(answers), MeanScorer().predict(answers))
    assert scorer.fallbacks() == dict.fromkeys(
        ["q000", "q001"], "1 labels over all queries; 5 are needed"
    )


def test_restored_scorer_gives_the_same_bits() -> None:
    """Through JSON and arrays of plain numbers."""
    answers, gold = made_run(queries=4)
    scorer = IsotonicScorer().fit(answers, gold)
    state = scorer.state()
    again = IsotonicScorer.restore(
        CONFIG, State(json.loads(json.dumps(state.header)), state.arrays)
    )
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()


def test_damaged_state_is_refused() -> None:
    """A decreasing curve, or one with a missing point, is refused."""
    answers, gold = made_run(queries=4)
    state = IsotonicScorer().fit(answers, gold).state()
    means, labels = state.arrays["means"], state.arrays["labels"]
    with pytest.raises(ArtifactError, match="not increasing"):
        IsotonicScorer.restore(
            CONFIG, State(state.header, {"means": means, "labels": labels[::-1]})
        )
    with pytest.raises(ArtifactError, match="numbers are needed"):
        IsotonicScorer.restore(CONFIG, State(state.header, {"means": means[1:], "labels": labels}))
    with pytest.raises(ArtifactError, match="points"):
        IsotonicScorer.restore(CONFIG, State({}, dict(state.arrays)))


def test_votes_are_refused() -> None:
    """It learns only from labels."""
    with pytest.raises(ConfigError, match="'isotonic' learns from labels, not from votes"):
        create_scorer(ScorerConfig(kind="isotonic", learn_from="votes"))

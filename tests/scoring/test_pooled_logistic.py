"""Votes alone fit a scorer."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rocketeval.config import ScorerConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.records import Gold, Vote
from rocketeval.scoring.base import Learner, Saveable, State, check_scorer, create_scorer
from rocketeval.scoring.crossfit import held_out_scores
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.select import disagreements
from rocketeval.scoring.votes import PooledLogisticScorer
from support.made_runs import answer_table, made_run

CONFIG = ScorerConfig(kind="pooled_logistic", learn_from="votes")


@pytest.mark.parametrize("missing", ["skip", "drop"])
@pytest.mark.parametrize("scale", [(1.0, 10.0), (0.0, 1.0)])
def test_contract(missing: str, scale: tuple[float, float]) -> None:
    """It keeps every promise of the seam, and offers what learning scorers can offer."""
    config = CONFIG.model_copy(update={"missing": missing, "scale": scale})
    check_scorer(PooledLogisticScorer, config)
    scorer = create_scorer(config)
    assert isinstance(scorer, Learner)
    assert isinstance(scorer, Saveable)


def test_the_contract_holds_for_a_fitted_scorer_too() -> None:
    """The check's own votes are too few to learn from: order and purity once more on many."""
    answers, gold = made_run(queries=10)
    scorer = PooledLogisticScorer().fit(answers, gold)
    assert scorer.fallbacks() == {}
    scores = scorer.predict(answers)
    order = np.random.default_rng(0).permutation(10).repeat(10) * 10 + np.tile(np.arange(10), 10)
    assert scorer.predict(answers.take(order)).tobytes() == scores[order].tobytes()
    for row in range(0, len(answers), 7):
        assert scorer.predict(answers.take([row]))[0] == scores[row]
    assert ((scores > 1.0) & (scores < 10.0)).all()


def test_left_out_votes_are_predicted_better_than_by_the_mean() -> None:
    """Voters who tie easily are met by a margin that is theirs."""
    answers, gold = made_run(queries=40, tie_gap=1.2)

    def wrong(kind: str) -> float:
        config = CONFIG.model_copy(update={"kind": kind})
        scores = held_out_scores(config, answers, gold).scores
        return disagreements(answers, scores, gold.votes, 0.1).mean

    assert wrong("pooled_logistic") < wrong("mean") - 0.05


def test_the_scores_do_not_depend_on_the_tie_margin_but_in_size() -> None:
    """Another margin gives the same order and the same ties."""
    answers, gold = made_run(queries=20)
    narrow = PooledLogisticScorer(tie_margin=0.05).fit(answers, gold).predict(answers)
    wide = PooledLogisticScorer(tie_margin=0.1).fit(answers, gold).predict(answers)
    np.testing.assert_allclose((wide - 5.5) / 2, narrow - 5.5, atol=1e-9)


def test_who_is_called_a_does_not_matter() -> None:
    """Preference data that always names the winner first teaches the same."""
    answers, gold = made_run(queries=20)
    turned = [
        Vote(vote.query_id, vote.candidate_b, vote.candidate_a, "a") if vote.winner == "b" else vote
        for vote in gold.votes
    ]
    assert {vote.winner for vote in turned} == {"a", "tie"}
    scores = PooledLogisticScorer().fit(answers, gold).predict(answers)
    again = PooledLogisticScorer().fit(answers, Gold(votes=turned)).predict(answers)
    np.testing.assert_allclose(again, scores, atol=1e-3)


@pytest.mark.parametrize(
    ("votes", "said"),
    [
        ([], "0 votes that are not ties; 10 are needed"),
        ([Vote("q000", "c0", "c1", "tie")] * 50, "0 votes that are not ties"),
        ([Vote("q000", "c0", "c1", "a")] * 50, "all votes are on one query"),
        ([Vote(q, "c0", "c0", "a") for q in ("q000", "q001")] * 9, "the same about both"),
        ([Vote("elsewhere", "c0", "c1", "a")] * 50, "0 votes that are not ties"),
    ],
)
def test_too_little_to_learn_from_gives_the_mean(votes: list[Vote], said: str) -> None:
    """Every query says why, and the scores are those of the mean to the last bit."""
    answers, _ = made_run(queries=3)
    scorer = PooledLogisticScorer().fit(answers, Gold(votes=votes))
    assert list(scorer.fallbacks()) == ["q000", "q001", "q002"]
    assert all(said in reason for reason in scorer.fallbacks().values())
    assert scorer.predict(answers).tobytes() == MeanScorer().predict(answers).tobytes()


@pytest.mark.parametrize("queries", [1, 20])
def test_a_restored_scorer_gives_the_same_bits(queries: int) -> None:
    """Through JSON and arrays of plain numbers, whether it learned or fell back to the mean."""
    answers, gold = made_run(queries=queries)
    scorer = PooledLogisticScorer().fit(answers, gold)
    assert bool(scorer.fallbacks()) == (queries == 1)
    state = scorer.state()
    header = json.loads(json.dumps(state.header))
    again = PooledLogisticScorer.restore(CONFIG, State(header, dict(state.arrays)))
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()
    assert again.fallbacks() == scorer.fallbacks()


@pytest.mark.parametrize("name", ["centre", "weights", "qualities", "heights"])
def test_a_damaged_state_is_refused(name: str) -> None:
    """An array that is cut, gone or not finite is not taken."""
    answers, gold = made_run(queries=10)
    state = PooledLogisticScorer().fit(answers, gold).state()
    good = state.arrays[name]
    for wrong in (good[:-1], np.array([*good[:-1], np.inf]), None):
        arrays = {key: array for key, array in state.arrays.items() if key != name}
        if wrong is not None:
            arrays[name] = wrong
        with pytest.raises(ArtifactError, match="does not fit together"):
            PooledLogisticScorer.restore(CONFIG, State(state.header, arrays))


def test_a_scale_that_falls_is_refused() -> None:
    """Heights in the wrong order would turn every preference around."""
    answers, gold = made_run(queries=10)
    state = PooledLogisticScorer().fit(answers, gold).state()
    arrays = {**state.arrays, "heights": state.arrays["heights"][::-1]}
    with pytest.raises(ArtifactError, match="its scale does not rise"):
        PooledLogisticScorer.restore(CONFIG, State(state.header, arrays))


def test_labels_are_refused() -> None:
    """It learns from votes, and says which kind learns from labels."""
    with pytest.raises(ConfigError, match="learns from votes, not from labels") as caught:
        create_scorer(ScorerConfig(kind="pooled_logistic"))
    assert "pooled_ridge" in caught.value.hint


def test_a_run_without_ties_has_a_scale_all_the_same() -> None:
    """A margin of 0 has no size that a tie could be put on: the usual one is taken."""
    answers, gold = made_run(queries=20)
    without, usual = (
        create_scorer(CONFIG.model_copy(update={"tie_margin": margin})).fit(answers, gold)
        for margin in (0.0, None)
    )
    assert without.predict(answers).tolist() == usual.predict(answers).tolist()


def test_one_response_without_an_answer_has_no_score() -> None:
    """Beside scored ones, a response without answers stays a visible gap."""
    answers, gold = made_run(queries=10)
    scorer = PooledLogisticScorer().fit(answers, gold)
    found = scorer.predict(answer_table([("new", "x", [0.9, 0.8]), ("new", "y", [])]))
    assert np.isfinite(found[0])
    assert np.isnan(found[1])


def test_votes_that_cancel_out_give_the_mean() -> None:
    """Every pair is preferred both ways: there is no quality to put on a scale."""
    answers, _ = made_run(queries=12, candidates=2)
    votes = [Vote(f"q{q:03d}", "c0", "c1", winner) for q in range(12) for winner in ("a", "b")]
    scorer = PooledLogisticScorer().fit(answers, Gold(votes=votes))
    assert set(scorer.fallbacks().values()) == {"the votes favour no answers over others"}
    assert scorer.predict(answers).tobytes() == MeanScorer().predict(answers).tobytes()
    again = PooledLogisticScorer.restore(CONFIG, scorer.state())
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()

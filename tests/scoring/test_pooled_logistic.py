"""A scorer fitted on votes."""

from __future__ import annotations

import json
from dataclasses import replace

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
    """It passes the public check and is a `Learner`."""
    config = CONFIG.model_copy(update={"missing": missing, "scale": scale})
    check_scorer(PooledLogisticScorer, config)
    scorer = create_scorer(config)
    assert isinstance(scorer, Learner)
    assert isinstance(scorer, Saveable)


def test_fitted_scorer_passes_the_contract() -> None:
    """The check's votes are too few to learn from, so order and purity are tested on many."""
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
    """Voters who tie often get a matching margin."""
    answers, gold = made_run(queries=40, tie_gap=1.2)

    def wrong(kind: str) -> float:
        config = CONFIG.model_copy(update={"kind": kind})
        scores = held_out_scores(config, answers, gold).scores
        return disagreements(answers, scores, gold, 0.1).mean

    assert wrong("pooled_logistic") < wrong("mean") - 0.05


def test_tie_margin_only_changes_the_scale() -> None:
    """Another margin gives the same order and the same ties."""
    answers, gold = made_run(queries=20)
    narrow = PooledLogisticScorer(tie_margin=0.05).fit(answers, gold).predict(answers)
    wide = PooledLogisticScorer(tie_margin=0.1).fit(answers, gold).predict(answers)
    np.testing.assert_allclose((wide - 5.5) / 2, narrow - 5.5, atol=1e-9)


def test_vote_order_does_not_matter() -> None:
    """Data that always names the winner first gives the same fit."""
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
    ("votes", "expected"),
    [
        ([], "0 votes that are not ties; 10 are needed"),
        ([Vote("q000", "c0", "c1", "tie")] * 50, "0 votes that are not ties"),
        ([Vote("q000", "c0", "c1", "a")] * 50, "all votes are on one query"),
        ([Vote(q, "c0", "c0", "a") for q in ("q000", "q001")] * 9, "the same answers"),
        ([Vote("elsewhere", "c0", "c1", "a")] * 50, "0 votes that are not ties"),
    ],
)
def test_too_little_data_gives_the_mean(votes: list[Vote], expected: str) -> None:
    """Every query has a reason, and the scores equal the mean to the last bit."""
    answers, _ = made_run(queries=3)
    scorer = PooledLogisticScorer().fit(answers, Gold(votes=votes))
    assert list(scorer.fallbacks()) == ["q000", "q001", "q002"]
    assert all(expected in reason for reason in scorer.fallbacks().values())
    assert scorer.predict(answers).tobytes() == MeanScorer().predict(answers).tobytes()


def test_votes_on_one_conversation_give_the_mean() -> None:
    """Cross-validation cannot leave out a part of one cluster, so there is nothing to choose by."""
    answers, _ = made_run(queries=2)
    votes = [Vote(query, "c0", "c1", "a") for query in ("q000", "q001")] * 9
    clusters = {"q000": "talk", "q001": "talk"}
    scorer = PooledLogisticScorer().fit(answers, Gold(votes=votes, clusters=clusters))
    assert all("on one query" in reason for reason in scorer.fallbacks().values())
    assert list(scorer.fallbacks()) == ["q000", "q001"]


@pytest.mark.parametrize("queries", [1, 20])
def test_restored_scorer_gives_the_same_bits(queries: int) -> None:
    """Through JSON and plain arrays, whether it learned or fell back to the mean."""
    answers, gold = made_run(queries=queries)
    scorer = PooledLogisticScorer().fit(answers, gold)
    assert bool(scorer.fallbacks()) == (queries == 1)
    state = scorer.state()
    header = json.loads(json.dumps(state.header))
    again = PooledLogisticScorer.restore(CONFIG, State(header, dict(state.arrays)))
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()
    assert again.fallbacks() == scorer.fallbacks()


@pytest.mark.parametrize("name", ["centre", "weights", "qualities", "heights"])
def test_damaged_state_is_refused(name: str) -> None:
    """A truncated, missing or non-finite array is refused."""
    answers, gold = made_run(queries=10)
    state = PooledLogisticScorer().fit(answers, gold).state()
    good = state.arrays[name]
    for wrong in (good[:-1], np.array([*good[:-1], np.inf]), None):
        arrays = {key: array for key, array in state.arrays.items() if key != name}
        if wrong is not None:
            arrays[name] = wrong
        with pytest.raises(ArtifactError, match="is inconsistent"):
            PooledLogisticScorer.restore(CONFIG, State(state.header, arrays))


def test_decreasing_curve_is_refused() -> None:
    """It would invert every preference."""
    answers, gold = made_run(queries=10)
    state = PooledLogisticScorer().fit(answers, gold).state()
    arrays = {**state.arrays, "heights": state.arrays["heights"][::-1]}
    with pytest.raises(ArtifactError, match="not increasing"):
        PooledLogisticScorer.restore(CONFIG, State(state.header, arrays))


def test_labels_are_refused() -> None:
    """The hint names the kind that learns from labels."""
    with pytest.raises(ConfigError, match="learns from votes, not from labels") as caught:
        create_scorer(ScorerConfig(kind="pooled_logistic"))
    assert "pooled_ridge" in caught.value.hint


def test_margin_of_zero_uses_the_default_margin() -> None:
    """A margin of 0 has no width for a tie."""
    answers, gold = made_run(queries=20)
    without, usual = (
        create_scorer(CONFIG.model_copy(update={"tie_margin": margin})).fit(answers, gold)
        for margin in (0.0, None)
    )
    assert without.predict(answers).tolist() == usual.predict(answers).tolist()


def test_response_without_answers_has_no_score() -> None:
    """It stays missing next to scored ones."""
    answers, gold = made_run(queries=10)
    scorer = PooledLogisticScorer().fit(answers, gold)
    found = scorer.predict(answer_table([("new", "x", [0.9, 0.8]), ("new", "y", [])]))
    assert np.isfinite(found[0])
    assert np.isnan(found[1])


def test_contradicting_votes_give_the_mean() -> None:
    """Every pair is preferred both ways, so there is nothing to learn."""
    answers, _ = made_run(queries=12, candidates=2)
    votes = [Vote(f"q{q:03d}", "c0", "c1", winner) for q in range(12) for winner in ("a", "b")]
    scorer = PooledLogisticScorer().fit(answers, Gold(votes=votes))
    assert set(scorer.fallbacks().values()) == {"the votes prefer no answers over others"}
    assert scorer.predict(answers).tobytes() == MeanScorer().predict(answers).tobytes()
    again = PooledLogisticScorer.restore(CONFIG, scorer.state())
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()


def test_queries_without_a_category_have_their_own_ties() -> None:
    """Their curve is not the one for categories without votes."""
    random = np.random.default_rng(0)
    rows, votes, categories = [], [], {}
    for number in range(120):
        query_id, plain = f"q{number:03d}", number % 2 == 0
        quality = random.normal(size=2)
        rows += [
            (query_id, f"c{place}", (1.0 / (1.0 + np.exp(-quality[place] * np.ones(4)))).tolist())
            for place in range(2)
        ]
        tied = plain and random.random() < 0.8
        votes.append(Vote(query_id, "c0", "c1", "tie" if tied else "ab"[int(np.argmax(quality))]))
        if not plain:
            categories[query_id] = "math"
    answers = replace(answer_table(rows), categories=categories)
    named = replace(answers, categories={**dict.fromkeys(answers.query_ids, "chat"), **categories})
    gold = Gold(votes=votes)
    found, other = (
        PooledLogisticScorer().fit(each, gold).predict(each) for each in (answers, named)
    )
    assert found == pytest.approx(other)
    state = PooledLogisticScorer().fit(answers, gold).state()
    again = PooledLogisticScorer.restore(CONFIG, State(state.header, dict(state.arrays)))
    assert again.predict(answers) == pytest.approx(found)

"""Labels pooled over queries: better than the mean, with reasons for fallbacks."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rocketeval.config import ScorerConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.records import Gold, Label
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import Learner, Saveable, State, check_scorer, create_scorer
from rocketeval.scoring.crossfit import held_out_scores
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.ridge import PooledRidgeScorer
from support.made_runs import answer_table, made_run

CONFIG = ScorerConfig(kind="pooled_ridge")


@pytest.mark.parametrize("missing", ["skip", "drop"])
@pytest.mark.parametrize("scale", [(1.0, 10.0), (-5.0, 12.0)])
def test_contract(missing: str, scale: tuple[float, float]) -> None:
    """It passes the public check and is a `Learner`."""
    config = CONFIG.model_copy(update={"missing": missing, "scale": scale})
    check_scorer(PooledRidgeScorer, config)
    scorer = create_scorer(config)
    assert isinstance(scorer, Learner)
    assert isinstance(scorer, Saveable)


def test_left_out_labels_are_predicted_better_than_by_the_mean() -> None:
    """On labels that follow the answers on another scale, the error halves."""
    answers, gold = made_run(queries=20, candidates=12)
    labels = np.array([label.value for label in gold.labels])

    def error(kind: str) -> float:
        scores = held_out_scores(ScorerConfig(kind=kind), answers, gold).scores
        return float(np.sqrt(np.mean((scores - labels) ** 2)))

    assert error("pooled_ridge") < 0.6 * error("mean")


def test_decisive_item_gets_the_weight_in_its_query() -> None:
    """In the query whose labels follow its first item, that item has the largest weight."""
    answers, gold = one_item_decides()
    scorer = PooledRidgeScorer().fit(answers, gold)
    weights = scorer.item_weights()
    assert weights["q0"].argmax() == 0
    assert weights["q0"][0] > 0.5
    for found in weights.values():
        assert np.abs(found).sum() == pytest.approx(1.0)


def test_negative_weight_keeps_its_sign() -> None:
    """An item whose yes lowers labels has a negative weight."""
    answers, gold = one_item_decides(sign=-1.0)
    assert PooledRidgeScorer().fit(answers, gold).item_weights()["q0"][0] < 0.0


def one_item_decides(sign: float = 1.0) -> tuple[AnswerTable, Gold]:
    """Return ten queries whose labels follow the mean, except the first, which follows one item."""
    random = np.random.default_rng(5)
    rows, labels = [], []
    for query in range(10):
        for candidate in range(40):
            p_yes = random.uniform(size=4)
            follows = 0.5 + sign * (p_yes[0] - 0.5) if query == 0 else p_yes.mean()
            rows.append((f"q{query}", f"c{candidate}", p_yes.tolist()))
            labels.append(Label(f"q{query}", f"c{candidate}", 1 + 9 * follows))
    return answer_table(rows), Gold(labels)


def test_query_without_labels_is_scored_by_the_pooled_part() -> None:
    """It gets the same score whether or not it was in the fit."""
    answers, gold = made_run(queries=6)
    known = Gold([label for label in gold.labels if label.query_id != "q000"])
    scorer = PooledRidgeScorer().fit(answers, known)
    assert scorer.fallbacks() == {}
    assert "q000" not in scorer.item_weights()
    rows = np.array([query != "q000" for query in answers.query_ids]).nonzero()[0]
    without = PooledRidgeScorer().fit(answers.take(rows), known)
    assert scorer.predict(answers).tobytes() == without.predict(answers).tobytes()


@pytest.mark.parametrize(
    ("labels", "expected"),
    [([], "0 labels"), ([3.0, 4.0, 5.0, 6.0], "4 labels"), ([7.0] * 9, "all 9 labels are 7")],
)
def test_too_little_data_gives_the_mean(labels: list[float], expected: str) -> None:
    """Every query has a reason, and the scores are those of the mean."""
    answers, _ = made_run(queries=3)
    gold = Gold([Label("q001", f"c{place}", value) for place, value in enumerate(labels)])
    scorer = PooledRidgeScorer().fit(answers, gold)
    assert set(scorer.fallbacks()) == {"q000", "q001", "q002"}
    assert all(expected in reason for reason in scorer.fallbacks().values())
    np.testing.assert_allclose(scorer.predict(answers), MeanScorer().predict(answers))


def test_identical_answers_give_the_mean_label() -> None:
    """There is nothing else to learn, and no error."""
    answers = answer_table([(f"q{n // 5}", f"c{n % 5}", [0.7, 0.7]) for n in range(20)])
    gold = Gold([Label(f"q{n // 5}", f"c{n % 5}", 4.0 + n % 2) for n in range(20)])
    scores = PooledRidgeScorer().fit(answers, gold).predict(answers)
    assert np.ptp(scores) < 0.5
    assert scores.mean() == pytest.approx(np.mean([4.0 + n % 2 for n in range(20)]), abs=0.05)


def test_restored_scorer_gives_the_same_bits() -> None:
    """Through JSON and plain arrays; facts and fallbacks are restored, too."""
    answers, gold = made_run(queries=6)
    few = Gold([label for label in gold.labels if label.query_id < "q004"])
    scorer = PooledRidgeScorer().fit(answers, few)
    state = scorer.state()
    assert all(array.dtype.kind == "f" for array in state.arrays.values())
    again = PooledRidgeScorer.restore(
        CONFIG, State(json.loads(json.dumps(state.header)), dict(state.arrays))
    )
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()
    assert again.fallbacks() == scorer.fallbacks()
    assert again.facts_ == scorer.facts_


@pytest.mark.parametrize("name", ["pooled", "levels", "centres", "weights"])
def test_damaged_state_is_refused(name: str) -> None:
    """A truncated, missing, non-finite or retyped array is refused."""
    answers, gold = made_run(queries=3)
    state = PooledRidgeScorer().fit(answers, gold).state()
    broken = np.array([*state.arrays[name][:-1], np.nan])
    for wrong in (state.arrays[name][:-1], broken, state.arrays[name].astype(np.float32), None):
        arrays = {key: array for key, array in state.arrays.items() if key != name}
        if wrong is not None:
            arrays[name] = wrong
        with pytest.raises(ArtifactError, match="saved pooled_ridge scorer is inconsistent"):
            PooledRidgeScorer.restore(CONFIG, State(state.header, arrays))


def test_changed_checklist_is_refused() -> None:
    """A query with more items than in the fit is not scored by the old weights."""
    answers, gold = made_run(queries=2)
    scorer = PooledRidgeScorer().fit(answers, gold)
    with pytest.raises(ArtifactError, match="'q001' has 2 items; the scorer was fitted on 5"):
        scorer.predict(answer_table([("q001", "c0", [0.5, 0.5])]))


def test_votes_are_refused() -> None:
    """The hint names the kind that learns from votes."""
    with pytest.raises(ConfigError, match="learns from labels, not from votes") as caught:
        create_scorer(ScorerConfig(kind="pooled_ridge", learn_from="votes"))
    assert "pooled_logistic" in caught.value.hint

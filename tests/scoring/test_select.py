"""Selection of a scorer: the simplest within one standard error, fitted on all data."""

from __future__ import annotations

import json

import numpy as np
import pytest

from rocketeval.config import ScorerConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.records import Gold, Label
from rocketeval.scoring.base import Learner, State, check_scorer, create_scorer
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.ridge import PooledRidgeScorer
from rocketeval.scoring.select import SelectScorer
from support.made_runs import answer_table, made_run


def config(*among: str, learn_from: str = "labels", **options: object) -> ScorerConfig:
    """Return a selection among some kinds."""
    given = {"among": among, **options} if among else options
    return ScorerConfig.model_validate(
        {"kind": "select", "learn_from": learn_from, "options": given}
    )


@pytest.mark.parametrize(
    "settings",
    [config(), config("mean", "pooled_ridge"), config(learn_from="votes"), config("pooled_ridge")],
)
def test_contract(settings: ScorerConfig) -> None:
    """It passes the public check with any choice."""
    check_scorer(SelectScorer, settings)
    assert isinstance(create_scorer(settings), Learner)


def test_better_scorer_is_chosen_and_fitted_on_everything() -> None:
    """For labels on another scale than the mean, the ridge is chosen and gives its scores."""
    answers, gold = made_run()
    scorer = SelectScorer.create(config("mean", "pooled_ridge")).fit(answers, gold)
    alone = PooledRidgeScorer().fit(answers, gold)
    assert scorer.chosen_ == "pooled_ridge"
    assert scorer.losses_["pooled_ridge"] < scorer.losses_["mean"]
    assert scorer.predict(answers).tobytes() == alone.predict(answers).tobytes()
    assert scorer.item_weights().keys() == alone.item_weights().keys()
    assert scorer.fallbacks() == {}


def test_mean_is_kept_unless_another_is_better() -> None:
    """For labels equal to the mean plus noise, every query has a reason."""
    random = np.random.default_rng(0)
    rows = [
        (f"q{q}", f"c{c}", random.uniform(0.2, 0.8, 4).tolist()) for q in range(8) for c in range(6)
    ]
    answers = answer_table(rows)
    scores = MeanScorer().predict(answers) + random.normal(scale=0.7, size=len(rows))
    gold = Gold([Label(q, c, float(s)) for (q, c, _), s in zip(rows, scores, strict=True)])
    scorer = SelectScorer.create(config("mean", "isotonic", "pooled_ridge")).fit(answers, gold)
    assert scorer.chosen_ == "mean"
    assert set(scorer.fallbacks()) == set(answers.query_ids)
    assert "better by more than a standard error" in scorer.fallbacks()["q0"]
    assert scorer.item_weights() == {}


def test_without_reference_data_the_first_is_chosen() -> None:
    """The reason has the count."""
    answers, _ = made_run(queries=2)
    scorer = SelectScorer.create(config()).fit(answers, Gold())
    assert scorer.chosen_ == "mean"
    assert "there are 0" in scorer.fallbacks()["q000"]
    assert scorer.predict(answers).tobytes() == MeanScorer().predict(answers).tobytes()


@pytest.mark.parametrize("settings", [config("mean", "pooled_ridge"), config(learn_from="votes")])
def test_restored_scorer_gives_the_same_bits(settings: ScorerConfig) -> None:
    """Whether the chosen one learned or is the mean."""
    answers, gold = made_run(tie_gap=1.2)
    scorer = SelectScorer.create(settings).fit(answers, gold)
    state = scorer.state()
    header = json.loads(json.dumps(state.header))
    again = SelectScorer.restore(settings, State(header, dict(state.arrays)))
    assert again.chosen_ == scorer.chosen_
    assert again.fallbacks() == scorer.fallbacks()
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()


def test_state_with_an_unknown_choice_is_refused() -> None:
    """The chosen kind must be one of the choices."""
    answers, gold = made_run(queries=4)
    state = SelectScorer.create(config("mean", "isotonic")).fit(answers, gold).state()
    header = {**state.header, "chosen": "pooled_ridge"}
    with pytest.raises(ArtifactError, match="saved select scorer is inconsistent"):
        SelectScorer.restore(config("mean", "isotonic"), State(header, state.arrays))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (config("mean", "select"), "cannot choose itself"),
        (config("mean", "mean"), "named twice"),
        (config("mean", settings={"isotonic": {}}), "not in `among`: isotonic"),
        (config("mean", settings={"mean": {"x": 1}}), "there is no such setting"),
        (config("mean", "ridge"), "no scorer 'ridge'"),
        (config("mean", "pooled_ridge", learn_from="votes"), "learns from labels, not from votes"),
        (config(amongst=["mean"]), "there is no such setting"),
    ],
)
def test_invalid_choices_are_refused_at_once(settings: ScorerConfig, expected: str) -> None:
    """Before any fit, with a clear message."""
    with pytest.raises(ConfigError, match=expected):
        create_scorer(settings)


def test_labels_without_scores_choose_the_first() -> None:
    """Every labeled response is dropped: the mean is kept, with a reason."""
    answers = answer_table(
        [(f"q{q}", f"c{c}", [0.5, float("nan")]) for q in range(3) for c in range(4)]
    )
    gold = Gold([Label(f"q{q}", f"c{c}", 1.0 + q + c) for q in range(3) for c in range(4)])
    scorer = SelectScorer.create(config().model_copy(update={"missing": "drop"})).fit(answers, gold)
    assert scorer.chosen_ == "mean"
    assert set(scorer.fallbacks().values()) == {"none of the labels is on a scored response"}
    json.dumps(dict(scorer.state().header), allow_nan=False)

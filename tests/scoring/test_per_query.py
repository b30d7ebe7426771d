"""One forest per query: fits, fallbacks to the mean, and saved states."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.ensemble import ExtraTreesRegressor

from rocketeval.config import ScorerConfig
from rocketeval.errors import ArtifactError, ConfigError
from rocketeval.records import Gold, Label
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import SCORERS, State, check_scorer, create_scorer
from rocketeval.scoring.extra_trees import ExtraTreesScorer, ForestOptions, LabelScale, label_weight
from rocketeval.scoring.mean import MeanScorer

KINDS = ("extra_trees", "random_forest")


def table(blocks: dict[str, NDArray[np.float64]]) -> AnswerTable:
    """Return candidates c0, c1, ... with the given answers to each query."""
    query_ids = [query for query, rows in blocks.items() for _ in rows]
    names = [f"c{number}" for rows in blocks.values() for number in range(len(rows))]
    lengths = [rows.shape[1] for rows in blocks.values() for _ in rows]
    flat = np.concatenate([rows.ravel() for rows in blocks.values()])
    return AnswerTable(query_ids, names, flat, np.concatenate([[0], np.cumsum(lengths)]))


def labels(query: str, values: Sequence[float]) -> list[Label]:
    """Return labels of c0, c1, ..."""
    return [Label(query, f"c{number}", value) for number, value in enumerate(values)]


def example(candidates: int = 40) -> tuple[AnswerTable, Gold]:
    """Return two queries in which one item decides the label of every candidate."""
    random = np.random.default_rng(5)
    first, second = random.random((candidates, 6)), random.random((candidates, 4))
    gold = labels("q1", (1 + np.round(9 * first[:, 3])).tolist())
    gold += labels("q2", (1 + np.round(9 * second[:, 0])).tolist())
    return table({"q1": first, "q2": second}), Gold(gold)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("missing", ["skip", "drop"])
@pytest.mark.parametrize("scale", [(1.0, 10.0), (0.0, 12.0)])
def test_contract(kind: str, missing: str, scale: tuple[float, float]) -> None:
    """Both forests pass the public check."""
    config = ScorerConfig(kind=kind, missing=missing, scale=scale)
    check_scorer(SCORERS.get(kind), config)


@pytest.mark.parametrize("kind", KINDS)
def test_decisive_item_gets_the_weight(kind: str) -> None:
    """The item gets the weight, and unseen candidates are scored better than by the mean."""
    answers, gold = example()
    known = Gold([label for label in gold.labels if int(label.candidate[1:]) < 25])
    scorer = create_scorer(ScorerConfig(kind=kind)).fit(answers, known)
    weights = scorer.item_weights()  # type: ignore[attr-defined]
    assert weights["q1"].argmax() == 3
    assert weights["q2"].argmax() == 0
    assert weights["q1"].sum() == pytest.approx(1.0)
    truth = np.array([label.value for label in gold.labels])
    unseen = np.array([int(name[1:]) >= 25 for name in answers.candidates])
    learned = np.abs(scorer.predict(answers) - truth)[unseen].mean()
    mean = np.abs(MeanScorer().predict(answers) - truth)[unseen].mean()
    assert learned < 0.7 * mean


def test_the_score_is_the_blend_of_the_paper() -> None:
    """(1 - alpha) * mean + alpha * forest, compared with scikit-learn's forest."""
    answers, gold = example()
    first = answers.take(range(40))
    values = np.array([label.value for label in gold.labels[:40]])
    options = ForestOptions(trees=400)
    scores = ExtraTreesScorer(options=options).fit(first, gold).predict(first)
    alone = ExtraTreesScorer(options=ForestOptions(trees=400, weight="none"))
    forest = alone.fit(first, gold).predict(first)
    alpha = label_weight(values, LabelScale(1.0, 10.0, 10))
    assert 0.5 < alpha < 1.0
    mean = MeanScorer().predict(first)
    assert scores == pytest.approx((1 - alpha) * mean + alpha * forest)
    asked = np.random.default_rng(0).random((200, 6))
    theirs = ExtraTreesRegressor(400, random_state=0).fit(first.p_yes.reshape(40, 6), values)
    ours = alone.forests_["q1"].predict(asked)
    assert np.abs(ours - theirs.predict(asked)).max() < 0.5
    assert np.corrcoef(ours, theirs.predict(asked))[0, 1] > 0.99


def test_few_or_equal_labels_fall_back_to_the_mean() -> None:
    """Every query has a reason, and the scores equal the mean to the last bit."""
    random = np.random.default_rng(1)
    answers = table({"few": random.random((6, 3)), "same": random.random((6, 3))})
    gold = Gold(labels("few", [3.0, 9.0, 4.0]) + labels("same", [8.0] * 6))
    scorer = ExtraTreesScorer().fit(answers, gold)
    assert scorer.fallbacks() == {"few": "3 labels; 4 are needed", "same": "all 6 labels are 8"}
    assert scorer.predict(answers) == pytest.approx(MeanScorer().predict(answers), abs=1e-12)
    assert scorer.item_weights() == {}


def test_without_labels_everything_is_the_mean() -> None:
    """There are no forests and no error."""
    answers, _ = example()
    scorer = ExtraTreesScorer().fit(answers, Gold())
    assert set(scorer.fallbacks()) == {"q1", "q2"}
    assert scorer.predict(answers) == pytest.approx(MeanScorer().predict(answers), abs=1e-12)


def test_labels_of_unknown_responses_are_ignored() -> None:
    """Labels of unknown queries and candidates change nothing."""
    answers, gold = example()
    strange = Gold([*gold.labels, Label("elsewhere", "c0", 1.0), Label("q1", "stranger", 1.0)])
    assert (
        ExtraTreesScorer().fit(answers, strange).predict(answers).tobytes()
        == ExtraTreesScorer().fit(answers, gold).predict(answers).tobytes()
    )


@pytest.mark.parametrize(
    ("scale", "values"),
    [
        ((0.0, 1.0), [0.0, 1.0, 1.0, 0.0, 1.0]),
        ((0.0, 1.0), [0.125, 0.5, 0.333, 0.9, 0.75]),
        ((1.0, 5.0), [1.0, 5.0, 3.0, 2.0, 2.5]),
    ],
)
def test_any_label_scale_works(scale: tuple[float, float], values: list[float]) -> None:
    """Binary, fractional and whole labels; several labels of one response are averaged."""
    answers = table({"q": np.random.default_rng(2).random((5, 4))})
    gold = Gold([*labels("q", values), Label("q", "c0", values[0], "another labeler")])
    scorer = create_scorer(ScorerConfig(kind="extra_trees", scale=scale)).fit(answers, gold)
    scores = scorer.predict(answers)
    assert ((scores >= scale[0]) & (scores <= scale[1])).all()


def test_forest_does_not_depend_on_other_queries() -> None:
    """The forest of a query is the same with any other queries."""
    answers, gold = example()
    both = ExtraTreesScorer(seed=3).fit(answers, gold).predict(answers)
    alone = answers.take(range(40, 80))
    assert ExtraTreesScorer(seed=3).fit(alone, gold).predict(alone).tobytes() == both[40:].tobytes()


def test_hard_answers_ignore_probabilities() -> None:
    """Only the side of 0.5 counts."""
    answers, gold = example()
    pushed = AnswerTable(
        answers.query_ids,
        answers.candidates,
        np.where(answers.p_yes >= 0.5, 0.9, 0.1),
        answers.offsets,
    )
    config = ScorerConfig(kind="extra_trees", options={"answers": "hard", "weight": "none"})
    soft = create_scorer(config).fit(answers, gold).predict(answers)
    hard = create_scorer(config).fit(pushed, gold).predict(pushed)
    assert soft == pytest.approx(hard)


def test_label_off_the_scale_is_refused() -> None:
    """The error names the query, the candidate and the scale."""
    answers, _ = example()
    with pytest.raises(ConfigError) as caught:
        ExtraTreesScorer().fit(answers, Gold([Label("q1", "c7", 11.0)]))
    assert "label 11 of query 'q1', candidate 'c7' is not on the scale 1 to 10" in str(caught.value)


def test_votes_are_refused_with_a_hint() -> None:
    """The hint names the kind that learns from votes."""
    with pytest.raises(ConfigError, match="pooled_logistic"):
        create_scorer(ScorerConfig(kind="extra_trees", learn_from="votes"))


def test_changed_checklist_is_refused() -> None:
    """A forest with more items than it was fitted on would read the wrong ones."""
    answers, gold = example()
    scorer = ExtraTreesScorer().fit(answers, gold)
    with pytest.raises(ArtifactError, match="'q1' has 7 items; the scorer was fitted on 6"):
        scorer.predict(table({"q1": np.random.default_rng(0).random((2, 7))}))


@pytest.mark.parametrize("kind", KINDS)
def test_restored_state_gives_the_same_scores(kind: str) -> None:
    """To the last bit, with weights and reasons."""
    answers, gold = example()
    config = ScorerConfig(kind=kind, seed=2)
    scorer = SCORERS.get(kind).create(config).fit(answers, gold)
    again = SCORERS.get(kind).restore(config, scorer.state())  # type: ignore[attr-defined]
    assert again.predict(answers).tobytes() == scorer.predict(answers).tobytes()
    assert again.fallbacks() == scorer.fallbacks()  # type: ignore[attr-defined]
    assert again.item_weights()["q1"].tolist() == scorer.item_weights()["q1"].tolist()  # type: ignore[attr-defined]


@pytest.mark.parametrize("part", ["roots", "item", "right", "number", "importances"])
def test_inconsistent_state_is_refused(part: str) -> None:
    """A missing, shortened or retyped array raises a clear error."""
    answers, gold = example()
    state = ExtraTreesScorer().fit(answers, gold).state()
    config = ScorerConfig(kind="extra_trees")
    for wrong in (state.arrays[part][:-1], state.arrays[part].astype(np.complex128)):
        with pytest.raises(ArtifactError, match="is inconsistent"):
            ExtraTreesScorer.restore(config, State(state.header, {**state.arrays, part: wrong}))
    without = {name: array for name, array in state.arrays.items() if name != part}
    with pytest.raises(ArtifactError, match=part):
        ExtraTreesScorer.restore(config, State(state.header, without))


@pytest.mark.parametrize("weight", [-0.1, 1.5, float("nan")])
def test_weight_outside_zero_to_one_is_refused(weight: float) -> None:
    """Such a blend would leave the scale."""
    answers, gold = example()
    state = ExtraTreesScorer().fit(answers, gold).state()
    header = {**state.header, "weights": [weight, weight]}
    with pytest.raises(ArtifactError, match="not between 0 and 1"):
        ExtraTreesScorer.restore(ScorerConfig(kind="extra_trees"), State(header, state.arrays))


@pytest.mark.parametrize("kind", KINDS)
def test_query_without_checklist_has_no_score(kind: str) -> None:
    """Without answers the score is NaN, without a warning."""
    answers, gold = example(8)
    bare = table({"q1": answers.p_yes[:48].reshape(8, 6), "q2": np.empty((8, 0))})
    scorer = create_scorer(ScorerConfig(kind=kind, options={"trees": 3})).fit(bare, gold)
    assert np.isnan(scorer.predict(bare)[8:]).all()
    assert np.isfinite(scorer.predict(bare)[:8]).all()


def test_fallback_equals_the_mean_to_the_last_bit() -> None:
    """Otherwise a selection would separate the two by rounding."""
    answers, gold = example(3)
    scorer = ExtraTreesScorer().fit(answers, gold)
    assert set(scorer.fallbacks()) == {"q1", "q2"}
    assert scorer.predict(answers).tobytes() == MeanScorer().predict(answers).tobytes()


def test_missing_hard_answers_are_filled_alike_in_fit_and_predict() -> None:
    """The same response gives the same features in fit and predict."""
    random = np.random.default_rng(3)
    p_yes = random.random((12, 3))
    p_yes[0] = [0.9, 0.1, np.nan]
    answers = table({"q": p_yes})
    gold = Gold(labels("q", [float(value) for value in random.integers(1, 11, 12)]))
    options = ForestOptions(trees=1, weight="none", answers="hard")
    hardened = table({"q": np.array([[1.0, 0.0, 0.5], *(p_yes[1:] >= 0.5).astype(float)])})
    scorer = ExtraTreesScorer(options=options).fit(answers, gold)
    as_probabilities = ForestOptions(trees=1, weight="none")
    twin = ExtraTreesScorer(options=as_probabilities).fit(hardened, gold)
    assert scorer.predict(answers).tolist() == twin.predict(hardened).tolist()


def test_constant_items_share_the_weight() -> None:
    """Trees without splits give equal weights that sum to one."""
    answers = table({"q": np.full((6, 4), 0.5)})
    scorer = ExtraTreesScorer().fit(answers, Gold(labels("q", [1.0, 3.0, 5.0, 7.0, 9.0, 10.0])))
    assert scorer.item_weights()["q"].tolist() == pytest.approx([0.25] * 4)

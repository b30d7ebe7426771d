"""Checks of answers: dead, redundant, unsure and backwards items, and the ranking without them."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from rocketeval.items import parse_item
from rocketeval.lint.answer_checks import (
    ItemBehavior,
    JudgedAnswers,
    drop_items,
    item_behaviors,
    item_influences,
    ranking_without,
)
from rocketeval.records import Checklist
from rocketeval.scoring.answers import AnswerTable, RubricColumns
from rocketeval.scoring.mean import MeanScorer
from rocketeval.stats.correlation import (
    paired_correlations,
    permutation_skewness,
    surely_negative,
)

Floats = NDArray[np.float64]
RESPONSES = 40


def table_of(p_yes: Floats, queries: int = 1) -> AnswerTable:
    """Return a table of the same answers for each query, one row per candidate."""
    rows, items = p_yes.shape
    names = [f"c{row:04d}" for row in range(rows)]
    return AnswerTable(
        [f"q{query}" for query in range(queries) for _ in range(rows)],
        names * queries,
        np.tile(p_yes.reshape(-1), queries),
        np.arange(0, queries * rows * items + 1, items),
    )


def looked_at(
    p_yes: Floats,
    mass: Floats | None = None,
    width: Floats | None = None,
    labels: Floats | None = None,
) -> list[tuple[ItemBehavior, set[str]]]:
    """Return the figures and the kinds found for each column."""
    table = table_of(p_yes)
    items = tuple(f"Does the response hold {number}?" for number in range(p_yes.shape[1]))
    answers = JudgedAnswers(
        table,
        np.ones(p_yes.size) if mass is None else mass.reshape(-1),
        np.zeros(p_yes.size) if width is None else width.reshape(-1),
    )
    gold = np.full(len(table), np.nan) if labels is None else labels
    found = item_behaviors(answers, {"q0": Checklist("q0", items)}, gold)
    return [(own, {each.kind for each in findings}) for own, findings in found]


@pytest.fixture
def quality() -> Floats:
    """Return the quality of each response, from 0 to 1."""
    return np.random.default_rng(1).permutation(np.linspace(0.05, 0.95, RESPONSES))


def noisy(quality: Floats, seed: int) -> Floats:
    """Return answers that follow the quality with noise."""
    return np.clip(quality + np.random.default_rng(seed).normal(0, 0.2, len(quality)), 0.0, 1.0)


def test_dead_redundant_and_backwards_items_are_flagged(quality: Floats) -> None:
    """Each for its own reason, and a good item for none."""
    good = noisy(quality, 2)
    columns = [
        good,
        np.full(RESPONSES, 0.97),
        np.full(RESPONSES, 0.02),
        np.full(RESPONSES, 0.6),
        good + 0.001 * quality,
        noisy(1.0 - quality, 3),
        noisy(quality, 4),
        noisy(quality, 5),
    ]
    found = [kinds for _, kinds in looked_at(np.stack(columns, axis=1))]
    assert found == [
        set(),
        {"always_yes"},
        {"never_yes"},
        {"same_for_all"},
        {"redundant"},
        {"backwards"},
        set(),
        set(),
    ]


def test_unsure_judge_is_detected_in_three_ways(quality: Floats) -> None:
    """Answers near 0.5, of low mass, or with wide bounds; a missing answer counts as weak."""
    near = 0.5 + 0.1 * (quality - 0.5)
    sure = np.where(quality > 0.5, 0.9, 0.1)
    some = np.arange(RESPONSES) % 3 == 0
    p_yes = np.stack([near, sure, noisy(quality, 6), np.where(some, np.nan, noisy(quality, 7))], 1)
    mass, width = np.ones_like(p_yes), np.zeros_like(p_yes)
    mass[some, 1], width[some, 2] = 0.2, 0.5
    found = looked_at(p_yes, mass, width)
    assert all("unsure" in kinds for _, kinds in found)
    assert found[0][0].sureness == pytest.approx(np.abs(near - 0.5).mean())
    assert found[1][0].weak == pytest.approx(some.mean())


def test_unanswered_item_has_only_that_finding(quality: Floats) -> None:
    """A few answers give no other finding."""
    few = np.where(np.arange(RESPONSES) < 5, 0.99, np.nan)
    p_yes = np.stack([noisy(quality, 2), few], axis=1)
    own, kinds = looked_at(p_yes)[1]
    assert kinds == {"unanswered"}
    assert own.answered == 5


def test_items_against_labels_need_ten_labels(quality: Floats) -> None:
    """An item whose yes correlates with low labels is an error."""
    p_yes = np.stack([noisy(quality, 2), noisy(quality, 3)], axis=1)
    labels = 10.0 - 9.0 * quality
    (own, kinds), _ = looked_at(p_yes, labels=labels)
    assert "against_labels" in kinds
    assert own.with_labels == pytest.approx(np.corrcoef(p_yes[:, 0], labels)[0, 1])
    few = np.where(np.arange(RESPONSES) < 9, labels, np.nan)
    (own, kinds), _ = looked_at(p_yes, labels=few)
    assert (own.with_labels, own.labelled) == (None, 9)
    assert "against_labels" not in kinds


def test_penalties_are_described_by_the_judges_own_answers(quality: Floats) -> None:
    """A penalty that good responses get is backwards; its figures are those of yes."""
    good = np.stack([noisy(quality, seed) for seed in (2, 3, 4)], axis=1)
    values = np.column_stack([good, np.full(RESPONSES, 0.2)])
    weights = np.tile([1.0, 1.0, -1.0, -1.0], RESPONSES)
    rubric = RubricColumns(values.reshape(-1), weights, np.ones(values.size))
    table = replace(table_of(values), p_yes=rubric.turned, rubric=rubric)
    answers = JudgedAnswers(table, np.ones(values.size), np.zeros(values.size))
    items = [
        parse_item({"text": f"Does the response hold {n}?", "weight": weight})
        for n, weight in enumerate((1, 1, -1, -1))
    ]
    labels = 1.0 + 9.0 * quality
    found = list(item_behaviors(answers, {"q0": Checklist.from_items("q0", items)}, labels))
    own, findings = found[2]
    why = {each.kind: each.why for each in findings}
    assert own.mean == pytest.approx(values[:, 2].mean())
    assert own.with_labels == pytest.approx(np.corrcoef(values[:, 2], labels)[0, 1])
    assert own.discrimination is not None
    assert own.discrimination > 0.5
    for kind, shown in (("backwards", own.discrimination), ("against_labels", own.with_labels)):
        assert "costs points" in why[kind]
        assert f"{shown:.2f}" in why[kind]
    assert "no elsewhere" not in why["backwards"]
    assert "higher labels" in why["against_labels"]
    [same] = found[3][1]
    assert same.kind == "same_for_all"
    assert "0.20" in same.why


def test_discrimination_is_with_the_other_items(quality: Floats) -> None:
    """An item does not correlate with itself, with or without gaps."""
    p_yes = np.stack([noisy(quality, seed) for seed in range(3)], axis=1)
    p_yes[3, 1] = np.nan
    found = looked_at(p_yes)
    rest = np.nanmean(p_yes[:, 1:], axis=1)
    assert found[0][0].discrimination == pytest.approx(np.corrcoef(p_yes[:, 0], rest)[0, 1])


def test_random_items_are_not_backwards() -> None:
    """Of many unrelated items, none is flagged."""
    p_yes = np.random.default_rng(0).random((30, 60))
    assert not any("backwards" in kinds for _, kinds in looked_at(p_yes))
    assert not surely_negative(0.5, 100)
    assert not surely_negative(-0.9, 3)


def test_rare_answers_that_follow_no_labels_are_not_against_them() -> None:
    """Three low labels of 30 and items with three yes: one family in a hundred."""
    rng = np.random.default_rng(0)
    labels, rare = np.repeat([1.0, 10.0], [3, 27]), np.repeat([0.98, 0.02], [3, 27])
    flagged = 0
    for _ in range(100):
        p_yes = np.stack([rng.permutation(rare) for _ in range(50)], axis=1)
        flagged += any("against_labels" in kinds for _, kinds in looked_at(p_yes, labels=labels))
    assert flagged <= 4


def test_skewness_of_permuted_correlations() -> None:
    """The formula agrees with permutations."""
    rng = np.random.default_rng(0)
    x, y = rng.exponential(size=12) ** 2, -(rng.exponential(size=12) ** 2)
    drawn = np.array([np.corrcoef(rng.permutation(x), y)[0, 1] for _ in range(20_000)])
    expected = float(((drawn - drawn.mean()) ** 3).mean() / drawn.std() ** 3)
    with_gap = np.append(x, np.nan)[:, None], np.append(y, 1.0)[:, None]
    assert permutation_skewness(*with_gap)[0] == pytest.approx(expected, rel=0.1)


def test_paired_correlations_equal_pearson() -> None:
    """Column by column, on common rows."""
    rng = np.random.default_rng(3)
    x, y = rng.random((30, 4)), rng.random((30, 4))
    x[:5, 1] = np.nan
    y[5:8, 1] = np.nan
    x[:, 2] = 0.3
    found, count = paired_correlations(x, y)
    assert count.tolist() == [30, 22, 30, 30]
    assert found[0] == pytest.approx(np.corrcoef(x[:, 0], y[:, 0])[0, 1])
    assert found[1] == pytest.approx(np.corrcoef(x[8:, 1], y[8:, 1])[0, 1])
    assert np.isnan(found[2])


def test_influence_equals_scoring_again() -> None:
    """Leaving an item out moves means and places by exactly this much."""
    rng = np.random.default_rng(5)
    p_yes = rng.random((6, 3))
    p_yes[2, 1] = np.nan
    table = table_of(p_yes)
    scored = MeanScorer().predict(table)
    for own in item_influences(table, (1.0, 10.0)):
        without = MeanScorer().predict(drop_items(table, {("q0", own.item)})[0])
        assert own.shift == pytest.approx(np.ptp(without - scored))
        places = [np.argsort(np.argsort(-each)) for each in (scored, without)]
        assert own.places == int(np.abs(places[0] - places[1]).max())


def test_the_ranking_without_items_is_compared_pair_by_pair() -> None:
    """Of three candidates two swap places; a query's only item is kept."""
    table = table_of(np.array([[0.9, 0.1], [0.5, 0.6], [0.2, 0.2]]))
    without = ranking_without(table, {("q0", 2)})
    assert (without.swapped_pairs, without.pairs, without.largest_move) == (1, 3, 1)
    assert without.tau == pytest.approx(1 / 3)
    assert without.moved in ("c0000", "c0001")
    whole = ranking_without(table, {("q0", 1), ("q0", 2)})
    assert (whole.dropped, whole.kept_after_all, whole.swapped_pairs) == (0, 2, 0)


def test_rows_of_different_lengths_are_read() -> None:
    """A response without a judgment has no answers."""
    table = AnswerTable(["q0"] * 3, ["a", "b", "c"], np.array([0.2, 0.9, 0.8, 0.1]), _OFFSETS)
    answers = JudgedAnswers(table, np.ones(4), np.zeros(4))
    checklist = Checklist("q0", ("One?", "Two?"))
    found = list(item_behaviors(answers, {"q0": checklist}, np.full(3, np.nan)))
    assert [own.responses for own, _ in found] == [2, 2]
    assert len(list(item_influences(table, (1.0, 10.0)))) == 2


def test_a_large_run_takes_seconds() -> None:
    """100 queries, 1,000 candidates, eight items."""
    rng = np.random.default_rng(0)
    table = table_of(rng.random((1_000, 8)), queries=100)
    items = tuple(f"Does the response hold {number}?" for number in range(8))
    checklists = {f"q{query}": Checklist(f"q{query}", items) for query in range(100)}
    answers = JudgedAnswers(table, np.ones(len(table.p_yes)), np.zeros(len(table.p_yes)))
    started = time.process_time()
    found = list(item_behaviors(answers, checklists, np.full(len(table), np.nan)))
    moved = list(item_influences(table, (1.0, 10.0)))
    ranking_without(table, {(query, 1) for query in checklists})
    assert (len(found), len(moved)) == (800, 800)
    assert time.process_time() - started < 30.0


_OFFSETS = np.array([0, 2, 2, 4])

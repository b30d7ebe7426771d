"""Advice from reference answers to items: yes bias, discrimination and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.audit.calibration import calibration
from rocketeval.audit.item_gold import on_items


def advice_on(p_yes: np.ndarray, gold: np.ndarray, per_query: int = 10) -> str:
    groups = np.arange(len(p_yes)) // per_query
    return "\n".join(on_items(calibration(p_yes, gold, groups, bootstrap=200)))


def chances(seed: int = 0, items: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return reference answers drawn with exactly these probabilities."""
    rng = np.random.default_rng(seed)
    p_yes = rng.random(items)
    return p_yes, (rng.random(items) < p_yes).astype(float)


def test_calibrated_judge_gets_no_warning() -> None:
    """A calibrated judge has no bias, distinguishes yes from no, and all bins agree."""
    words = advice_on(*chances(seed=3))
    assert "No significant bias" in words
    assert "49% of items, reference 50%" in words
    assert "distinguishes yes from no" in words
    assert "No significant miscalibration: all 10 bins" in words


def test_yes_bias_is_reported_with_its_direction() -> None:
    """Too many yes and too many no are reported with both shares."""
    p_yes, gold = chances()
    for power, bias, shares in (
        (0.5, "yes too often", "75% of items, reference 49%"),
        (2.5, "no too often", "24% of items, reference 49%"),
    ):
        words = advice_on(p_yes**power, gold)
        assert bias in words
        assert shares in words


def test_miscalibrated_bins_are_counted_with_their_chance() -> None:
    """The worst bin is named, and how often chance gives as many."""
    p_yes, gold = chances()
    words = advice_on(p_yes**0.5, gold)
    assert "miscalibrated in 9 of 10 bins" in words
    assert "9 or more would be off in fewer than 1% of audits" in words


def test_unrelated_answers_do_not_distinguish_yes_from_no() -> None:
    """The AUC is that of guessing."""
    rng = np.random.default_rng(1)
    words = advice_on(rng.random(400), (rng.random(400) < 0.5).astype(float))
    assert "does not significantly distinguish yes from no" in words


def test_inverted_answers_are_reported() -> None:
    """An AUC below guessing is reported as confusion of yes and no."""
    p_yes, gold = chances()
    words = advice_on(1.0 - p_yes, gold)
    assert "confuses yes and no" in words
    assert "distinguish" not in words


def test_few_queries_give_figures_and_no_verdict() -> None:
    """With fewer than six queries there are figures but no verdict."""
    p_yes, gold = chances(items=30)
    words = advice_on(p_yes, gold)
    assert "Too few queries" in words
    assert "so far" in words
    for verdict in ("too often", "distinguishes", "calibrat"):
        assert verdict not in words


def test_five_perfect_queries_give_no_verdict() -> None:
    """Every yes above every no has an exact interval from six queries on."""
    for queries, known in ((5, False), (6, True)):
        gold = np.array([1.0, 0.0] * queries)
        groups = np.arange(2 * queries) // 2
        found = calibration(np.where(gold == 1.0, 0.8, 0.2), gold, groups, bootstrap=100)
        words = "\n".join(on_items(found))
        assert "100%" in words
        assert ("distinguishes" in words) == known
        assert "No significant bias" not in words


def test_constant_answers_are_reported() -> None:
    """A judge that always says yes is biased, and does not distinguish anything."""
    gold = np.array([1.0, 0.0] * 30)
    words = advice_on(np.full(60, 0.9), gold, per_query=2)
    assert "says yes too often: yes for 100% of items, reference 50%" in words
    assert "does not significantly distinguish yes from no" in words


@pytest.mark.parametrize(
    ("gold", "reason"),
    [([], "no item has both"), ([0.2, 0.7], "not yes or no")],
    ids=["none", "shares"],
)
def test_reference_without_yes_and_no_gives_a_reason(gold: list[float], reason: str) -> None:
    """The only sentence is the reason."""
    words = advice_on(np.full(len(gold), 0.5), np.array(gold))
    assert words.startswith("No conclusion")
    assert reason in words
    assert "\n" not in words


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.sampled_from([0.0, 0.1, 0.5, 0.9, 1.0, np.nan]), st.booleans())))
def test_advice_never_shows_nan(items: list[tuple[float, bool]]) -> None:
    """Any answers give sentences without NaN."""
    p_yes = np.array([p for p, _ in items])
    gold = np.array([float(yes) for _, yes in items])
    for sentence in on_items(calibration(p_yes, gold, np.arange(len(items)) // 2, bootstrap=5)):
        assert sentence.endswith(".")
        assert "nan" not in sentence
        assert "None" not in sentence


@pytest.mark.parametrize(
    ("of_yes", "start"),
    [(0.9, "It distinguishes yes from no: "), (0.1, "It confuses yes and no: ")],
)
def test_perfect_and_inverted_judges_are_named(of_yes: float, start: str) -> None:
    """An AUC of 1 or 0 on 50 queries has an exact interval, and a conclusion from it."""
    gold = np.tile([1.0, 0.0], 50)
    p_yes = np.where(gold > 0.0, of_yes, 1.0 - of_yes)
    queries = [f"q{item // 2}" for item in range(100)]
    found = calibration(p_yes, gold, queries, bootstrap=50)
    assert [line for line in on_items(found) if line.startswith(start)]
    few = calibration(p_yes[:8], gold[:8], queries[:8], bootstrap=50)
    assert not [line for line in on_items(few) if line.startswith(start)]

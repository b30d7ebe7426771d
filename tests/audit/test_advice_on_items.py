"""Advice from reference answers to items: yes bias, discrimination and calibration."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rocketeval.audit.calibration import calibration
from rocketeval.audit.item_gold import on_items


def said(p_yes: np.ndarray, gold: np.ndarray, per_query: int = 10) -> str:
    groups = np.arange(len(p_yes)) // per_query
    return "\n".join(on_items(calibration(p_yes, gold, groups, bootstrap=200)))


def chances(seed: int = 0, items: int = 3000) -> tuple[np.ndarray, np.ndarray]:
    """Return reference answers drawn with exactly these probabilities."""
    rng = np.random.default_rng(seed)
    p_yes = rng.random(items)
    return p_yes, (rng.random(items) < p_yes).astype(float)


def test_calibrated_judge_gets_no_warning() -> None:
    """A calibrated judge has no bias, distinguishes yes from no, and all bins agree."""
    words = said(*chances(seed=3))
    assert "No lean to yes or to no is sure: yes to 49 % of items, gold to 50 %" in words
    assert "It tells yes from no: an item that gold says yes to gets the higher" in words
    assert "Nothing says that its probabilities are no chances: all 10 bins hold" in words


def test_yes_bias_is_reported_with_its_direction() -> None:
    """Too many yes and too many no are reported with both shares."""
    p_yes, gold = chances()
    assert "It says yes too easily: to 75 % of items, gold to 49 %" in said(p_yes**0.5, gold)
    assert "It says no too easily: yes to 24 % of items, gold to 49 %" in said(p_yes**2.5, gold)


def test_miscalibrated_bins_are_counted_with_their_chance() -> None:
    """The worst bin is named, and how often chance gives as many."""
    p_yes, gold = chances()
    words = said(p_yes**0.5, gold)
    assert (
        "Its probabilities are no chances: in 9 of 10 bins gold says yes to another share" in words
    )
    assert "By luck alone 9 or more would be off in fewer than 1 % of audits." in words


def test_unrelated_answers_do_not_distinguish_yes_from_no() -> None:
    """The AUC is that of guessing."""
    rng = np.random.default_rng(1)
    words = said(rng.random(400), (rng.random(400) < 0.5).astype(float))
    assert "It does not surely tell yes from no" in words


def test_inverted_answers_are_reported() -> None:
    """An AUC below guessing is reported as confusion of yes and no."""
    p_yes, gold = chances()
    words = said(1.0 - p_yes, gold)
    assert "It takes yes for no: an item that gold says yes to gets the higher" in words
    assert "surely" not in words


def test_few_queries_give_figures_and_no_verdict() -> None:
    """With fewer than six queries there are figures but no verdict."""
    p_yes, gold = chances(items=30)
    words = said(p_yes, gold)
    assert "too few queries to tell whether it leans" in words
    assert "of the time, so far." in words
    for verdict in ("too easily", "tells yes", "chances"):
        assert verdict not in words


@pytest.mark.parametrize(
    ("gold", "reason"),
    [([], "no item has both"), ([0.2, 0.7], "gold is not yes or no")],
    ids=["none", "shares"],
)
def test_reference_without_yes_and_no_gives_a_reason(gold: list[float], reason: str) -> None:
    """The only sentence is the reason."""
    words = said(np.full(len(gold), 0.5), np.array(gold))
    assert words.startswith(f"The gold tells nothing: {reason}")
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

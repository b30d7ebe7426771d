"""Verdicts on items: decisive, dead or redundant, at their limits."""

from __future__ import annotations

import numpy as np
import pytest

from rocketeval.explain.items import (
    FEWEST_FOR_CORRELATION,
    FEWEST_FOR_SAME,
    TOO_FEW,
    item_figures,
    item_verdicts,
)
from support.contract import CONTRACT

RANDOM = np.random.default_rng(0)


def equal(items: int) -> np.ndarray:
    return np.full(items, 1.0 / items)


def test_figures_are_those_of_explain() -> None:
    """Mean, spread and correlation equal those of `rocketeval explain`, also with gaps."""
    p_yes = RANDOM.uniform(size=(30, 5))
    p_yes[RANDOM.uniform(size=p_yes.shape) < 0.2] = np.nan
    scores = RANDOM.uniform(1, 10, 30)
    scores[3] = np.nan
    expected = item_figures(["?"] * 5, p_yes, scores, None)
    for item, other in zip(item_verdicts(p_yes, scores, equal(5)), expected, strict=True):
        assert item.mean == pytest.approx(other.mean)
        assert item.spread == pytest.approx(other.spread)
        assert item.correlation == pytest.approx(other.discrimination)


def test_influence_is_a_share_of_weight_times_spread() -> None:
    """It sums to one; a constant item has none."""
    p_yes = np.array([[0.2, 0.5, 0.1], [0.8, 0.5, 0.9], [0.5, 0.5, 0.5]])
    found = item_verdicts(p_yes, p_yes.mean(axis=1), np.array([0.5, 0.25, 0.25]))
    shares = [item.influence for item in found]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[1] == 0.0
    assert shares[0] / shares[2] == pytest.approx(2 * 0.6 / 0.8)


def test_negative_weight_counts_like_a_positive_one() -> None:
    """Shares remain shares if yes lowers the score."""
    p_yes = np.array([[0.2, 0.2, 0.1], [0.8, 0.8, 0.9], [0.5, 0.5, 0.5]])
    found = item_verdicts(p_yes, p_yes[:, 2], np.array([0.4, -0.4, 0.2]))
    shares = [item.influence for item in found]
    assert sum(shares) == pytest.approx(1.0)
    assert shares[0] == pytest.approx(shares[1])
    assert min(shares) > 0.0


def test_without_weights_no_item_is_decisive() -> None:
    """A scorer without item weights gives no influence; other verdicts remain."""
    loud = np.array([0.05, 0.95, 0.1, 0.9, 0.5, 0.3])
    p_yes = np.column_stack([0.5 + 0.06 * RANDOM.uniform(-1, 1, (6, 3)), loud])
    found = item_verdicts(p_yes, p_yes.mean(axis=1), None)
    assert [item.influence for item in found] == [None] * 4
    assert found[3].verdict == ""
    assert found[3].correlation == pytest.approx(1.0, abs=0.05)


def test_redundant_item_names_the_earlier_one() -> None:
    """The later of two is redundant, also if it says the opposite."""
    base = np.tile([0.1, 0.9, 0.3, 0.7, 0.5], 2)
    other = np.tile([0.5, 0.4, 0.9, 0.2, 0.3], 2)
    p_yes = np.column_stack([base, other, 1.0 - base])
    found = item_verdicts(p_yes, p_yes.mean(axis=1), equal(3))
    assert [item.verdict for item in found] == ["", "", "redundant"]
    assert found[2].why == "says the opposite of item 1 (-1.00)"


def test_nine_responses_do_not_make_an_item_redundant() -> None:
    """Few responses may agree by chance; missing answers count against the ten."""
    base = np.tile([0.1, 0.9, 0.3, 0.7, 0.5], 2)
    p_yes = np.column_stack([base, base])
    p_yes[0, 1] = np.nan
    assert item_verdicts(p_yes, base, equal(2))[1].verdict == ""


def test_dead_item_is_not_redundant() -> None:
    """And no item is redundant because of a dead one."""
    base = np.array([0.91, 0.99, 0.93, 0.97, 0.95])
    wide = (base - 0.91) * 10
    found = item_verdicts(np.column_stack([base, wide]), wide, equal(2))
    assert [item.verdict for item in found] == ["dead", ""]
    assert found[0].why == "yes to all"


def test_decisive_item_needs_influence_and_correlation() -> None:
    """Either alone is not enough."""
    loud = np.array([0.05, 0.95, 0.1, 0.9, 0.5, 0.3])
    quiet = 0.5 + 0.06 * RANDOM.uniform(-1, 1, (6, 3))
    p_yes = np.column_stack([quiet, loud])
    with_it, against_it = p_yes.mean(axis=1), -p_yes.mean(axis=1)
    assert item_verdicts(p_yes, with_it, equal(4))[3].verdict == "decisive"
    assert item_verdicts(p_yes, against_it, equal(4))[3].verdict == ""
    lone = item_verdicts(loud[:, None], loud, equal(1))[0]
    assert (lone.verdict, lone.influence) == ("", 1.0)


def test_without_answers_there_are_no_figures() -> None:
    """An item without answers has no figures and no verdict."""
    found = item_verdicts(np.full((3, 1), np.nan), np.array([1.0, 2.0, 3.0]), equal(1))[0]
    assert (found.mean, found.spread, found.correlation, found.influence) == (None,) * 4
    assert found.verdict == ""
    assert item_verdicts(np.empty((3, 0)), np.zeros(3), np.empty(0)) == []


def test_two_responses_are_too_few_for_a_decisive_item() -> None:
    """An item with a large share of influence says so; a small one says nothing."""
    p_yes = np.array([[0.1, 0.4, 0.5, 0.6], [0.9, 0.5, 0.6, 0.5]])
    found = item_verdicts(p_yes, p_yes.mean(axis=1), equal(4))
    assert [(item.verdict, item.why) for item in found] == [("", TOO_FEW)] + [("", "")] * 3
    enough = np.vstack([p_yes, p_yes.mean(axis=0)])
    assert item_verdicts(enough, enough[:, 0], equal(4))[0].verdict == "decisive"


def test_the_page_knows_the_fewest_responses() -> None:
    """The page says below which number of candidates a verdict is not decided."""
    contract = CONTRACT.read_text("utf-8")
    assert f"FEWEST_FOR_DECISIVE = {FEWEST_FOR_CORRELATION};" in contract
    assert f"FEWEST_FOR_REDUNDANT = {FEWEST_FOR_SAME};" in contract

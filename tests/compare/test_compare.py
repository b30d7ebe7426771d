"""Comparison of two candidates: verdict, rule and counts."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from rocketeval.compare.pair import Comparison, ComparisonVerdict, compare
from rocketeval.errors import ConfigError
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import rank
from rocketeval.report.all_pairs import compare_all


def grid_of(*columns: np.ndarray) -> ScoreGrid:
    """Return a grid with candidates a, b, c."""
    scores = np.column_stack(columns)
    return ScoreGrid(
        tuple(f"q{i}" for i in range(len(scores))), tuple("abc"[: len(columns)]), scores
    )


def shifted(seed: int, queries: int, shift: float, noise: float = 1.0) -> ScoreGrid:
    """Return two candidates on queries of very different difficulty."""
    rng = np.random.default_rng(seed)
    hardness = rng.normal(5.0, 3.0, queries)
    return grid_of(
        hardness + shift + noise * rng.normal(size=queries),
        hardness + noise * rng.normal(size=queries),
    )


def counts(found: Comparison) -> tuple[int, int, int]:
    """Return wins, ties and losses."""
    return found.wins, found.ties, found.losses


def test_figures_by_hand() -> None:
    """Mean difference, wins, ties, losses and missing scores equal a count by hand."""
    ours = np.array([7.0, 8.0, 5.0, 6.0, 9.0, np.nan, 4.0, 7.0])
    theirs = np.array([6.0, 8.0, 7.0, 5.95, 8.0, 3.0, np.nan, 5.0])
    found = compare(grid_of(ours, theirs), "a", "b")
    assert found.effect.value == pytest.approx((1 + 0 - 2 + 0.05 + 1 + 2) / 6)
    assert counts(found) == (3, 2, 1)
    assert (found.queries, found.missing) == (6, 2)


def test_points_below_the_scale_count_in_a_difference() -> None:
    """Two candidates whose means are both below the scale still differ, as in the ranking."""
    rng = np.random.default_rng(0)
    ours = rng.normal(-0.4, 0.3, 20)
    grid = grid_of(ours, ours - 0.4 + rng.normal(0.0, 0.1, 20))
    free, scaled = (compare(grid, "a", "b", scale=scale) for scale in (None, (0.0, 1.0)))
    assert free == scaled
    assert free.verdict is ComparisonVerdict.BETTER
    assert free.effect.value == pytest.approx(0.4, abs=0.1)
    assert rank(grid).rows[0].beats_next
    assert compare_all(grid).verdict == (ComparisonVerdict.BETTER,)


def test_equal_scores_on_all_queries_are_not_equal_enough() -> None:
    """That six queries agree proves nothing about rare failures: no bounds, power or verdict."""
    found = compare(grid_of(np.full(6, 10.0), np.full(6, 10.0)), "a", "b", min_effect=0.2)
    assert found.verdict is ComparisonVerdict.UNKNOWN
    assert math.isnan(found.effect.low)
    assert math.isnan(found.detectable)


def test_one_trivial_difference_does_not_make_equal_enough() -> None:
    """Five equal scores and one 0.001 higher prove no more than six equal ones; 400 do."""
    for queries, verdict in ((6, ComparisonVerdict.UNKNOWN), (400, ComparisonVerdict.EQUAL)):
        ours, theirs = np.full(queries, 5.0), np.full(queries, 5.0)
        ours[0] += 0.001
        found = compare(grid_of(ours, theirs), "a", "b", min_effect=0.2, scale=(1.0, 10.0))
        assert found.verdict is verdict
        assert found.may_be_worse is (verdict is ComparisonVerdict.UNKNOWN)


@pytest.mark.parametrize("queries", [20, 50])
def test_rare_breaks_among_equal_responses_are_never_equal_enough(queries: int) -> None:
    """Six percent of the responses lose four points; noise elsewhere hides nothing."""
    rng = np.random.default_rng(queries)
    for _ in range(40):
        noise = np.where(rng.random(queries) < 0.2, rng.normal(0.0, 0.02, queries), 0.0)
        broken = np.where(rng.random(queries) < 0.06, -4.0, 0.0)
        grid = grid_of(5.0 + noise + broken, np.full(queries, 5.0))
        found = compare(grid, "a", "b", min_effect=0.2, scale=(1.0, 10.0), bootstrap=200)
        assert found.verdict is not ComparisonVerdict.EQUAL
        assert found.may_be_worse


def test_small_constant_difference_is_not_worse() -> None:
    """A difference below the smallest that matters decides nothing without an interval."""
    old = np.linspace(2.0, 9.0, 200)
    found = compare(grid_of(old - 0.05, old), "a", "b", min_effect=0.5, scale=(1.0, 10.0))
    assert found.verdict is ComparisonVerdict.UNKNOWN
    found = compare(grid_of(old - 0.6, old), "a", "b", min_effect=0.5, scale=(1.0, 10.0))
    assert found.verdict is ComparisonVerdict.WORSE


def test_equal_scores_outside_the_scale_have_an_exact_interval() -> None:
    """Points below the scale widen it."""
    scores = np.linspace(-0.5, 0.9, 1000)
    found = compare(grid_of(scores, scores), "a", "b", min_effect=0.05, scale=(0.0, 1.0))
    assert found.verdict is ComparisonVerdict.EQUAL
    assert found.effect.low == -found.effect.high > -0.05


def test_equal_scores_have_an_exact_interval_on_a_known_scale() -> None:
    """Enough equal queries are equal enough: 3 in 100 others may differ, by the whole scale."""
    few, many = (
        compare(
            grid_of(np.full(n, 10.0), np.full(n, 10.0)), "a", "b", min_effect=0.2, scale=(1.0, 10.0)
        )
        for n in (6, 200)
    )
    assert few.verdict is ComparisonVerdict.UNKNOWN
    assert few.effect.high == pytest.approx(9.0 * (1.0 - 0.025 ** (1 / 6)))
    assert few.effect.low == -few.effect.high
    assert many.verdict is ComparisonVerdict.EQUAL
    outside = compare(grid_of(np.full(6, 11.0), np.full(6, 11.0)), "a", "b", scale=(1.0, 10.0))
    assert outside.effect.high == pytest.approx(10.0 * (1.0 - 0.025 ** (1 / 6)))


def test_a_rarely_failing_candidate_is_never_equal_enough_by_chance() -> None:
    """With one failure in twenty, most samples of ten queries have none."""
    rng = np.random.default_rng(1)
    verdicts = {
        compare(
            grid_of(np.where(rng.random(10) < 0.05, 1.0, 10.0), np.full(10, 10.0)),
            "a",
            "b",
            min_effect=0.2,
            bootstrap=100,
            scale=(1.0, 10.0),
        ).verdict
        for _ in range(50)
    }
    assert verdicts == {ComparisonVerdict.UNKNOWN}


def test_a_constant_difference_has_a_verdict_and_no_interval() -> None:
    """The sign-flip test decides; no minimum effect makes it equal enough."""
    grid = grid_of(np.full(6, 8.0), np.full(6, 9.0))
    for scale in (None, (1.0, 10.0)):
        below = compare(grid, "a", "b", min_effect=2.0, scale=scale)
        assert below.verdict is ComparisonVerdict.UNKNOWN
        found = compare(grid, "a", "b", min_effect=0.5, scale=scale)
        assert found.verdict is ComparisonVerdict.WORSE
        assert math.isnan(found.effect.low)
        assert math.isnan(found.effect.high)
        assert math.isnan(found.detectable)


def test_pairing_removes_query_difficulty() -> None:
    """A small steady difference is significant although queries differ far more."""
    found = compare(shifted(1, 80, 0.5, noise=0.5), "a", "b")
    assert found.verdict is ComparisonVerdict.BETTER
    assert 0.0 < found.effect.low < 0.5 < found.effect.high
    assert found.p_value < 0.01


def test_swapping_candidates_mirrors_the_result() -> None:
    """Swapping the two swaps the verdict, the sign and the counts."""
    grid = shifted(2, 60, 0.8)
    one, other = compare(grid, "a", "b"), compare(grid, "b", "a")
    assert (one.verdict, other.verdict) == (ComparisonVerdict.BETTER, ComparisonVerdict.WORSE)
    assert one.effect.value == -other.effect.value
    assert one.p_value == other.p_value
    assert counts(one) == counts(other)[::-1]


@pytest.mark.parametrize("queries", [1, 2, 5])
def test_too_few_queries_give_no_verdict(queries: int) -> None:
    """Below the minimum number of queries even a clean sweep has no verdict."""
    found = compare(grid_of(np.full(queries, 9.0), np.arange(queries) * 0.1), "a", "b")
    assert found.verdict is ComparisonVerdict.UNKNOWN
    assert math.isnan(found.effect.low)


def test_six_wins_of_six_are_significant() -> None:
    """At the minimum number of queries a clean sweep has p 0.031."""
    found = compare(grid_of(np.full(6, 9.0), np.full(6, 1.0)), "a", "b")
    assert (found.verdict, found.p_value) == (ComparisonVerdict.BETTER, 0.03125)


def test_the_verdict_never_contradicts_interval_or_test() -> None:
    """Better and worse need an interval without zero and a small p-value."""
    seen = set()
    for seed in range(150):
        found = compare(shifted(seed, 12, 0.8), "a", "b", bootstrap=200)
        seen.add(found.verdict)
        sure = found.p_value <= 0.05 and not found.effect.low <= 0.0 <= found.effect.high
        assert (found.verdict is not ComparisonVerdict.UNKNOWN) == sure
    assert seen >= {ComparisonVerdict.BETTER, ComparisonVerdict.UNKNOWN}


@pytest.mark.parametrize("queries", [8, 40])
def test_false_positive_rate_is_five_percent(queries: int) -> None:
    """Of 300 pairs of equals, about one in twenty is significant."""
    verdicts = [
        compare(shifted(s, queries, 0.0), "a", "b", bootstrap=200).verdict for s in range(300)
    ]
    assert sum(verdict is not ComparisonVerdict.UNKNOWN for verdict in verdicts) <= 25


def test_small_difference_is_equal_enough() -> None:
    """Within the minimum effect, even if the interval excludes zero."""
    grid = shifted(3, 400, 0.1, noise=0.2)
    assert compare(grid, "a", "b").verdict is ComparisonVerdict.BETTER
    assert compare(grid, "a", "b", min_effect=0.3).verdict is ComparisonVerdict.EQUAL
    assert compare(grid, "a", "b", min_effect=0.05).verdict is ComparisonVerdict.BETTER


def test_needed_queries_shrink_with_the_effect() -> None:
    """A tied result needs more queries; for almost no difference there is no number."""
    unsure = compare(shifted(4, 30, 0.25), "a", "b")
    assert unsure.verdict is ComparisonVerdict.UNKNOWN
    assert unsure.queries_needed is not None
    assert unsure.queries_needed > 30
    assert unsure.detectable > abs(unsure.effect.value)
    signs = np.tile([1.0, -1.0], 20)
    assert compare(grid_of(5.0 + signs, np.full(40, 5.0)), "a", "b").queries_needed is None
    almost = np.where(np.arange(40) == 0, 1.05, signs)
    assert compare(grid_of(5.0 + almost, np.full(40, 5.0)), "a", "b").queries_needed is None


def test_identical_candidates_are_tied() -> None:
    """Effect 0, p 1, all ties."""
    scores = np.linspace(1, 9, 20)
    found = compare(grid_of(scores, scores), "a", "b")
    assert (found.verdict, found.effect.value, found.p_value) == (
        ComparisonVerdict.UNKNOWN,
        0.0,
        1.0,
    )
    assert counts(found) == (0, 20, 0)


def test_mistakes_have_hints() -> None:
    """An unknown name, one name twice, and no shared query are errors with a hint."""
    grid = grid_of(np.array([1.0, np.nan]), np.array([np.nan, 2.0]))
    with pytest.raises(ConfigError, match="no candidate 'x'") as unknown:
        compare(grid, "x", "b")
    assert "'a', 'b'" in unknown.value.hint
    with pytest.raises(ConfigError, match="with itself"):
        compare(grid, "a", "a")
    with pytest.raises(ConfigError, match="no query with scores for both"):
        compare(grid, "a", "b")


def test_rounding_differences_are_zero() -> None:
    """0.3 against 0.1 + 0.2 on every query gives no difference and no small p-value."""
    found = compare(grid_of(np.full(20, 0.3), np.full(20, 0.1) + 0.2), "a", "b", bootstrap=50)
    assert (found.effect.value, found.p_value) == (0.0, 1.0)
    assert math.isnan(found.effect.low)


def test_turns_of_one_conversation_are_not_independent() -> None:
    """Each query counted twice proves no more than once, if both are one cluster."""
    rng = np.random.default_rng(4)
    once = rng.normal(size=(40, 2)) + np.array([0.35, 0.0])
    ids = tuple(f"q{row}" for row in range(40))
    both = tuple(f"{query}-{turn}" for query in ids for turn in (1, 2))
    single = compare(ScoreGrid(ids, ("a", "b"), once), "a", "b")
    clusters = tuple(query for query in ids for _ in (1, 2))
    twice = ScoreGrid(both, ("a", "b"), np.repeat(once, 2, axis=0), clusters)
    clustered, naive = compare(twice, "a", "b"), compare(replace(twice, clusters=None), "a", "b")
    assert (clustered.queries, clustered.clusters) == (80, 40)
    assert clustered.effect == single.effect
    assert clustered.p_value == single.p_value > naive.p_value
    assert clustered.detectable == pytest.approx(single.detectable)


def test_correlated_turns_give_few_false_verdicts() -> None:
    """Two equal candidates on 40 conversations of two turns, correlated 0.9: about 5% verdicts."""
    wrong = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        shared = np.repeat(rng.normal(size=(40, 2)), 2, axis=0)
        scores = np.sqrt(0.9) * shared + np.sqrt(0.1) * rng.normal(size=(80, 2))
        ids = tuple(f"{row // 2}-{row % 2}" for row in range(80))
        grid = ScoreGrid(ids, ("a", "b"), scores, tuple(name[:-2] for name in ids))
        verdict = compare(grid, "a", "b", bootstrap=200, seed=seed).verdict
        wrong += verdict is not ComparisonVerdict.UNKNOWN
    assert wrong <= 20

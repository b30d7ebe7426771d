"""Races decide what the scores show, keep their error rate, and name near ties."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rocketeval.arrays import Floats
from rocketeval.errors import ConfigError
from rocketeval.goal import parse_goal
from rocketeval.stats.sequential import Bounds
from rocketeval.stopping.race import Race, RaceOrder, draw_order
from rocketeval.stopping.summary import looks_note, race_in_words, race_tests


def run_race(goal: str, scores: Floats, clusters: list[int] | None = None, **settings: Any) -> Race:
    """Return a race over scores in their given order."""
    numbers = np.arange(len(scores)) if clusters is None else np.array(clusters)
    names = [f"c{column}" for column in range(scores.shape[1])]
    race = Race(parse_goal(goal), names, RaceOrder(np.arange(len(scores)), numbers), **settings)
    while race.ending is None:
        race.advance(scores)
    return race


def field_of(effects: list[float], queries: int, seed: int = 0) -> Floats:
    """Return scores with these true means and noise of standard deviation 1."""
    rng = np.random.default_rng(seed)
    return (
        np.array(effects) + rng.normal(size=(queries, len(effects))) + rng.normal(size=(queries, 1))
    )


@pytest.mark.parametrize(
    "text", ["", "bests", "top:0", "top:x", "beats:", "within:-1", "interval:nan"]
)
def test_other_goals_are_refused(text: str) -> None:
    """A text that is no goal is refused with the goals there are."""
    with pytest.raises(ValueError, match="best, top:K"):
        parse_goal(text)


def test_order_is_drawn_and_balanced() -> None:
    """Every tenth of the order has each category in proportion, and clusters stay together."""
    kinds = ["math"] * 40 + ["code"] * 160
    order = draw_order(np.arange(200), kinds, seed=1)
    assert sorted(order.rows.tolist()) == list(range(200))
    for start in range(0, 200, 20):
        math_share = sum(kinds[row] == "math" for row in order.rows[start : start + 20])
        assert 3 <= math_share <= 5
    assert draw_order(np.arange(200), kinds, seed=2).rows.tolist() != order.rows.tolist()
    turns = draw_order(np.repeat(np.arange(30), 2), [""] * 60, seed=1)
    assert (turns.clusters == np.repeat(np.arange(30), 2)).all()
    assert (turns.rows[::2] // 2 == turns.rows[1::2] // 2).all()


def test_best_of_a_clear_field_needs_few_queries() -> None:
    """The best is found on a small part of the queries, and weak candidates leave first."""
    scores = field_of([0.9, 0.0, -0.1, -0.5, -1.0, -2.0], 1000)
    race = run_race("best", scores)
    found = race.result("best", 0)
    assert found.ending == "decided"
    assert found.named("in") == ["c0"]
    assert found.judgments < found.of / 15
    queries = {row.candidate: row.queries for row in found.rows}
    assert queries["c5"] <= queries["c1"]
    assert race_in_words(found)[0] == "c0 has the highest mean score of 6 candidates."
    assert f"{found.judgments:,} of 6,000 judgments" in race_in_words(found)[1]


def test_near_tie_stops_and_is_named() -> None:
    """Two equal leaders are named as tied, before the queries run out."""
    scores = field_of([0.0, 0.0, -1.0, -1.5], 600, seed=5)
    found = run_race("best", scores).result("best", 0)
    assert found.ending == "near tie"
    assert sorted(found.named("tied")) == ["c0", "c1"]
    assert found.judgments < 0.6 * found.of
    assert "tied" in race_in_words(found)[0]
    assert run_race("best", scores, futility=0.0).ending == "no more queries"


def test_top_of_candidates() -> None:
    """The best three are found as a set."""
    found = run_race("top:3", field_of([1.0, 1.1, 0.9, 0.0, -0.2, -0.3], 800)).result("top:3", 0)
    assert found.ending == "decided"
    assert sorted(found.named("in")) == ["c0", "c1", "c2"]
    assert race_in_words(found)[0].startswith("The 3 highest mean scores of 6 candidates: c")


def test_beats_judges_each_candidate_by_itself() -> None:
    """Better, worse and tied candidates are named, and a decided one stops early."""
    scores = field_of([0.0, 0.8, -0.8, 0.0], 800, seed=3)
    found = run_race("beats:c0", scores).result("beats:c0", 0)
    states = {row.candidate: row.state for row in found.rows}
    assert states == {"c0": "reference", "c1": "better", "c2": "worse", "c3": "tied"}
    rows = {row.candidate: row for row in found.rows}
    assert rows["c1"].queries < rows["c3"].queries
    difference = rows["c1"].difference
    assert difference is not None
    assert 0.0 < difference.low < 0.8 < difference.high
    words = race_in_words(found)[0]
    assert words.startswith("c1 scores significantly higher than c0 by ")
    assert "c2 scores significantly lower than c0 by " in words
    assert words.endswith("c3 is tied with c0.")


def test_near_ties_still_count_as_comparisons() -> None:
    """A candidate that left as a near tie leaves no more error to the others."""
    asked: set[float] = set()

    class Recorder(Bounds):
        def at(self, look: int, error: float) -> float:
            asked.add(round(error, 9))
            return super().at(look, error)

    scores = field_of([0.0, 0.0, 0.0, 0.0, 0.0], 400, seed=7)
    looks = run_race("beats:c0", scores).bounds.looks
    race = run_race("beats:c0", scores, bounds=Recorder(looks))
    assert not race.better.any()
    assert len(set(race.lengths().tolist())) > 1
    assert asked == {0.05 / 8}


def test_order_within_a_margin() -> None:
    """No candidate is placed above one that is better by the margin."""
    effects = [0.4, 0.3, 0.0, -0.3, -0.4]
    race = run_race("within:0.4", field_of(effects, 1000, seed=2))
    assert race.ending == "decided"
    order = [effects[column] for column in race.placed()]
    assert all(
        later - earlier < 0.4 for place, earlier in enumerate(order) for later in order[place:]
    )
    assert race.lengths().max() < 1000


def test_intervals_reach_their_width() -> None:
    """Candidates stop when their own interval is narrow enough."""
    scores = field_of([0.0, 0.0, 0.0], 1000)
    scores[:, 2] *= 3.0
    found = run_race("interval:0.6", scores).result("interval:0.6", 0)
    rows = {row.candidate: row for row in found.rows}
    assert rows["c0"].mean.high - rows["c0"].mean.low <= 0.6
    assert rows["c0"].queries < rows["c2"].queries


def test_false_decisions_are_rare_where_peeking_errs() -> None:
    """Equal candidates are called different in at most 5% of races; peeking errs far more."""

    class Peeking(Bounds):
        def at(self, look: int, error: float) -> float:
            return 1.96

    false = {"ours": 0, "peeking": 0}
    for seed in range(150):
        scores = field_of([0.0, 0.0], 300, seed)
        false["ours"] += bool(run_race("beats:c0", scores).better.any())
        looks = run_race("beats:c0", scores).bounds.looks
        false["peeking"] += bool(run_race("beats:c0", scores, bounds=Peeking(looks)).better.any())
    assert false["ours"] <= 13
    assert false["peeking"] >= 20


def test_tests_of_a_ranking_account_for_looks() -> None:
    """A difference that one look calls significant may not be after several."""
    scores = field_of([0.0, 0.0, 0.0], 200, seed=4)
    found = run_race("best", scores).result("best", 0)
    used = np.full_like(scores, np.nan)
    for row in found.rows:
        column = int(row.candidate[1:])
        used[: row.queries, column] = scores[: row.queries, column]
    tests = race_tests(used, np.arange(200), ["c0", "c1", "c2"], found, 0.95)
    alone = race_tests(used, np.arange(200), ["c0", "c1", "c2"], found, 0.95, adjusted=False)
    assert not tests.better().any()
    assert (tests.p_values >= alone.p_values).all()


def test_few_queries_show_no_difference() -> None:
    """As in every other test: a pair that shares too few queries is not significant."""
    few = np.array([[9.0, 4.0], [8.0, 3.1], [9.0, 3.9]])
    found = run_race("best", few).result("best", 0)
    assert race_tests(few, np.arange(3), ["c0", "c1"], found, 0.95).p_values.min() == 1.0
    scores = field_of([0.0, 3.0, 6.0], 60)
    scores[3:, 0] = np.nan
    whole = run_race("best", field_of([0.0, 3.0, 6.0], 60)).result("best", 0)
    p_values = race_tests(scores, np.arange(60), ["c0", "c1", "c2"], whole, 0.95).p_values
    assert p_values[0, 1:].tolist() == [1.0, 1.0]
    assert p_values[1, 2] < 0.05


def test_chance_of_a_false_decision_is_never_rounded_to_zero() -> None:
    """A level of 0.999 leaves 0.1%."""
    found = replace(run_race("best", field_of([0.0, 3.0], 60)).result("best", 0), level=0.999)
    assert "at most 0.1%" in looks_note(found)


def test_goals_that_candidates_cannot_reach() -> None:
    """A goal names candidates of the run, and fewer than there are."""
    scores = field_of([0.0, 1.0], 60)
    with pytest.raises(ConfigError, match="not one of the 2 candidates"):
        run_race("beats:c9", scores)
    with pytest.raises(ConfigError, match="there are 2 candidates"):
        run_race("top:2", scores)
    with pytest.raises(ConfigError, match="only one"):
        run_race("best", scores[:, :1])


def test_scores_without_spread_decide_nothing() -> None:
    """Thirty perfect scores do not show that failures are rarer than the interval is wide."""
    scores = np.where(np.arange(200) == 60, 1.0, 10.0)[:, None]
    race = run_race("interval:0.1", scores)
    assert race.look > 0
    perfect = run_race("interval:0.5", np.full((60, 2), 0.1 + 0.2)).result("interval:0.5", 0)
    assert perfect.ending == "no more queries"
    assert all(np.isnan(row.mean.low) for row in perfect.rows)
    assert "unknown" in race_in_words(perfect)[0]


def test_differences_without_spread_decide_nothing() -> None:
    """Equal up to rounding on all queries: no order within a margin is claimed."""
    one = np.random.default_rng(0).normal(50.0, 20.0, 60)
    scores = np.column_stack([one, one + 0.1 + 0.2 - 0.3])
    found = run_race("within:0.2", scores).result("within:0.2", 0)
    assert found.ending == "no more queries"
    assert found.rows[1].difference is not None
    assert np.isnan(found.rows[1].difference.low)


def test_constant_lead_is_decided_at_the_last_look() -> None:
    """The same difference on all queries is no near tie: it is decided at the last look."""
    one = np.random.default_rng(0).integers(10, 70, 300) / 10.0
    scores = np.column_stack([one + 3.0, one])
    states = {
        "best": ["in", "out"],
        "beats:c1": ["better", "reference"],
        "within:0.5": ["placed"] * 2,
    }
    for goal, expected in states.items():
        found = run_race(goal, scores, scale=(1.0, 10.0)).result(goal, 0)
        assert found.ending == "decided"
        assert found.judgments == found.of
        assert [row.state for row in found.rows] == expected
        tests = race_tests(scores, np.arange(300), ["c0", "c1"], found, 0.95)
        assert tests.better().tolist() == [[False, True], [False, False]]


def test_constant_lead_needs_enough_queries() -> None:
    """Of five queries, even equal ones, none are enough; a failure after thirty is still seen."""
    few = run_race("best", np.column_stack([np.full(5, 4.0), np.full(5, 1.0)]))
    assert few.ending == "no more queries"
    late = np.column_stack([np.full(200, 1.3), np.full(200, 1.0)])
    late[60:64, 0] = -9.0
    race = run_race("best", late, futility=0.0)
    assert race.look > 0
    assert not race.better.any()


def test_three_tiny_differences_decide_no_more_than_none() -> None:
    """Of 60 queries, a rare large difference may not have been seen; 400 are enough."""
    for queries, ending in ((60, "no more queries"), (400, "decided")):
        scores = np.full((queries, 2), 5.0)
        scores[::20, 0] += 0.001 * np.arange(1, queries // 20 + 1)
        assert run_race("within:0.2", scores, scale=(1.0, 10.0)).ending == ending


def test_equal_scores_are_in_order_if_their_exact_interval_is_narrow() -> None:
    """Equal scores on 300 queries rule out a difference of 0.5, but not of 0.05."""
    same = np.full((300, 2), 7.0)
    assert run_race("within:0.5", same, scale=(1.0, 10.0)).ending == "decided"
    assert run_race("within:0.05", same, scale=(1.0, 10.0)).ending == "no more queries"
    assert run_race("within:0.5", same).ending == "no more queries"
    assert run_race("best", same).ending == "near tie"

"""Losses and strengths of a candidate: computed by hand, and traceable to a judgment."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
import pytest

from rocketeval.errors import StoreError
from rocketeval.explain.candidate import CandidateExplanation, GradedRun, explain_candidates
from rocketeval.records import Checklist, Query
from rocketeval.scoring.answers import AnswerTable
from support.graded import make_graded

NAN = float("nan")


def explain(graded: GradedRun, name: str, **settings: int) -> CandidateExplanation:
    (found,) = explain_candidates(graded, [name], **{"most": 9, "bootstrap": 50, **settings})
    return found


def test_loss_is_the_weighted_gap_to_the_neighbors() -> None:
    """(0.9 - 0.1) / 2 of a scale nine wide is 3.6 points."""
    graded = make_graded(
        {"q": {"best": [0.9, 0.5], "own": [0.1, 0.7], "last": [0.9, 0.3]}}, ["best", "own", "last"]
    )
    found = explain(graded, "own")
    (loss,) = found.losses
    assert (loss.query_id, loss.item, loss.text) == ("q", 1, "q item 1?")
    assert (loss.p_yes, loss.neighbours_p_yes, loss.weight) == (0.1, pytest.approx(0.9), 0.5)
    assert loss.points == pytest.approx(3.6)
    assert loss.score == pytest.approx(1 + 9 * 0.4)
    assert loss.judgment == "key of own on q"
    assert [(one.candidate, one.p_yes) for one in loss.neighbours] == [("best", 0.9), ("last", 0.9)]
    (strength,) = found.strengths
    assert (strength.item, strength.points) == (2, pytest.approx(-1.35))
    assert (found.place, found.compared, found.not_compared) == (2, 2, 0)


def test_points_of_all_items_are_the_difference_of_mean_scores() -> None:
    """For the mean scorer, the total cost is the neighbors' mean score minus its own."""
    rng = np.random.default_rng(0)
    names = list("abcdefg")
    graded = make_graded({"q": {name: rng.random(5).tolist() for name in names}}, names)
    found = explain(graded, "d", neighbours=4)
    scores = dict(zip(graded.answers.candidates, graded.scores, strict=True))
    expected = np.mean([scores[name] for name in "bcef"]) - scores["d"]
    assert sum(gap.points for gap in (*found.losses, *found.strengths)) == pytest.approx(expected)
    assert found.overall is not None
    assert found.overall.points.value == pytest.approx(expected)


def test_largest_losses_come_first() -> None:
    """Over many queries, the kept losses are the top of the sorted list."""
    rng = np.random.default_rng(1)
    names = list("abcdef")
    table = {f"q{n}": {name: rng.random(4).tolist() for name in names} for n in range(20)}
    graded = make_graded(table, names)
    every, few = explain(graded, "c", most=1000), explain(graded, "c", most=3)
    points = [gap.points for gap in every.losses]
    assert points == sorted(points, reverse=True)
    assert len(every.losses) + len(every.strengths) == 80
    assert few.losses == every.losses[:3]
    assert few.strengths == every.strengths[:3]
    assert all(gap.points < 0 for gap in few.strengths)


def test_neighbors_need_a_score_on_the_query() -> None:
    """A neighbor without a response or a rank is replaced by the next one."""
    graded = make_graded(
        {
            "q": {"a": [0.9], "c": [0.1], "d": [], "e": [0.5], "stranger": [0.0]},
            "r": {"a": [0.5], "b": [0.5], "c": [0.5]},
        },
        ["a", "b", "c", "d", "e"],
    )
    (loss,) = explain(graded, "c", neighbours=2).losses
    assert [one.candidate for one in loss.neighbours] == ["a", "e"]
    assert loss.neighbours_p_yes == pytest.approx(0.7)


def test_learned_weights_replace_equal_ones() -> None:
    """An item with a higher learned weight costs more, on queries with weights."""
    answers = {"own": [0.0, 0.0], "other": [1.0, 1.0]}
    graded = make_graded({"q": answers, "r": answers}, ["other", "own"], weights={"q": [0.1, 0.9]})
    losses = explain(graded, "own").losses
    assert [(one.query_id, one.item, round(one.weight, 3)) for one in losses] == [
        ("q", 2, 0.9),
        ("r", 1, 0.5),
        ("r", 2, 0.5),
        ("q", 1, 0.1),
    ]


def test_answers_that_cannot_be_compared_are_counted() -> None:
    """A missing own answer, or no neighbor, is neither a loss nor a strength."""
    graded = make_graded(
        {"q": {"own": [NAN, 0.2, 0.4], "other": [0.9, NAN, 0.4]}, "alone": {"own": [0.0]}},
        ["other", "own"],
    )
    found = explain(graded, "own")
    assert (found.losses, found.strengths) == ((), ())
    assert (found.compared, found.not_compared) == (1, 3)


def test_missing_neighbor_answer_is_none() -> None:
    """It is None in the trace and left out of the mean."""
    graded = make_graded({"q": {"a": [NAN], "own": [0.2], "z": [0.8]}}, ["a", "own", "z"])
    # The first candidate has no answer; give it a score to keep it a neighbor.
    graded = replace(graded, scores=np.array([5.0, 2.8, 8.2]))
    (loss,) = explain(graded, "own").losses
    assert [(one.candidate, one.p_yes) for one in loss.neighbours] == [("a", None), ("z", 0.8)]
    assert loss.neighbours_p_yes == pytest.approx(0.8)


def test_single_candidate_has_no_figures() -> None:
    """Without neighbors there is no figure and no error."""
    found = explain(make_graded({"q": {"own": [0.5]}}, ["own"]), "own")
    assert (found.overall, found.categories, found.losses) == (None, (), ())


def test_weights_of_another_checklist_are_refused() -> None:
    """The error names the query and what to run."""
    with pytest.raises(StoreError, match="3 weights for query 'q', whose checklist has 2 items"):
        make_graded({"q": {"own": [0.5, 0.5]}}, ["own"], weights={"q": [0.2, 0.3, 0.5]})


def test_a_hundred_thousand_responses_take_seconds_of_cpu() -> None:
    """300 candidates on 300 queries with 8 items take about a second, with slack."""
    rng = np.random.default_rng(2)
    names = [f"c{n:03d}" for n in range(300)]
    answers = AnswerTable(
        [f"q{n}" for n in range(300) for _ in names],
        names * 300,
        rng.random(300 * 300 * 8),
        np.arange(0, 300 * 300 * 8 + 1, 8),
    )
    queries = [f"q{n}" for n in range(300)]
    graded = GradedRun(
        answers=answers,
        scores=answers.p_yes.reshape(-1, 8).mean(axis=1),
        judgments=[None] * len(answers),
        ranked=names,
        queries={query: Query(query, "text", category="any") for query in queries},
        checklists={query: Checklist(query, ("Is it?",) * 8) for query in queries},
        weights={},
    )
    before = time.process_time()
    found = explain_candidates(graded, names, most=5)
    assert time.process_time() - before < 30.0
    assert {len(one.losses) for one in found} == {5}


def test_equal_answers_are_neither_loss_nor_strength() -> None:
    """Rounding differences of equal answers are not gaps."""
    rng = np.random.default_rng(0)
    names = [f"c{number:02d}" for number in range(12)]
    answers = {f"q{number}": rng.random(3).tolist() for number in range(8)}
    graded = make_graded({q: dict.fromkeys(names, own) for q, own in answers.items()}, names)
    for found in explain_candidates(graded, names, most=5, bootstrap=10):
        assert (found.losses, found.strengths) == ((), ())
        assert found.compared == 24


def test_weights_of_an_unjudged_query_are_ignored() -> None:
    """A saved scorer can have a query without judgments here."""
    graded = make_graded(
        {"q": {"a": [0.5, 0.9], "b": [0.6, 0.2]}, "r": {"a": [], "b": []}},
        ["a", "b"],
        weights={"q": [0.3, 0.7]},
    )
    known = {**graded.checklists, "r": Checklist("r", ("One?", "Two?"))}
    graded = replace(graded, checklists=known, weights={"q": [0.3, 0.7], "r": [0.5, 0.5]})
    assert explain(graded, "a").compared == 2

"""Losses and strengths are those a reader would find by hand, and lead back to their judgment."""

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


def test_a_loss_is_what_the_neighbours_get_and_it_does_not() -> None:
    """Gap, weight and points by hand: (0.9 - 0.1) / 2 of a scale nine wide is 3.6."""
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
    """For the mean scorer, what all items cost is the neighbours' mean score less the own one."""
    rng = np.random.default_rng(0)
    names = list("abcdefg")
    graded = make_graded({"q": {name: rng.random(5).tolist() for name in names}}, names)
    found = explain(graded, "d", neighbours=4)
    scores = dict(zip(graded.answers.candidates, graded.scores, strict=True))
    expected = np.mean([scores[name] for name in "bcef"]) - scores["d"]
    assert sum(gap.points for gap in (*found.losses, *found.strengths)) == pytest.approx(expected)
    assert found.overall is not None
    assert found.overall.points.value == pytest.approx(expected)


def test_the_largest_come_first_and_the_rest_is_cut() -> None:
    """Over many queries, the kept losses are the top of the sorted list of all."""
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


def test_neighbours_are_those_with_a_score_on_the_query() -> None:
    """A neighbour without a response, or unranked, is passed over for the next one."""
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


def test_learned_weights_take_the_place_of_equal_ones() -> None:
    """The item that a scorer found important costs more, on the queries that have weights."""
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
    """One's own gap, or nobody beside one, is no loss and no strength."""
    graded = make_graded(
        {"q": {"own": [NAN, 0.2, 0.4], "other": [0.9, NAN, 0.4]}, "alone": {"own": [0.0]}},
        ["other", "own"],
    )
    found = explain(graded, "own")
    assert (found.losses, found.strengths) == ((), ())
    assert (found.compared, found.not_compared) == (1, 3)


def test_a_neighbours_gap_is_named_as_a_gap() -> None:
    """A missing answer of a neighbour is None in the trace, and out of the mean."""
    graded = make_graded({"q": {"a": [NAN], "own": [0.2], "z": [0.8]}}, ["a", "own", "z"])
    # The first candidate has no answer, so no score; give it one to keep it a neighbour.
    graded = replace(graded, scores=np.array([5.0, 2.8, 8.2]))
    (loss,) = explain(graded, "own").losses
    assert [(one.candidate, one.p_yes) for one in loss.neighbours] == [("a", None), ("z", 0.8)]
    assert loss.neighbours_p_yes == pytest.approx(0.8)


def test_a_candidate_alone_has_nothing_to_explain() -> None:
    """Without neighbours there is no figure, and no crash."""
    found = explain(make_graded({"q": {"own": [0.5]}}, ["own"]), "own")
    assert (found.overall, found.categories, found.losses) == (None, (), ())


def test_weights_of_another_checklist_are_refused() -> None:
    """Weights that do not fit the items name the query and what to do."""
    with pytest.raises(StoreError, match="3 weights for query 'q', whose checklist has 2 items"):
        make_graded({"q": {"own": [0.5, 0.5]}}, ["own"], weights={"q": [0.2, 0.3, 0.5]})


def test_a_hundred_thousand_responses_take_seconds_of_cpu() -> None:
    """300 candidates on 300 queries with 8 items: about a second, with slack for slow machines."""
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
    """Means of equal answers differ from them in the last bits; that is no gap."""
    rng = np.random.default_rng(0)
    names = [f"c{number:02d}" for number in range(12)]
    answers = {f"q{number}": rng.random(3).tolist() for number in range(8)}
    graded = make_graded({q: dict.fromkeys(names, own) for q, own in answers.items()}, names)
    for found in explain_candidates(graded, names, most=5, bootstrap=10):
        assert (found.losses, found.strengths) == ((), ())
        assert found.compared == 24


def test_weights_of_a_query_without_any_judgment_do_no_harm() -> None:
    """A saved scorer can know a query that nobody was judged on here."""
    graded = make_graded(
        {"q": {"a": [0.5, 0.9], "b": [0.6, 0.2]}, "r": {"a": [], "b": []}},
        ["a", "b"],
        weights={"q": [0.3, 0.7]},
    )
    known = {**graded.checklists, "r": Checklist("r", ("One?", "Two?"))}
    graded = replace(graded, checklists=known, weights={"q": [0.3, 0.7], "r": [0.5, 0.5]})
    assert explain(graded, "a").compared == 2

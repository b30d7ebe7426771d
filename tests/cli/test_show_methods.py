"""What a comparison of methods says where figures are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest
from rich.console import Console

from rocketeval.audit.methods import ExcludedMethod, MethodComparison, MethodGrades, compare_methods
from rocketeval.cli.audit_tables import show_methods
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Label, Rating, Usage, Vote

GRIDS = {
    "one": ScoreGrid(("p", "q"), ("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]])),
    "two": ScoreGrid(("p", "q"), ("a", "b"), np.array([[2.0, 1.0], [3.0, math.nan]])),
}


def compare(gold: Gold, *names: str) -> MethodComparison:
    """The comparison of some grids."""
    graded = {name: MethodGrades(GRIDS[name], Usage(requests=1234)) for name in names or ("one",)}
    return compare_methods(graded, {}, gold, RankingConfig(bootstrap=50))


def shown(comparison: MethodComparison, capsys: pytest.CaptureFixture[str]) -> str:
    """What is printed."""
    show_methods(comparison)
    return capsys.readouterr().out


def test_votes_that_nobody_can_meet_make_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """Why there is none is said instead."""
    text = shown(compare(Gold(votes=[Vote("p", "a", "x", "a")])), capsys)
    assert "of 1 vote none is about two responses that every compared method scored" in text
    assert "with ties" not in text


def test_votes_left_out_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside those that count."""
    votes = [Vote("p", "a", "b", "a"), Vote("p", "a", "x", "a")]
    text = shown(compare(Gold(votes=votes)), capsys)
    assert "Agreement with 1 vote (tie margin 0.1)" in text
    assert "1 more vote is on other responses." in text


def test_labels_without_a_coefficient_say_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Too few, or of responses that nobody scored."""
    text = shown(compare(Gold(labels=[Label("p", "a", 3.0)])), capsys)
    assert "No coefficient (one, responses): only 1 labeled responses have both figures" in text
    text = shown(compare(Gold(labels=[Label("p", "x", 3.0)])), capsys)
    assert "no labeled response was scored by every method" in text
    assert "Spearman" not in text


def test_too_few_ratings_make_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is the correlation's own."""
    text = shown(compare(Gold(ratings=[Rating("a", 1.0)])), capsys)
    assert "No figure for reference ratings: only 1 candidates" in text


def test_what_stands_apart_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With its reason as a sentence, and its cost if it had any."""
    found = compare(Gold(), "one", "two")
    text = shown(found, capsys)
    assert "two was not compared: it scored only 3 of 4 responses." in text
    assert text.count("1,234") == 2
    refused = MethodComparison(
        (), None, 0, 0, 0.1, (ExcludedMethod("x", "The server refused.\x1b[2J"),)
    )
    assert "x was not compared: The server refused.\ufffd[2J." in shown(refused, capsys)


@pytest.mark.parametrize("name", ["rubric:criterion=logical_correctness", "checklist+extra_trees"])
def test_every_table_fits_80_columns(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long name is broken, a figure never is."""
    rng = np.random.default_rng(0)
    queries, candidates = tuple(f"q{row}" for row in range(12)), tuple("abcdefghij")
    graded = {
        each: MethodGrades(
            ScoreGrid(queries, candidates, rng.normal(size=(12, 10))), Usage(9, 123456)
        )
        for each in ("checklist", name)
    }
    labels = [Label(q, c, float(rng.normal())) for q in queries for c in candidates]
    votes = [Vote(q, "a", "b", "a") for q in queries]
    gold = Gold(labels, votes, [Rating(c, float(rng.normal())) for c in candidates])
    found = compare_methods(graded, {}, gold, RankingConfig(bootstrap=50))
    monkeypatch.setattr("rocketeval.cli.audit_tables.make_console", lambda: Console(width=80))
    text = shown(found, capsys)
    assert max(map(len, text.splitlines())) <= 80
    figures = [line for line in text.splitlines() if "(" in line and ".." in line]
    assert len(figures) >= 4
    assert all(line.count("(") == line.count(")") for line in figures)


def test_a_method_s_name_is_shown_as_it_was_written(capsys: pytest.CaptureFixture[str]) -> None:
    """It is no markup, and rewrites no terminal."""
    graded = {"fixed:items=[red]\x1b[2J": MethodGrades(GRIDS["one"], Usage(requests=1))}
    votes = [Vote("p", "a", "b", "a")]
    found = compare_methods(graded, {}, Gold(votes=votes), RankingConfig(bootstrap=50))
    text = shown(found, capsys)
    assert "\x1b" not in text
    assert text.count("fixed:items=[red]\ufffd[2J") >= 3


def test_what_must_be_known_of_scores_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """Such as that a scorer had nothing to learn from."""
    graded = {"one": MethodGrades(GRIDS["one"], note="2 queries have too little to learn from")}
    found = compare_methods(graded, {}, Gold(), RankingConfig(bootstrap=50))
    assert "one: 2 queries have too little to learn from." in shown(found, capsys)

"""Output of a method comparison, also with missing figures."""

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
    """Return the comparison of some grids."""
    graded = {name: MethodGrades(GRIDS[name], Usage(requests=1234)) for name in names or ("one",)}
    return compare_methods(graded, {}, gold, RankingConfig(bootstrap=50))


def shown(comparison: MethodComparison, capsys: pytest.CaptureFixture[str]) -> str:
    """Return the printed output."""
    show_methods(comparison)
    return capsys.readouterr().out


def test_unusable_votes_give_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence gives the reason instead."""
    text = shown(compare(Gold(votes=[Vote("p", "a", "x", "a")])), capsys)
    assert "none of 1 vote " in text
    assert "all votes" not in text


def test_unused_votes_are_counted(capsys: pytest.CaptureFixture[str]) -> None:
    """The number of unused votes follows the table."""
    votes = [Vote("p", "a", "b", "a"), Vote("p", "a", "x", "a")]
    text = shown(compare(Gold(votes=votes)), capsys)
    assert "Agreement with 1 vote (tie margin 0.1)" in text
    assert "1 more vote is on other responses." in text


def test_labels_without_a_coefficient_give_the_reason(capsys: pytest.CaptureFixture[str]) -> None:
    """There are too few labels, or they are on responses without a score."""
    text = shown(compare(Gold(labels=[Label("p", "a", 3.0)])), capsys)
    assert "No coefficient (one, all responses): only 1 labeled response has both figures" in text
    text = shown(compare(Gold(labels=[Label("p", "x", 3.0)])), capsys)
    assert "no labeled response was scored by every method" in text
    assert "Spearman" not in text


def test_too_few_ratings_give_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """A sentence gives the reason instead."""
    text = shown(compare(Gold(ratings=[Rating("a", 1.0)])), capsys)
    assert "No correlation with reference ratings: " in text


def test_excluded_method_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """It is listed with its reason, and with its cost if any."""
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
    """A long name is wrapped, a figure never is."""
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
    figures = [line for line in text.splitlines() if "  " in line and " to " in line]
    assert len(figures) >= 4
    assert all(line.count("(") == line.count(")") for line in figures)


def test_method_name_is_printed_verbatim(capsys: pytest.CaptureFixture[str]) -> None:
    """It is not markup and has no control characters."""
    graded = {"fixed:items=[red]\x1b[2J": MethodGrades(GRIDS["one"], Usage(requests=1))}
    votes = [Vote("p", "a", "b", "a")]
    found = compare_methods(graded, {}, Gold(votes=votes), RankingConfig(bootstrap=50))
    text = shown(found, capsys)
    assert "\x1b" not in text
    assert text.count("fixed:items=[red]\ufffd[2J") >= 3


def test_note_of_a_method_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    """A note, such as about a scorer's training data, is printed with the method's name."""
    graded = {"one": MethodGrades(GRIDS["one"], note="2 queries have too little to learn from")}
    found = compare_methods(graded, {}, Gold(), RankingConfig(bootstrap=50))
    assert "one: 2 queries have too little to learn from." in shown(found, capsys)

"""What a comparison of methods says where figures are missing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from rocketeval.audit.methods import Apart, GradedBy, MethodComparison, compare_methods
from rocketeval.cli.show_methods import show_methods
from rocketeval.config import RankingConfig
from rocketeval.grid import ScoreGrid
from rocketeval.records import Gold, Label, Rating, Usage, Vote

GRIDS = {
    "one": ScoreGrid(("p", "q"), ("a", "b"), np.array([[1.0, 2.0], [3.0, 4.0]])),
    "two": ScoreGrid(("p", "q"), ("a", "b"), np.array([[2.0, 1.0], [3.0, math.nan]])),
}


def compare(gold: Gold, *names: str) -> MethodComparison:
    """The comparison of some grids."""
    graded = {name: GradedBy(GRIDS[name], Usage(requests=1234)) for name in names or ("one",)}
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
    assert "1 more votes are about other responses." in text


def test_labels_without_a_coefficient_say_why(capsys: pytest.CaptureFixture[str]) -> None:
    """Too few, or of responses that nobody scored."""
    text = shown(compare(Gold(labels=[Label("p", "a", 3.0)])), capsys)
    assert "No coefficient (one, responses): only 1 labelled responses have both figures" in text
    text = shown(compare(Gold(labels=[Label("p", "x", 3.0)])), capsys)
    assert "none is about a response that every method scored" in text
    assert "Spearman" not in text


def test_too_few_ratings_make_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is the correlation's own."""
    text = shown(compare(Gold(ratings=[Rating("a", 1.0)])), capsys)
    assert "No figure for reference ratings: only 1 candidates" in text


def test_what_stands_apart_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    """With its reason as a sentence, and its cost if it had any."""
    found = compare(Gold(), "one", "two")
    text = shown(found, capsys)
    assert "two is not compared: it scored only 3 of 4 responses." in text
    assert text.count("1,234") == 2
    refused = MethodComparison((), None, 0, 0, 0.1, (Apart("x", "The server refused.\x1b[2J"),))
    assert "x is not compared: The server refused.\ufffd[2J." in shown(refused, capsys)

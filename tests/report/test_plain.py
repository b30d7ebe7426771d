"""Non-finite figures are refused by name; unknown interval bounds become null."""

from __future__ import annotations

from dataclasses import replace
from math import inf, nan
from typing import Any

import pytest

from rocketeval.errors import RocketEvalError
from rocketeval.records import Interval, Status
from rocketeval.report.blocks import plain
from rocketeval.report.model import (
    GRADE_STATUS_TEXT,
    STATUS_TEXT,
    Explained,
    FigureRow,
    FigureTable,
    LostItem,
    ReportFigure,
)

from .conftest import SURE, made_up_head

BROKEN = Interval(nan, 0.0, 1.0)
HEAD = made_up_head("run")
LOSS = LostItem(4, 3, "Is it right?", 0.1, nan, 1.25)


def test_unknown_bounds_are_null() -> None:
    """A candidate that never lost has no upper bound, and few queries give no bounds."""
    for low, high in ((4.0, inf), (nan, nan)):
        rated = replace(HEAD.candidates[0], rating=Interval(5.0, low, high))
        found = plain(replace(HEAD, candidates=(rated,)))["candidates"][0]["rating"]
        assert found == {"value": 5.0, "low": None if low != low else low, "high": None}


@pytest.mark.parametrize(
    ("changes", "owner"),
    [
        ({"candidates": (replace(HEAD.candidates[0], score=BROKEN),)}, "candidate 'run'"),
        ({"candidates": (replace(HEAD.candidates[0], label=inf),)}, "candidate 'run'"),
        ({"figures": (ReportFigure("Pearson", BROKEN),)}, "report figure 'Pearson'"),
        (
            {"tables": (FigureTable("By", ("a",), (FigureRow("math", (BROKEN,)),)),)},
            "figure row 'math'",
        ),
        (
            {"explained": (Explained(1, SURE, (LOSS,)),)},
            r"item 3 \('Is it right\?'\) of query 5, candidate 2",
        ),
        ({"wins": ((None, nan),)}, "report head 'run'"),
    ],
)
def test_a_non_finite_figure_is_refused_by_name(changes: Any, owner: str) -> None:
    """The error names the owner of the figure."""
    with pytest.raises(RocketEvalError, match=f"cannot show (nan|inf) for {owner}"):
        plain(replace(HEAD, **changes))


def test_every_status_has_an_explanation() -> None:
    """Reports never show the name of a status alone."""
    assert set(STATUS_TEXT) == set(GRADE_STATUS_TEXT) == set(Status) - {Status.OK}


def test_explanations_for_grades_do_not_mention_yes() -> None:
    """A judge that gives grades does not answer yes or no."""
    assert not [words for words in GRADE_STATUS_TEXT.values() if "yes" in words.split()]

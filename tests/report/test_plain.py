"""Figures that are no numbers are refused by name; ends without a limit are left open."""

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


def test_open_ends_are_null() -> None:
    """A candidate that never lost has no upper end, and few queries give no bounds: no fault."""
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
def test_a_figure_that_is_no_number_is_refused_by_name(changes: Any, owner: str) -> None:
    """The error says whose figure it is."""
    with pytest.raises(RocketEvalError, match=f"cannot show (nan|inf) for {owner}"):
        plain(replace(HEAD, **changes))


def test_every_status_has_words() -> None:
    """A new status cannot appear in reports under its bare name."""
    assert set(STATUS_TEXT) == set(GRADE_STATUS_TEXT) == set(Status) - {Status.OK}


def test_a_grade_is_not_called_a_yes_or_no() -> None:
    """Judges that are asked for a grade are not said to have hidden a yes."""
    assert not [words for words in GRADE_STATUS_TEXT.values() if "yes" in words.split()]

"""The report says what the audit means, and shows its tables."""

from __future__ import annotations

from dataclasses import asdict, replace
from math import nan
from typing import Any

import orjson
import pytest

from rocketeval.errors import RocketEvalError
from rocketeval.records import Interval
from rocketeval.report.data import ReportData, ReportTable, ReportTableRow
from rocketeval.report.html import build_report
from rocketeval.stages.report_trust import tables

ATTACK = "<script>alert(1)</script>"


def with_table(report: ReportData, cell: Interval | None) -> ReportData:
    row = ReportTableRow(ATTACK, (cell, None), "12 votes")
    table = ReportTable("By category", ("judge", "another voter"), (row,), "share", ATTACK)
    return replace(report, advice=(f"Trust it. {ATTACK}",), agreement_tables=(table,))


def test_words_and_tables_are_on_the_page_as_text(quickstart: ReportData) -> None:
    """Figures with their interval; a name or a sentence is never markup."""
    page = build_report(with_table(quickstart, Interval(0.5, 0.25, 0.75)))
    for text in ("Trust it.", "By category", "another voter", "12 votes", "25.0\N{EN DASH}75.0"):
        assert text in page
    assert ATTACK not in page


def test_a_table_with_what_is_not_a_number_is_refused(quickstart: ReportData) -> None:
    """As every other figure."""
    with pytest.raises(RocketEvalError, match="cannot show nan"):
        build_report(with_table(quickstart, Interval(nan, 0.0, 1.0)))


def test_without_words_nothing_is_added(quickstart: ReportData) -> None:
    """An older audit has neither; the section is as it was."""
    assert 'class="advice"' not in build_report(quickstart)
    assert tables({"labels": {"all labels": {"judge": {}}}}) == ()


def audit_with(**changes: Any) -> dict[str, Any]:
    """An audit as JSON keeps it."""
    level = asdict(Interval(0.5, nan, nan))
    coefficients = {"pearson": level, "spearman": level, "kendall": None}
    sizes = {"n": 3, "left_out": 2, "reason": None}
    found = {
        "labels": {
            "all labels": {
                "judge": {
                    "levels": {
                        name: {**coefficients, **sizes}
                        for name in ("responses", "per query", "candidates")
                    }
                }
            }
        },
        **changes,
    }
    kept: dict[str, Any] = orjson.loads(orjson.dumps(found))
    return kept


def test_levels_stand_side_by_side_and_say_what_is_left_out() -> None:
    """Three columns, a row a coefficient; unknown bounds may be anything."""
    (table,) = tables(audit_with())
    assert table.columns == ("responses", "per query", "candidates")
    assert [row.note for row in table.rows] == ["Pearson", "Spearman", "Kendall"]
    assert table.rows[0].cells[0] == Interval(0.5, float("-inf"), float("inf"))
    assert table.rows[2].cells == (None, None, None)
    assert table.note == "Queries left out, scores or labels all the same: 2."


def test_biases_are_a_table_of_what_could_be_measured() -> None:
    """A row a figure; without any there is no table."""
    figure = asdict(Interval(0.5, 0.25, 0.75))
    length = dict.fromkeys(("scores", "excess", "gold", "scores_with_gold", "lost_to_longer"))
    sizes = {"queries": 1200, "gold_queries": 9, "lost": 3}
    family = {"preference": figure, "at_equal_gold": None, "queries": 9, "family": ["a", "b"]}
    bias = {"length": {**length, **sizes}, "own_family": None, "queries": 5, "queries_skipped": 0}
    assert len(tables(audit_with(bias=bias))) == 1
    known = {**bias["length"], "scores": figure, "lost_to_longer": figure}
    skipped = {"own_family": family, "queries_skipped": 4000}
    _, table = tables(audit_with(bias={**bias, "length": known, **skipped}))
    assert [(row.name, row.note) for row in table.rows] == [
        ("score follows length, Spearman", "1,200 queries"),
        ("share of lost votes that the longer won", "3 votes"),
        ("own family, score beyond label", "9 queries"),
    ]
    assert table.note == (
        "Lengths were looked at on 5 of 4,005 queries. Own family, by name, in standard "
        "deviations of a query's scores: a, b."
    )


def test_categories_and_margins_are_tables_when_there_are_several() -> None:
    """Pooled ones are named, the margin that was used is marked; a single part is no table."""
    share = asdict(Interval(0.7, 0.6, 0.8))
    part = {
        "category": "math",
        "agreement": {"without_ties": share, "decisive": 1200},
        "voters": None,
        "pooled": [],
    }
    other = {**part, "category": "other", "voters": {"without_ties": share}, "pooled": ["a", "b"]}
    margins = [{"margin": margin, "with_ties": share} for margin in (0.0, 0.1)]
    found = tables(audit_with(categories=[part, other], margins=margins, tie_margin=0.1))
    categories, by_margin, _ = found
    assert categories.note == "In other, too few votes each: a, b."
    assert categories.rows[0].cells == (Interval(0.7, 0.6, 0.8), None)
    assert categories.rows[0].note == "1,200 votes"
    assert [(row.name, row.note) for row in by_margin.rows] == [("0", ""), ("0.1", "used")]
    assert len(tables(audit_with(categories=[part]))) == 1

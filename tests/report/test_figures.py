"""The audit becomes figures beside baselines, and tables."""

from __future__ import annotations

from dataclasses import asdict
from math import inf, nan
from typing import Any

import orjson

from rocketeval.records import Interval
from rocketeval.report.figures import figures, read_interval, tables

SHARE = asdict(Interval(0.7, 0.6, 0.8))


def test_figures_stand_beside_their_baselines() -> None:
    """Only the judge, and people, are no baseline; what is missing says why."""
    method = {"with_ties": SHARE, "without_ties": SHARE, "used": 1200, "decisive": 900}
    audit = {
        "agreement": {"judge": method, "longer response": method},
        "voters": {"with_ties": SHARE, "without_ties": SHARE},
        "labels": {"all labels": {"judge": {"pearson": None, "reason": "one label"}}},
        "ratings": {"spearman": None, "reason": "two candidates"},
    }
    found = figures(audit)
    assert [(figure.name, figure.baseline, figure.note) for figure in found] == [
        ("Agreement with votes, ties included", False, "1200 votes"),
        ("longer response", True, "1200 votes"),
        ("another voter", False, "how often two voters agree: the ceiling"),
        ("Agreement with decided votes", False, "900 votes"),
        ("longer response", True, "900 votes"),
        ("another voter", False, "how often two voters agree: the ceiling"),
        ("Pearson with all labels", False, "one label"),
        ("Spearman with reference ratings", False, "two candidates"),
    ]
    assert found[0].value == Interval(0.7, 0.6, 0.8)
    assert found[-1].value is None


def test_bounds_that_json_lost_may_be_anything() -> None:
    """JSON has no NaN."""
    assert read_interval({"value": 1.0, "low": None, "high": 2.0}) == Interval(1.0, -inf, 2.0)
    assert read_interval(None) is None


def test_an_older_audit_has_no_tables() -> None:
    """What was not measured is left out."""
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

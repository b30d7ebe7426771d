"""Audit results become figures with baselines, and tables."""

from __future__ import annotations

from dataclasses import replace
from math import nan

from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import Bias, LengthBias, SelfPreference
from rocketeval.audit.figures import Agreement, VoterAgreement
from rocketeval.audit.labels import LEVELS, LabelCorrelation, LevelCorrelation
from rocketeval.audit.votes import CategoryAgreement, MarginAgreement
from rocketeval.records import Interval
from rocketeval.report.figures import figures, tables
from rocketeval.stats.correlation import Correlation

SHARE = Interval(0.7, 0.6, 0.8)
UNKNOWN = Interval(0.5, nan, nan)
NO_ORDER = Correlation(None, None, 2, (), "two candidates")
VOTERS = VoterAgreement(SHARE, SHARE, 40, 30)


def labeled(coefficient: Interval | None, reason: str | None = None) -> LabelCorrelation:
    """Return the same coefficient at all levels."""
    level = LevelCorrelation(coefficient, coefficient, None, 3, 2, reason)
    levels = dict.fromkeys(LEVELS, level)
    return LabelCorrelation(coefficient, coefficient, None, None, 3, 0, reason, NO_ORDER, levels)


LABELED = Audit(labels={"all labels": {"judge": labeled(UNKNOWN)}})


def test_figures_are_followed_by_their_baselines() -> None:
    """The judge and human-human agreement are not baselines; a missing figure has a reason."""
    method = Agreement(SHARE, SHARE, 1200, 1200, 900, 0)
    audit = Audit(
        agreement={"judge": method, "longer response": method},
        voters=VOTERS,
        labels={"all labels": {"judge": labeled(None, "one label")}},
        ratings=NO_ORDER,
    )
    found = figures(audit)
    assert [(figure.name, figure.baseline, figure.note) for figure in found] == [
        ("Agreement with votes, ties included", False, "1,200 votes"),
        ("longer response", True, "1,200 votes"),
        ("human-human agreement", False, "how often two voters agree"),
        ("Agreement with decided votes", False, "900 votes"),
        ("longer response", True, "900 votes"),
        ("human-human agreement", False, "how often two voters agree"),
        ("Pearson with all labels", False, "one label"),
        ("Spearman with reference ratings", False, "two candidates"),
    ]
    assert found[0].value == SHARE
    assert found[-1].value is None


def test_an_audit_without_levels_has_no_tables() -> None:
    """Levels that were not measured are left out."""
    old = replace(labeled(UNKNOWN), levels={})
    assert tables(Audit(labels={"all labels": {"judge": old, "longer response": old}})) == ()


def test_levels_are_columns_and_coefficients_are_rows() -> None:
    """Bounds may be unknown; a note counts the queries left out."""
    (table,) = tables(LABELED)
    assert table.columns == ("all responses", "within a query", "candidate means")
    assert [row.note for row in table.rows] == ["Pearson", "Spearman", "Kendall"]
    assert table.rows[0].cells[0] is UNKNOWN
    assert table.rows[2].cells == (None, None, None)
    assert "2 queries" in table.note


def test_measured_biases_are_a_table() -> None:
    """One row per figure; without figures there is no table."""
    figure = Interval(0.5, 0.25, 0.75)
    length = LengthBias(None, None, None, None, None, 1200, 9, left_out=1, lost=3)
    bias = Bias(length, None, queries=5, queries_skipped=0)
    assert len(tables(replace(LABELED, bias=bias))) == 1
    known = replace(length, scores=figure, lost_to_longer=figure)
    family = SelfPreference(figure, None, ("a", "b"), queries=9, left_out=0, reason=None)
    found = Bias(known, family, queries=5, queries_skipped=4000)
    _, table = tables(replace(LABELED, bias=found))
    assert [(row.name, row.note) for row in table.rows] == [
        ("score vs. length, Spearman", "1,200 queries"),
        ("people chose longer, judge shorter, share", "3 votes"),
        ("own family, score above label", "9 queries"),
    ]
    assert "5 of 4,005 queries" in table.note
    assert "guessed by name: a, b." in table.note


def test_several_categories_and_margins_are_tables() -> None:
    """Pooled categories are named and the configured margin is marked; one category is no table."""
    part = CategoryAgreement("math", Agreement(None, SHARE, 1200, 1200, 1200, 0), None, ())
    other = replace(part, category="other", voters=VOTERS, pooled=("a", "b"))
    margins = tuple(MarginAgreement(margin, SHARE, None) for margin in (0.0, 0.1))
    audit = replace(LABELED, categories=(part, other), margins=margins)
    categories, by_margin, _ = tables(audit)
    assert categories.note == "other: categories with fewer than 20 votes each: a, b."
    assert categories.rows[0].cells == (SHARE, None)
    assert categories.rows[0].note == "1,200 votes"
    assert [row.name for row in by_margin.rows] == ["0", "0.1"]
    assert [bool(row.note) for row in by_margin.rows] == [False, True]
    assert len(tables(replace(LABELED, categories=(part,)))) == 1

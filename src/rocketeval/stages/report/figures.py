"""The audit for the report: figures beside baselines, and tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.names import listed
from rocketeval.records import Interval
from rocketeval.report.data import Figure, FigureRow, FigureTable


def read_interval(found: Mapping[str, float | None] | None) -> Interval | None:
    """Return an interval as JSON kept it; None if there is none."""
    value = None if found is None else found.get("value")
    if found is None or value is None:
        return None
    # JSON has no NaN: a figure that rests on too little has no bounds, so it may be anything.
    low, high = found.get("low"), found.get("high")
    return Interval(value, -math.inf if low is None else low, math.inf if high is None else high)


def figures(audit: Mapping[str, Any]) -> tuple[Figure, ...]:
    """Return agreement and correlations, each beside its baselines."""
    figures = []
    voters = audit.get("voters") or {}
    for ties, name in (("with_ties", "votes, ties included"), ("without_ties", "decided votes")):
        for method, found in audit.get("agreement", {}).items():
            figures.append(
                Figure(
                    name=f"Agreement with {name}" if method == "judge" else method,
                    value=read_interval(found.get(ties)),
                    note=f"{found.get('used' if ties == 'with_ties' else 'decisive', 0)} votes",
                    unit="share",
                    baseline=method not in ("judge", "labeler"),
                )
            )
        if voters:
            figures.append(
                Figure(
                    name="another voter",
                    value=read_interval(voters.get(ties)),
                    note="how often two voters agree: the ceiling",
                    unit="share",
                )
            )
    for part, methods in audit.get("labels", {}).items():
        for method, found in methods.items():
            note = found.get("reason") or f"{found.get('responses', 0)} labelled responses"
            judge = method == "judge"
            name = f"Pearson with {part}" if judge else method
            value = read_interval(found.get("pearson"))
            figures.append(Figure(name, value, note, baseline=not judge))
    if audit.get("ratings"):
        figures.append(_rating_figure(audit["ratings"]))
    return tuple(figures)


def tables(audit: Mapping[str, Any]) -> tuple[FigureTable, ...]:
    """Return agreement by category and tie margin, correlations by level, and biases.

    Audits made before these were measured have none.
    """
    found = [_categories(audit.get("categories", ())), _margins(audit)]
    found += [_levels(part, methods) for part, methods in audit.get("labels", {}).items()]
    found.append(_bias(audit.get("bias")))
    return tuple(table for table in found if table is not None)


def _categories(parts: Sequence[Mapping[str, Any]]) -> FigureTable | None:
    if len(parts) < 2:
        return None
    pooled = parts[-1].get("pooled")
    return FigureTable(
        title="Agreement with decided votes, by category",
        columns=("judge", "another voter"),
        rows=tuple(
            FigureRow(
                part["category"],
                (
                    read_interval(part["agreement"].get("without_ties")),
                    read_interval((part.get("voters") or {}).get("without_ties")),
                ),
                f"{part['agreement'].get('decisive', 0):,} votes",
            )
            for part in parts
        ),
        unit="share",
        note=f"In other, too few votes each: {listed(pooled, most=10)}." if pooled else "",
    )


def _margins(audit: Mapping[str, Any]) -> FigureTable | None:
    margins = [row for row in audit.get("margins", ()) if row.get("with_ties")]
    if not margins:
        return None
    return FigureTable(
        title="Agreement with votes, ties included, by tie margin",
        columns=("judge",),
        rows=tuple(
            FigureRow(
                f"{row['margin']:g}",
                (read_interval(row["with_ties"]),),
                "used" if row["margin"] == audit.get("tie_margin") else "",
            )
            for row in margins
        ),
        unit="share",
    )


def _levels(part: str, methods: Mapping[str, Any]) -> FigureTable | None:
    judge = methods.get("judge", {}).get("levels")
    if not judge:
        return None
    rows = [("judge", name) for name in ("pearson", "spearman", "kendall")]
    rows += [(method, "spearman") for method in methods if method != "judge"]
    left_out = judge.get("per query", {}).get("left_out")
    return FigureTable(
        title=f"Correlation with {part}, at three levels",
        columns=tuple(judge),
        rows=tuple(
            FigureRow(
                method,
                tuple(_at_level(methods[method], level, name) for level in judge),
                name.capitalize(),
            )
            for method, name in rows
        ),
        note=f"Queries left out, scores or labels all the same: {left_out}." if left_out else "",
    )


def _at_level(found: Mapping[str, Any], level: str, name: str) -> Interval | None:
    return read_interval((found.get("levels") or {}).get(level, {}).get(name))


def _rating_figure(found: Mapping[str, Any]) -> Figure:
    name = "Spearman with reference ratings"
    spearman = found.get("spearman")
    if spearman is None:
        return Figure(name, None, found.get("reason") or "")
    value, bounds, p_value = (spearman.get(part) for part in ("value", "interval", "p_value"))
    note = f"{found.get('n', 0)} candidates"
    if p_value is not None:
        note += ", p < 0.001" if p_value < 0.001 else f", p = {p_value:.3f}"
    if bounds is None:
        return Figure(name, Interval(value, value, value), f"{note}; no interval")
    return Figure(name, read_interval(bounds), note)


def _bias(bias: Mapping[str, Any] | None) -> FigureTable | None:
    if bias is None:
        return None
    length, family = bias.get("length") or {}, bias.get("own_family") or {}
    queries, labelled = (f"{length.get(name, 0):,} queries" for name in ("queries", "gold_queries"))
    of_family = f"{family.get('queries', 0):,} queries"
    found = (
        ("score follows length, Spearman", length.get("scores"), queries),
        ("label follows length, Spearman", length.get("gold"), labelled),
        ("score of labelled responses follows length", length.get("scores_with_gold"), labelled),
        ("score follows length beyond label", length.get("excess"), labelled),
        ("share of lost votes that the longer won", length.get("lost_to_longer"), _lost(length)),
        ("own family, score beyond label", family.get("preference"), of_family),
        ("own family at equal labels", family.get("at_equal_gold"), of_family),
    )
    rows = tuple(
        FigureRow(name, (read_interval(value),), note) for name, value, note in found if value
    )
    if not rows:
        return None
    return FigureTable(
        title="Beside quality: length and family, within a query",
        columns=("judge",),
        rows=rows,
        note=_bias_note(bias),
    )


def _lost(length: Mapping[str, Any]) -> str:
    return f"{length.get('lost', 0):,} votes"


def _bias_note(bias: Mapping[str, Any]) -> str:
    notes = []
    seen, skipped = bias.get("queries", 0), bias.get("queries_skipped", 0)
    if skipped:
        notes.append(f"Lengths were looked at on {seen:,} of {seen + skipped:,} queries.")
    if bias.get("own_family"):
        names = listed(bias["own_family"].get("family", ()), most=5)
        notes.append(f"Own family, by name, in standard deviations of a query's scores: {names}.")
    return " ".join(notes)

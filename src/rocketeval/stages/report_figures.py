"""The figures of a report: counts, agreement, cost and how they were made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from rocketeval.cost import shown_money
from rocketeval.names import listed
from rocketeval.records import Interval
from rocketeval.report.data import ReportFigure, ReportTable, ReportTableRow

_SCORERS = {
    "mean": "A score is the mean of its answers, on the label scale.",
    "hard": "A score is the share of items answered yes, on the label scale.",
    "extra_trees": "A score blends the mean of its answers with the query's own forest of extra "
    "trees, the more so the more evenly the query's labels spread over the scale.",
    "random_forest": "A score blends the mean of its answers with the query's own random forest, "
    "the more so the more evenly the query's labels spread over the scale.",
    "pooled_ridge": "A score is a regression over all queries, bent by each query's own labels.",
    "isotonic": "A score is the mean of its answers, bent onto the level of the labels.",
    "pooled_logistic": "A score follows what voters preferred on other queries.",
    "select": "A score is made by the scorer that did best in cross-validation.",
}


def read_interval(found: Mapping[str, float | None] | None) -> Interval | None:
    """Return an interval as JSON kept it; None if there is none."""
    if found is None or found["value"] is None:
        return None
    # JSON has no NaN: a figure that rests on too little has no bounds, so it may be anything.
    low, high = found["low"], found["high"]
    return Interval(
        found["value"], -math.inf if low is None else low, math.inf if high is None else high
    )


def counts(
    stages: Mapping[str, Any], ranking: Mapping[str, Any], audit: Mapping[str, Any]
) -> dict[str, int]:
    """Return how much there was, and how much of it is missing."""
    load, checklist, grade, score = (
        stages.get(name, {}) for name in ("load", "checklist", "grade", "score")
    )
    votes: Mapping[str, int] = next(iter(audit["agreement"].values()), {})
    return {
        "queries": load.get("queries", 0),
        "candidates": load.get("candidates", 0),
        "responses": load.get("responses", 0),
        "judgments": grade.get("tasks", 0) - grade.get("unfinished", 0),
        "answers": score.get("answers", 0),
        **score.get("statuses", {}),
        "empty responses": load.get("empty_responses", 0),
        "queries without a checklist": len(checklist.get("failures", ())),
        "responses not judged": grade.get("unfinished", 0),
        "responses without a score": score.get("without_score", 0),
        "candidates without any score": len(ranking["unranked"]),
        "unusable votes": votes.get("unusable", 0),
        "labels refused: the scorer was fitted to them": audit["refused"]["labels"],
        "votes refused: the scorer was fitted to them": audit["refused"]["votes"],
    }


def figures(audit: Mapping[str, Any]) -> tuple[ReportFigure, ...]:
    """Return agreement and correlations, each beside its baselines."""
    figures = []
    for ties, name in (("with_ties", "votes, ties included"), ("without_ties", "decided votes")):
        for method, found in audit["agreement"].items():
            figures.append(
                ReportFigure(
                    name=f"Agreement with {name}" if method == "judge" else method,
                    value=read_interval(found[ties]),
                    note=f"{found['used' if ties == 'with_ties' else 'decisive']} votes",
                    unit="share",
                    baseline=method not in ("judge", "labeler"),
                )
            )
        if audit["voters"]:
            figures.append(
                ReportFigure(
                    name="another voter",
                    value=read_interval(audit["voters"][ties]),
                    note="how often two voters agree: the ceiling",
                    unit="share",
                )
            )
    for part, methods in audit["labels"].items():
        for method, found in methods.items():
            note = found["reason"] or f"{found['responses']} labelled responses"
            judge = method == "judge"
            name = f"Pearson with {part}" if judge else method
            value = read_interval(found["pearson"])
            figures.append(ReportFigure(name, value, note, baseline=not judge))
    if audit["ratings"]:
        figures.append(_rating_figure(audit["ratings"]))
    return tuple(figures)


def tables(audit: Mapping[str, Any]) -> tuple[ReportTable, ...]:
    """Return agreement by category and tie margin, and correlations by level.

    Audits made before these were measured have none.
    """
    found = [_categories(audit.get("categories", ())), _margins(audit)]
    found += [_levels(part, methods) for part, methods in audit["labels"].items()]
    return tuple(table for table in found if table is not None)


def _categories(parts: Sequence[Mapping[str, Any]]) -> ReportTable | None:
    if len(parts) < 2:
        return None
    pooled = parts[-1]["pooled"]
    return ReportTable(
        title="Agreement with decided votes, by category",
        columns=("judge", "another voter"),
        rows=tuple(
            ReportTableRow(
                part["category"],
                (
                    read_interval(part["agreement"]["without_ties"]),
                    read_interval(part["voters"] and part["voters"]["without_ties"]),
                ),
                f"{part['agreement']['decisive']:,} votes",
            )
            for part in parts
        ),
        unit="share",
        note=f"In other, too few votes each: {listed(pooled, most=10)}." if pooled else "",
    )


def _margins(audit: Mapping[str, Any]) -> ReportTable | None:
    margins = [row for row in audit.get("margins", ()) if row["with_ties"]]
    if not margins:
        return None
    return ReportTable(
        title="Agreement with votes, ties included, by tie margin",
        columns=("judge",),
        rows=tuple(
            ReportTableRow(
                f"{row['margin']:g}",
                (read_interval(row["with_ties"]),),
                "used" if row["margin"] == audit["tie_margin"] else "",
            )
            for row in margins
        ),
        unit="share",
    )


def _levels(part: str, methods: Mapping[str, Any]) -> ReportTable | None:
    judge = methods["judge"].get("levels")
    if not judge:
        return None
    rows = [("judge", name) for name in ("pearson", "spearman", "kendall")]
    rows += [(method, "spearman") for method in methods if method != "judge"]
    left_out = judge["per query"]["left_out"]
    return ReportTable(
        title=f"Correlation with {part}, at three levels",
        columns=tuple(judge),
        rows=tuple(
            ReportTableRow(
                method,
                tuple(read_interval(methods[method]["levels"][level][name]) for level in judge),
                name.capitalize(),
            )
            for method, name in rows
        ),
        note=f"Queries left out, scores or labels all the same: {left_out}." if left_out else "",
    )


def _rating_figure(found: Mapping[str, Any]) -> ReportFigure:
    name = "Spearman with reference ratings"
    if found["spearman"] is None:
        return ReportFigure(name, None, found["reason"])
    value, bounds = found["spearman"]["value"], found["spearman"]["interval"]
    p_value = found["spearman"]["p_value"]
    chance = "p < 0.001" if p_value < 0.001 else f"p = {p_value:.3f}"
    note = f"{found['n']} candidates, {chance}"
    if bounds is None:
        return ReportFigure(name, Interval(value, value, value), f"{note}; no interval")
    return ReportFigure(name, read_interval(bounds), note)


def methods(ranking: Mapping[str, Any], score: Mapping[str, Any]) -> tuple[str, ...]:
    """Return how the figures were made, in words."""
    scorer = score.get("scorer", "mean")
    level = f"{ranking['level']:.0%}"
    anchor, rating = ranking["anchor"], f"{ranking['anchor_rating']:g}"
    placed = f"around {rating}" if anchor is None else f"with {anchor} held at {rating}"
    return (
        "An item's answer is p(Yes) / (p(Yes) + p(No)), from the judge's log-probabilities.",
        _SCORERS.get(scorer, f"Scores are made by the scorer {scorer!r}."),
        *_learned(score.get("learned") or {}),
        "Ratings are a Bradley-Terry fit to all pairs of scores on each query, on the Elo scale "
        f"{placed}; scores closer than {ranking['tie_margin']:g} are a tie.",
        f"Intervals hold {level} of {ranking['bootstrap']} resamples of the queries.",
        "Candidates in one group cannot be told apart from the group's first.",
    )


def _learned(learned: Mapping[str, Any]) -> list[str]:
    """Return what the scorer learned from, and what was kept from it."""
    if "fitted" not in learned:
        return []
    gold = f"{learned['labels']} labels" if learned["labels"] else f"{learned['votes']} votes"
    held_out = ", ".join(learned["held_out"])
    said = [
        f"The scorer learned from {gold} on {len(learned['fitted'])} candidates; these were scored "
        "by fits that did not see their own gold."
    ]
    if held_out:
        said.append(f"Kept from it, to test it on: {held_out}.")
    if learned.get("queries_by_mean"):
        said.append(f"{learned['queries_by_mean']} queries had too little to learn from.")
    return said


def cost(stages: Mapping[str, Any]) -> dict[str, str]:
    """Return what the run cost, in words."""
    shown = {}
    for stage in ("checklist", "grade"):
        facts = stages.get(stage, {})
        usage = facts.get("usage_of_ledger") or facts.get("usage", {})
        if usage.get("requests"):
            shown[f"{stage} requests"] = f"{usage['requests']:,}"
            shown[f"{stage} prompt tokens"] = f"{usage['prompt_tokens']:,}"
            if usage["cost"] is not None:
                shown[f"{stage} cost"] = shown_money(usage["cost"], usage.get("currency", ""))
    reused = stages.get("grade", {})
    shown["judgments paid for earlier"] = (
        f"{reused.get('finished_earlier', 0) + reused.get('from_cache', 0):,}"
    )
    shown["seconds"] = f"{sum(facts.get('seconds', 0) for facts in stages.values()):,.0f}"
    return shown

"""The figures of a report: counts, cost and how they were made."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rocketeval.cost import shown_money
from rocketeval.grading.methods.kinds import YES_NO
from rocketeval.grading.methods.table import kind_of
from rocketeval.records import Interval

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


_YES_NO = "An item's answer is p(Yes) / (p(Yes) + p(No)), from the judge's log-probabilities."
_GRADES = (
    "An answer is the mean of the grades {low} to {high} by the judge's probabilities, as its "
    "place from the worst (0) to the best (1)."
)
_WRITTEN = {
    "cot": "An answer is the score that the judge wrote, as its place from 1 (0) to 10 (1).",
    "multi_item": "An item's answer is what the judge wrote: 1 for yes, 0 for no.",
    "perplexity": "An answer is the geometric mean of the probabilities of the response's tokens.",
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


def methods(ranking: Mapping[str, Any], score: Mapping[str, Any], grading: str) -> tuple[str, ...]:
    """Return how the figures were made, in words; `grading` is the grading method's name."""
    scorer = score.get("scorer", "mean")
    level = f"{ranking['level']:.0%}"
    anchor, rating = ranking["anchor"], f"{ranking['anchor_rating']:g}"
    placed = f"around {rating}" if anchor is None else f"with {anchor} held at {rating}"
    return (
        *_answers(grading),
        _SCORERS.get(scorer, f"Scores are made by the scorer {scorer!r}."),
        *_learned(score.get("learned") or {}),
        "Ratings are a Bradley-Terry fit to all pairs of scores on each query, on the Elo scale "
        f"{placed}; scores closer than {ranking['tie_margin']:g} are a tie.",
        f"Intervals hold {level} of {ranking['bootstrap']} resamples of the queries.",
        "Candidates in one group cannot be told apart from the group's first.",
    )


def _answers(grading: str) -> list[str]:
    """Return what the judge was asked for, where that is not usual, and what an answer is."""
    kind = kind_of(grading)
    asked = [] if grading == "checklist" else [f"The judge was asked for {grading}: {kind.told}."]
    usual = _YES_NO if kind.labels == YES_NO else _GRADES
    return [*asked, _WRITTEN.get(grading, usual).format(low=kind.labels[-1], high=kind.labels[0])]


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

"""How a report's figures were made, as footnotes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.grading.methods.kinds import YES_NO
from rocketeval.grading.methods.table import kind_of
from rocketeval.ranking.rank import Ranking

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
    "evaluator": "A score is the label that the evaluator predicts; where it decides pairs, the "
    "share of a query's other responses that it expects this one to beat, a tie counting half.",
}
_EVALUATED = (
    "An answer is read from the judge's log-probabilities: p(Yes) / (p(Yes) + p(No)), or the mean "
    "of its grades, from the worst (0) to the best (1). Where the judge sees two responses at "
    "once, it is the mean over the other responses to the query."
)


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


def notes(ranking: Ranking, score: Mapping[str, Any], grading: str) -> tuple[str, ...]:
    """Return how the figures were made, in words; `grading` is the grading method's name."""
    scorer = score.get("scorer", "mean")
    level = f"{ranking.level:.0%}"
    anchor, rating = ranking.anchor, f"{ranking.anchor_rating:g}"
    placed = f"around {rating}" if anchor is None else f"with {anchor} held at {rating}"
    return (
        *(_answers(grading) if scorer != "evaluator" else [_EVALUATED]),
        _SCORERS.get(scorer, f"Scores are made by the scorer {scorer!r}."),
        *_learned(score.get("learned") or {}),
        "Ratings are a Bradley-Terry fit to all pairs of scores on each query, on the Elo scale "
        f"{placed}; scores closer than {ranking.tie_margin:g} are a tie.",
        f"Intervals hold {level} of {ranking.bootstrap} resamples of the queries.",
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
    labels, votes = learned.get("labels", 0), learned.get("votes", 0)
    gold = f"{labels} labels" if labels else f"{votes} votes"
    held_out = ", ".join(learned.get("held_out", ()))
    said = [
        f"The scorer learned from {gold} on {len(learned['fitted'])} candidates; these were scored "
        "by fits that did not see their own gold."
    ]
    if held_out:
        said.append(f"Kept from it, to test it on: {held_out}.")
    if learned.get("queries_by_mean"):
        said.append(f"{learned['queries_by_mean']} queries had too little to learn from.")
    return said

"""Sentences on how answers and scores were computed, chosen by rubric and scorer."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.config import RunConfig
from rocketeval.grading.methods import YES_NO, kind_of
from rocketeval.items import ItemKind
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.summary import RANK_INTERVALS
from rocketeval.records import Checklist
from rocketeval.scoring.rubric import POINTS, Rubric
from rocketeval.store.manifest import LearnedFacts, ScoreFacts
from rocketeval.text import percentage


def answer_kinds(
    scores: pa.Table, checklists: Mapping[str, Checklist]
) -> tuple[tuple[str, int], ...]:
    """Return the number of answers per kind of item: one per judged response and item."""
    judged = scores.filter(pc.is_valid(scores["judgment"]))
    counts = dict.fromkeys(ItemKind, 0)
    for row in judged["query_id"].value_counts().to_pylist():
        made = checklists.get(row["values"])
        for detail in () if made is None else made.every_detail:
            counts[detail.kind] += row["counts"]
    return tuple((kind.value, count) for kind, count in counts.items() if count)


def score_is(scorer: str, rubric: Rubric) -> str:
    """Return in a few words what a score is; the scorer's name if that takes more words.

    >>> score_is("mean", Rubric()), score_is("mean", Rubric(weights=True))
    ('mean p_yes, rescaled', 'weighted mean p_yes, rescaled')
    """
    weighted = "weighted " if rubric.weights or rubric.na else ""
    turned = ", penalties reversed" if rubric.penalties else ""
    if scorer == "mean":
        answer = "grade" if rubric.grades else "answer" if rubric.mixed else "p_yes"
        return f"{weighted}mean {answer}{turned}, rescaled"
    if scorer == "hard":
        share = "share of answers of at least 0.5" if rubric.mixed else "share of yes"
        return f"{weighted}{share}{turned}"
    return "points earned / points possible" if scorer == POINTS else scorer


_SCORERS = {
    "mean": "A score is the mean answer of a response, mapped from 0-1 to {low:g}-{high:g}.",
    "hard": "A score is the share of items answered yes, mapped from 0-1 to {low:g}-{high:g}.",
    POINTS: "A score is the points earned over the points that could be earned, mapped from 0-1 to "
    "{low:g}-{high:g}. An item earns its weight times its answer, and a penalty takes points away. "
    "A response may score below {low:g}; shown means are clipped to {low:g}-{high:g}, differences "
    "and tests are not.",
    "extra_trees": "A score blends the mean answer with an extra-trees model fitted to the query. "
    "The model's weight grows with how evenly the query's labels cover the scale.",
    "random_forest": "A score blends the mean answer with a random forest fitted to the query. "
    "The forest's weight grows with how evenly the query's labels cover the scale.",
    "pooled_ridge": "A score is a ridge regression over all queries, adjusted to each query's "
    "labels.",
    "isotonic": "A score is the mean answer, calibrated to the labels by isotonic regression.",
    "pooled_logistic": "A score comes from a logistic regression on votes from other queries.",
    "select": "A score comes from the scorer that was best in cross-validation.",
    "evaluator": "A score is the label that the evaluator predicts. If the evaluator compares "
    "pairs, a score is the predicted share of wins over the other responses to the query; a tie "
    "counts as half a win.",
}
_MEANS = frozenset({"mean", "hard", "extra_trees", "random_forest", "isotonic"})
"""Scorers whose score is a mean of answers, or starts from one."""
_LEVELS = (
    "The answer to an item with levels is the expected level, from worst (0) to best (1), by the "
    "judge's probabilities."
)
_CHECKS = "A code check gives 1 if it passes and 0 if it fails; the judge is not asked."
_EVALUATED = (
    "An answer comes from the judge's log-probabilities: p(Yes) / (p(Yes) + p(No)), or the mean "
    "grade on a scale from worst (0) to best (1). If the judge sees two responses at once, the "
    "answer is the mean over the other responses to the query."
)
_YES_NO = "An item's answer is p(Yes) / (p(Yes) + p(No)), from the judge's log-probabilities."
_GRADES = (
    "An answer is the mean of the grades {low} to {high}, weighted by the judge's probabilities, "
    "on a scale from worst (0) to best (1)."
)
_WRITTEN = {
    "cot": "An answer is the score that the judge wrote, mapped from 1-10 to 0-1.",
    "multi_item": "An item's answer is the text that the judge wrote: 1 for yes, 0 for no.",
    "perplexity": "An answer is the geometric mean of the probabilities of the response's tokens.",
}


def notes(
    ranking: Ranking, score: ScoreFacts, config: RunConfig, rubric: Rubric
) -> tuple[str, ...]:
    """Return sentences on how the figures were computed."""
    scorer = score.scorer or "mean"
    level = percentage(ranking.level)
    anchor, rating = ranking.anchor, f"{ranking.anchor_rating:g}"
    placed = f"centered on {rating}" if anchor is None else f"with {anchor} fixed at {rating}"
    return (
        *ranking.stopped[1:],
        *(_answers(config.method.kind, rubric) if scorer != "evaluator" else [_EVALUATED]),
        _score(scorer, config.scorer.scale, rubric),
        *_learned(score.learned),
        f"Ratings are a Bradley-Terry fit, on the Elo scale {placed}. Every pair of candidates on "
        "each query counts as one match. Scores that differ by less than "
        f"{ranking.tie_margin:g} count as a tie.",
        f"{level} intervals come from {ranking.bootstrap} bootstrap resamples of the queries. "
        "Ranks and ties come from sign-flip tests of all pairs. "
        f"{RANK_INTERVALS[ranking.rank_intervals]}",
        "Candidates in a group are statistically tied with the first one in it.",
    )


def _score(scorer: str, scale: tuple[float, float], rubric: Rubric) -> str:
    if scorer not in _SCORERS:
        return f"Scores come from the scorer {scorer!r}."
    low, high = scale
    said = _SCORERS[scorer].format(low=low, high=high)
    if scorer == "hard" and rubric.mixed:
        said = said.replace("items answered yes", "answers of at least 0.5")
    return f"{said} {rubric.rule}" if rubric.rule and scorer in _MEANS else said


def _answers(grading: str, rubric: Rubric) -> list[str]:
    """Return what an answer is, and the grading method unless it is the checklist method."""
    kind = kind_of(grading)
    asked = [] if grading == "checklist" else [f"Grading method {grading}: {kind.summary}."]
    usual = _YES_NO if kind.labels == YES_NO else _GRADES
    usual = _WRITTEN.get(grading, usual).format(low=kind.labels[-1], high=kind.labels[0])
    if rubric.kinds.isdisjoint({ItemKind.YES_NO}):
        usual = ""
    scale = _LEVELS if ItemKind.SCALE in rubric.kinds else ""
    check = _CHECKS if ItemKind.CHECK in rubric.kinds else ""
    return [*asked, " ".join(filter(None, (usual, scale, check)))]


def _learned(learned: LearnedFacts) -> list[str]:
    """Return what the scorer learned from and what was held out."""
    if learned.fitted is None:
        return []
    learned_from = f"{learned.labels} labels" if learned.labels else f"{learned.votes or 0} votes"
    held_out = ", ".join(learned.held_out or ())
    sentences = [
        f"The scorer learned from {learned_from} on {len(learned.fitted)} candidates; their scores "
        "are out-of-fold."
    ]
    if held_out:
        sentences.append(f"Held out for testing: {held_out}.")
    if learned.queries_by_mean:
        sentences.append(
            f"{learned.queries_by_mean} queries had too little reference data to learn from."
        )
    return sentences

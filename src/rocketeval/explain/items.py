"""Statistics and verdicts of checklist items: decisive, dead or redundant."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.stats.correlation import correlations, pearson

SURE_YES, SURE_NO = 0.9, 0.1
"""An item is dead if all answers are at least, or at most, this probability."""
SAME = 0.05
"""An item is also dead if its answers differ by less than this."""
FEWEST_FOR_CORRELATION = 3

YES_TO_ALL = "yes to all"
NO_TO_ALL = "no to all"
SAME_FOR_ALL = "same for all"


@dataclass(frozen=True, slots=True)
class ItemStatistics:
    """Statistics of one item over all responses to its query."""

    item: int
    """Item number in the checklist, from 1."""
    text: str
    equal_weight: float
    """Share of the item in the score: one over the number of items, unless items have weights."""
    learned_weight: float | None
    """Weight from a learned scorer; None if the query's scores are means."""
    answered: int
    """Responses with an answer to this item."""
    mean: float | None
    """Mean `p_yes`; None without answers."""
    low: float | None
    high: float | None
    spread: float | None
    """Standard deviation of `p_yes` over the responses."""
    discrimination: float | None
    """Correlation of `p_yes` with the response's score; None if either is constant."""
    dead: str | None
    """Why it does not discriminate (`yes to all`, `no to all`, `same for all`), else None."""
    group: str | None = None
    """Its group, such as a sub-dimension; None without groups."""


def item_figures(
    texts: Sequence[str], p_yes: Floats, scores: Floats, learned: Sequence[float] | None
) -> tuple[ItemStatistics, ...]:
    """Return the figures of each item; `p_yes` and `scores` have one row per response.

    >>> one, other = item_figures(["Right?", "Polite?"], np.array([[0.2, 0.99], [0.8, 0.95]]),
    ...     np.array([6.0, 9.0]), None)
    >>> one.mean, one.dead, other.dead
    (0.5, None, 'yes to all')
    """
    figures = []
    for place, text in enumerate(texts):
        answers = p_yes[:, place]
        given = answers[~np.isnan(answers)]
        some = len(given) > 0
        figures.append(
            ItemStatistics(
                item=place + 1,
                text=text,
                equal_weight=1.0 / len(texts),
                learned_weight=None if learned is None else float(learned[place]),
                answered=len(given),
                mean=float(given.mean()) if some else None,
                low=float(given.min()) if some else None,
                high=float(given.max()) if some else None,
                spread=float(given.std()) if some else None,
                discrimination=_correlation(answers, scores),
                dead=why_dead(given),
            )
        )
    return tuple(figures)


def why_dead(given: Floats) -> str | None:
    """Return why these answers do not discriminate; None if they do, or with fewer than two."""
    if len(given) < 2:
        return None
    low, high = float(given.min()), float(given.max())
    if low >= SURE_YES:
        return YES_TO_ALL
    if high <= SURE_NO:
        return NO_TO_ALL
    return SAME_FOR_ALL if high - low < SAME else None


def _correlation(answers: Floats, scores: Floats) -> float | None:
    both = ~(np.isnan(answers) | np.isnan(scores))
    x, y = answers[both], scores[both]
    if len(x) < FEWEST_FOR_CORRELATION or np.ptp(x) < 1e-9 or np.ptp(y) < 1e-9:
        return None
    return min(1.0, max(-1.0, pearson(x, y)))


SAME_ANSWER = 0.95
"""An item with at least this correlation to an earlier one is redundant."""
FEWEST_FOR_SAME = 10
"""Minimum number of common responses for redundancy: with fewer, two items that both reflect
quality often correlate by chance."""
DECISIVE_SHARES = 2.0
"""A decisive item has at least this multiple of an equal share of influence."""
DECISIVE_CORRELATION = 0.7
"""A decisive item's answers correlate at least this much with the score."""

DEAD, REDUNDANT, DECISIVE, ORDINARY = "dead", "redundant", "decisive", ""
TOO_FEW = f"fewer than {FEWEST_FOR_CORRELATION} responses: too few to call it decisive"
"""Why an item with the influence of a decisive one has no verdict."""

_STILL = 1e-9


@dataclass(frozen=True, slots=True)
class ItemVerdict:
    """Verdict on one item over all responses to its query."""

    mean: float | None
    """Mean `p_yes`; None without answers."""
    spread: float | None
    """Standard deviation of `p_yes`."""
    correlation: float | None
    """Correlation with the response's score; None if either is constant."""
    influence: float | None
    """Absolute weight times spread, as a share of the checklist's total; None if nothing varies or
    weights are unknown."""
    verdict: str
    """`dead`, `redundant`, `decisive` or empty."""
    why: str
    """The reason; without a verdict, `TOO_FEW` or empty."""


def item_verdicts(p_yes: Floats, scores: Floats, weights: Floats | None) -> list[ItemVerdict]:
    """Return a verdict per item; `p_yes` has one row per response and one column per item.

    `weights` is None for a scorer without item weights; then no item is decisive.

    >>> answers = np.array([[0.1, 0.1, 0.99], [0.5, 0.5, 0.98], [0.9, 0.9, 0.97],
    ...                     [0.4, 0.4, 0.99], [0.2, 0.2, 0.96]])
    >>> answers = np.tile(answers, (2, 1))
    >>> found = item_verdicts(answers, answers.mean(axis=1), np.full(3, 1 / 3))
    >>> [(item.verdict, item.why) for item in found]
    [('', ''), ('redundant', 'says the same as item 1 (1.00)'), ('dead', 'yes to all')]
    """
    items = p_yes.shape[1]
    known = ~np.isnan(p_yes)
    counts = known.sum(axis=0)
    means = np.where(known, p_yes, 0.0).sum(axis=0) / np.maximum(counts, 1)
    centred = np.where(known, p_yes - means, 0.0)
    spreads = np.sqrt((centred**2).sum(axis=0) / np.maximum(counts, 1))
    with_score = correlations(centred, known, *_column(scores), FEWEST_FOR_CORRELATION)[:, 0]
    with_items = correlations(centred, known, centred, known, FEWEST_FOR_SAME)
    # The sign of a weight does not matter for its influence.
    parts = np.full(items, np.nan) if weights is None else np.abs(weights) * spreads
    total = float(parts.sum())
    influence = parts / total if total > _STILL else np.full(items, np.nan)
    dead = [why_dead(p_yes[known[:, item], item]) for item in range(items)]
    found = []
    for item in range(items):
        both = int((known[:, item] & ~np.isnan(scores)).sum())
        verdict, why = _verdict(item, dead, with_items, influence[item], with_score[item], both)
        given = counts[item] > 0
        found.append(
            ItemVerdict(
                mean=float(means[item]) if given else None,
                spread=float(spreads[item]) if given else None,
                correlation=number_or_none(with_score[item]),
                influence=number_or_none(influence[item]) if given else None,
                verdict=verdict,
                why=why,
            )
        )
    return found


def _verdict(
    item: int,
    dead: Sequence[str | None],
    with_items: Floats,
    influence: float,
    correlation: float,
    responses: int,
) -> tuple[str, str]:
    why = dead[item]
    if why is not None:
        return DEAD, why
    for earlier in range(item):
        alike = float(with_items[item, earlier])
        if dead[earlier] is None and abs(alike) >= SAME_ANSWER:
            says = "says the same as" if alike > 0 else "says the opposite of"
            return REDUNDANT, f"{says} item {earlier + 1} ({alike:.2f})"
    large = influence * len(dead) >= DECISIVE_SHARES
    if not large:
        return ORDINARY, ""
    if correlation >= DECISIVE_CORRELATION:
        return DECISIVE, (
            f"makes {influence:.0%} of the differences in scores; correlation with the score "
            f"{correlation:.2f}"
        )
    return ORDINARY, TOO_FEW if responses < FEWEST_FOR_CORRELATION else ""


def _column(scores: Floats) -> tuple[Floats, NDArray[np.bool_]]:
    known = ~np.isnan(scores)
    mean = scores[known].mean() if known.any() else 0.0
    return np.where(known, scores - mean, 0.0)[:, None], known[:, None]


def number_or_none(value: float) -> float | None:
    """Return a number; None for NaN."""
    return None if np.isnan(value) else float(value)

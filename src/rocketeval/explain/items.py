"""What each item of a checklist adds: its weight, its answers, and whom it tells apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

SURE_YES, SURE_NO = 0.9, 0.1
"""An item that all responses pass, or all fail, as surely as this says nothing about them."""
SAME = 0.05
"""Answers within so little of each other say nothing either."""
FEWEST_FOR_CORRELATION = 3

YES_TO_ALL = "yes to all"
NO_TO_ALL = "no to all"
SAME_FOR_ALL = "same for all"


@dataclass(frozen=True, slots=True)
class ItemFigure:
    """One item over all responses to its query."""

    item: int
    """Its number in the checklist, from 1."""
    text: str
    equal_weight: float
    """One over the number of items."""
    learned_weight: float | None
    """What a learned scorer gave it; None when the query's scores are plain means."""
    answered: int
    """Responses with an answer to it."""
    mean: float | None
    """Mean `p_yes`; None without answers."""
    low: float | None
    high: float | None
    spread: float | None
    """Standard deviation of `p_yes` over the responses."""
    discrimination: float | None
    """Correlation of `p_yes` with the response's score; None where either does not vary."""
    dead: str | None
    """Why it tells nobody apart (`yes to all`, `no to all`, `same for all`); None if it does."""
    group: str | None = None
    """What it belongs to, such as a sub-dimension; None without groups."""


def item_figures(
    texts: Sequence[str], p_yes: Floats, scores: Floats, learned: Sequence[float] | None
) -> tuple[ItemFigure, ...]:
    """The figures of every item; `p_yes` has one row a response, as `scores`.

    >>> one, other = item_figures(["Right?", "Polite?"], np.array([[0.2, 0.99], [0.8, 0.95]]),
    ...     np.array([6.0, 9.0]), None)
    >>> one.mean, one.dead, other.dead
    (0.5, None, 'yes to all')
    """
    return tuple(
        _figure(place, text, p_yes[:, place], scores, len(texts), learned)
        for place, text in enumerate(texts)
    )


def _figure(
    place: int,
    text: str,
    answers: Floats,
    scores: Floats,
    items: int,
    learned: Sequence[float] | None,
) -> ItemFigure:
    known = ~np.isnan(answers)
    given = answers[known]
    some = len(given) > 0
    return ItemFigure(
        item=place + 1,
        text=text,
        equal_weight=1.0 / items,
        learned_weight=None if learned is None else float(learned[place]),
        answered=len(given),
        mean=float(given.mean()) if some else None,
        low=float(given.min()) if some else None,
        high=float(given.max()) if some else None,
        spread=float(given.std()) if some else None,
        discrimination=_correlation(answers, scores),
        dead=why_dead(given),
    )


def why_dead(given: Floats) -> str | None:
    """Why these answers to an item tell nobody apart; None if they do, or are fewer than two."""
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
    x, y = x - x.mean(), y - y.mean()
    return float(np.clip((x @ y) / np.sqrt((x @ x) * (y @ y)), -1.0, 1.0))

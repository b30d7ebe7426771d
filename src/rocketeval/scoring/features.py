"""A response in a few figures that mean the same for every query, whatever its checklist.

Items differ from query to query, so what is learned over all queries is learned about figures such
as the mean or the weakest answer. Each figure depends on the response's own answers alone: a score
never moves because another candidate is added.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rocketeval.scoring.answers import AnswerTable, filled_rows

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

FEATURES = ("mean", "log_odds", "lowest", "lower_quartile", "share_yes", "spread")
"""The figures, in the order of their columns."""

SUREST = 0.01
"""Answers are held this far from 0 and 1 before their log-odds are taken."""


def describe(answers: AnswerTable, missing: str) -> tuple[Floats, Bools]:
    """Return the features of each response, one row each, and which rows may be used."""
    features = np.zeros((len(answers), len(FEATURES)))
    usable = np.zeros(len(answers), dtype=np.bool_)
    for block in answers.blocks():
        p_yes, fit_for_use = filled_rows(block.p_yes, missing)
        usable[block.rows] = fit_for_use
        features[block.rows][fit_for_use] = describe_rows(p_yes[fit_for_use])
    return features, usable


def describe_rows(p_yes: Floats) -> Floats:
    """Return the features of rows of answers without gaps.

    >>> describe_rows(np.array([[0.5, 1.0, 0.0]])).round(2).tolist()
    [[0.5, 0.0, 0.0, 0.25, 0.67, 0.41]]
    """
    if p_yes.size == 0:
        return np.zeros((len(p_yes), len(FEATURES)))
    held = np.clip(p_yes, SUREST, 1.0 - SUREST)
    columns = (
        p_yes.mean(axis=1),
        (np.log(held) - np.log1p(-held)).mean(axis=1),
        p_yes.min(axis=1),
        _lower_quartile(p_yes),
        (p_yes >= 0.5).mean(axis=1),
        p_yes.std(axis=1),
    )
    return np.stack(columns, axis=1)


def weighted_rows(rows: Floats, weights: Floats) -> Floats:
    """Return `rows @ weights`, each row summed by itself: the same bits wherever it stands."""
    total: Floats = (rows * weights).sum(axis=1)
    return total


def _lower_quartile(p_yes: Floats) -> Floats:
    ordered = np.sort(p_yes, axis=1)
    place = 0.25 * (p_yes.shape[1] - 1)
    below = int(place)
    above = min(below + 1, p_yes.shape[1] - 1)
    quartile: Floats = ordered[:, below] + (place - below) * (ordered[:, above] - ordered[:, below])
    return quartile

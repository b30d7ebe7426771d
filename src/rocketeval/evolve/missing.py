"""Missing answers: filled with what is usual for the perspective, and counted."""

from __future__ import annotations

import numpy as np

from rocketeval.evolve.cases import Floats


def medians(answers: Floats) -> Floats:
    """Return the median of each column's answers; 0 for a column without any.

    >>> medians(np.array([[1.0, np.nan], [3.0, np.nan], [np.nan, np.nan]])).tolist()
    [2.0, 0.0]
    """
    found = np.zeros(answers.shape[1])
    some = ~np.isnan(answers).all(axis=0)
    if some.any():
        found[some] = np.nanmedian(answers[:, some], axis=0)
    return found


def filled(answers: Floats, fill: Floats) -> Floats:
    """Return the answers with each column's number in place of what is missing."""
    return np.where(np.isnan(answers), fill, answers)

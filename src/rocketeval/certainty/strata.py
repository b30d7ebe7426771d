"""Queries grouped by score, so that labels can be spread over them and weighed back.

A stratum depends on scores and categories alone: whoever has them finds the same strata again.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]

FEWEST_IN_STRATUM = 5
"""A stratum with fewer labels is estimated together with a neighbour."""


def make_strata(scores: Floats, groups: int, categories: Sequence[str] | None = None) -> Ints:
    """The stratum of each query, from 0: `groups` of like size by score, in each category.

    Equal scores are never parted, so that there can be fewer.

    >>> make_strata(np.array([1.0, 5.0, 2.0, 9.0]), 2).tolist()
    [0, 1, 0, 1]
    """
    names = np.array(["" for _ in scores] if categories is None else list(categories), dtype=object)
    strata = np.zeros(len(scores), np.int64)
    for name in sorted(set(names.tolist())):
        here = names == name
        edges = np.quantile(scores[here], np.arange(1, groups) / groups)
        strata[here] = strata.max(initial=-1) + 1 + np.searchsorted(edges, scores[here])
    return _numbered(strata)


def merge_thin(strata: Ints, labelled: Bools) -> Ints:
    """The same strata, those with hardly any label joined to the neighbour that has fewer."""
    merged = _numbered(strata)
    while (last := int(merged.max(initial=0))) > 0:
        counts = np.bincount(merged[labelled], minlength=last + 1)
        thin = int(counts.argmin())
        if counts[thin] >= FEWEST_IN_STRATUM:
            break
        beside = [place for place in (thin - 1, thin + 1) if 0 <= place <= last]
        merged = _numbered(np.where(merged == thin, min(beside, key=lambda p: counts[p]), merged))
    return merged


def _numbered(strata: Ints) -> Ints:
    _, places = np.unique(strata, return_inverse=True)
    return places.astype(np.int64)

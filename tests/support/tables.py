"""Tables with ties and missing cells, for comparing figures with other libraries."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

LEVELS = st.integers(0, 4).map(float)
"""Few distinct values, so that many are tied."""
PROBABILITIES = st.integers(0, 20).map(lambda step: step / 20)


def tables(
    rows: tuple[int, int], columns: tuple[int, int], values: st.SearchStrategy[float] = LEVELS
) -> st.SearchStrategy[np.ndarray]:
    """Return a strategy for tables with bounded size; any cell may be missing."""
    shapes = st.tuples(st.integers(*rows), st.integers(*columns))
    cells = values | values | st.just(math.nan)
    return shapes.flatmap(
        lambda shape: arrays(np.float64, shape, elements=cells, fill=st.nothing())
    )

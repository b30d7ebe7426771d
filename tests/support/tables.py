"""Tables with ties and missing cells, for tests that hold figures against other libraries."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

LEVELS = st.integers(0, 4).map(float)
"""Few values, so that many are tied."""
PROBABILITIES = st.integers(0, 20).map(lambda step: step / 20)


def tables(
    rows: tuple[int, int], columns: tuple[int, int], values: st.SearchStrategy[float] = LEVELS
) -> st.SearchStrategy[np.ndarray]:
    """Tables with between so many rows and columns; any cell may be missing."""
    shapes = st.tuples(st.integers(*rows), st.integers(*columns))
    cells = values | values | st.just(math.nan)
    return shapes.flatmap(
        lambda shape: arrays(np.float64, shape, elements=cells, fill=st.nothing())
    )

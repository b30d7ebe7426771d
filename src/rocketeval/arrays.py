"""Names for the array types that statistics and scorers pass around."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]
Places = NDArray[np.intp]
"""Numbers from 0, such as that of each row's query."""

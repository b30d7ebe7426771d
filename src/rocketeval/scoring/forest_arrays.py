"""Many forests as a few arrays, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.scoring.forest import Forest
from rocketeval.scoring.learning import split_array

Arrays = Mapping[str, NDArray[Any]]

_KINDS: Mapping[str, type[np.generic]] = {
    "roots": np.int32,
    "item": np.int16,
    "right": np.int32,
    "number": np.float64,
}


def pack_forests(forests: Collection[Forest]) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Return how many trees and nodes each forest has, and all of their nodes in a row."""
    sizes = {
        "trees": [len(forest.roots) for forest in forests],
        "nodes": [len(forest.item) for forest in forests],
    }
    arrays = {
        name: np.concatenate([np.zeros(0, kind), *(getattr(forest, name) for forest in forests)])
        for name, kind in _KINDS.items()
    }
    return sizes, arrays


def unpack_forests(sizes: Mapping[str, Sequence[int]], arrays: Arrays) -> list[Forest]:
    """Return the forests again; ValueError when the arrays are not as long as the sizes say."""
    parts = {
        name: split_array(
            arrays[name], kind, sizes["trees" if name == "roots" else "nodes"], least=1
        )
        for name, kind in _KINDS.items()
    }
    columns = zip(*parts.values(), strict=True)
    return [Forest(roots, item, right, number) for roots, item, right, number in columns]

"""What one query adds to a score that is learned over all queries."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rocketeval.scoring.answers import AnswerTable, filled_rows
from rocketeval.scoring.features import Bools, Floats, weighted_rows
from rocketeval.scoring.partial_pooling import PooledFit


@dataclass(frozen=True, eq=False)
class OwnPart:
    """What one query adds to the pooled score, as a share of the scale."""

    level: float
    """Added to every response."""
    centre: Floats
    """Mean answer to each item among the labelled responses."""
    weights: Floats
    """What each item's distance from that mean is worth, beyond the pooled part."""

    def of(self, p_yes: Floats) -> Floats:
        """Return what is added to each row of answers."""
        return self.level + weighted_rows(p_yes - self.centre, self.weights)


def own_columns(
    answers: AnswerTable, given: Bools, missing: str
) -> tuple[dict[str, Floats], Floats, NDArray[np.intp]]:
    """Return each query's mean labelled answers, all answers less those, and the first rows."""
    centres: dict[str, Floats] = {}
    parts = []
    for block in answers.blocks():
        p_yes = filled_rows(block.p_yes, missing)[0][given[block.rows]]
        if len(p_yes):
            centres[block.query_id] = p_yes.mean(axis=0)
            parts.append(p_yes - centres[block.query_id])
    starts = np.cumsum([0, *map(len, parts)])
    items = np.zeros((starts[-1], 1 + max(map(len, centres.values()))))
    items[:, 0] = 1.0
    for start, part in zip(starts[:-1], parts, strict=True):
        items[start : start + len(part), 1 : 1 + part.shape[1]] = part
    return centres, items, starts


def own_parts(centres: dict[str, Floats], fitted: PooledFit) -> dict[str, OwnPart]:
    """Return what each labelled query adds, by its id."""
    return {
        query_id: OwnPart(float(own[0]), centre, own[1 : 1 + len(centre)])
        for (query_id, centre), own in zip(centres.items(), fitted.own, strict=True)
    }

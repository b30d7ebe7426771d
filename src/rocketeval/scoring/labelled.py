"""Labels beside the answers they speak about."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.errors import ConfigError
from rocketeval.records import Label
from rocketeval.scoring.answers import AnswerTable


def label_column(
    answers: AnswerTable, labels: Sequence[Label], scale: tuple[float, float]
) -> NDArray[np.float64]:
    """Return each response's label, the mean of several, NaN without one.

    ConfigError when a label is not on the scale: it would teach the scorer nonsense.
    """
    given: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for label in labels:
        _refuse_off_scale(label, scale)
        given[label.query_id][label.candidate].append(label.value)
    column = np.full(len(answers), np.nan)
    if given:
        pairs = zip(answers.query_ids, answers.candidates, strict=True)
        for row, (query_id, candidate) in enumerate(pairs):
            values = given[query_id].get(candidate) if query_id in given else None
            if values:
                column[row] = sum(values) / len(values)
    return column


def _refuse_off_scale(label: Label, scale: tuple[float, float]) -> None:
    low, high = scale
    if low <= label.value <= high:
        return
    raise ConfigError(
        f"The label {label.value:g} of query {label.query_id!r}, candidate {label.candidate!r} "
        f"is not on the scale {low:g} to {high:g}.",
        hint="Set `scorer.scale` to the scale of the labels, or mend the label.",
    )

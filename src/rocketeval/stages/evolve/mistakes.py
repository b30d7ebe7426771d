"""The failure set: cases judged otherwise than by people, as an optimizer is shown them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from rocketeval.evolve.cases import CaseTable
from rocketeval.evolve.failed_case import FailedCase, outcome_in_words
from rocketeval.evolve.predictions import Predictions
from rocketeval.records import Query, Response

WORST_SHARE = 0.25
"""Of labels, the share of the cases that lie farthest off: none is met exactly."""


def wrong_cases(table: CaseTable, said: Predictions) -> NDArray[np.intp]:
    """Return the rows judged wrongly, the worst first.

    Of pairs, where another outcome was predicted, what it was surest of first; of labels, those
    farthest off.
    """
    if table.pairs:
        wrong = np.flatnonzero(said.verdict != table.gold)
        order = np.argsort(-said.confidence[wrong], kind="stable")
        return wrong[order]
    off = np.abs(said.outcome - table.gold)
    worst = np.argsort(-off, kind="stable")[: int(np.ceil(WORST_SHARE * len(off)))]
    return worst[off[worst] > 0.0]


def show_mistakes(
    table: CaseTable,
    said: Predictions,
    queries: Mapping[str, Query],
    responses: Mapping[tuple[str, str], Response],
) -> list[FailedCase]:
    """Return the cases judged wrongly with their texts, the worst first."""
    found = []
    for row in wrong_cases(table, said).tolist():
        case = table.cases[row]
        sides = len(case.candidates)
        found.append(
            FailedCase(
                queries[case.query_id],
                tuple(responses[case.query_id, name] for name in case.candidates),
                outcome_in_words(float(table.gold[row]), sides),
                outcome_in_words(float(said.outcome[row]), sides),
                # Of labels, how far off it was decides what is shown first, not how sure it was.
                float(said.confidence[row]) if table.pairs else None,
            )
        )
    return found

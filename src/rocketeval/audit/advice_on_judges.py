"""What the agreement of several judges means, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import combinations

from rocketeval.audit.advice_words import rho
from rocketeval.audit.rank_matrix import RankMatrix
from rocketeval.audit.reliability import Reliability

RELIABLE, TENTATIVE = 0.8, 0.667
"""Krippendorff's own marks: data to draw conclusions from, and tentative ones."""


def on_judges(
    items: Reliability, orders: RankMatrix, twins: Sequence[tuple[str, str]]
) -> Iterator[str]:
    """Yield whether the judges can stand for each other: item by item, and for an order.

    `twins` are the same judge, asked in the same way.
    """
    yield _on_items(items)
    yield from _on_orders(orders)
    for one, two in twins:
        yield (
            f"{one} and {two} are the same judge, asked in the same way: where the runs share a "
            "cache, so are the answers."
        )
    yield "Judges that agree can still all be wrong: only gold tells."


def _on_items(found: Reliability) -> str:
    alpha = found.alpha
    if alpha is None:
        return f"Item by item, their agreement cannot be told: {found.reason}."
    if math.isnan(alpha.low):
        told = f"{found.queries} queries are too few to be sure"
        return f"Item by item, alpha is {rho(alpha.value)} so far; {told}."
    figure = f"alpha {rho(alpha.value)} ({rho(alpha.low)} to {rho(alpha.high)})"
    if alpha.low >= RELIABLE:
        return f"Item by item, one judge can stand for another: {figure}."
    if alpha.high < TENTATIVE:
        return (
            f"Item by item, what is found hangs on which judge is asked: {figure}, and "
            f"{TENTATIVE:.2f} is the least to conclude anything from."
        )
    return (
        f"Item by item, conclusions from one judge are tentative: {figure}; from {RELIABLE:g} on "
        "one can stand for another."
    )


def _on_orders(found: RankMatrix) -> Iterator[str]:
    known = [
        (cell.spearman.value, found.judges[one], found.judges[two])
        for one, two in combinations(range(len(found.judges)), 2)
        if (cell := found.cells[one][two]).spearman is not None
    ]
    if not known:
        return
    lowest, one, two = min(known)
    differ = rho(lowest) != rho(max(known)[0])
    worst = f" at worst, between {one} and {two}" if differ else ""
    yield (
        f"Their orders of {len(found.candidates)} candidates by mean score: Spearman "
        f"{rho(lowest)}{worst}."
    )

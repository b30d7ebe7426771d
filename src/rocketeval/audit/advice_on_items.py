"""What gold answers to single items say of a judge, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocketeval.audit.advice_words import LEVEL, luck, or_more, percent, points, rho, span
from rocketeval.audit.calibration import Calibration
from rocketeval.records import Interval


def on_items(found: Calibration) -> Iterator[str]:
    """Yield whether it leans to yes, tells yes from no, and means its probabilities."""
    if found.yes_bias is None or found.gold_yes is None:
        yield f"The gold tells nothing: {found.reason}."
        return
    yield _on_yes(found.yes_bias, found.gold_yes / found.items)
    if found.auc is not None:
        yield _on_order(found.auc)
    yield from _on_bins(found)


def _on_yes(bias: Interval, gold: float) -> str:
    figures = f"to {percent(gold + bias.value)} of items, gold to {percent(gold)}"
    if math.isnan(bias.low):
        return f"It says yes {figures}: too few queries to tell whether it leans to either side."
    if bias.low > 0.0:
        return f"It says yes too easily: {figures}, {points(bias)}."
    if bias.high < 0.0:
        return f"It says no too easily: yes {figures}, {points(bias)}."
    return f"No lean to yes or to no is sure: yes {figures}, {points(bias)}."


def _on_order(auc: Interval) -> str:
    said = f"{percent(auc.value)} of the time"
    if math.isnan(auc.low):
        return f"An item that gold says yes to gets the higher probability {said}, so far."
    if auc.low > 0.5:
        return (
            f"It tells yes from no: an item that gold says yes to gets the higher probability "
            f"{said} ({span(auc)}; guessing: 50)."
        )
    if auc.high < 0.5:
        return (
            f"It takes yes for no: an item that gold says yes to gets the higher probability only "
            f"{said} ({span(auc)}; guessing: 50). Look whether the items ask for what gold answers."
        )
    return (
        f"It does not surely tell yes from no: an item that gold says yes to gets the higher "
        f"probability {said} ({span(auc)}; guessing: 50)."
    )


def _on_bins(found: Calibration) -> Iterator[str]:
    bins = [each for each in found.by_width.bins if not math.isnan(each.gold.low)]
    off = [each for each in bins if not each.gold.low <= each.mean_p <= each.gold.high]
    if not bins:
        return
    if not off:
        reach = max(each.gold.high - each.gold.low for each in bins)
        yield (
            f"Nothing says that its probabilities are no chances: all {len(bins)} bins hold, with "
            f"intervals of up to {100.0 * reach:.0f} points."
        )
        return
    widest = max(off, key=lambda each: abs(each.mean_p - each.gold.value))
    yield (
        f"Its probabilities are no chances: in {len(off)} of {len(bins)} bins gold says yes to "
        f"another share, most so at {rho(widest.mean_p)}, where it does to "
        f"{percent(widest.gold.value)} ({span(widest.gold)}). By luck alone {or_more(len(off))} "
        f"would be off in {luck(len(bins), len(off), 1.0 - LEVEL)}."
    )

"""What moves a judge's scores beside quality, in sentences."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from rocketeval.audit.advice_words import percent, rho, rho_gap, span
from rocketeval.audit.bias import Bias
from rocketeval.audit.length_bias import LengthBias
from rocketeval.audit.self_preference import NO_QUERY, SelfPreference
from rocketeval.names import listed
from rocketeval.records import Interval

LEANS = 0.3
"""Without gold, a correlation of score and length from here on is worth a word."""


def on_bias(bias: Bias | None) -> Iterator[str]:
    """Yield what the judge leans on, where that is sure; nothing where it is not."""
    if bias is None:
        return
    yield from _on_length(bias.length)
    if bias.own_family is not None:
        yield from _on_family(bias.own_family)


def _on_length(found: LengthBias) -> Iterator[str]:
    # A judge that is merely unsure follows length less than gold does, to either side. It leans on
    # length only where its scores follow length themselves.
    if found.scores is None or not found.scores.low > 0.0:
        return
    gold, beside = found.gold, found.scores_with_gold
    if gold is not None and beside is not None and _above_zero(found.excess):
        yield (
            "It leans on length: of the responses to one query, longer ones get higher scores "
            f"(Spearman {rho(beside.value)}), and not as much higher labels ({rho(gold.value)}): "
            f"{rho_gap(found.excess)}. Trust it less where responses differ in length."
        )
    elif found.lost_to_longer is not None and found.lost_to_longer.high < 0.5:
        lost = found.lost_to_longer
        yield (
            f"It leans on length: of {found.lost:,} votes against its scores, only "
            f"{percent(lost.value)} ({span(lost)}) went to the longer response. Trust it less "
            "where responses differ in length."
        )
    elif gold is None and found.lost_to_longer is None and found.scores.value >= LEANS:
        scores = found.scores
        yield (
            f"Longer responses get higher scores: within a query, Spearman {rho(scores.value)} "
            f"({rho(scores.low)} to {rho(scores.high)}). Only labels or votes can tell how much "
            "of that is deserved."
        )


def _on_family(found: SelfPreference) -> Iterator[str]:
    names = listed(found.family, most=3)
    if _above_zero(found.preference) and _above_zero(found.at_equal_gold):
        more = found.at_equal_gold
        yield (
            f"It prefers its own family ({names}): beside other candidates with the same labels "
            f"it scores them higher, by {rho(more.value)} ({rho(more.low)} to {rho(more.high)}) "
            "standard deviations of a query's scores. Let another judge compare them."
        )
    elif found.reason == NO_QUERY:
        yield (
            f"By name, the judge's own family is among the candidates ({names}); labels of their "
            "responses and of others' would tell whether it prefers them."
        )


def _above_zero(figure: Interval | None) -> TypeGuard[Interval]:
    return figure is not None and figure.low > 0.0

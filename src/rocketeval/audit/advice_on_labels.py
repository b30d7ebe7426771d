"""What the labels say of a judge, in sentences."""

from __future__ import annotations

import math
from collections.abc import Iterator

from rocketeval.audit.advice_words import (
    DISTRUST,
    LEVEL,
    Needed,
    Told,
    rho,
    rho_gap,
    simpler,
    verdict,
)
from rocketeval.audit.audit import Audit
from rocketeval.audit.baselines import KNOW_NOTHING, LONGER
from rocketeval.audit.label_correlation import CANDIDATES, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.scorings import JUDGE
from rocketeval.records import Interval

FLATTERS = 0.2
"""A coefficient of candidates higher by so much than that of responses is worth a warning."""
_TESTS_MOST = ("held-out labels", "all labels", "labels out of fold")
"""Labels by how much they test: of candidates never seen, of all, of candidates learned from."""


def on_labels(audit: Audit, needed: Needed) -> Iterator[str]:
    """Yield what labels tell, the verdict first; nothing without labels."""
    part = next((part for part in _TESTS_MOST if part in audit.labels), None)
    if part is None:
        return
    judge, differences = audit.labels[part][JUDGE], audit.label_differences.get(part, {})
    if judge.spearman is None:
        yield f"The labels tell nothing: {judge.reason}."
        return
    told = Told(f"{part}, response by response (Spearman)", "labels", DISTRUST, rho, rho_gap)
    if LONGER in differences:
        yield from verdict(judge.spearman.value, f"'{LONGER}'", differences[LONGER], told, needed)
    yield from _levels(judge)
    for name, difference in differences.items():
        if name not in KNOW_NOTHING:
            yield from simpler(name, difference, told)


def _levels(judge: LabelCorrelation) -> Iterator[str]:
    """Whether means of candidates look better than single responses are."""
    single, within, means = (
        judge.levels[level].spearman for level in (RESPONSES, PER_QUERY, CANDIDATES)
    )
    if single is None or means is None or math.isnan(single.low):
        return
    inside = "" if within is None else f", within a query {rho(within.value)}"
    figures = f"Spearman {rho(means.value)}; single responses {rho(single.value)}{inside}"
    lowest = single if within is None or single.value < within.value else within
    if means.value - lowest.value < FLATTERS:
        yield f"Means of candidates follow labels hardly closer than responses do: {figures}."
    elif not _sure_order(judge, means):
        yield f"Means of candidates may flatter the judge, and are not sure either: {figures}."
    elif lowest.high < means.value:
        yield (
            f"Means of candidates flatter the judge: {figures}. Trust the order of candidates "
            "more than the score of a response."
        )
    else:
        yield f"Means of candidates may flatter the judge: {figures}; too few labels to tell."


def _sure_order(judge: LabelCorrelation, means: Interval) -> bool:
    """Whether the order of candidates is more than luck: by its interval, else by its p-value."""
    if not math.isnan(means.low):
        return means.low > 0.0
    told = judge.candidates.spearman
    return told is not None and told.value > 0.0 and told.p_value < 1.0 - LEVEL

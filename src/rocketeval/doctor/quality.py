"""How well a judge found the known answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from rocketeval.engines.base import Finding
from rocketeval.records import Answer, Interval

GUESSING = 0.70
"""With twelve items of each kind, guessing reaches this AUC once in twenty times."""
OPPOSITE = 1 - GUESSING
WEAK = 0.85
"""Below this AUC a judge misses much of what is plain to see."""
LEANING = 0.5
"""A judge that answers more of one kind wrongly than this leans to the other."""
HARDLY = 0.5
"""Less mass than this on yes and no, and the judge hardly answers the question."""
ENOUGH = 0.75
"""With fewer answers than this share, scores would rest on what happens to be there."""
_Z = 1.96


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A judge's answer to an item whose answer is known."""

    case: str
    item: str
    expected: bool
    answer: Answer


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures over all items with known answers. A missing answer is not a right one."""

    items: int
    answered: int
    right: int
    """Items with `p_yes` on the right side of 0.5."""
    accuracy: Interval
    """Share of right answers, with a 95 % Wilson interval."""
    auc: float | None
    """How often an item to be answered yes has the higher `p_yes` than one to be answered no."""
    false_yes: int
    """Items to be answered no that were answered yes."""
    nos: int
    """Items to be answered no."""
    false_no: int
    yeses: int
    mass: float
    """Mean of P(yes)+P(no)."""
    without: dict[str, int]
    """Items without a probability, by status."""

    @property
    def yes_bias(self) -> float:
        """Share of the items to be answered no that were answered yes."""
        return self.false_yes / self.nos if self.nos else 0.0

    @property
    def no_bias(self) -> float:
        """Share of the items to be answered yes that were answered no."""
        return self.false_no / self.yeses if self.yeses else 0.0


def measure(answers: Sequence[GoldAnswer]) -> Quality:
    """Return how well the known answers were found."""
    yes = [gold.answer.p_yes for gold in answers if gold.expected]
    no = [gold.answer.p_yes for gold in answers if not gold.expected]
    said_yes = [p for p in yes if p is not None]
    said_no = [p for p in no if p is not None]
    right = sum(p > 0.5 for p in said_yes) + sum(p < 0.5 for p in said_no)
    without = Counter(str(gold.answer.status) for gold in answers if gold.answer.p_yes is None)
    return Quality(
        items=len(answers),
        answered=len(said_yes) + len(said_no),
        right=right,
        accuracy=wilson(right, len(answers)),
        auc=auc(said_yes, said_no),
        false_yes=sum(p > 0.5 for p in said_no),
        nos=len(no),
        false_no=sum(p < 0.5 for p in said_yes),
        yeses=len(yes),
        mass=fmean(gold.answer.mass or 0.0 for gold in answers),
        without=dict(without),
    )


def auc(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """Return the share of pairs in which the yes stands higher, ties counted half.

    >>> auc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    if not yes or not no:
        return None
    won = sum((high > low) + (high == low) / 2 for high in yes for low in no)
    return won / (len(yes) * len(no))


def wilson(right: int, items: int) -> Interval:
    """Return a share with the 95 % interval that stays within 0 and 1.

    >>> wilson(12, 24)
    Interval(value=0.5, low=0.314..., high=0.685...)
    """
    share, square = right / items, _Z * _Z
    middle = (share + square / (2 * items)) / (1 + square / items)
    half = _Z * math.sqrt(share * (1 - share) / items + square / (4 * items**2))
    half /= 1 + square / items
    return Interval(share, max(0.0, middle - half), min(1.0, middle + half))


def quality_findings(quality: Quality) -> list[Finding]:
    """Return what the figures mean for a person."""
    found = [_judgement(quality), _leaning(quality), _mass(quality)]
    if quality.without:
        found.append(_missing(quality))
    return found


def _judgement(quality: Quality) -> Finding:
    share = quality.accuracy
    shown = (
        f"{quality.right} of {quality.items} gold items right "
        f"({share.value:.0%}, {share.low:.0%} to {share.high:.0%})"
    )
    if quality.auc is None:
        return Finding("judgement", shown, "bad", "It answered too few items to be looked at.")
    shown = f"AUC {quality.auc:.2f}, {shown}"
    if quality.auc <= OPPOSITE:
        return Finding(
            "judgement",
            f"this judge says the opposite: {shown}",
            "bad",
            "Does your grading prompt turn yes and no around? If not, take another judge.",
        )
    if quality.auc < GUESSING:
        return Finding(
            "judgement",
            f"this judge guesses: {shown}",
            "bad",
            "Its scores would be noise: take a larger judge, or another grading prompt.",
        )
    if quality.auc < WEAK:
        return Finding(
            "judgement",
            f"weak: {shown}",
            "note",
            "It misses much that is plain: rank over many queries, and audit it with votes or "
            "labels.",
        )
    return Finding("judgement", shown)


def _leaning(quality: Quality) -> Finding:
    told = (
        f"yes to {quality.false_yes} of {quality.nos} items that deserve no, "
        f"no to {quality.false_no} of {quality.yeses} that deserve yes"
    )
    if max(quality.yes_bias, quality.no_bias) <= LEANING:
        return Finding("leaning", told)
    side = "yes" if quality.yes_bias > quality.no_bias else "no"
    ranks = quality.auc is not None and quality.auc >= GUESSING
    return Finding(
        "leaning",
        f"says {side} too often: {told}",
        "note",
        "Its probabilities still rank, but hard yes/no answers and the height of scores mislead."
        if ranks
        else "",
    )


def _mass(quality: Quality) -> Finding:
    told = f"{quality.mass:.3f} on yes and no on average"
    if quality.mass >= HARDLY:
        return Finding("gold mass", told)
    return Finding(
        "gold mass",
        told,
        "note",
        "It would rather say something else: another judge, or a prompt it follows better.",
    )


def _missing(quality: Quality) -> Finding:
    named = ", ".join(f"{status} {count}" for status, count in sorted(quality.without.items()))
    return Finding(
        "missing",
        f"{quality.items - quality.answered} of {quality.items} gold items have no probability "
        f"({named})",
        "bad" if quality.answered < ENOUGH * quality.items else "note",
        "Such answers are left out of the scores; docs/engines.md says what each name means.",
    )

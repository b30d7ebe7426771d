"""Accuracy of a judge on reference items with known answers."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

import numpy as np

from rocketeval.engines.base import EngineFinding
from rocketeval.hashing import content_hash
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import Answer, Checklist, GradingTask, Interval, Query, Response, Turn
from rocketeval.stats.bootstrap import (
    Resampling,
    interval,
    interval_without_spread,
    least_queries,
    query_places,
    resample_queries,
)
from rocketeval.text import figure, share

GUESSING = 0.5
"""The AUC of random answers."""
WEAK = 0.85
"""Below this AUC, a judge misses many obvious answers."""
LEANING = 0.5
"""Share of wrong answers to yes items, or to no items, above which a judge is biased."""
HARDLY = 0.5
"""Minimum mean mass on yes and no; below it, the judge often says something else."""
ENOUGH = 0.75
"""Minimum share of answered items; below it, scores would depend on which are missing."""
_RESAMPLING = Resampling(times=2000, seed=0, level=0.95)


@dataclass(frozen=True, slots=True)
class GoldAnswer:
    """A judge's answer to a reference item."""

    case: str
    item: str
    expected: bool
    answer: Answer


@dataclass(frozen=True, slots=True)
class Quality:
    """Figures over all reference items; a missing answer counts as wrong."""

    items: int
    answered: int
    right: int
    """Items with `p_yes` on the correct side of 0.5."""
    accuracy: Interval
    """Share of correct answers; the 95% interval resamples cases, whose items are similar."""
    auc: Interval | None
    """Probability that a yes item has a higher `p_yes` than a no item; the interval resamples
    cases."""
    false_yes: int
    """No items that were answered yes."""
    nos: int
    """Items whose correct answer is no."""
    false_no: int
    yeses: int
    mass: float
    """Mean of P(yes)+P(no)."""
    without: dict[str, int]
    """Items without a probability, by status."""

    @property
    def yes_bias(self) -> float:
        """Share of no items that were answered yes."""
        return self.false_yes / self.nos if self.nos else 0.0

    @property
    def no_bias(self) -> float:
        """Share of yes items that were answered no."""
        return self.false_no / self.yeses if self.yeses else 0.0


def measure(answers: Sequence[GoldAnswer]) -> Quality:
    """Return the figures over the answers to the reference items."""
    yes = [gold.answer.p_yes for gold in answers if gold.expected]
    no = [gold.answer.p_yes for gold in answers if not gold.expected]
    p_of_yes = [p for p in yes if p is not None]
    p_of_no = [p for p in no if p is not None]
    hits = [
        gold.answer.p_yes is not None
        and (gold.answer.p_yes > 0.5 if gold.expected else gold.answer.p_yes < 0.5)
        for gold in answers
    ]
    cases = query_places([gold.case for gold in answers], len(answers))
    accuracy = _RESAMPLING.share(np.array(hits, dtype=np.float64), cases)
    without = Counter(str(gold.answer.status) for gold in answers if gold.answer.p_yes is None)
    return Quality(
        items=len(answers),
        answered=len(p_of_yes) + len(p_of_no),
        right=sum(hits),
        accuracy=accuracy or Interval(math.nan, math.nan, math.nan),
        auc=_auc_of_cases(answers),
        false_yes=sum(p > 0.5 for p in p_of_no),
        nos=len(no),
        false_no=sum(p < 0.5 for p in p_of_yes),
        yeses=len(yes),
        mass=fmean(gold.answer.mass or 0.0 for gold in answers),
        without=dict(without),
    )


def auc(yes: Sequence[float], no: Sequence[float]) -> float | None:
    """Return the share of pairs in which the yes item is higher; ties count half.

    >>> auc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    if not yes or not no:
        return None
    won = sum((high > low) + (high == low) / 2 for high in yes for low in no)
    return won / (len(yes) * len(no))


def _auc_of_cases(answers: Sequence[GoldAnswer]) -> Interval | None:
    """Return the AUC with an interval from resampled cases; None without items of both kinds."""
    known = [(gold, gold.answer.p_yes) for gold in answers if gold.answer.p_yes is not None]
    yes = [p for gold, p in known if gold.expected]
    no = [p for gold, p in known if not gold.expected]
    value = auc(yes, no)
    if value is None:
        return None
    cases = query_places([gold.case for gold, _ in known], len(known))
    is_yes = np.array([gold.expected for gold, _ in known])
    high, low = np.array(yes)[:, None], np.array(no)
    won = (high > low) + (high == low) / 2.0
    count = int(cases.max()) + 1
    drawn = np.concatenate(list(resample_queries(count, _RESAMPLING.times, _RESAMPLING.seed)))
    yes_drawn, no_drawn = drawn[:, cases[is_yes]], drawn[:, cases[~is_yes]]
    pairs = yes_drawn.sum(axis=1) * no_drawn.sum(axis=1)
    draws = np.full(len(drawn), np.nan)
    np.divide((yes_drawn @ won * no_drawn).sum(axis=1), pairs, out=draws, where=pairs > 0)
    if value in (0.0, 1.0) and count >= least_queries(_RESAMPLING.level):
        return interval_without_spread(value, count, _RESAMPLING.level)
    # Of equal answers to all items, the AUC is one half on any items: its interval has no width.
    return interval(value, draws, queries=count, level=_RESAMPLING.level)


def quality_findings(quality: Quality) -> list[EngineFinding]:
    """Return the findings about accuracy, bias, mass and missing answers."""
    found = [_accuracy(quality), _bias(quality), _mass(quality)]
    if quality.without:
        found.append(_missing(quality))
    return found


def _accuracy(quality: Quality) -> EngineFinding:
    percent, _, bounds = share(quality.accuracy, ".0f").partition(" ")
    correct = f"{percent}% {bounds}".rstrip()
    shown = f"{quality.right} of {quality.items} reference items correct: {correct}"
    area = quality.auc
    if area is None or math.isnan(area.low):
        return EngineFinding(
            "accuracy",
            f"too few items answered to check accuracy ({quality.answered} of {quality.items})",
            "bad",
            f"The check needs answers on {least_queries(_RESAMPLING.level)} responses: see why "
            "items are unanswered, or use another judge.",
        )
    shown = f"AUC {figure(area, '.2f')}, {shown}"
    if area.high < GUESSING:
        return EngineFinding(
            "accuracy",
            f"this judge answers the opposite: {shown}",
            "bad",
            "Check whether your grading prompt swaps yes and no; if not, use another judge.",
        )
    if not area.low > GUESSING and area.high < WEAK:
        return EngineFinding(
            "accuracy",
            f"this judge guesses, or nearly so: {shown}",
            "bad",
            "Its scores would be mostly noise: use a larger judge, or another grading prompt.",
        )
    if not area.low > GUESSING:
        return EngineFinding(
            "accuracy",
            f"not significantly better than guessing on {quality.items} items: {shown}",
            "note",
            "Audit it with votes or labels before you rely on its scores, or use a larger judge.",
        )
    if area.value < WEAK:
        return EngineFinding(
            "accuracy",
            f"weak: {shown}",
            "note",
            "It misses many obvious answers: rank over many queries, and audit it with votes or "
            "labels.",
        )
    return EngineFinding("accuracy", shown)


def _bias(quality: Quality) -> EngineFinding:
    message = (
        f"yes to {quality.false_yes} of {quality.nos} items whose answer is no, "
        f"no to {quality.false_no} of {quality.yeses} whose answer is yes"
    )
    if max(quality.yes_bias, quality.no_bias) <= LEANING:
        return EngineFinding("bias", message)
    side = "yes" if quality.yes_bias > quality.no_bias else "no"
    ranks = quality.auc is not None and quality.auc.low > GUESSING
    return EngineFinding(
        "bias",
        f"says {side} too often: {message}",
        "note",
        "Its probabilities still rank candidates, but do not trust its yes/no answers or the "
        "absolute scores."
        if ranks
        else "",
    )


def _mass(quality: Quality) -> EngineFinding:
    message = f"{quality.mass:.3f} on yes and no on average"
    if quality.mass >= HARDLY:
        return EngineFinding("answer mass", message)
    return EngineFinding(
        "answer mass",
        message,
        "note",
        "It often answers neither yes nor no: use another judge or another prompt.",
    )


def _missing(quality: Quality) -> EngineFinding:
    named = ", ".join(f"{status} {count}" for status, count in sorted(quality.without.items()))
    return EngineFinding(
        "missing",
        f"{quality.items - quality.answered} of {quality.items} reference items unanswered "
        f"({named})",
        "bad" if quality.answered < ENOUGH * quality.items else "note",
        "Scores leave out unanswered items; docs/howto/engines.md explains each reason.",
    )


@dataclass(frozen=True, slots=True)
class GoldCase:
    """A response with reference items."""

    name: str
    query: str
    response: str
    yes: tuple[str, ...]
    """Items whose correct answer is yes."""
    no: tuple[str, ...]
    """Items whose correct answer is no."""

    @property
    def items(self) -> tuple[str, ...]:
        """All items, yes items first."""
        return self.yes + self.no

    @property
    def expected(self) -> tuple[bool, ...]:
        """The correct answers, in the order of `items`."""
        return (True,) * len(self.yes) + (False,) * len(self.no)

    def task(self, prompt: GradingPrompt, salt: str = "") -> GradingTask:
        """Return the grading task of this case.

        A `salt` in the history makes a prompt that no server has cached.
        """
        history = (Turn("user", f"(conversation {salt})"),) if salt else ()
        return prompt.render(
            Query(self.name, self.query, history),
            Response(self.name, "gold", self.response),
            Checklist(self.name, self.items),
            content_hash("doctor", self.name, salt),
        )


GOLD = (
    GoldCase(
        "museum",
        "Plan a day at the city museum with two children. Give times, a lunch stop and the price "
        "of the tickets.",
        "Meet at the main entrance at 10:00. Start with the dinosaur hall, which children usually "
        "like best, and stay for about an hour. At 11:15 take the lift to the second floor to see "
        "the model ships. Have lunch at 12:30 in the garden cafe, or bring your own sandwiches. "
        "After lunch the science room is open, where everything may be touched. Leave at about "
        "15:15, before anyone gets tired. Wear comfortable shoes.",
        yes=(
            "Does the response say at what time to meet?",
            "Does the plan include a stop for lunch?",
            "Does the plan visit the dinosaur hall before the model ships?",
            "Does the response advise on what shoes to wear?",
        ),
        no=(
            "Does the response say how much the tickets cost?",
            "Does the plan include a film in the museum's cinema?",
            "Does the response say that the model ships are on the ground floor?",
            "Does the response advise on how to travel to the museum?",
        ),
    ),
    GoldCase(
        "energy",
        "Name three sources of renewable energy.",
        "Solar power turns sunlight into electricity. Wind power uses turbines that moving air "
        "turns.",
        yes=("Does the response name wind power?",),
        no=("Does the response name three sources of renewable energy?",),
    ),
    GoldCase(
        "capital",
        "What is the capital of Australia, and on which continent is it?",
        "The capital of Australia is Sydney. It lies on the continent of Australia.",
        yes=("Does the response say on which continent the capital is?",),
        no=("Does the response name Canberra as the capital of Australia?",),
    ),
    GoldCase(
        "sunglasses",
        "May I look at the sun through ordinary sunglasses?",
        "No. Ordinary sunglasses do not protect your eyes: looking at the sun through them can "
        "damage your sight for good. Use certified eclipse glasses instead.",
        yes=("Does the response recommend eclipse glasses?",),
        no=("Does the response say that ordinary sunglasses protect the eyes from the sun?",),
    ),
    GoldCase(
        "breakfast",
        "List four ideas for breakfast as bullet points.",
        "You could have porridge with berries, scrambled eggs on toast, yoghurt with honey, or a "
        "banana smoothie.",
        yes=("Does the response give four ideas for breakfast?",),
        no=("Are the ideas written as bullet points?",),
    ),
    GoldCase(
        "discount",
        "A shirt costs 40 euros and is reduced by 25 percent. What does it cost now?",
        "25 percent of 40 euros is 10 euros. 40 + 10 = 50, so the shirt now costs 50 euros.",
        yes=("Does the response say that 25 percent of 40 euros is 10 euros?",),
        no=("Does the response conclude that the shirt now costs 30 euros?",),
    ),
    GoldCase(
        "translation",
        "Translate 'Good morning, my friends' into French and into Spanish.",
        "French: Bonjour, mes amis.",
        yes=("Does the response give a French translation?",),
        no=("Does the response give a Spanish translation?",),
    ),
    GoldCase(
        "wedding",
        "Write a short, polite note declining Ana's invitation to her wedding, and give a reason.",
        "Dear Ana, thank you so much for inviting me to your wedding. I am very sorry, but I will "
        "not be able to come. I wish you both a wonderful day. Warmly, Tom",
        yes=("Does the note thank Ana for the invitation?",),
        no=("Does the note give a reason for not coming?",),
    ),
    GoldCase(
        "function",
        "Write a Python function that returns the larger of two numbers. Give it a docstring.",
        "def larger(a, b):\n    if a > b:\n        return a\n    return b",
        yes=("Is the function named `larger`?",),
        no=("Does the function have a docstring?",),
    ),
)
"""Twelve yes items and twelve no items; the first and longest case has eight of them."""

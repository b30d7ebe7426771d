"""Whether an evaluator is worth using, in words: is it better than what is simpler?"""

from __future__ import annotations

import math

from rocketeval.evolve.baselines import COMMONEST, SINGLE_PROMPTS
from rocketeval.evolve.validate import WITH
from rocketeval.records import Interval
from rocketeval.stages.evolve.evolution import ArmFigures, Figures, Worth


def worth_of(figures: Figures) -> Worth:
    """Return whether it is better than no judge at all, and than one prompt."""
    arms = {arm.name: arm for arm in figures.arms}
    if COMMONEST in arms and not _is_above(arms[COMMONEST].lead):
        return Worth(False, f"Not told apart from {COMMONEST}{_by(figures, arms[COMMONEST])}.")
    if COMMONEST not in arms and not _is_above(arms[WITH].figures[figures.measure]):
        return Worth(False, "Not told apart from chance.")
    asked = [arms[name] for name in SINGLE_PROMPTS if name in arms]
    if not asked:
        return Worth(True, "Better than chance; it was not held against a single prompt.")
    closest = min(asked, key=lambda arm: arm.lead.value)
    found = "Better than the" if _is_above(closest.lead) else "Not told apart from the cheaper"
    return Worth(True, f"{found} {closest.name}{_by(figures, closest)}.")


def _is_above(interval: Interval) -> bool:
    """Whether the whole interval is above zero; an unknown one is not."""
    return math.isfinite(interval.low) and interval.low > 0.0


def _by(figures: Figures, arm: ArmFigures) -> str:
    lead = arm.lead
    if not all(map(math.isfinite, (lead.value, lead.low, lead.high))):
        return " (too few queries to say by how much)"
    scale, unit, digits = (100.0, " points", 1) if figures.measure == "accuracy" else (1.0, "", 2)
    value, low, high = (f"{scale * end:+z.{digits}f}" for end in (lead.value, lead.low, lead.high))
    return f": {value}{unit} ({low} to {high})"

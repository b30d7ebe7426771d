"""Whether a run's answers are yes and no, or places on a scale."""

from __future__ import annotations

from rocketeval.config import RunConfig
from rocketeval.grading.methods.table import kind_of


def answers_yes_or_no(config: RunConfig) -> bool:
    """Return whether the run's method has the judge answer with yes or no.

    What an evaluator asks may be grades, or means over opponents.
    """
    return config.evaluator is None and kind_of(config.method.kind).yes_no

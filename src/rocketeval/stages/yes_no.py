"""Whether a run's answers are yes and no, or places on a scale."""

from __future__ import annotations

from rocketeval.config import RunConfig
from rocketeval.grading.methods.kinds import YES_NO
from rocketeval.grading.methods.table import kind_of

_ON_A_SCALE = frozenset({"cot", "perplexity"})
"""Methods that ask for no label at all: a written score, or how likely a response is."""


def answers_yes_or_no(config: RunConfig) -> bool:
    """Return whether half way between the worst and the best answer lies between no and yes."""
    kind = config.method.kind
    return kind_of(kind).labels == YES_NO and kind not in _ON_A_SCALE

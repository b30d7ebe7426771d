"""How far a judge's probabilities move when it is asked the same again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rocketeval.engines.base import Finding
from rocketeval.records import Answer

UNSEEN = 0.001
"""A score is never shown in such detail."""
MUCH = 0.1
"""If p_yes moves by more, single answers are not to be relied on."""
_WHY = {
    "llama": "llama.cpp: an answer depends on what its cache held before",
    "vllm": "in low precision an answer depends on what is computed beside it",
}
_ANY = "in low precision an answer depends on what is computed beside it, and on caches"


@dataclass(frozen=True, slots=True)
class Repeat:
    """Two times the same items."""

    moved: float | None
    """Largest difference of p_yes; None when no item was answered twice."""
    vanished: int
    """Items that had a probability only one of the two times."""


def compare(first: Sequence[Answer], again: Sequence[Answer]) -> Repeat:
    """Return how far the answers to the same items are apart."""
    pairs = [(one.p_yes, other.p_yes) for one, other in zip(first, again, strict=True)]
    moves = [abs(one - other) for one, other in pairs if one is not None and other is not None]
    vanished = sum((one is None) != (other is None) for one, other in pairs)
    return Repeat(max(moves, default=None), vanished)


def repeat_finding(name: str, repeat: Repeat, server: str) -> Finding:
    """Return what a repetition means for a person; `server` is the engine's version."""
    if repeat.moved is None:
        return Finding(name, "no item was answered twice", "note")
    lost = f"; {repeat.vanished} answers came only once" if repeat.vanished else ""
    if repeat.moved == 0:
        return Finding(name, f"the same to the last bit{lost}")
    told = f"p_yes moves by up to {repeat.moved:.2g}{lost}"
    if repeat.moved < UNSEEN:
        return Finding(name, told)
    if repeat.moved <= MUCH:
        return Finding(name, f"{told}: near ties may change places ({_why(server)})", "note")
    return Finding(
        name,
        f"{told} ({_why(server)})",
        "note",
        "Near ties will change places when judged again: keep `ranking.tie_margin` wide, or serve "
        "the judge in higher precision.",
    )


def _why(server: str) -> str:
    return next((why for name, why in _WHY.items() if server.startswith(name)), _ANY)

"""Scripted judges of known quality."""

from __future__ import annotations

from rocketeval.doctor.quality import GOLD
from rocketeval.engines.scripted import ScriptedEngine

EXPECTED = {
    item: right for case in GOLD for item, right in zip(case.items, case.expected, strict=True)
}


def expected(suffix: str) -> bool:
    """The known answer to the item that a rendered suffix begins with."""
    return EXPECTED[suffix.splitlines()[0]]


def perfect() -> ScriptedEngine:
    """Finds every answer."""
    return ScriptedEngine(lambda _, suffix: 0.9 if expected(suffix) else 0.1, model="perfect")


def yes_sayer() -> ScriptedEngine:
    """Says yes to everything, a little less so where no is right."""
    return ScriptedEngine(lambda _, suffix: 0.95 if expected(suffix) else 0.8, model="polite")


def constant() -> ScriptedEngine:
    """Says the same to everything."""
    return ScriptedEngine(lambda _prefix, _suffix: 0.7, model="constant")


def coin() -> ScriptedEngine:
    """Its probabilities have nothing to do with the item: a hash of the prompt."""
    return ScriptedEngine(model="coin")


def contrary() -> ScriptedEngine:
    """Says the opposite of what is right."""
    return ScriptedEngine(lambda _, suffix: 0.1 if expected(suffix) else 0.9, model="contrary")

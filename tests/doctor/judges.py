"""Scripted judges of known quality."""

from __future__ import annotations

from rocketeval.doctor.quality import GOLD
from rocketeval.engines.scripted import ScriptedEngine

EXPECTED = {
    item: right for case in GOLD for item, right in zip(case.items, case.expected, strict=True)
}


def expected(suffix: str) -> bool:
    """Return the correct answer to the item at the start of a rendered suffix."""
    return EXPECTED[suffix.splitlines()[0]]


def perfect() -> ScriptedEngine:
    """Return a judge that answers everything correctly."""
    return ScriptedEngine(lambda _, suffix: 0.9 if expected(suffix) else 0.1, model="perfect")


def yes_sayer() -> ScriptedEngine:
    """Return a judge that says yes to everything, with a lower probability for no items."""
    return ScriptedEngine(lambda _, suffix: 0.95 if expected(suffix) else 0.8, model="polite")


def constant() -> ScriptedEngine:
    """Return a judge with a constant answer."""
    return ScriptedEngine(lambda _prefix, _suffix: 0.7, model="constant")


def coin() -> ScriptedEngine:
    """Return a judge whose probabilities are a hash of the prompt."""
    return ScriptedEngine(model="coin")


def contrary() -> ScriptedEngine:
    """Return a judge that answers the opposite."""
    return ScriptedEngine(lambda _, suffix: 0.1 if expected(suffix) else 0.9, model="contrary")

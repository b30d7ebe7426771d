"""What validation found about an evaluator, from its provenance, as a reader is told it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from rocketeval.evolve.baselines import SINGLE_PROMPTS
from rocketeval.evolve.described import DescribedConfidence, DescribedFigure, DescribedInterval
from rocketeval.evolve.validate import WITH, WITHOUT

OWN = "this evaluator"
"""How the arm with as many experts as each fold chose is called."""

_LOADS = {
    "alone": "a {} that comes alone",
    "here": "a {} of its benchmark, where some share a query or a response",
    "single": "a {} by one question alone",
}


def figures_of(provenance: Mapping[str, Any]) -> list[DescribedFigure]:
    """Return what each arm reached, the evaluator itself first; none where nobody validated it."""
    found = provenance.get("figures")
    if not found:
        return []
    measure = found["measure"]
    told = [
        DescribedFigure(
            name=OWN if arm["name"] == WITH else arm["name"],
            value=_interval(arm["figures"][measure]),
            note="; ".join(_notes(arm, found)),
            own=arm["name"] == WITH,
        )
        for arm in found["arms"]
    ]
    return sorted(told, key=lambda figure: not figure["own"])


def confidence_of(provenance: Mapping[str, Any]) -> list[DescribedConfidence]:
    """Return the table of confidence, the lowest threshold first; empty for labels."""
    rows = [
        DescribedConfidence(
            threshold=row["threshold"],
            coverage=row["coverage"],
            accuracy=_interval(row["accuracy"]),
            cases=row["cases"],
        )
        for row in provenance.get("confidence") or ()
    ]
    return sorted(rows, key=lambda row: row["threshold"])


def cost_of(provenance: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a verdict takes, as names and words; nothing where nobody counted."""
    found = provenance.get("cost")
    if not found:
        return []
    return [
        (words.format(found["case"]), ", ".join(_load(found[name], found["currency"])))
        for name, words in _LOADS.items()
    ]


def _notes(arm: Mapping[str, Any], found: Mapping[str, Any]) -> Iterator[str]:
    if arm["name"] == WITH:
        yield f"{found['cases']:,} cases of {found['queries']:,} queries"
        if found.get("worth"):
            yield found["worth"].rstrip(".")
    if arm["name"] in SINGLE_PROMPTS:
        yield found["overall"]
    gain = _interval(arm["gain"])
    if arm["name"] != WITHOUT and gain is not None:
        unit, scale, digits = ("points", 100.0, 1) if found["measure"] == "accuracy" else ("", 1, 2)
        low, high = (
            "?" if end is None else f"{scale * end:+z.{digits}f}"
            for end in (gain["low"], gain["high"])
        )
        value = f"{scale * gain['value']:+z.{digits}f} {unit}".strip()
        told = f"{value} over no experts ({low} to {high})"
        yield told.replace("-", "\N{MINUS SIGN}")


def _load(load: Mapping[str, Any], currency: str) -> Iterator[str]:
    calls = f"{load['calls']:,.1f}".removesuffix(".0")
    yield f"{calls} {'question' if calls == '1' else 'questions'} to the judge"
    if load["prompt_tokens"] is not None:
        yield f"{load['prompt_tokens']:,.0f} prompt tokens"
    if load["money"] is not None:
        yield f"{load['money']:.2g} {currency}".strip()


def _interval(found: Mapping[str, Any] | None) -> DescribedInterval | None:
    if found is None or found["value"] is None:
        return None
    return DescribedInterval(value=found["value"], low=found["low"], high=found["high"])

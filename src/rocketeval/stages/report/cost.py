"""What a run cost, stage by stage, for the report."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.report.data import StageCost

STAGES = ("load", "checklist", "grade", "score", "rank", "audit", "explain")
"""Those that are over when a report is written."""


def costs(stages: Mapping[str, Any]) -> tuple[StageCost, ...]:
    """Return seconds of every stage, and requests, tokens and money of those that ask a model."""
    return tuple(_cost(stage, stages[stage]) for stage in STAGES if stage in stages)


def cost_notes(stages: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Return what the figures of a stage do not say."""
    grade, checklist = stages.get("grade", {}), stages.get("checklist", {})
    earlier = grade.get("finished_earlier", 0) + grade.get("from_cache", 0)
    cached = _usage(grade).get("cached_tokens", 0)
    found = (
        ("judgments paid for earlier", earlier),
        ("checklists paid for earlier", checklist.get("reused", 0)),
        ("prompt tokens the judge took from its cache", cached),
    )
    notes = [(name, f"{count:,}") for name, count in found if count]
    if earlier:
        notes.append(
            ("seconds", "of the last call of each stage: judgments paid for earlier are not in it")
        )
    return tuple(notes)


def _cost(stage: str, facts: Mapping[str, Any]) -> StageCost:
    usage = _usage(facts)
    return StageCost(
        stage=stage,
        seconds=facts.get("seconds"),
        requests=usage.get("requests", 0),
        prompt_tokens=usage.get("prompt_tokens", 0),
        completion_tokens=usage.get("completion_tokens", 0),
        cost=usage.get("cost"),
        currency=usage.get("currency", ""),
    )


def _usage(facts: Mapping[str, Any]) -> Mapping[str, Any]:
    """What all judgments of the run took, also those of an earlier call."""
    found: Mapping[str, Any] = facts.get("usage_of_ledger") or facts.get("usage") or {}
    return found

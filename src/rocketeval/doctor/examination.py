"""What an examination of a judge leaves: findings, figures, a verdict."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from rocketeval.config import PriceConfig
from rocketeval.cost import usage_facts
from rocketeval.doctor.quality import GoldAnswer
from rocketeval.engines.base import Finding
from rocketeval.records import JudgeFingerprint, Usage

SCHEMA = 1
"""Of `to_json`; raised when a name in it changes its meaning or goes."""


class Verdict(StrEnum):
    """Whether the judge will do."""

    READY = "ready"
    CARE = "usable with care"
    UNUSABLE = "do not use"


@dataclass(frozen=True, slots=True)
class Figures:
    """What was measured; None where it was not."""

    items: int | None = None
    """Items with known answers that were asked."""
    answered: int | None = None
    """Of these, how many got a probability."""
    right: int | None = None
    accuracy: float | None = None
    """At 0.5; a missing answer is not a right one."""
    accuracy_low: float | None = None
    """Lower end of the 95 % Wilson interval."""
    accuracy_high: float | None = None
    auc: float | None = None
    yes_bias: float | None = None
    """Share of the items to be answered no that were answered yes."""
    no_bias: float | None = None
    """Share of the items to be answered yes that were answered no."""
    mass: float | None = None
    """Mean P(yes)+P(no)."""
    latency_seconds: float | None = None
    """One response with `latency_items` items, nothing else in flight, nothing cached."""
    latency_items: int | None = None
    items_per_second: float | None = None
    """With `in_flight` responses at once, half of them new to the server."""
    in_flight: int | None = None
    repeat_alone: float | None = None
    """Largest difference of p_yes between two times with nothing else in flight."""
    repeat_together: float | None = None
    """Largest difference of p_yes between alone and among others in flight."""


@dataclass(frozen=True, slots=True)
class Examination:
    """Everything that was found out about a judge."""

    findings: Sequence[Finding]
    figures: Figures
    gold: Sequence[GoldAnswer]
    """Every item with a known answer, as it was answered the first time."""
    fingerprint: JudgeFingerprint | None
    """None when the judge could not be identified."""
    usage: Usage
    """What asking the gold items cost; an engine's own probe comes on top."""
    seconds: float
    """Wall time of all of it."""

    @property
    def verdict(self) -> Verdict:
        """Bad findings rule a judge out; notes that give advice ask for care."""
        if any(finding.level == "bad" for finding in self.findings):
            return Verdict.UNUSABLE
        return Verdict.CARE if self.reasons else Verdict.READY

    @property
    def reasons(self) -> list[Finding]:
        """The findings behind the verdict; none when the judge is ready."""
        bad = [finding for finding in self.findings if finding.level == "bad"]
        return bad or [
            finding for finding in self.findings if finding.level == "note" and finding.advice
        ]

    def to_json(self, price: PriceConfig | None = None) -> dict[str, Any]:
        """Return it for machines; names stay as they are within a `schema`."""
        judge = self.fingerprint
        return {
            "schema": SCHEMA,
            "verdict": self.verdict.name.lower(),
            "reasons": [finding.name.strip() for finding in self.reasons],
            "judge": None if judge is None else {**asdict(judge), "digest": judge.digest.hex()},
            "findings": [
                {**asdict(finding), "name": finding.name.strip()} for finding in self.findings
            ],
            "figures": asdict(self.figures),
            "gold": [_gold_row(gold) for gold in self.gold],
            "usage": usage_facts(self.usage, price),
            "seconds": round(self.seconds, 3),
        }


def _gold_row(gold: GoldAnswer) -> Mapping[str, Any]:
    return {
        "case": gold.case,
        "item": gold.item,
        "expected": "yes" if gold.expected else "no",
        "p_yes": gold.answer.p_yes,
        "mass": gold.answer.mass,
        "status": str(gold.answer.status),
    }

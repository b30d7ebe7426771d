"""The three numbers that say how far to trust the judge, on the report's first screen.

Taken in this order, as far as there are any: agreement with votes, correlation with labels, with
reference ratings; then what every run has: pairs that can be told apart, usable answers, length.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from rocketeval.report.data import TrustNumber
from rocketeval.stages.report.findings import Findings
from rocketeval.stages.report.trust_gold import from_labels, from_ratings, from_votes
from rocketeval.stages.report.trust_own import length, separation, usable

NUMBERS = 3


def trust(findings: Findings) -> tuple[TrustNumber, ...]:
    """Return exactly three numbers."""
    return tuple(islice(_numbers(findings), NUMBERS))


def _numbers(findings: Findings) -> Iterator[TrustNumber]:
    audit = findings.audit
    gold = [] if audit is None else [*from_votes(audit), *from_labels(audit), *from_ratings(audit)]
    yield from gold or [_no_gold(findings)]
    yield separation(findings.ranking)
    yield usable(findings.stages.get("score", {}))
    yield length(audit)


def _no_gold(findings: Findings) -> TrustNumber:
    return TrustNumber(
        title="Agreement with people",
        value=None,
        unit="share",
        mood="unknown",
        verdict=_why_unknown(findings),
        beside=(),
        range=(0.0, 1.0),
        how="How often the judge and people prefer the same response. Without votes or labels "
        "nobody knows: collect some, or hold the scores against another judge.",
    )


def _why_unknown(findings: Findings) -> str:
    load = findings.stages.get("load", {})
    refused = (findings.audit or {}).get("refused") or {}
    if not any(load.get(kind) for kind in ("labels", "votes", "ratings")):
        return "not audited: the run has neither labels nor votes"
    if any(refused.values()):
        return "nothing left to audit on: what made the scores learned from all gold of this run"
    return "not audited yet: `rocketeval audit` holds the scores against the gold of this run"

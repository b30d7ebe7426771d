"""Findings in one checklist that all queries share: each is told once, not once a query."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace

from rocketeval.lint.finding import KINDS, Finding
from rocketeval.records import Checklist

MOST_QUERIES = 0.5
"""Share of the queries in which a shared item must behave so before it is a finding."""


def is_shared(checklists: Collection[Checklist]) -> bool:
    """Return whether several queries have one and the same checklist, all of them."""
    return len(checklists) > 1 and len({checklist.content_hash for checklist in checklists}) == 1


def merge_shared(
    findings: Iterable[Finding], query_ids: Sequence[str]
) -> tuple[list[Finding], int]:
    """Return one finding for each kind and item of a shared checklist, and how many were left out.

    What words show counts wherever it is found. How the judge takes an item differs from query to
    query: it is told where it holds in half of them or more, and left out where it holds in fewer.
    """
    by_kind: dict[tuple[int, str], list[Finding]] = {}
    for found in findings:
        by_kind.setdefault((found.item, found.kind), []).append(found)
    merged, left_out = [], 0
    for (_, kind), same in by_kind.items():
        behavioural = KINDS[kind].behavioural
        if behavioural and len(same) < MOST_QUERIES * len(query_ids):
            left_out += len(same)
            continue
        merged.append(_as_one(same, query_ids, behavioural=behavioural))
    return merged, left_out


def _as_one(same: Sequence[Finding], query_ids: Sequence[str], *, behavioural: bool) -> Finding:
    first = same[0]
    why = first.why
    if behavioural:
        # The figures are one query's: the others have their own.
        why = f"In {len(same):,} of {len(query_ids):,} queries; in {first.query_id!r}: {why}"
    return replace(
        first,
        query_id=query_ids[0],
        why=why,
        query_ids=tuple(found.query_id for found in same),
    )

"""What an author proposes for flagged items: a record for programs and people to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from rocketeval.lint.fixing import Request, Settled
from rocketeval.records import Checklist


class Outcome(StrEnum):
    """What became of an item."""

    REWRITTEN = "rewritten"
    DROPPED = "dropped"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class Change:
    """What is proposed for one flagged item."""

    query_id: str
    """The query; the first one where all queries share one checklist."""
    queries: int
    """How many queries have this checklist: more than one where all share it."""
    item: int
    """Its number in the old checklist, from 1."""
    outcome: Outcome
    old: str
    new: str | None
    """The new question; None unless it is rewritten."""
    kinds: tuple[str, ...]
    """What is wrong with the old one."""
    why: tuple[str, ...]
    """The same in words, as the author was told."""
    left_because: str | None = None
    """Why it stays as it was; None unless it does."""


@dataclass(frozen=True, slots=True)
class Fixes:
    """What is proposed for the flagged items of a run. The run itself is as it was."""

    source: str
    author: str
    """The LLM that was asked."""
    asked: int
    """Checklists with items to rewrite."""
    changes: tuple[Change, ...]
    """One for every item that was to be rewritten."""
    rewritten: int
    dropped: int
    left: int
    """Items that stay as they were."""
    failures: Mapping[str, str]
    """Checklists for which nothing could be taken, and why."""
    not_offered: Mapping[str, int]
    """Items with findings of kinds that are rewritten only if they are named, by kind."""
    unasked: int
    """Checklists that were not reached before it was stopped; then nothing is written."""
    reused: int
    """Checklists that were paid for earlier."""
    usage: Mapping[str, Any]
    """What it cost."""
    checklists: tuple[Checklist, ...]
    """Every checklist of the run as it is proposed, unflagged ones too."""
    path: Path | None = None
    """The file they were written to; None where nothing was changed."""


def changes_of(request: Request, settled: Settled | None, failure: str | None) -> list[Change]:
    """Return what becomes of each item of a request."""
    return [_change(request, number, settled, failure) for number in request.numbers]


def _change(request: Request, number: int, settled: Settled | None, failure: str | None) -> Change:
    findings = request.findings[number]
    new, left = None, failure
    outcome = Outcome.LEFT
    if settled is not None and number in settled.new:
        new, left = settled.new[number], None
        outcome = Outcome.DROPPED if new is None else Outcome.REWRITTEN
    elif settled is not None:
        left = settled.left[number]
    return Change(
        query_id=request.checklist.query_id,
        queries=len(request.query_ids),
        item=number,
        outcome=outcome,
        old=request.old(number),
        new=new,
        kinds=tuple(found.kind for found in findings),
        why=tuple(found.why for found in findings),
        left_because=left,
    )

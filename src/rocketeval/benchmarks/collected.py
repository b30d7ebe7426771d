"""Labels that people give in `rocketeval view --label`, in one append-only file per benchmark.

Every kind of benchmark reads them next to its own labels and votes. Each record names its labeler.
A later record of the same person on the same responses replaces an earlier one.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rocketeval.errors import BenchmarkError
from rocketeval.records import Label, Vote, Winner
from rocketeval.store.journal import Journal


def _new_id() -> str:
    return secrets.token_hex(8)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedVote:
    """One person's preference between two responses, as shown from left to right."""

    by: str
    """Name of the labeler."""
    query_id: str
    candidate_a: str
    candidate_b: str
    winner: Winner
    id: str = field(default_factory=_new_id)
    at: str = field(default_factory=_now)

    @property
    def about(self) -> object:
        """What a later record of the same person replaces."""
        return self.by, self.query_id, frozenset((self.candidate_a, self.candidate_b))


@dataclass(frozen=True, slots=True, kw_only=True)
class CollectedLabel:
    """One person's score of a response, on the label scale."""

    by: str
    query_id: str
    candidate: str
    value: float
    id: str = field(default_factory=_new_id)
    at: str = field(default_factory=_now)

    @property
    def about(self) -> object:
        """What a later record of the same person replaces."""
        return self.by, self.query_id, self.candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class WrongAnswer:
    """One person's objection to the judge's answer to an item."""

    by: str
    query_id: str
    candidate: str
    item: int
    """Number in the checklist, from 1."""
    text: str
    """The item, in case that the checklist changes."""
    p_yes: float | None
    """The judge's answer."""
    id: str = field(default_factory=_new_id)
    at: str = field(default_factory=_now)

    @property
    def about(self) -> object:
        """What a later record of the same person replaces."""
        return self.by, self.query_id, self.candidate, self.item


Collected = CollectedVote | CollectedLabel | WrongAnswer
KINDS: dict[str, Callable[..., Collected]] = {
    "vote": CollectedVote,
    "label": CollectedLabel,
    "answer": WrongAnswer,
}
_NAMES = {made: name for name, made in KINDS.items()}
_WINNERS = ("a", "b", "tie")


class CollectedLabels:
    """The file of collected labels; a record is on disk when `add` returns."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._journal = Journal(path, shared=True)

    def add(self, record: Collected) -> None:
        """Append a record durably."""
        self._journal.append({"kind": _NAMES[type(record)], **asdict(record)})

    def undo(self, record_id: str) -> None:
        """Withdraw a record durably; it stays in the file."""
        self._journal.append({"kind": "undo", "id": record_id, "at": _now()})

    def records(self) -> list[Collected]:
        """Return the records that are neither withdrawn nor replaced, oldest first."""
        rows = [row for row in self._journal.rows() if isinstance(row, dict)]
        undone = {row.get("id") for row in rows if row.get("kind") == "undo"}
        kept: dict[object, Collected] = {}
        for row in rows:
            if row.get("kind") in KINDS and row.get("id") not in undone:
                record = self._record(row)
                kept.pop((type(record), record.about), None)
                kept[type(record), record.about] = record
        return list(kept.values())

    def votes(self) -> list[Vote]:
        """Return the votes."""
        return votes_in(self.records())

    def labels(self) -> list[Label]:
        """Return the labels."""
        return labels_in(self.records())

    def _record(self, row: dict[str, Any]) -> Collected:
        made = KINDS[row["kind"]]
        names = {each.name for each in fields(made)}  # type: ignore[arg-type]
        try:
            record = made(**{name: row[name] for name in names if name in row})
        except TypeError as error:
            raise self._unreadable(row, str(error)) from None
        if isinstance(record, CollectedVote) and record.winner not in _WINNERS:
            raise self._unreadable(row, f"the winner is {record.winner!r}")
        if isinstance(record, CollectedLabel) and not isinstance(record.value, int | float):
            raise self._unreadable(row, f"the value is {record.value!r}")
        return record

    def _unreadable(self, row: dict[str, Any], why: str) -> BenchmarkError:
        return BenchmarkError(
            f"{self.path}: the record {row.get('id', '')!r} cannot be read: {why}.",
            hint="Remove its line, or restore what `rocketeval view --label` wrote.",
        )


def votes_in(records: Iterable[Collected]) -> list[Vote]:
    """Return the votes among collected records."""
    return [
        Vote(one.query_id, one.candidate_a, one.candidate_b, one.winner, one.by)
        for one in records
        if isinstance(one, CollectedVote)
    ]


def labels_in(records: Iterable[Collected]) -> list[Label]:
    """Return the labels among collected records."""
    return [
        Label(one.query_id, one.candidate, one.value, one.by)
        for one in records
        if isinstance(one, CollectedLabel)
    ]

"""Labels that people give in `rocketeval view --label` or in a file, one file per benchmark.

Every kind of benchmark reads them next to its own labels and votes. `view --label` only appends;
each of its records has a `kind` and names its labeler, and a later record of the same person on the
same responses replaces an earlier one. Rows without a `kind` are those of labels.jsonl and
votes.jsonl, or of the file of `rocketeval labels next`. A null value or winner is a response that
is not labeled yet.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field, fields
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson

from rocketeval.benchmarks.jsonl import (
    FIELDS,
    OddFields,
    not_labeled_yet,
    read_label,
    read_vote,
)
from rocketeval.benchmarks.reading import UNREADABLE, Row, cannot_read
from rocketeval.errors import BenchmarkError
from rocketeval.records import Label, Vote, Winner
from rocketeval.store.journal import Journal
from rocketeval.text import join_words


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
_START = b'{"kind":'
"""Start of a record of `view --label`: a torn line with it is no error."""
_NUMBERS = ("value", "item", "p_yes")
"""Fields of records that hold numbers; all others hold texts."""
_FORMS = (
    'A label is {"query_id": "q1", "candidate": "x", "value": 7}, a vote {"query_id": "q1", '
    '"candidate_a": "x", "candidate_b": "y", "winner": "a"}.'
)


@dataclass(frozen=True, slots=True)
class CollectedContent:
    """The content of a file of collected labels."""

    records: tuple[Collected, ...] = ()
    """The records that are neither withdrawn nor replaced, oldest first."""
    places: tuple[str, ...] = ()
    """`file:line` of each record."""
    unlabeled: int = 0
    """Number of rows whose value or winner is null."""
    notes: tuple[str, ...] = ()
    """Sentences about rows that are not used, and fields that look misspelled."""

    def labels(self) -> Iterator[tuple[str, Label]]:
        """Yield the labels, each with its place."""
        for place, record in zip(self.places, self.records, strict=True):
            yield from ((place, label) for label in labels_in([record]))

    def votes(self) -> Iterator[tuple[str, Vote]]:
        """Yield the votes, each with its place."""
        for place, record in zip(self.places, self.records, strict=True):
            yield from ((place, vote) for vote in votes_in([record]))


def absent_file(path: Path | None) -> Iterator[str]:
    """Yield a note if the config names a file of collected labels that does not exist."""
    if path is not None and not path.exists():
        yield (
            f"`benchmark.collected` names {path}, which does not exist: no labels or votes are "
            "read from it. `rocketeval view --label` creates it; if it should exist, correct the "
            "path."
        )


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

    def read(self) -> CollectedContent:
        """Return the content; raise BenchmarkError that names the line of an unknown row."""
        broken: list[str] = []
        rows = list(self._rows(broken))
        undone = {row.text("id", "") for row in rows if row.values.get("kind") == "undo"} - {""}
        kept: dict[object, tuple[str, Collected]] = {}
        unlabeled, odd = 0, OddFields()
        for row in rows:
            if row.values.get("kind") is None:
                known = FIELDS["labels" if "value" in row.values else "votes"]
                odd.look_at(row, f"rows of {self.path.name}", known)
                record = _plain(row)
                if record is None:
                    unlabeled += 1
                else:  # As in labels.jsonl, a plain row replaces no other.
                    kept[row.where] = row.where, record
            elif row.values["kind"] in KINDS and row.text("id", "") not in undone:
                record = self._record(row)
                kept.pop((type(record), record.about), None)
                kept[type(record), record.about] = row.where, record
        notes = (
            *not_labeled_yet(unlabeled, self.path.name),
            *_broken_lines(broken, self.path.name),
            *odd.sentences(),
        )
        places = tuple(place for place, _ in kept.values())
        return CollectedContent(
            tuple(record for _, record in kept.values()), places, unlabeled, notes
        )

    def records(self) -> list[Collected]:
        """Return the records that are neither withdrawn nor replaced, oldest first."""
        return list(self.read().records)

    def votes(self) -> list[Vote]:
        """Return the votes."""
        return votes_in(self.records())

    def labels(self) -> list[Label]:
        """Return the labels."""
        return labels_in(self.records())

    def _rows(self, broken: list[str]) -> Iterator[Row]:
        """Yield every complete row with its line; add the places of broken lines to `broken`.

        The last line is torn, not broken, if it does not end: its writer was interrupted.
        """
        if not self.path.exists():
            return
        try:
            lines = self.path.read_bytes().split(b"\n")
        except UNREADABLE as error:
            raise cannot_read(self.path, error) from None
        for number, line in enumerate(lines, 1):
            content = line.removeprefix(b"\xef\xbb\xbf").strip()
            where = f"{self.path.name}:{number}"
            if not content:
                continue
            try:
                values = orjson.loads(content)
            except orjson.JSONDecodeError as error:
                if content.startswith(_START) or _START.startswith(content):
                    if number < len(lines):
                        broken.append(where)
                    continue
                raise BenchmarkError(f"{where}: not JSON: {error}.", hint=_FORMS) from None
            known = (*KINDS, "undo", None)
            if not isinstance(values, dict) or values.get("kind") not in known:
                raise BenchmarkError(f"{where}: neither a label nor a vote.", hint=_FORMS)
            yield Row(values, where)

    def _record(self, row: Row) -> Collected:
        made = KINDS[str(row.values["kind"])]
        names = {each.name for each in fields(made)}  # type: ignore[arg-type]
        given: dict[str, Any] = {}
        for name in names.intersection(row.values):
            if name not in _NUMBERS:
                given[name] = row.name(name)
            elif name == "p_yes" and row.values[name] is None:
                given[name] = None
            else:
                number = row.number(name)
                given[name] = int(number) if name == "item" else number
        try:
            record = made(**given)
        except TypeError as error:
            raise _unreadable(row, str(error)) from None
        if isinstance(record, CollectedVote) and record.winner not in _WINNERS:
            raise _unreadable(row, f"the winner is {record.winner!r}")
        return record


def _broken_lines(places: list[str], name: str) -> Iterator[str]:
    """Yield a sentence about lines that are not JSON, if there are any."""
    if places:
        yield (
            f"lines of {name} that are not valid JSON: {len(places):,} "
            f"({join_words(places, most=3)}). They are not used: correct or remove them. An "
            "interrupted write leaves such a line, too."
        )


def _unreadable(row: Row, why: str) -> BenchmarkError:
    return BenchmarkError(
        f"{row.where}: the record {row.values.get('id', '')!r} cannot be read: {why}.",
        hint="Remove its line, or restore what `rocketeval view --label` wrote.",
    )


def _plain(row: Row) -> Collected | None:
    """Return the label or vote of a row without a kind; None if it is not labeled yet."""
    if "value" in row.values:
        label = read_label(row)
        if label is None:
            return None
        return CollectedLabel(
            by=label.labeler,
            query_id=label.query_id,
            candidate=label.candidate,
            value=label.value,
        )
    if "winner" in row.values:
        vote = read_vote(row)
        if vote is None:
            return None
        return CollectedVote(
            by=vote.voter,
            query_id=vote.query_id,
            candidate_a=vote.candidate_a,
            candidate_b=vote.candidate_b,
            winner=vote.winner,
        )
    raise BenchmarkError(f"{row.where}: neither a label nor a vote.", hint=_FORMS)


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

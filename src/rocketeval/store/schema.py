"""The row format of a judgment: JSON in the journal, Parquet in the parts.

Log-probabilities are kept in addition to the derived `p_yes`; lists are in checklist order and
have the same length.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import repeat
from operator import attrgetter
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.records import ASKED_AGAIN, Answer, Basis, Judgment, Status, Usage

_DOUBLES = pa.list_(pa.float64())


def table_schema(*columns: tuple[str, pa.DataType]) -> pa.Schema:
    """Return a schema of columns in order; consecutive columns of one type share a string.

    >>> table_schema(("key judge", pa.string()), ("requests", pa.int32())).names
    ['key', 'judge', 'requests']
    """
    return pa.schema([(name, kind) for names, kind in columns for name in names.split()])


_NUMBERS = ("p_yes", "p_low", "p_high", "mass", "logp_yes", "logp_no")
"""The numeric fields of an answer, in order."""
APPLICABILITY = ("p_na", "na_low", "na_high")
"""Numeric fields that only answers to items that may not apply have."""
_FIELDS = ("status", *_NUMBERS, "text", *APPLICABILITY)
_fields = attrgetter(*_FIELDS)
JUDGMENTS = table_schema(
    ("key judge query_id candidate", pa.string()),
    ("status", pa.list_(pa.string())),
    ("p_yes p_low p_high mass logp_yes logp_no", _DOUBLES),
    ("requests", pa.int32()),
    ("prompt_tokens cached_tokens completion_tokens", pa.int64()),
    ("seconds", pa.float64()),
    ("neutralised", pa.int32()),
    ("text", pa.list_(pa.string())),
    ("p_na na_low na_high", _DOUBLES),
)


_LOST = pa.array([str(status) for status in (*ASKED_AGAIN, Status.ERROR)])
"""Statuses that no finished judgment has."""


def without_unused(judgments: pa.Table) -> pa.Table:
    """Return a part without the columns of `p_na` if none of its items may be inapplicable."""
    there = [name for name in APPLICABILITY if name in judgments.column_names]
    unused = [name for name in there if judgments[name].null_count == judgments.num_rows]
    return judgments.drop_columns(unused) if len(unused) == len(APPLICABILITY) else judgments


COLUMN_ROWS = 1_000
"""Rows that become columns at once."""


class JudgmentRows:
    """The judgments of a journal as a table, so that nothing is parsed when it becomes a part."""

    def __init__(self, earlier: pa.Table | None = None) -> None:
        """Start with the judgments that the journal already has."""
        self._tables = [JUDGMENTS.empty_table(), *([] if earlier is None else [earlier])]
        self._rows: list[Mapping[str, object]] = []

    def add(self, row: Mapping[str, object], line: bytes) -> None:
        """Add a row that was written as this line of JSON."""
        # JSON has no infinity: if the line has a null, the line counts.
        self._rows.append(orjson.loads(line) if b"null" in line else row)
        if len(self._rows) == COLUMN_ROWS:
            self._settle()

    def table(self) -> pa.Table:
        """Return all judgments in order."""
        self._settle()
        return pa.concat_tables(self._tables).combine_chunks()

    def _settle(self) -> None:
        self._tables.append(pa.Table.from_pylist(self._rows, schema=JUDGMENTS))
        self._rows = []


def no_judgments(columns: Sequence[str]) -> pa.Table:
    """Return an empty table with these columns of the ledger."""
    return pa.schema([JUDGMENTS.field(name) for name in columns]).empty_table()


def with_basis(
    scores: pa.Table | pa.RecordBatch, columns: Sequence[str] | None
) -> pa.Table | pa.RecordBatch:
    """Return scores with their basis, if that is among the columns or all are wanted.

    Files from before scorers could be fitted do not have it: no score used reference data.
    """
    if "basis" in scores.schema.names or "basis" not in (columns or ["basis"]):
        return scores
    basis = pa.repeat(str(Basis.UNSUPERVISED), scores.num_rows)
    return scores.append_column("basis", basis)


def complete_rows(table: pa.Table) -> pa.Table:
    """Return the judgments of a table in which no answer is lost to a fault of the moment.

    Earlier versions recorded such judgments as finished, and shared them.
    """
    statuses = table["status"].combine_chunks()
    lost = pc.is_in(pc.list_flatten(statuses), value_set=_LOST)
    rows = pc.unique(pc.list_parent_indices(statuses).filter(lost))
    if not len(rows):
        return table
    whole = np.ones(table.num_rows, dtype=bool)
    whole[rows.to_numpy(zero_copy_only=False)] = False
    return table.filter(pa.array(whole))


def answers_to_lists(answers: Sequence[Answer]) -> dict[str, list[Any]]:
    """Return the answers column by column; texts and `p_na` only if there are any."""
    columns = map(list, zip(*map(_fields, answers), strict=True)) if answers else repeat([])
    lists = dict(zip(_FIELDS, columns, strict=False))
    if lists["text"].count(None) == len(answers):
        del lists["text"]
    if lists["na_low"].count(None) == len(answers):
        for name in APPLICABILITY:
            del lists[name]
    return lists


def lists_to_answers(row: Mapping[str, object]) -> tuple[Answer, ...]:
    """Return the answers of a row; the inverse of `answers_to_lists`."""
    lists: Mapping[str, Any] = row
    none = [None] * len(lists["status"])
    optional = (lists.get(name) or none for name in ("text", *APPLICABILITY))
    rows = zip(lists["status"], *(lists[name] for name in _NUMBERS), *optional, strict=True)
    return tuple(Answer(Status(status), *values) for status, *values in rows)


def judgment_to_row(judgment: Judgment, judge: str) -> dict[str, object]:
    """Return the judgment as a ledger row."""
    usage = judgment.usage
    return {
        "key": judgment.key.hex(),
        "judge": judge,
        "query_id": judgment.query_id,
        "candidate": judgment.candidate,
        **answers_to_lists(judgment.answers),
        "requests": usage.requests,
        "prompt_tokens": usage.prompt_tokens,
        "cached_tokens": usage.cached_tokens,
        "completion_tokens": usage.completion_tokens,
        "seconds": round(usage.seconds, 4),
        "neutralised": judgment.neutralised,
    }


def row_to_judgment(row: Mapping[str, Any]) -> Judgment:
    """Return the judgment in a ledger row; the inverse of `judgment_to_row`."""
    return Judgment(
        key=bytes.fromhex(row["key"]),
        query_id=row["query_id"],
        candidate=row["candidate"],
        answers=lists_to_answers(row),
        usage=Usage(
            row["requests"],
            row["prompt_tokens"],
            row["cached_tokens"],
            row["completion_tokens"],
            row["seconds"],
        ),
        neutralised=row["neutralised"],
    )

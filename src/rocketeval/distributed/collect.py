"""Results of a cluster become part of the run: each judgment once, whatever was retried."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.distributed.staging import JobFolder
from rocketeval.distributed.task_rows import ID, row_to_failure
from rocketeval.records import Failure
from rocketeval.store.ledger import ROLL_ROWS, Ledger
from rocketeval.store.schema import JUDGMENTS

STEP_ROWS = 8192
"""Rows that are looked at together: a cluster writes a file a batch."""


@dataclass
class Collected:
    """What a job left behind."""

    judged: int = 0
    """Judgments that are new in the ledger."""
    failures: dict[bytes, Failure] = field(default_factory=dict)
    rows: int = 0
    """Tasks with a row, whether judged or failed."""
    duplicates: int = 0
    """Rows of tasks that had one already: left out."""
    torn: int = 0
    """Files whose writer died before their end: left out, their tasks are asked again."""

    def add(self, other: Collected) -> None:
        """Add what another job left."""
        self.judged += other.judged
        self.failures |= other.failures
        self.rows += other.rows
        self.duplicates += other.duplicates
        self.torn += other.torn


def collect(folder: JobFolder, rows: int, ledger: Ledger) -> Collected:
    """Append to the ledger what a job of so many `rows` judged; judgments come once each.

    Also those that the run does not want any more, as after its inputs changed: they are paid for.
    """
    found = Collected()
    seen = np.zeros(rows, dtype=bool)
    failures: dict[int, Failure] = {}
    held: list[pa.Table] = []
    read = 0
    for table in _gathered(folder.result_tables(), found):
        read += table.num_rows
        judged = _first_of_each(table.filter(pc.is_null(table["failure"])), seen)
        found.rows += judged.num_rows
        for row in table.filter(pc.is_valid(table["failure"])).to_pylist():
            failures[row[ID]] = row_to_failure(row)
        held.append(_new(judged, ledger))
        if sum(one.num_rows for one in held) >= ROLL_ROWS:
            found.judged += _append(held, ledger)
    found.judged += _append(held, ledger)
    # A task that failed on one worker may have been judged by another.
    left = [failure for number, failure in failures.items() if not seen[number]]
    found.failures = {failure.key: failure for failure in left}
    found.rows += len(left)
    found.duplicates = read - found.rows
    return found


def _gathered(parts: Iterable[pa.Table | None], found: Collected) -> Iterator[pa.Table]:
    """Yield the parts joined to tables of a size that is worth a step; count those torn."""
    held: list[pa.Table] = []
    rows = 0
    for part in parts:
        if part is None:
            found.torn += 1
            continue
        held.append(part)
        rows += part.num_rows
        if rows >= STEP_ROWS:
            yield pa.concat_tables(held)
            held, rows = [], 0
    if held:
        yield pa.concat_tables(held)


def _first_of_each(table: pa.Table, seen: np.ndarray) -> pa.Table:
    """Return the rows whose id was not seen before, and mark them."""
    ids, first = np.unique(table[ID].to_numpy(), return_index=True)
    chosen = first[~seen[ids]]
    seen[ids] = True
    return table.take(pa.array(np.sort(chosen)))


def _new(table: pa.Table, ledger: Ledger) -> pa.Table:
    """Return the judgments that the ledger lacks, as it holds them."""
    keys = map(bytes.fromhex, table["key"].to_pylist())
    chosen = [key not in ledger.finished for key in keys]
    return table.filter(pa.array(chosen, pa.bool_())).select(JUDGMENTS.names)


def _append(held: list[pa.Table], ledger: Ledger) -> int:
    whole = pa.concat_tables(held) if held else JUDGMENTS.empty_table()
    held.clear()
    if whole.num_rows:
        ledger.extend(whole.cast(JUDGMENTS))
    return int(whole.num_rows)

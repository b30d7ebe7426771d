"""Results of a cluster become part of the run: each judgment once, whatever was retried."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.distributed.staging import Staging
from rocketeval.distributed.task_rows import ID, row_to_failure
from rocketeval.records import Failure
from rocketeval.store.ledger import ROLL_ROWS, Ledger
from rocketeval.store.schema import JUDGMENTS


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


def collect(staging: Staging, rows: int, ledger: Ledger, wanted: Collection[bytes]) -> Collected:
    """Append to the ledger what a job of so many `rows` judged; judgments come once each.

    Rows that the run does not want any more, as after its inputs changed, are kept out.
    """
    found = Collected()
    seen = np.zeros(rows, dtype=bool)
    held: list[pa.Table] = []
    for table in staging.result_tables():
        if table is None:
            found.torn += 1
            continue
        fresh = _first_of_each(table, seen)
        found.rows += fresh.num_rows
        found.duplicates += table.num_rows - fresh.num_rows
        failed = fresh.filter(pc.is_valid(fresh["failure"]))
        for row in failed.to_pylist():
            failure = row_to_failure(row)
            found.failures[failure.key] = failure
        held.append(_new(fresh.filter(pc.is_null(fresh["failure"])), ledger, wanted))
        if sum(one.num_rows for one in held) >= ROLL_ROWS:
            found.judged += _append(held, ledger)
    found.judged += _append(held, ledger)
    return found


def _first_of_each(table: pa.Table, seen: np.ndarray) -> pa.Table:
    """Return the rows whose id was not seen before, and mark them."""
    ids, first = np.unique(table[ID].to_numpy(), return_index=True)
    chosen = first[~seen[ids]]
    seen[ids] = True
    return table.take(pa.array(np.sort(chosen)))


def _new(table: pa.Table, ledger: Ledger, wanted: Collection[bytes]) -> pa.Table:
    """Return the judgments that the run wants and its ledger lacks, as the ledger holds them."""
    keys = map(bytes.fromhex, table["key"].to_pylist())
    chosen = [key in wanted and key not in ledger.finished for key in keys]
    return table.filter(pa.array(chosen, pa.bool_())).select(JUDGMENTS.names)


def _append(held: list[pa.Table], ledger: Ledger) -> int:
    whole = pa.concat_tables(held) if held else JUDGMENTS.empty_table()
    held.clear()
    if whole.num_rows:
        ledger.extend(whole.cast(JUDGMENTS))
    return int(whole.num_rows)

"""The score stage: every response of a run gets its score, or a visible gap."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import Scored
from rocketeval.store.schema import no_judgments

_READ = ("key", "p_yes")


def align_answers(
    query_ids: Sequence[str],
    candidates: Sequence[str],
    keys: Sequence[str | None],
    judgments: Iterable[pa.Table],
) -> AnswerTable:
    """Return the answers of the given cells, in their order, from tables with `key`, `p_yes`.

    Whatever order the ledger is in, the same judgments give the same table.
    """
    tables = (table.select(_READ) for table in judgments)
    ledger = pa.concat_tables([no_judgments(_READ), *tables])
    ledger = ledger.combine_chunks()
    rows = pc.index_in(pa.array(keys, pa.string()), value_set=ledger["key"])
    lists = ledger["p_yes"].combine_chunks().take(rows)
    if isinstance(lists, pa.ChunkedArray):
        lists = lists.combine_chunks()
    return table_of_lists(query_ids, candidates, lists)


def table_of_lists(
    query_ids: Sequence[str], candidates: Sequence[str], lists: pa.ListArray
) -> AnswerTable:
    """Return the answers of cells that have one list each; null is no judgment, or no answer."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    p_yes = pc.list_flatten(lists).to_numpy(zero_copy_only=False).astype(np.float64)
    return AnswerTable(query_ids, candidates, p_yes, offsets)


def count_statuses(
    keys: Sequence[str | None], ledger_keys: Iterable[pa.Table], ledger_statuses: Iterable[pa.Table]
) -> dict[str, int]:
    """Return how many answers of the given judgments have each status.

    The ledger is read twice, so that the given keys are hashed once and not for every part.
    """
    parts = [no_judgments(_READ)["key"], *(table["key"] for table in ledger_keys)]
    stored = pa.chunked_array([chunk for part in parts for chunk in part.chunks], pa.string())
    wanted = pc.is_in(stored, value_set=pa.array(keys, pa.string()))
    counts: Counter[str] = Counter()
    start = 0
    for table in ledger_statuses:
        chosen = table["status"].filter(wanted.slice(start, table.num_rows))
        start += table.num_rows
        for entry in pc.value_counts(pc.list_flatten(chosen)).to_pylist():
            counts[entry["values"]] += entry["counts"]
    return dict(sorted(counts.items()))


def score_table(
    answers: AnswerTable, scored: Scored, keys: Sequence[str | None] | pa.StringArray
) -> pa.Table:
    """Return the scores as the table that is written to disk."""
    return pa.table(
        {
            "query_id": pa.array(answers.query_ids, pa.string()),
            "candidate": pa.array(answers.candidates, pa.string()),
            "score": pa.array(scored.scores, from_pandas=True),
            "basis": pa.array(scored.basis, pa.string()),
            "items": pa.array(answers.items, pa.int32()),
            "answered": pa.array(answers.answered, pa.int32()),
            "judgment": pa.array(keys, pa.string()),
        }
    )

"""What a run's own files weigh, for plans of larger runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.store.ledger import live_files
from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class Weight:
    """Rows in Parquet files, and the bytes they take."""

    rows: int
    size: int


def ledger_weight(store: RunStore) -> Weight:
    """Return what the finished parts of the ledger weigh; a journal that grows is no part yet."""
    return _weigh([path for path in live_files(store.ledger_folder) if path.suffix == ".parquet"])


def score_weight(store: RunStore) -> Weight:
    """Return what the scores weigh."""
    return _weigh([store.path / "scores.parquet"])


def _weigh(paths: Sequence[Path]) -> Weight:
    rows = size = 0
    for path in paths:
        try:
            rows += pq.read_metadata(path).num_rows
            size += path.stat().st_size
        except (FileNotFoundError, pa.ArrowInvalid):
            # Not made yet, or replaced or damaged by now: the stage that reads it says so.
            continue
    return Weight(rows, size)

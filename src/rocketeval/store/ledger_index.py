"""An index of judgments by key that does not hold the ledger: 21 bytes per judgment.

A ledger is read in the order of the responses, not in its own. Judgments finish nearly in the order
of the responses, so those needed together are in few files. Otherwise a file is read once for each
part of the responses, and memory stays the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rocketeval.errors import StoreError
from rocketeval.store.checksums import check_complete
from rocketeval.store.ledger import live_files, read_file
from rocketeval.store.schema import JUDGMENTS

Keys = NDArray[np.uint64]
"""Shape (keys, 2): the first and last eight bytes of each key, as numbers that sort like bytes."""

_HEX_LETTERS = 32


def hex_to_bytes(column: pa.ChunkedArray | pa.Array) -> bytes:
    """Return the bytes, 16 per entry and concatenated, of a column of hex keys or hashes."""
    column = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    if not len(column):
        return b""
    try:
        text = column.cast(pa.binary()).cast(pa.binary(_HEX_LETTERS))
        start = text.offset * _HEX_LETTERS
        letters = text.buffers()[1].to_pybytes()[start : start + len(text) * _HEX_LETTERS]
        found = bytes.fromhex(letters.decode("ascii"))
    except (pa.ArrowInvalid, ValueError):
        found = b""
    if column.null_count or len(found) != len(column) * _HEX_LETTERS // 2:
        raise StoreError(
            "A key in the run is damaged: it does not have 32 hexadecimal digits.",
            hint="A file was changed or truncated: restore it from a copy of the run.",
        )
    return found


def to_keys(packed: bytes) -> Keys:
    """Return concatenated keys as pairs of numbers.

    >>> to_keys(bytes(7) + b"\\1" + bytes(7) + b"\\2").tolist()
    [[1, 2]]
    """
    return np.frombuffer(packed, ">u8").reshape(-1, 2).astype(np.uint64)


def hex_column(packed: bytes, known: NDArray[np.bool_]) -> pa.StringArray:
    """Return concatenated keys as a column of hex text, with null where `known` is False.

    >>> hex_column(bytes(16), np.array([False, True])).to_pylist()
    [None, '00000000000000000000000000000000']
    """
    ends = np.cumsum(known, dtype=np.int64) * _HEX_LETTERS
    offsets = np.concatenate([[0], ends]).astype(np.int32)
    valid = None if known.all() else pa.array(known).buffers()[1]
    return pa.StringArray.from_buffers(
        len(known), pa.py_buffer(offsets), pa.py_buffer(packed.hex().encode()), valid
    )


Rows = NDArray[np.int64]
"""Row numbers in the ledger, counted across all of its files; -1 if absent."""
Halves = NDArray[np.uint64]
"""The first or the last eight bytes of keys."""
TAKEN_AT_ONCE = 1 << 16


class LedgerIndex:
    """An index of the files of one ledger as they are now.

    Files only grow, and a journal becomes a part with the same rows, so indexed rows stay readable
    while a writer continues. A judgment takes 28 bytes while the index is built, 21 afterwards.
    """

    def __init__(self, folder: Path) -> None:
        self._files: list[Path] = []
        check_complete(folder)
        starts, first, last = [0], [], []
        for path in live_files(folder):
            table = read_file(path, ["key"])
            if table is None or not table.num_rows:
                continue
            self._files.append(path)
            starts.append(starts[-1] + table.num_rows)
            keys = to_keys(hex_to_bytes(table["key"]))
            first.append(keys[:, 0].copy())
            last.append(keys[:, 1].copy())
        self._starts = np.array(starts, dtype=np.int64)
        self._first, self._last, self._order = _sorted(first, last)
        self._asked = np.zeros(len(self._order), dtype=bool)

    def __len__(self) -> int:
        return len(self._order)

    def find(self, keys: Keys) -> Rows:
        """Return the row of the judgment with each key: the first one if there are two."""
        rows = np.full(len(keys), -1, dtype=np.int64)
        if not len(self) or not len(keys):
            return rows
        # Sorted lookups are close together, which is several times faster.
        by_key = np.argsort(keys[:, 0])
        wanted = keys[by_key]
        places = np.searchsorted(self._first, wanted[:, 0])
        while True:
            inside = np.minimum(places, len(self) - 1)
            same = (self._first[inside] == wanted[:, 0]) & (places < len(self))
            other = same & (self._last[inside] != wanted[:, 1])
            if not other.any():
                break
            places[other] += 1
        rows[by_key[same]] = self._order[inside[same]]
        self._asked[inside[same]] = True
        return rows

    def lists(self, rows: Rows, column: str) -> pa.ListArray:
        """Return a column's lists for the given judgments, in their order; null for -1."""
        wanted = _distinct(rows[rows >= 0])
        parts = [pa.array([], JUDGMENTS.field(column).type)]
        for number, own in self._by_file(wanted):
            lists = self._read(number, column)
            whole = len(own) == len(lists)
            parts.append(lists if whole else lists.take(pa.array(own)))
        found = pa.concat_arrays(parts)
        return found.take(pa.array(np.searchsorted(wanted, rows), mask=rows < 0))

    def asked_statuses(self) -> dict[str, int]:
        """Return the number of answers with each status, over the judgments found so far."""
        counts: Counter[str] = Counter()
        for number, own in self._by_file(self._asked_rows()):
            statuses = self._read(number, "status")
            chosen = statuses if len(own) == len(statuses) else statuses.take(pa.array(own))
            for entry in pc.value_counts(pc.list_flatten(chosen)).to_pylist():
                counts[entry["values"]] += entry["counts"]
        return dict(sorted(counts.items()))

    def _asked_rows(self) -> Rows:
        asked = self._asked.copy()
        repeated = np.flatnonzero(
            (self._first[1:] == self._first[:-1]) & (self._last[1:] == self._last[:-1])
        )
        for place in repeated.tolist():
            asked[place + 1] |= asked[place]
        return np.sort(self._order[asked]).astype(np.int64)

    def _by_file(self, rows: Rows) -> Iterator[tuple[int, Rows]]:
        """Yield, for each file with any of the sorted rows, its number and its rows."""
        bounds = np.searchsorted(rows, self._starts)
        for number in range(len(self._files)):
            own = rows[bounds[number] : bounds[number + 1]]
            if len(own):
                yield number, own - self._starts[number]

    def _read(self, number: int, column: str) -> pa.ListArray:
        path, rows = self._files[number], int(np.diff(self._starts)[number])
        table = read_file(path, [column])
        if table is None or table.num_rows < rows:
            raise StoreError(
                f"{path} has lost judgments while it was read.",
                hint="Only grading may change a ledger: restore it from a copy of the run.",
            )
        return table[column].slice(0, rows).combine_chunks()


def _distinct(rows: Rows) -> Rows:
    """Return the distinct rows in order (several times faster here than `np.unique`)."""
    ascending = np.sort(rows)
    return ascending[np.diff(ascending, prepend=-1) > 0]


def _sorted(first: list[Halves], last: list[Halves]) -> tuple[Halves, Halves, NDArray[Any]]:
    """Return both halves of all keys in sorted order, and the original position of each key.

    The two lists are emptied to free memory.
    """
    firsts, lasts = _emptied(first), _emptied(last)
    order = _small(np.argsort(firsts, kind="stable"))
    ascending = _taken(firsts, order)
    del firsts
    _settle_ties(ascending, lasts, order)
    return ascending, _taken(lasts, order), order


def _settle_ties(ascending: Halves, lasts: Halves, order: NDArray[Any]) -> None:
    """Sort keys with equal first halves by their last halves; equal keys keep their order."""
    same = ascending[1:] == ascending[:-1]
    tied = np.flatnonzero(np.append(same, False) | np.append(False, same))
    by_last = np.lexsort((lasts[order[tied]], ascending[tied]))
    order[tied] = order[tied[by_last]]


def _emptied(parts: list[Halves]) -> Halves:
    """Return the parts as one array, and clear the list."""
    joined = np.concatenate([np.zeros(0, np.uint64), *parts])
    parts.clear()
    return joined


def _small(order: NDArray[np.int64]) -> NDArray[Any]:
    """Return the positions in four bytes each, if they fit."""
    return order.astype(np.int32 if len(order) < 1 << 31 else np.int64)


def _taken(values: Halves, order: NDArray[Any]) -> Halves:
    """Return `values[order]` in chunks, because numpy expands each position to eight bytes."""
    taken = np.empty_like(values)
    for start in range(0, len(order), TAKEN_AT_ONCE):
        chosen = slice(start, start + TAKEN_AT_ONCE)
        taken[chosen] = values[order[chosen]]
    return taken

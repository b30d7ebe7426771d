"""Judgments are found by key in any file of the ledger."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from rocketeval.engines.scripted import exact_answer
from rocketeval.errors import StoreError
from rocketeval.records import Judgment
from rocketeval.store import ledger_index
from rocketeval.store.files import write_parquet
from rocketeval.store.ledger import Ledger
from rocketeval.store.ledger_index import LedgerIndex, _sorted, hex_column, hex_to_bytes, to_keys
from rocketeval.store.schema import JUDGMENTS

SAME_FIRST_HALF = [bytes(8) + bytes(7) + bytes([n]) for n in (9, 1, 5)]


def judgment(key: bytes, p_yes: float) -> Judgment:
    """Return a judgment with one answer."""
    return Judgment(key, "q", "c", (exact_answer(p_yes),))


def write(folder: Path, keys: list[bytes], roll_rows: int = 2) -> None:
    """Write a ledger whose n-th answer is n hundredths; the last rows are in a journal."""
    ledger = Ledger(folder, b"judge", roll_rows=roll_rows)
    for number, key in enumerate(keys):
        ledger.append(judgment(key, number / 100))


def find(index: LedgerIndex, keys: list[bytes]) -> list[list[float] | None]:
    """Return the answers of each key."""
    rows = index.find(to_keys(b"".join(keys)))
    found: list[list[float] | None] = index.lists(rows, "p_yes").to_pylist()
    return found


def test_keys_with_equal_first_halves_are_distinguished(tmp_path: Path) -> None:
    """Also if several start alike, and one of them is absent."""
    write(tmp_path, SAME_FIRST_HALF)
    index = LedgerIndex(tmp_path)
    absent = bytes(15) + b"\x07"
    assert find(index, [SAME_FIRST_HALF[2], absent, SAME_FIRST_HALF[0], SAME_FIRST_HALF[1]]) == [
        [0.02],
        None,
        [0.0],
        [0.01],
    ]


def test_smallest_and_largest_keys_are_found(tmp_path: Path) -> None:
    """Keys beyond both, and no keys at all, are handled too."""
    write(tmp_path, [b"\xff" * 16, bytes(16), b"\x80" + bytes(15)])
    index = LedgerIndex(tmp_path)
    assert find(index, [bytes(16), b"\xff" * 16, bytes(15) + b"\1"]) == [[0.01], [0.0], None]
    assert find(index, [b"\x80" + bytes(15)] * 2) == [[0.02], [0.02]]
    assert find(index, []) == []


def test_empty_ledger_finds_nothing(tmp_path: Path) -> None:
    """A missing folder, and one without judgments."""
    assert find(LedgerIndex(tmp_path / "absent"), [bytes(16)]) == [None]
    write(tmp_path, [])
    assert find(LedgerIndex(tmp_path), [bytes(16)]) == [None]
    assert LedgerIndex(tmp_path).asked_statuses() == {}


def test_first_of_two_judgments_is_used(tmp_path: Path) -> None:
    """Both are counted, as when the whole ledger is read."""
    write(tmp_path, SAME_FIRST_HALF[:2])
    write(tmp_path / "other", [b"x" * 16, *SAME_FIRST_HALF[1:]], roll_rows=3)
    (tmp_path / "other" / "part-000001.parquet").rename(tmp_path / "part-000002.parquet")
    index = LedgerIndex(tmp_path)
    assert find(index, [SAME_FIRST_HALF[1]]) == [[0.01]]
    assert index.asked_statuses() == {"ok": 2}


def test_index_order_is_by_key_then_position() -> None:
    """Also if many keys start alike, and some are equal."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 4, (1000, 2), dtype=np.uint64)
    parts = [keys[:300], keys[300:301], keys[301:]]
    first, last, order = _sorted([part[:, 0] for part in parts], [part[:, 1] for part in parts])
    expected = np.lexsort((keys[:, 1], keys[:, 0]))
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(np.stack([first, last], axis=1), keys[expected])


def test_index_takes_28_bytes_per_judgment_while_built_and_21_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only one file of the ledger is held in addition."""
    monkeypatch.setattr(ledger_index, "TAKEN_AT_ONCE", 1 << 10)
    rows, files = 5000, 80
    random = np.random.default_rng(0)
    for number in range(1, files + 1):
        keys = hex_column(random.bytes(16 * rows), np.ones(rows, dtype=bool))
        write_parquet(tmp_path / f"part-{number:06d}.parquet", pa.table({"key": keys}))
    tracemalloc.start()
    index = LedgerIndex(tmp_path)
    rests, peak = (taken / len(index) for taken in tracemalloc.get_traced_memory())
    tracemalloc.stop()
    assert 21 <= rests < 21.5
    assert 28 <= peak < 29


def test_ledger_that_shrinks_while_read_is_refused(tmp_path: Path) -> None:
    """Its rows would belong to other judgments."""
    write(tmp_path, SAME_FIRST_HALF[:2])
    index = LedgerIndex(tmp_path)
    write_parquet(tmp_path / "part-000001.parquet", JUDGMENTS.empty_table())
    with pytest.raises(StoreError, match="lost judgments"):
        find(index, SAME_FIRST_HALF[:1])


def test_keys_round_trip_as_text() -> None:
    """Also from a slice of a longer column, and with cells without a key."""
    keys = bytes(range(48))
    column = hex_column(keys, np.array([True, False, True, True]))
    assert column.to_pylist() == [keys[:16].hex(), None, keys[16:32].hex(), keys[32:].hex()]
    assert hex_to_bytes(column.slice(2)) == keys[16:]
    assert hex_to_bytes(pa.chunked_array([column.slice(0, 1), column.slice(2)])) == keys
    assert hex_to_bytes(pa.array([], pa.string())) == b""


@pytest.mark.parametrize("damaged", [None, "", "ab", "g" * 32, " " * 32, "é" * 16, "0" * 64])
def test_damaged_key_is_refused(damaged: str | None) -> None:
    """It could be mistaken for another key."""
    with pytest.raises(StoreError, match="damaged"):
        hex_to_bytes(pa.array(["0" * 32, damaged], pa.string()))

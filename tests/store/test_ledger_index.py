"""Judgments found by key, wherever they lie."""

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
    """A judgment with one answer."""
    return Judgment(key, "q", "c", (exact_answer(p_yes),))


def write(folder: Path, keys: list[bytes], roll_rows: int = 2) -> None:
    """A ledger in which the n-th key's answer is n hundredths; the last rows are in a journal."""
    ledger = Ledger(folder, b"judge", roll_rows=roll_rows)
    for number, key in enumerate(keys):
        ledger.append(judgment(key, number / 100))


def find(index: LedgerIndex, keys: list[bytes]) -> list[list[float] | None]:
    """The answers of each key."""
    rows = index.find(to_keys(b"".join(keys)))
    found: list[list[float] | None] = index.lists(rows, "p_yes").to_pylist()
    return found


def test_keys_are_told_apart_by_their_last_half_too(tmp_path: Path) -> None:
    """Also where several begin alike, and one that begins alike is absent."""
    write(tmp_path, SAME_FIRST_HALF)
    index = LedgerIndex(tmp_path)
    absent = bytes(15) + b"\x07"
    assert find(index, [SAME_FIRST_HALF[2], absent, SAME_FIRST_HALF[0], SAME_FIRST_HALF[1]]) == [
        [0.02],
        None,
        [0.0],
        [0.01],
    ]


def test_all_ends_of_the_order_are_found(tmp_path: Path) -> None:
    """The least and the greatest possible key, keys beyond both, and none at all."""
    write(tmp_path, [b"\xff" * 16, bytes(16), b"\x80" + bytes(15)])
    index = LedgerIndex(tmp_path)
    assert find(index, [bytes(16), b"\xff" * 16, bytes(15) + b"\1"]) == [[0.01], [0.0], None]
    assert find(index, [b"\x80" + bytes(15)] * 2) == [[0.02], [0.02]]
    assert find(index, []) == []


def test_an_empty_ledger_finds_nothing(tmp_path: Path) -> None:
    """A folder that is not there, and one without judgments."""
    assert find(LedgerIndex(tmp_path / "absent"), [bytes(16)]) == [None]
    write(tmp_path, [])
    assert find(LedgerIndex(tmp_path), [bytes(16)]) == [None]
    assert LedgerIndex(tmp_path).asked_statuses() == {}


def test_of_two_judgments_the_first_is_taken_and_both_are_counted(tmp_path: Path) -> None:
    """As reading the whole ledger always did."""
    write(tmp_path, SAME_FIRST_HALF[:2])
    write(tmp_path / "other", [b"x" * 16, *SAME_FIRST_HALF[1:]], roll_rows=3)
    (tmp_path / "other" / "part-000001.parquet").rename(tmp_path / "part-000002.parquet")
    index = LedgerIndex(tmp_path)
    assert find(index, [SAME_FIRST_HALF[1]]) == [[0.01]]
    assert index.asked_statuses() == {"ok": 2}


def test_the_order_is_that_of_whole_keys_then_of_places() -> None:
    """Where many begin alike, and some are the same."""
    random = np.random.default_rng(0)
    keys = random.integers(0, 4, (1000, 2), dtype=np.uint64)
    parts = [keys[:300], keys[300:301], keys[301:]]
    first, last, order = _sorted([part[:, 0] for part in parts], [part[:, 1] for part in parts])
    expected = np.lexsort((keys[:, 1], keys[:, 0]))
    np.testing.assert_array_equal(order, expected)
    np.testing.assert_array_equal(np.stack([first, last], axis=1), keys[expected])


def test_an_index_takes_28_bytes_a_judgment_while_it_is_built_and_21_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside them there is only what one file takes."""
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


def test_a_ledger_that_shrinks_while_it_is_read_is_refused(tmp_path: Path) -> None:
    """Its rows would be those of other judgments."""
    write(tmp_path, SAME_FIRST_HALF[:2])
    index = LedgerIndex(tmp_path)
    write_parquet(tmp_path / "part-000001.parquet", JUDGMENTS.empty_table())
    with pytest.raises(StoreError, match="lost judgments"):
        find(index, SAME_FIRST_HALF[:1])


def test_keys_become_text_and_back() -> None:
    """Also from a slice of a longer column, and around cells without a key."""
    keys = bytes(range(48))
    column = hex_column(keys, np.array([True, False, True, True]))
    assert column.to_pylist() == [keys[:16].hex(), None, keys[16:32].hex(), keys[32:].hex()]
    assert hex_to_bytes(column.slice(2)) == keys[16:]
    assert hex_to_bytes(pa.chunked_array([column.slice(0, 1), column.slice(2)])) == keys
    assert hex_to_bytes(pa.array([], pa.string())) == b""


@pytest.mark.parametrize("damaged", [None, "", "ab", "g" * 32, " " * 32, "é" * 16, "0" * 64])
def test_a_damaged_key_is_refused(damaged: str | None) -> None:
    """It could be taken for another."""
    with pytest.raises(StoreError, match="damaged"):
        hex_to_bytes(pa.array(["0" * 32, damaged], pa.string()))

"""A judge's texts are kept, and parts from before texts existed are readable."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq

from rocketeval.records import Answer, Judgment, Status
from rocketeval.store.checksums import NAME
from rocketeval.store.ledger import Ledger, read_tables
from rocketeval.store.schema import row_to_judgment

JUDGE = bytes(16)


def judgment(key: bytes, text: str | None) -> Judgment:
    answers = (Answer(Status.OK, 0.5, text=text), Answer(Status.UNREADABLE))
    return Judgment(key, "q", "c", answers)


def test_texts_survive_the_journal_and_the_part(tmp_path: Path) -> None:
    written = [judgment(b"a" * 16, "it is\nfine"), judgment(b"b" * 16, None)]
    ledger = Ledger(tmp_path, JUDGE)
    for each in written:
        ledger.append(each)
    for _ in ("journal", "part"):
        (table,) = read_tables(tmp_path)
        assert [row_to_judgment(row) for row in table.to_pylist()] == written
        ledger.roll()
    ledger.close()


def test_part_without_texts_is_read(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path, JUDGE)
    ledger.append(judgment(b"a" * 16, None))
    ledger.close()
    (part,) = tmp_path.glob("part-*.parquet")
    pq.write_table(pq.read_table(part).drop_columns(["text"]), part)
    (tmp_path / NAME).unlink()
    (table,) = read_tables(tmp_path)
    assert row_to_judgment(table.to_pylist()[0]) == judgment(b"a" * 16, None)

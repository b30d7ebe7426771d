"""The ledger loses no finished judgment and has none twice."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from rocketeval.errors import StoreError
from rocketeval.records import Answer, Judgment, Status
from rocketeval.store import ledger as module
from rocketeval.store import schema
from rocketeval.store.ledger import (
    Ledger,
    Mirror,
    adopt_from_cache,
    count_rows,
    read_file,
    read_tables,
    tables_with,
)
from rocketeval.store.schema import JUDGMENTS, row_to_judgment
from support.make import judgment, key

JUDGE = b"j" * 16


def rows(folder: Path) -> list[Judgment]:
    return [row_to_judgment(row) for table in read_tables(folder) for row in table.to_pylist()]


def test_journal_and_parts_have_the_same_judgments(tmp_path: Path) -> None:
    """What is read equals what was appended, before and after rolling."""
    written = [judgment(str(n), 0.1 * n, 0.5) for n in range(1, 6)]
    written.append(
        Judgment(
            key("odd"),
            "q\u2028\n",
            'c"',
            (Answer(Status.HIDDEN, mass=0.0), Answer(Status.TRUNCATED, 0.99, 0.98, 1.0, 0.7, -0.3)),
        )
    )
    ledger = Ledger(tmp_path, JUDGE, roll_rows=4)
    for one in written:
        ledger.append(one)
    assert rows(tmp_path) == written
    ledger.close()
    assert rows(tmp_path) == written
    assert sorted(path.suffix for path in tmp_path.glob("[!.]*")) == [".parquet", ".parquet"]


def test_part_is_what_its_journal_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A part from memory equals the parsed journal: resumed, in several blocks, with infinities."""
    monkeypatch.setattr(schema, "COLUMN_ROWS", 2)
    never = Answer(Status.OK, 0.0, 0.0, 0.0, 0.9, -math.inf, -0.1)
    killed = Ledger(tmp_path, JUDGE)
    for name in ("a", "b", "c"):
        killed.append(replace(judgment(name), answers=(never, Answer(Status.HIDDEN, mass=0.0))))
    resumed = Ledger(tmp_path, JUDGE)
    for name in ("null", "d", "e", "f"):
        resumed.append(judgment(name, 0.1, 0.2))
    (journal,) = tmp_path.glob("journal-*")
    parsed = read_file(journal, JUDGMENTS.names)
    resumed.roll()
    (part,) = tmp_path.glob("*.parquet")
    made = read_file(part, JUDGMENTS.names)
    assert parsed is not None
    assert made is not None
    assert made.to_pylist() == parsed.to_pylist()
    assert [row["logp_yes"][0] for row in made.to_pylist()[:3]] == [None] * 3
    resumed.close()


def test_parts_have_the_published_schema(tmp_path: Path) -> None:
    """Every part has the schema that other tools rely on; `p_na` is there only if it is used."""
    ledger = Ledger(tmp_path, JUDGE)
    ledger.append(judgment("a"))
    ledger.close()
    (part,) = tmp_path.glob("*.parquet")
    without = JUDGMENTS.names[:-3]
    assert pq.read_schema(part).names == without
    ledger = Ledger(tmp_path, JUDGE)
    maybe = Answer(Status.OK, 0.5, 0.5, 0.5, 1.0, p_na=0.25, na_low=0.25, na_high=0.25)
    ledger.append(replace(judgment("b"), answers=(maybe,)))
    ledger.close()
    _, later = sorted(tmp_path.glob("*.parquet"))
    assert pq.read_schema(later).equals(JUDGMENTS)
    rows = [row for table in read_tables(tmp_path) for row in table.to_pylist()]
    assert [row["p_na"] for row in rows] == [None, [0.25]]


def test_a_key_is_never_recorded_twice(tmp_path: Path) -> None:
    """Appending a finished key is refused, also after reopening."""
    ledger = Ledger(tmp_path, JUDGE)
    ledger.append(judgment("a"))
    with pytest.raises(StoreError, match="already in the ledger"):
        ledger.append(judgment("a"))
    ledger.close()
    again = Ledger(tmp_path, JUDGE)
    assert key("a") in again.finished
    with pytest.raises(StoreError):
        again.append(judgment("a"))
    again.close()


@pytest.mark.parametrize("torn", [b"{", b'{"key": "00', b"\x00\xff"])
def test_torn_last_line_is_cut_off(tmp_path: Path, torn: bytes) -> None:
    """A kill during a write costs one judgment, and appending continues."""
    ledger = Ledger(tmp_path, JUDGE)
    ledger.append(judgment("a"))
    journal = next(tmp_path.glob("journal-*"))
    with journal.open("ab") as stream:
        stream.write(torn)
    assert count_rows(tmp_path) == 1
    again = Ledger(tmp_path, JUDGE)
    again.append(judgment("b"))
    again.close()
    assert [one.query_id for one in rows(tmp_path)] == ["q-a", "q-b"]


def test_torn_first_line_is_no_damage(tmp_path: Path) -> None:
    """A kill during the first write of a new journal leaves the other judgments readable."""
    ledger = Ledger(tmp_path, JUDGE, roll_rows=1)
    ledger.append(judgment("a"))
    (tmp_path / "journal-000002.jsonl").write_bytes(b'{"key":"00')
    assert count_rows(tmp_path) == 1


def test_part_supersedes_its_journal(tmp_path: Path) -> None:
    """A kill between writing a part and removing its journal doubles nothing."""
    ledger = Ledger(tmp_path, JUDGE)
    ledger.append(judgment("a"))
    journal = next(tmp_path.glob("journal-*"))
    content = journal.read_bytes()
    ledger.close()
    journal.write_bytes(content)
    assert count_rows(tmp_path) == 1
    Ledger(tmp_path, JUDGE).close()
    assert count_rows(tmp_path) == 1


def test_small_journal_is_continued(tmp_path: Path) -> None:
    """Many restarts do not leave many tiny parts."""
    for n in range(5):
        Ledger(tmp_path, JUDGE).append(judgment(str(n)))
    assert count_rows(tmp_path) == 5
    assert not list(tmp_path.glob("*.parquet"))


def test_temporary_part_is_ignored(tmp_path: Path) -> None:
    """The file of a killed roll is not read as a part."""
    Ledger(tmp_path, JUDGE).append(judgment("a"))
    (tmp_path / ".part-000001.parquet.99.tmp").write_bytes(b"PAR1 half")
    assert count_rows(tmp_path) == 1


def test_mirror_follows_a_growing_journal(tmp_path: Path) -> None:
    """Another run sees a judgment as soon as it is recorded."""
    cache = tmp_path / "cache"
    ledger = Ledger(tmp_path / "one", JUDGE, mirror=Mirror(cache, "one"))
    ledger.append(judgment("a"))
    assert count_rows(cache) == 1
    ledger.roll()
    ledger.append(judgment("b"))
    assert count_rows(cache) == 2
    ledger.close()
    assert count_rows(cache) == 2
    assert {path.suffix for path in cache.glob("[!.]*")} == {".parquet"}


def test_wanted_judgments_are_reused_once(tmp_path: Path) -> None:
    """Cached judgments get this run's names; unwanted and finished ones are skipped."""
    cache = tmp_path / "cache"
    for owner in ("one", "two"):
        donor = Ledger(tmp_path / owner, JUDGE, mirror=Mirror(cache, owner))
        for name in ("a", "b", "c"):
            donor.append(judgment(name))
        donor.close()
    ledger = Ledger(tmp_path / "mine", JUDGE)
    ledger.append(judgment("c"))
    wanted = {key("a"): ("my query", "my candidate"), key("c"): ("q", "c")}
    assert adopt_from_cache(ledger, cache, wanted) == 1
    ledger.close()
    mine = {one.key: one for one in rows(tmp_path / "mine")}
    assert mine.keys() == wanted.keys()
    assert (mine[key("a")].query_id, mine[key("a")].candidate) == ("my query", "my candidate")


def test_full_disk_undoes_a_partial_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A short write is undone and reported, and the judgment counts as unfinished."""
    ledger = Ledger(tmp_path, JUDGE)
    ledger.append(judgment("a"))
    real = __import__("os").write
    monkeypatch.setattr("os.write", lambda handle, line: real(handle, line[:20]))
    with pytest.raises(StoreError, match="No space left"):
        ledger.append(judgment("b"))
    monkeypatch.undo()
    assert key("b") not in ledger.finished
    assert count_rows(tmp_path) == 1
    ledger.append(judgment("b"))
    ledger.close()
    assert count_rows(tmp_path) == 2


def test_empty_folder_has_no_judgments(tmp_path: Path) -> None:
    """A run that was never graded has zero judgments, not an error."""
    assert list(read_tables(tmp_path / "absent")) == []


@pytest.mark.parametrize("lost", [Status.NO_LOGPROBS, Status.UNSOUND, Status.ERROR])
def test_holes_in_the_cache_are_not_reused(tmp_path: Path, lost: Status) -> None:
    """A cached judgment of an earlier version with a lost answer is judged again."""
    cache, wanted = tmp_path / "cache", {key(name): ("q", name) for name in "abc"}
    other = Ledger(tmp_path / "other", JUDGE, mirror=Mirror(cache, "other"))
    other.append(judgment("a"))
    other.append(Judgment(key("b"), "q", "b", (Answer(Status.OK, 0.5), Answer(lost))))
    other.append(judgment("c"))
    other.close()
    ledger = Ledger(tmp_path / "ours", JUDGE)
    assert adopt_from_cache(ledger, cache, wanted) == 2
    assert ledger.finished == {key("a"), key("c")}
    ledger.close()


def test_a_few_judgments_are_read_from_their_own_parts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of other parts only the keys are read; a journal is read as a whole."""
    written = [judgment(str(n), 0.1 * n) for n in range(1, 8)]
    ledger = Ledger(tmp_path, JUDGE, roll_rows=2)
    for one in written:
        ledger.append(one)
    whole: list[str] = []

    def reading(path: Path, names: list[str]) -> pa.Table | None:
        whole.extend([path.suffix] if len(names) > 1 else [])
        return read_file(path, names)

    monkeypatch.setattr(module, "read_file", reading)
    wanted = pa.array([written[2].key.hex(), written[6].key.hex()])
    found = [row for table in tables_with(tmp_path, wanted) for row in table.to_pylist()]
    assert [row_to_judgment(row) for row in found] == [written[2], written[6]]
    assert whole == [".parquet", ".jsonl"]
    ledger.close()

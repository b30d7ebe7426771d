"""A run can be watched from outside: counts follow the ledger, the lock is untouched."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from rocketeval.store.ledger import Ledger
from rocketeval.store.run import RunStore
from rocketeval.store.watch import LedgerWatch, is_held, made_by, newest_change, results_version
from support.make import judgment, key


def test_counts_follow_a_growing_ledger(tmp_path: Path) -> None:
    """Lines, rolled and reused parts count once; identical responses count separately."""
    wanted = {key(name): 1 for name in "abcdef"} | {key("twins"): 2}
    watch = LedgerWatch(tmp_path, wanted)
    assert (watch.look(), watch.total) == (0, 8)
    ledger = Ledger(tmp_path, b"j" * 16, roll_rows=3)
    seen = []
    for name in ("a", "b", "twins", "c", "unwanted", "d"):
        ledger.append(judgment(name))
        seen.append(watch.look())
    assert seen == [1, 2, 4, 5, 5, 6]
    ledger.close()
    assert watch.look() == 6
    assert LedgerWatch(tmp_path, wanted).look() == 6


def test_torn_line_counts_when_complete(tmp_path: Path) -> None:
    """A line that is being written counts when it is complete."""
    watch = LedgerWatch(tmp_path, {key("a"): 1})
    journal = tmp_path / "journal-000001.jsonl"
    line = f'{{"key":"{key("a").hex()}"}}\n'
    journal.write_text(line[:12])
    assert watch.look() == 0
    journal.write_text(line)
    assert watch.look() == 1


def test_restarted_ledger_is_counted_again(tmp_path: Path) -> None:
    """Deleted judgments do not stay counted."""
    watch = LedgerWatch(tmp_path, {key("a"): 1, key("b"): 1})
    ledger = Ledger(tmp_path, b"j" * 16)
    ledger.append(judgment("a"))
    ledger.close()
    assert watch.look() == 1
    (tmp_path / "part-000001.parquet").unlink()
    assert watch.look() == 0


def test_known_parts_are_not_opened_again(tmp_path: Path) -> None:
    """Only the size of a known part is checked."""
    ledger = Ledger(tmp_path, b"j" * 16)
    ledger.append(judgment("a"))
    ledger.close()
    watch = LedgerWatch(tmp_path, {key("a"): 1})
    assert watch.look() == 1
    part = tmp_path / "part-000001.parquet"
    part.write_bytes(b"x" * part.stat().st_size)
    assert watch.look() == 1


@pytest.mark.skipif(not Path("/proc/locks").exists(), reason="only Linux lists lock holders")
def test_lock_holder_is_seen_without_touching_the_lock(tmp_path: Path) -> None:
    """The holder is seen while it lives; checking never creates the lock file."""
    store = RunStore(tmp_path)
    assert not is_held(store)
    assert not list(tmp_path.iterdir())
    code = (
        "import sys; from pathlib import Path; from rocketeval.store.run import RunStore\n"
        "with RunStore(Path(sys.argv[1])).locked():\n    print(flush=True); sys.stdin.read()"
    )
    holder = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    holder.stdout.readline()
    assert is_held(store)
    holder.kill()
    holder.communicate()
    assert not is_held(store)


def test_changes_are_seen(tmp_path: Path) -> None:
    """The newest change, the finished stages and the version follow the files."""
    store = RunStore(tmp_path)
    assert newest_change(store) == 0.0
    before = results_version(store)
    (tmp_path / "scores.parquet").write_text("x")
    os.utime(tmp_path / "scores.parquet", (1000.0, 1000.0))
    assert newest_change(store) == 1000.0
    assert made_by(store) == {"score"}
    assert results_version(store) != before

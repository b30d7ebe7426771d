"""A durable block holds results of many batches, and none of them waits for long."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rocketeval.distributed.driver import DurableBlocks
from rocketeval.distributed.staging import JobFolder


def rows(first: int, count: int) -> pa.Table:
    ids = list(range(first, first + count))
    return pa.table({"id": ids, "failure": pa.nulls(count, pa.string())})


class Scene:
    """A block of 10 rows or 2 seconds, with a clock that the test moves."""

    def __init__(self, folder: Path) -> None:
        self.now = 0.0
        self.folder = JobFolder(fs.LocalFileSystem(), str(folder))
        self.blocks = DurableBlocks(self.folder, rows=10, seconds=2.0, clock=lambda: self.now)

    def sizes(self) -> list[int]:
        files = Path(self.folder.results).glob("*")
        return sorted(pq.read_metadata(path).num_rows for path in files)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_block_holds_several_batches(scene: Scene) -> None:
    """Nothing is written before there are enough rows, and then all of them in one file."""
    for first in (0, 4):
        scene.blocks.add(rows(first, 4))
    assert scene.sizes() == []
    scene.blocks.add(rows(8, 4))
    assert scene.sizes() == [12]
    assert scene.folder.finished(12).all()


def test_old_rows_do_not_wait_for_a_full_block(scene: Scene) -> None:
    """The age of the first row decides, whether or not others follow it."""
    scene.blocks.add(rows(0, 1))
    scene.now = 1.9
    scene.blocks.write_if_due()
    scene.blocks.add(rows(1, 1))
    assert scene.sizes() == []
    scene.now = 2.0
    scene.blocks.write_if_due()
    assert scene.sizes() == [2]
    scene.now = 9.0
    scene.blocks.write_if_due()
    assert scene.sizes() == [2]


def test_end_writes_everything(scene: Scene) -> None:
    """The last block may be small, and an empty one makes no file."""
    scene.blocks.add(rows(0, 3))
    scene.blocks.write()
    scene.blocks.write()
    assert scene.sizes() == [3]


def test_failed_write_keeps_its_rows(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in the next block; a part of a file never counts."""
    scene.blocks.add(rows(0, 3))
    with monkeypatch.context() as broken:
        broken.setattr(pq, "write_table", _half_a_file)
        with pytest.raises(OSError, match="no space"):
            scene.blocks.write()
    assert scene.sizes() == []
    scene.blocks.add(rows(3, 1))
    scene.blocks.write()
    assert scene.sizes() == [4]


def _half_a_file(table: pa.Table, path: Path, **options: object) -> None:
    path.write_bytes(b"PAR1")
    raise OSError("no space left")

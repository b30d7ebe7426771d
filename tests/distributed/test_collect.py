"""Collecting a cluster's results: each judgment enters the run once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rocketeval.distributed import staging as staging_module
from rocketeval.distributed.stage import collect
from rocketeval.distributed.staging import (
    RESULTS,
    JobFolder,
    StagedJob,
    Staging,
    failed_row,
    judged_row,
    open_staging,
    write_tasks,
)
from rocketeval.engines.scripted import exact_answer
from rocketeval.errors import ConfigError
from rocketeval.grading.loop import CUT_OFF
from rocketeval.records import Answer, Failure, GradingTask, Status
from rocketeval.store.ledger import Ledger, Mirror, count_rows, read_tables
from rocketeval.store.schema import JUDGMENTS, row_to_judgment, without_unused
from support.make import judgment, key

JUDGE = b"j" * 16


@pytest.fixture
def staging(tmp_path: Path) -> Staging:
    return Staging(fs.LocalFileSystem(), str(tmp_path / "staging"))


@pytest.fixture
def folder(staging: Staging) -> JobFolder:
    return staging.new_folder()[1]


def wrote(folder: JobFolder, name: str, rows: list[dict[str, Any]]) -> Path:
    """Write a file of results, as a cluster would."""
    path = Path(folder.results) / name
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.Table.from_pylist(rows, schema=RESULTS), path)
    return path


def test_duplicate_judgments_are_collected_once(folder: JobFolder, tmp_path: Path) -> None:
    """Rows with one id, in one file or in two, are one judgment; others are counted."""
    made = [judged_row(n, judgment(str(n), 0.5), JUDGE.hex()) for n in range(4)]
    wrote(folder, "a.parquet", [made[0], made[1], made[1]])
    wrote(folder, "b.parquet", [made[1], made[2]])
    ledger = Ledger(tmp_path / "ledger", JUDGE)
    ledger.append(judgment("0", 0.5))
    found = collect(folder, 4, ledger)
    ledger.close()
    assert (found.judged, found.rows, found.duplicates, found.torn) == (2, 3, 2, 0)
    rows = [row for table in read_tables(tmp_path / "ledger") for row in table.to_pylist()]
    assert sorted(map(row_to_judgment, rows), key=lambda j: j.query_id) == [
        judgment(str(n), 0.5) for n in range(3)
    ]
    for part in (tmp_path / "ledger").glob("part-*.parquet"):
        assert pq.read_schema(part).equals(without_unused(JUDGMENTS.empty_table()).schema)


def test_interrupted_task_keeps_its_answers_and_is_not_finished(
    folder: JobFolder, tmp_path: Path
) -> None:
    """The answers of a task that a stop interrupted are kept; it did not fail."""
    cut = Failure(key("0"), "q", "c", CUT_OFF, (exact_answer(0.5), Answer(Status.ERROR)))
    made = judged_row(1, judgment("1", 0.5), JUDGE.hex())
    wrote(folder, "a.parquet", [failed_row(0, cut, JUDGE.hex()), made])
    assert folder.finished(2).tolist() == [False, True]
    ledger = Ledger(tmp_path / "ledger", JUDGE)
    found = collect(folder, 2, ledger)
    ledger.close()
    assert (found.cut_off, found.failures) == ({key("0"): cut}, {})
    assert (found.judged, found.rows, found.duplicates) == (1, 1, 0)


def test_failures_keep_their_answers(folder: JobFolder, tmp_path: Path) -> None:
    """A failed task is not a judgment, and its answers are kept."""
    failure = Failure(key("0"), "q", "c", "too long", (exact_answer(0.5), Answer(Status.ERROR)))
    wrote(folder, "a.parquet", [failed_row(0, failure, JUDGE.hex())])
    ledger = Ledger(tmp_path / "ledger", JUDGE)
    found = collect(folder, 1, ledger)
    ledger.close()
    assert found.failures == {key("0"): failure}
    assert (found.judged, count_rows(tmp_path / "ledger")) == (0, 0)


def test_incomplete_files_are_skipped(folder: JobFolder, tmp_path: Path) -> None:
    """Half a file, an empty file and a file with damaged pages are counted and skipped."""
    whole = wrote(folder, "a.parquet", [judged_row(0, judgment("0"), JUDGE.hex())])
    content = whole.read_bytes()
    (whole.parent / "c.parquet").write_bytes(content[:-20])
    (whole.parent / "d.parquet").write_bytes(b"")
    (whole.parent / "e.parquet").write_bytes(content[:4] + bytes(200) + content[204:])
    ledger = Ledger(tmp_path / "ledger", JUDGE)
    found = collect(folder, 3, ledger)
    ledger.close()
    assert (found.judged, found.torn) == (1, 3)


def test_judgment_takes_precedence_over_failure(folder: JobFolder, tmp_path: Path) -> None:
    """If a task failed on one worker and was judged by another, the judgment is kept."""
    failure = Failure(key("0"), "q", "c", "gone", (Answer(Status.ERROR),))
    wrote(folder, "a.parquet", [failed_row(0, failure, JUDGE.hex())])
    wrote(folder, "b.parquet", [judged_row(0, judgment("0"), JUDGE.hex())])
    wrote(folder, "c.parquet", [failed_row(0, failure, JUDGE.hex())])
    ledger = Ledger(tmp_path / "ledger", JUDGE)
    found = collect(folder, 1, ledger)
    ledger.close()
    assert (found.judged, found.rows, found.duplicates, found.failures) == (1, 1, 2, {})


def test_task_with_a_result_is_finished(folder: JobFolder) -> None:
    """Files of earlier versions count as well, incomplete ones and checkpoints do not."""
    made = [judged_row(n, judgment(str(n), 0.5), JUDGE.hex()) for n in range(4)]
    wrote(folder, "5_000000_000000.parquet", made[:2])
    wrote(folder, "b.parquet", made[2:3]).write_bytes(b"")
    notes = Path(folder.path) / "checkpoint"
    notes.mkdir(parents=True)
    pq.write_table(pa.table({"id": [2]}), notes / "a.parquet")
    folder.write_results(pa.Table.from_pylist(made[3:], schema=RESULTS))
    assert folder.finished(5).nonzero()[0].tolist() == [0, 1, 3]


def test_finished_files_of_tasks_are_not_read(
    folder: JobFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A resumed job reads the files that have unfinished tasks."""
    monkeypatch.setattr(staging_module, "FILE_ROWS", 2)
    tasks = [GradingTask(key(str(n)), f"q{n // 2}", "c", "p", ("a",)) for n in range(6)]
    assert write_tasks(tasks, {}, folder.filesystem, folder.tasks) == 6
    files, rows = folder.unfinished_tasks(np.array([1, 1, 1, 0, 1, 1], dtype=bool))
    assert ([Path(path).name for path in files], rows) == (["part-000001.parquet"], 2)
    assert folder.unfinished_tasks(np.ones(6, dtype=bool)) == ([], 0)


def test_cluster_judgments_are_in_the_cache(folder: JobFolder, tmp_path: Path) -> None:
    """Judgments from a cluster are in the cache like any others."""
    wrote(folder, "a.parquet", [judged_row(0, judgment("0"), JUDGE.hex())])
    mirror = Mirror(tmp_path / "cache", "owner")
    ledger = Ledger(tmp_path / "ledger", JUDGE, mirror=mirror)
    collect(folder, 1, ledger)
    ledger.close()
    assert count_rows(tmp_path / "cache") == 1


def test_incomplete_job_does_not_count(staging: Staging) -> None:
    """A job exists from its declaration until it is cleared."""
    assert staging.job() is None
    job_id, folder = staging.new_folder()
    job = StagedJob("tasks", "judge", 3, job_id)
    staging.begin(job)
    staging.note_asked(5)
    assert (staging.job(), staging.asked()) == (job, 5)
    assert not folder.visible()
    Path(folder.tasks).mkdir()
    assert folder.visible()
    staging.clear()
    assert (staging.job(), staging.asked(), folder.visible()) == (None, 0, False)


def test_damaged_declaration_does_not_count(staging: Staging) -> None:
    """If a power cut leaves an empty declaration, the tasks are staged again."""
    staging.begin(StagedJob("tasks", "judge", 3, "id"))
    for name in ("job.json", "asked.json"):
        (Path(staging.root) / name).write_bytes(b"")
    assert (staging.job(), staging.asked()) == (None, 0)


def test_runs_in_one_place_are_separate(tmp_path: Path) -> None:
    """Each run has its own folder, on a disk or at a URI."""
    run = tmp_path / "runs" / "mine"
    assert open_staging(None, run, "id").root == str(run / "distributed")
    assert open_staging(str(tmp_path / "shared"), run, "id").root == str(tmp_path / "shared" / "id")
    assert open_staging(f"file://{tmp_path}/shared", run, "id").root == f"{tmp_path}/shared/id"
    place = open_staging(f"file://{tmp_path}/shared?option=1", run, "id")
    assert place.root.endswith("/shared/id")
    with pytest.raises(ConfigError, match=r"distributed\.staging"):
        open_staging("nosuch://bucket", run, "id")

"""When a job counts as ended, and which judgments may enter a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import fs

from rocketeval.distributed.driver import CALM_SECONDS, LOST_SECONDS, IdleWatch, ReportCounter
from rocketeval.distributed.stage import refuse_another_judge
from rocketeval.distributed.staging import StagedJob, Staging
from rocketeval.distributed.worker import ClusterProgress, WorkerReport
from rocketeval.errors import RunMismatch
from rocketeval.records import JudgeFingerprint

JUDGE = JudgeFingerprint("engine", "m", "chat", "1", "top20", "template", "readout")


def progress(asked: int, answered: int) -> ClusterProgress:
    counting = ReportCounter()
    counting.report(WorkerReport(asked=asked, answered=answered))
    return counting.look()


def test_stop_waits_for_tasks_in_flight() -> None:
    """A slow judge's answers are waited for; those of a dead worker only for a while."""
    now = 0.0
    calm = IdleWatch(lambda: now)
    assert not calm.ended(progress(4, 2))
    now += CALM_SECONDS * 1.1
    assert not calm.ended(progress(4, 2))
    assert calm.ended(progress(4, 4))
    now += LOST_SECONDS
    assert calm.ended(progress(4, 2))


def test_killed_job_of_another_judge_is_kept(tmp_path: Path) -> None:
    """Its paid judgments block another judge; a job without judgments does not."""
    staging = Staging(fs.LocalFileSystem(), str(tmp_path))
    staging.begin(StagedJob("tasks", JUDGE.digest.hex(), 3, "id"))
    other = replace(JUDGE, model="typo")
    refuse_another_judge(staging, other)
    results = pa.table({"id": [1, 2], "failure": pa.nulls(2, pa.string())})
    pq.write_table(results, Path(staging.folder("id").results) / "a.parquet")
    refuse_another_judge(staging, JUDGE)
    with pytest.raises(RunMismatch, match="2 judgments of another judge"):
        refuse_another_judge(staging, other)

"""A run directory belongs to one writer and one judge."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from rocketeval.errors import RunLocked, RunMismatch, StageMissing, StoreError
from rocketeval.records import Answer, Failure, JudgeFingerprint, Status
from rocketeval.store.ledger import Ledger, adopt_from_cache
from rocketeval.store.manifest import GradeFacts
from rocketeval.store.run import RunStore
from support.make import judgment, key, make_config

JUDGE = JudgeFingerprint("openai", "small", "chat", "1.0", "top20", "t", "r")


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    store = RunStore(tmp_path / "run")
    store.freeze(make_config(tmp_path))
    return store


def test_two_processes_cannot_write_one_run(store: RunStore) -> None:
    """The second writer gets an error at once."""
    holder = (
        "import sys, time; from pathlib import Path; from rocketeval.store.run import RunStore\n"
        f"with RunStore(Path({str(store.path)!r})).locked():\n"
        "    print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", holder], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        with pytest.raises(RunLocked, match="Another process"), store.locked():
            pass
        process.kill()
    with store.locked():
        pass


def test_run_never_mixes_two_judges(store: RunStore) -> None:
    """Once there are judgments, another judge is refused, with the differences."""
    store.bind_judge(replace(JUDGE, version="0.9"))
    store.bind_judge(JUDGE)
    with store.ledger(JUDGE.digest, None) as ledger:
        ledger.append(judgment("a"))
    store.bind_judge(JUDGE)
    with pytest.raises(RunMismatch, match=r"version '1\.0' -> '2\.0'"):
        store.bind_judge(replace(JUDGE, version="2.0"))
    assert store.judge() == JUDGE


def test_failures_keep_their_answers(store: RunStore) -> None:
    """Answers before a failure are kept, so that they are not paid for twice."""
    paid = Answer(Status.OK, 0.5, 0.5, 0.5, 1.0, -0.7, -0.7)
    failure = Failure(key("a"), "q", "c", "item 2: gone", (paid, Answer(Status.ERROR)))
    store.save_failures([failure])
    assert store.failures() == [failure]
    assert store.half_answered() == {key("a"): {0: paid}}
    store.save_failures([])
    assert store.failures() == []
    assert not (store.path / "failures.jsonl").exists()


def test_missing_stage_names_the_command(store: RunStore) -> None:
    """Each reader names the command that creates what it needs."""
    for read, command in (
        (store.judge, "`rocketeval run`"),
        (store.scores, "`rocketeval run`"),
        (lambda: store.load_json("ranking", "run --only rank"), "`rocketeval run`"),
        (lambda: store.load_json("audit", "audit"), "`rocketeval audit`"),
    ):
        with pytest.raises(StageMissing, match=command):
            read()


def test_manifest_keeps_its_run_id(store: RunStore, tmp_path: Path) -> None:
    """Freezing the config again does not make another run."""
    before = store.manifest().run_id
    store.freeze(make_config(tmp_path))
    store.record_stage("grade", GradeFacts(judged=3))
    assert store.manifest().run_id == before
    assert store.manifest().stages.grade.judged == 3


def test_damaged_scores_name_the_command(tmp_path: Path) -> None:
    """Half a file is an error with the command that creates it again."""
    store = RunStore(tmp_path)
    (tmp_path / "scores.parquet").write_bytes(b"PAR1 and no more")
    with pytest.raises(StoreError, match="damaged") as caught:
        store.scores()
    assert "rocketeval run --only score" in caught.value.hint


def test_scores_are_dropped_before_the_first_new_judgment(
    store: RunStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opening a ledger drops nothing; a crash at the first write leaves no stale scores."""
    scores = store.path / "scores.parquet"
    scores.write_bytes(b"old")
    with store.ledger(JUDGE.digest, None):
        pass
    assert scores.exists()

    def crash(handle: int, line: bytes) -> None:
        assert not scores.exists()
        raise StoreError("crash")

    monkeypatch.setattr("rocketeval.store.ledger._write_whole", crash)
    with store.ledger(JUDGE.digest, None) as ledger, pytest.raises(StoreError, match="crash"):
        ledger.append(judgment("a"))
    assert not scores.exists()


def test_scores_are_dropped_before_reused_judgments(store: RunStore, tmp_path: Path) -> None:
    """Judgments reused from another run change the scores as well."""
    scores = store.path / "scores.parquet"
    scores.write_bytes(b"old")
    theirs = Ledger(tmp_path / "cache", JUDGE.digest)
    theirs.append(judgment("a"))
    theirs.close()
    with store.ledger(JUDGE.digest, None) as ledger:
        assert adopt_from_cache(ledger, tmp_path / "cache", {key("b"): ("q", "c")}) == 0
        assert scores.exists()
        assert adopt_from_cache(ledger, tmp_path / "cache", {key("a"): ("q", "c")}) == 1
    assert not scores.exists()

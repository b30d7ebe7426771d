"""A tenth of the fault campaigns in studies/robustness: nothing lost, changed or traced back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from robustness import damage, file_faults, fuzz, server_faults

from rocketeval.engines import http
from support.make import write_grid


@pytest.mark.parametrize(
    ("kinds", "cases"), [(("before", "after", "torn"), 7), (("moment",), 30)], ids=["place", "time"]
)
def test_killed_runs_lose_nothing(kinds: tuple[str, ...], cases: int) -> None:
    """SIGKILL at chosen file operations, with torn writes, and at random moments."""
    assert file_faults.campaign(kinds, cases, seed=3) == 0


@pytest.mark.parametrize("kind", ["EIO", "ENOSPC", "EMFILE", "files", "size", "disk"])
def test_failing_file_operations_lose_nothing(kind: str) -> None:
    """Errors of the disk and limits of the system end a run with a sentence; the next finishes."""
    if kind == "disk" and os.geteuid() != 0:
        pytest.skip("a small disk is mounted by root only")
    assert file_faults.campaign([kind], 3, seed=3) == 0


@pytest.mark.parametrize("kind", ["processes", "cache"])
def test_two_commands_at_once(kind: str) -> None:
    """One run is finished once; two runs on one cache both finish."""
    assert file_faults.campaign([kind], 3, seed=3) == 0


@pytest.mark.parametrize("kind", sorted(server_faults.KINDS)[::7])
@pytest.mark.parametrize("rate", [0.1, 0.5])
async def test_faulty_servers_change_no_answer(
    kind: str, rate: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the server has recovered, every answer is that of a run without faults."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.02)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.2)
    write_grid(tmp_path / "benchmark", queries=5, candidates=3, items=4)
    found = await server_faults.try_fault(kind, rate, tmp_path, seed=1)
    assert (found["judged after recovery"], found["different"]) == (15, 0)


def test_damaged_files_are_noticed_and_repaired() -> None:
    """No command prints a traceback or another score, and a repair brings the scores back."""
    found = damage.campaign(flips=1, share=0.12, seed=5, show=print)
    assert len(found) >= 10
    for case in found:
        assert not case.traceback
        assert not case.silently_different
        assert case.recovered, case


def test_mutated_inputs_end_with_a_sentence(tmp_path: Path) -> None:
    """Absurd configs and files never show a traceback, and never hang."""
    found = list(fuzz.outcomes(range(20_000, 20_150), 1, tmp_path))
    assert len(found) == 150
    for one in found:
        assert not one.traceback, one
        assert one.seconds < 3 * fuzz.LONGEST, one
    assert {one.code for one in found} >= {0, 2}

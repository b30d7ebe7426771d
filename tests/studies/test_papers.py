"""The papers' studies from data to tables, with scripted answers on two queries each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.forked import run_script

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies" / "papers"
DATA = ROOT.parent / "shared" / "data"
JUDGE = "qwen2.5-coder-1.5b-instruct-int8"

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no shared benchmark data")


def script(runs: Path, name: str, *arguments: str) -> str:
    """Return the output of a study's script, with its runs in a test folder."""
    environment = {**os.environ, "ROCKETEVAL_STUDY_RUNS": str(runs)}
    done = run_script(STUDIES / f"{name}.py", *arguments, folder=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder where a scripted judge graded every study, two queries each."""
    folder = tmp_path_factory.mktemp("studies")
    script(folder, "prepare", "--data", str(DATA))
    script(folder, "grade", JUDGE, "--engine", "scripted", "--limit", "2", "--block", "1")
    return folder


@pytest.mark.parametrize(("study", "ways"), [("mt_bench", 2), ("summeval", 12)])
def test_second_grading_asks_nothing(runs: Path, study: str, ways: int) -> None:
    """Studies resume: graded responses are not asked again."""
    again = script(runs, "grade", JUDGE, "--engine", "scripted", "--limit", "2", "--only", study)
    output = [line for line in again.splitlines() if " judged, " in line]
    assert output == ways * ["0 judged, 0 failed, 0 left"]


def test_published_figures_are_reproduced() -> None:
    """Recorded verdicts and ratings give the published figures."""
    output = script(ROOT, "anchors", "--data", str(DATA))
    for known in ("0.864", "0.6677", "0.698", "0.9187", "0.1773"):
        row = next(line for line in output.splitlines() if line.endswith(known))
        assert row.split()[-2] == known
    for name, known in (("GPT-4, all votes", "66.6"), ("both decided: GPT-4 and people", "85.9")):
        row = next(line for line in output.splitlines() if name in line)
        assert known in row.split("(")[0]

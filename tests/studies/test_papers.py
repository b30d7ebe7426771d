"""The papers' studies from data to tables, with scripted answers on two queries each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.forked import run_script

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies" / "papers"
DATA = ROOT.parent / "shared" / "data"
JUDGES = ("qwen2.5-coder-1.5b-instruct", "smollm2-135m-instruct")

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="no shared benchmark data")


def script(runs: Path, name: str, *arguments: str) -> str:
    """Return the output of a study's script, with its runs in a test folder."""
    environment = {**os.environ, "ROCKETEVAL_STUDY_RUNS": str(runs)}
    done = run_script(STUDIES / f"{name}.py", *arguments, folder=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder where two scripted judges graded every study, two queries each."""
    folder = tmp_path_factory.mktemp("studies")
    script(folder, "prepare", "--data", str(DATA))
    for judge in JUDGES:
        script(folder, "grade", judge, "--engine", "scripted", "--limit", "2")
    return folder


def test_second_grading_asks_nothing(runs: Path) -> None:
    """Studies resume: graded responses are not asked again."""
    again = script(
        runs, "grade", JUDGES[0], "--engine", "scripted", "--limit", "2", "--only", "mt_bench"
    )
    output = [line for line in again.splitlines() if " judged, " in line]
    assert len(output) == 2
    assert all(line == "0 judged, 0 failed, 0 left" for line in output)


def test_correlations_of_two_judges_are_printed(runs: Path) -> None:
    """Nothing is written without --record."""
    before = written()
    output = script(runs, "dimensions", "--limit", "2")
    for line in ("Qwen2.5-Coder-1.5B", "SmolLM2-135M", "1 perplexity", "SummEval: Pearson"):
        assert line in output
    assert written() == before


def written() -> list[Path]:
    """Return the files of the studies."""
    return sorted(path for path in STUDIES.rglob("*") if "__pycache__" not in str(path))


def test_dimension_checklists_are_graded_and_compared(runs: Path) -> None:
    """Our files, the same extended by an author, and CheckEval's questions from the data."""
    judge = ("qwen2.5-coder-1.5b-instruct", "--engine", "scripted", "--limit", "2")
    script(runs, "checkeval_grade", *judge, "--data", str(DATA))
    output = script(runs, "checkeval", "--limit", "2")
    counts = {
        "our seeds": (18, 15),
        "our seeds, grown": (30, 27),
        "CheckEval's questions": (122, 108),
    }
    for name, (summaries, turns) in counts.items():
        assert f"{name} ({summaries}), " in output
        assert f"{name} ({turns}), " in output
    again = script(runs, "checkeval_grade", *judge, "--data", str(DATA), "--sets", "ours")
    judged = [line for line in again.splitlines() if " judged, " in line]
    assert len(judged) == 10
    assert set(judged) == {"0 judged, 0 failed, 0 left"}


def test_published_figures_are_reproduced() -> None:
    """Recorded verdicts and ratings give the published figures."""
    output = script(ROOT, "anchors", "--data", str(DATA))
    for known in ("0.864", "0.6677", "0.698", "0.9187", "0.1773"):
        row = next(line for line in output.splitlines() if line.endswith(known))
        assert row.split()[-2] == known
    for name, known in (("GPT-4, all votes", "66.6"), ("both decided: GPT-4 and people", "85.9")):
        row = next(line for line in output.splitlines() if name in line)
        assert known in row.split("(")[0]

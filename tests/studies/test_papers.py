"""The papers' studies run from data to tables; here with made-up answers, on two queries each."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from support.forked import run_script

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies" / "papers"
DATA = ROOT.parent / "shared" / "data"
JUDGES = ("qwen2.5-coder-1.5b-instruct", "smollm2-135m-instruct")

pytestmark = pytest.mark.skipif(not DATA.exists(), reason="the shared benchmark data is not here")


def script(runs: Path, name: str, *arguments: str) -> str:
    """What a study's script prints, with its runs in a folder of the test."""
    environment = {**os.environ, "ROCKETEVAL_STUDY_RUNS": str(runs)}
    done = run_script(STUDIES / f"{name}.py", *arguments, folder=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Every study graded by two made-up judges, two queries each."""
    folder = tmp_path_factory.mktemp("studies")
    script(folder, "prepare", "--data", str(DATA))
    for judge in JUDGES:
        script(folder, "grade", judge, "--engine", "scripted", "--limit", "2")
    return folder


def test_a_second_grading_asks_nothing(runs: Path) -> None:
    """Studies resume: what is graded is not asked again."""
    again = script(
        runs, "grade", JUDGES[0], "--engine", "scripted", "--limit", "2", "--only", "mt_bench"
    )
    told = [line for line in again.splitlines() if " judged, " in line]
    assert len(told) == 9
    assert all(line == "0 judged, 0 failed, 0 left" for line in told)


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        ("agreement", ["RocketEval (unsupervised)", "Direct, after the 1.5B judge's analysis"]),
        ("list_level", ["Arena-Hard, 2 prompts", "arena Elo"]),
        ("uncertainty", ["(Fig. 4)", "(Fig. 5)"]),
        ("dimensions", ["1 perplexity", "agreement between the judges", "by group of criteria"]),
        ("calibration", ["InfoBench items"]),
    ],
)
def test_every_study_prints_its_table(runs: Path, name: str, lines: list[str]) -> None:
    """Both judges stand in it, and nothing is written without --record."""
    before = sorted(STUDIES.rglob("*"))
    told = script(runs, name, "--limit", "2")
    for line in ["Qwen2.5-Coder-1.5B", "SmolLM2-135M", *lines]:
        assert line in told
    assert sorted(path for path in STUDIES.rglob("*") if "__pycache__" not in str(path)) == sorted(
        path for path in before if "__pycache__" not in str(path)
    )


def test_dimension_checklists_are_graded_and_held_against_people(runs: Path) -> None:
    """Our files, the same grown by an author, and CheckEval's questions, which the data holds."""
    judge = ("qwen2.5-coder-1.5b-instruct", "--engine", "scripted", "--limit", "2")
    script(runs, "checkeval_grade", *judge, "--data", str(DATA))
    told = script(runs, "checkeval", "--limit", "2")
    counts = {
        "our seeds": (18, 15),
        "our seeds, grown": (30, 27),
        "CheckEval's questions": (122, 108),
    }
    for name, (summaries, turns) in counts.items():
        assert f"{name} ({summaries}), " in told
        assert f"{name} ({turns}), " in told
    again = script(runs, "checkeval_grade", *judge, "--data", str(DATA), "--sets", "ours")
    judged = [line for line in again.splitlines() if " judged, " in line]
    assert len(judged) == 10
    assert set(judged) == {"0 judged, 0 failed, 0 left"}


def test_known_figures_come_out() -> None:
    """What recorded verdicts and ratings are known to give."""
    told = script(ROOT, "anchors", "--data", str(DATA))
    for known in ("0.864", "0.6677", "0.698", "0.9187", "0.1773"):
        row = next(line for line in told.splitlines() if line.endswith(known))
        assert row.split()[-2] == known
    with_ties = next(line for line in told.splitlines() if "GPT-4 and people, with ties" in line)
    assert "66.6" in with_ties.split("(")[0]

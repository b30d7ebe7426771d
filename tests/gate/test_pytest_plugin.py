"""The pytest plugin on the example project, with a judge behind HTTP and in two processes."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from integrations.word_judge import MODEL, WordServer, serving

from support import forked

PROJECT = Path(__file__).parents[2] / "studies" / "integrations" / "pytest_project"
SOURCE = Path(__file__).parents[2] / "src"
ACCEPT = "--rocketeval-update-baseline"


@pytest.fixture(scope="module")
def judge() -> Iterator[WordServer]:
    """A judge behind HTTP that counts its requests."""
    with serving() as server:
        yield server


@pytest.fixture(scope="module")
def accepted(judge: WordServer, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The project after a first run that accepted its baseline."""
    folder = tmp_path_factory.mktemp("accepted") / "project"
    shutil.copytree(PROJECT, folder, ignore=shutil.ignore_patterns("__pycache__"))
    settings = f"[pytest]\nrocketeval_judge = {MODEL}\nrocketeval_base_url = {judge.base_url}\n"
    (folder / "pytest.ini").write_text(settings)
    done = run_pytest(folder, ACCEPT)
    assert done.returncode == 0, done.stdout
    assert "15 items asked in 15 requests, 16 answers reused" in done.stdout
    return folder


@pytest.fixture
def project(accepted: Path, tmp_path: Path) -> Path:
    """A copy of the accepted project."""
    return Path(shutil.copytree(accepted, tmp_path / "project"))


def run_pytest(folder: Path, *more: str, version: str = "1") -> subprocess.CompletedProcess[str]:
    """Run the tests of a project in a process of their own."""
    options = ("-p", "rocketeval.gate.pytest_plugin", "-q")
    options += ("-p", "no:cacheprovider", "-p", "no:rocketeval")
    environment = {**os.environ, "BOT_VERSION": version, "PYTHONPATH": str(SOURCE)}
    return forked.run_pytest(folder, *options, *more, env=environment)


def test_second_run_asks_nothing(project: Path, judge: WordServer) -> None:
    """Unchanged responses cost no request, not even one to identify the judge."""
    before = judge.count
    done = run_pytest(project)
    assert done.returncode == 0, done.stdout
    assert "0 items asked in 0 requests, 31 answers reused" in done.stdout
    assert judge.count == before


def test_regression_fails_with_the_items(project: Path) -> None:
    """A worse bot fails single checks and the comparison, and the failure names the items."""
    done = run_pytest(project, version="2")
    assert done.returncode == 1
    assert "10 failed" in done.stdout
    assert "FAILED 0.04  Does the response mention 30 days?" in done.stdout
    assert "significantly worse than the baseline: mean difference -0.6" in done.stdout
    assert "refund: 0.93 -> 0.17" in done.stdout


def test_offline_run_contacts_nothing(project: Path) -> None:
    """Recorded answers need no server; an answer that is missing fails with what to do."""
    dead = ["--rocketeval-offline", "--rocketeval-base-url", "http://127.0.0.1:9/v1"]
    assert run_pytest(project, *dead).returncode == 0
    done = run_pytest(project, *dead, "-k", "test_refund", version="2")
    assert done.returncode == 1
    assert "Offline: 1 of 1 items have no recorded answer" in done.stdout
    assert "Run once with the judge" in done.stdout


def test_other_judge_is_not_compared_with_the_baseline(project: Path, judge: WordServer) -> None:
    """Scores of another judge are refused, not compared."""
    text = (project / ".rocketeval" / "baseline.json").read_text()
    fingerprint = text.split('"fingerprint": "')[1][:32]
    changed = text.replace(fingerprint, "0" * 32)
    (project / ".rocketeval" / "baseline.json").write_text(changed)
    done = run_pytest(project, "-k", "test_not_worse")
    assert done.returncode == 1
    assert "The baseline was scored by another judge" in done.stdout


def test_mistakes_are_named_without_a_traceback(project: Path) -> None:
    """A wrong row of the cases, and a missing judge, are named with what to do."""
    (project / "cases.jsonl").write_text('{"id": "a", "query": "Hi", "checklist": []}\n')
    done = run_pytest(project)
    assert "cases.jsonl, case 1" in done.stdout + done.stderr
    row = '{"id": "a", "query": "Hi", "checklist": ["Is it polite?"], "min_scor": 0.5}'
    (project / "cases.jsonl").write_text(row)
    done = run_pytest(project, "--collect-only")
    assert "Did you mean 'min_score'?" in done.stdout
    (project / "pytest.ini").write_text("[pytest]\n")
    (project / "test_bot.py").write_text(
        "def test_x(rocketeval):\n    rocketeval.check('a', 'b', ['c?'])\n"
    )
    done = run_pytest(project)
    assert "no judge is set" in done.stdout
    assert "Traceback" not in done.stdout


@pytest.mark.skipif(find_spec("xdist") is None, reason="pytest-xdist is not installed")
def test_workers_share_the_answers(project: Path, judge: WordServer) -> None:
    """Two processes append to one file, and their counts are added."""
    (project / ".rocketeval" / "answers.jsonl").unlink()
    done = run_pytest(project, "-n", "2")
    assert done.returncode == 0, done.stdout
    assert "17 responses graded" in done.stdout
    assert run_pytest(project, "-n", "2", "--rocketeval-offline").returncode == 0


LOSING = """
import os
import pytest
from rocketeval import ScriptedEngine

@pytest.fixture(scope="session")
def rocketeval_judge():
    # A response gets no score if no item applies to it.
    p_na = lambda prefix, item: 1.0 if "lost" in prefix else 0.0
    return ScriptedEngine(lambda prefix, item: 0.9, p_na=p_na)

@pytest.mark.parametrize("level", [0.95, 0.99])
def test_not_worse(rocketeval, level):
    lost = int(os.environ["BOT_VERSION"])
    for n in range(8):
        response = "lost" if n < lost else "fine"
        rocketeval.score(f"q{n}", response, [{"text": "Is it fine?", "na": True}], id=f"c{n}")
    rocketeval.assert_not_worse(level=level)
"""


def test_missing_scores_are_shown_if_the_test_passes(tmp_path: Path) -> None:
    """Cases that lost their score are a warning, counted and named; so is a high level."""
    (tmp_path / "test_losing.py").write_text(LOSING)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = run_pytest(tmp_path, ACCEPT, version="0")
    assert done.returncode == 0, done.stdout
    assert "8 cases accepted\n" in done.stdout
    done = run_pytest(tmp_path, version="2")
    assert done.returncode == 0, done.stdout
    assert "2 cases have a score in the baseline and none now" in done.stdout
    assert "on 6 of 8 cases, missing scores: 2 now" in done.stdout
    assert "left out, no score now: c0, c1" in done.stdout
    # Six cases are enough at 95%, and not at 99%.
    assert done.stdout.count("cannot show a significant difference: score at least 8") == 1
    done = run_pytest(tmp_path, ACCEPT, version="3")
    assert "8 cases accepted, 3 of them without a score" in done.stdout


LIMITED = """
import pytest
from rocketeval import ScriptedEngine

ANSWERS = {"right": 0.7, "short": 0.9, "rude": 0.92, "harsh": 0.08, "Paris": 0.99}

@pytest.fixture(scope="session")
def rocketeval_judge():
    def p_yes(prefix, item):
        if "Paris" in item:
            assert "Paris is a city." in prefix + item
        return next(p for word, p in ANSWERS.items() if word in item)
    return ScriptedEngine(p_yes)

def test_limit(rocketeval):
    items = ["Is it right?", "Is it short?"]
    rocketeval.check("q", "r", items, min_score=0.5, min_item=0.8)

def test_penalty(rocketeval):
    items = [{"text": "Is it rude?", "weight": -5}, {"text": "Is it harsh?", "weight": -1}]
    rocketeval.check("q", "r", items)

def test_context(rocketeval):
    items = [{"text": "Does it name Paris?", "uses": ["context"]}]
    rocketeval.check("q", "r", items, context="Paris is a city.")
"""


def test_failure_marks_items_by_their_limit(tmp_path: Path) -> None:
    """An item below `min_item` is a failed one, and penalties show the judge's answer."""
    (tmp_path / "test_limited.py").write_text(LIMITED)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    done = run_pytest(tmp_path)
    assert "2 failed, 1 passed" in done.stdout
    assert "1 of 2 items are below 0.80" in done.stdout
    assert "FAILED 0.70  Is it right?" in done.stdout
    assert "passed 0.90  Is it short?" in done.stdout
    assert "FAILED yes 0.92  Is it rude? [penalty of weight 5]" in done.stdout
    assert "passed yes 0.08  Is it harsh? [penalty of weight 1]" in done.stdout

"""Scorers for other frameworks, run by the installed framework with a judge of known answers."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from integrations.peers import BAD, EXPECTED, GOOD, ITEMS, PEERS, QUERY
from integrations.word_judge import MODEL, serving

from rocketeval.errors import ConfigError
from rocketeval.integrations.promptfoo import get_assert
from rocketeval.integrations.shared import checklist_for, open_grader

STUDY = Path(__file__).parents[2] / "studies" / "integrations" / "peers.py"


@pytest.mark.parametrize("name", [name for name, (package, _) in PEERS.items() if package])
def test_framework_reports_the_score(name: str) -> None:
    """The framework itself runs the scorer, and reports the score that the judge's rules imply."""
    package = PEERS[name][0]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed; studies/integrations/peers.py runs it elsewhere")
    command = [sys.executable, str(STUDY), name]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "again: 0 HTTP requests" in done.stdout


def test_promptfoo_assertion_names_the_items() -> None:
    """The assertion returns pass, score, reason and one component per item."""
    with serving() as server:
        config = {"judge": MODEL, "base_url": server.base_url}
        prompt = {"raw": QUERY, "label": "p"}
        context = {"prompt": prompt, "vars": {"checklist": ITEMS}, "config": config}
        good, bad = get_assert(GOOD, context), get_assert(BAD, context)
        down = get_assert(GOOD, {**context, "config": {**config, "judge": "nobody"}})
    assert (good["pass"], bad["pass"], down["pass"]) == (True, False, False)
    assert "nobody" in down["reason"]
    assert good["score"] == pytest.approx(EXPECTED[GOOD], abs=0.02)
    assert "failed (0.0" in bad["reason"]
    assert [part["pass"] for part in bad["componentResults"]] == [False, False]


def test_promptfoo_assertion_fails_without_a_judge(monkeypatch: pytest.MonkeyPatch) -> None:
    """A missing judge fails the test case with what to do, instead of an exception."""
    monkeypatch.delenv("ROCKETEVAL_JUDGE", raising=False)
    found = get_assert(GOOD, {"prompt": QUERY, "vars": {"checklist": ITEMS}})
    assert found["pass"] is False
    assert "ROCKETEVAL_JUDGE" in found["reason"]


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """The environment names the judge; equal settings share a grader."""
    monkeypatch.setenv("ROCKETEVAL_JUDGE", "some-model")
    monkeypatch.setenv("ROCKETEVAL_BASE_URL", "http://127.0.0.1:9/v1")
    grader = open_grader()
    assert grader is open_grader("some-model")
    assert grader.judge.settings["base_url"] == "http://127.0.0.1:9/v1"


def test_checklist_of_a_case_goes_first() -> None:
    """A case's own items replace the default; a text has one item per line."""
    assert checklist_for(["a?"], ["b?"]) == ["a?"]
    assert checklist_for(None, "a?\n\n b?") == ["a?", "b?"]
    assert len(checklist_for(None, None)) == 7
    with pytest.raises(ConfigError):
        checklist_for({"a": 1}, None)

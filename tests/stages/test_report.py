"""The report shows what the run found: the same numbers, every gap, the queries that matter."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval import Outcome, ScriptedEngine
from rocketeval.stages import report as module
from support.make import make_config, write_benchmark


def embedded(outcome: Outcome) -> dict[str, Any]:
    """The data that the page carries."""
    page = outcome.report.read_text()
    block = re.search(r'<script[^>]*type="application/json"[^>]*>(.*?)</script>', page, re.DOTALL)
    assert block is not None
    found: dict[str, Any] = json.loads(block[1])
    return found


def p_yes(prefix: str, suffix: str) -> float:
    return 0.9 if "left explains the sea" in prefix else 0.5


def test_the_page_holds_every_query_and_answer_of_a_small_run(tmp_path: Path) -> None:
    """Scores and answers in the page are those of the scores file and the ledger."""
    outcome = rocketeval.run(make_config(tmp_path), judge=ScriptedEngine(p_yes))
    text = json.dumps(embedded(outcome))
    for word in ("sky", "sea", "sun", "Is it clear?", "left explains the sea", "0.9", "9.1"):
        assert word in text


@pytest.mark.parametrize(
    ("kind", "heading", "told"),
    [
        ("checklist", "Probability of yes", "An item&#x27;s answer is p(Yes) / (p(Yes) + p(No))"),
        ("direct", "Grade, from worst (0) to best (1)", "the mean of the grades 0 to 9 by the"),
        ("generic", "Grade, from worst (0) to best (1)", "the mean of the grades 1 to 5 by the"),
        ("cot", "Grade, from worst (0) to best (1)", "An answer is the score that the judge wrote"),
        ("multi_item", "Probability of yes", "what the judge wrote: 1 for yes, 0 for no"),
        ("perplexity", "Grade, from worst (0) to best (1)", "probabilities of the response&#x27;s"),
    ],
)
def test_the_page_says_what_an_answer_is(
    tmp_path: Path, kind: str, heading: str, told: str
) -> None:
    """A grade is not called the probability of a yes."""
    text = "Q1: Yes\nQ2: No\nScore: 7"
    judge = {"engine": "scripted", "model": "scripted", "options": {"text": text}}
    outcome = rocketeval.run(make_config(tmp_path, judge=judge, method={"kind": kind}))
    page = outcome.report.read_text()
    assert embedded(outcome)["answers"] == heading
    assert told.replace("&#x27;", "'") in page.replace("&#x27;", "'").replace("&#39;", "'")
    assert (f"The judge was asked for {kind}: " in page) == (kind != "checklist")


def test_gaps_are_on_the_page(tmp_path: Path) -> None:
    """What could not be judged stands on the first screen."""
    engine = ScriptedEngine(p_yes, fail_on="right explains the sun")
    page = rocketeval.run(make_config(tmp_path), judge=engine).report.read_text()
    assert "Not complete" in page
    assert "responses not judged" in page


def test_too_many_responses_leave_the_most_divisive_queries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only `sea` divides the candidates, so it is the one that is shown; the rest is counted."""
    monkeypatch.setattr(module, "MOST_RESPONSES", 2)
    outcome = rocketeval.run(make_config(tmp_path), judge=ScriptedEngine(p_yes))
    text = json.dumps(embedded(outcome))
    assert "Why the sea?" in text
    assert "Why the sky?" not in text
    assert "2 queries" in outcome.report.read_text() or '"queries_omitted": 2' in text


def test_a_candidate_name_cannot_run_as_a_formula(tmp_path: Path) -> None:
    """A name that a spreadsheet would compute is disarmed in ranking.csv."""
    write_benchmark(tmp_path / "benchmark")
    responses = tmp_path / "benchmark" / "responses"
    (responses / "left.jsonl").rename(responses / "=1+1.jsonl")
    (tmp_path / "benchmark" / "votes.jsonl").unlink()
    outcome = rocketeval.run(make_config(tmp_path), judge=ScriptedEngine(p_yes))
    assert ",'=1+1," in (outcome.path / "ranking.csv").read_text()

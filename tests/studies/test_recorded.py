"""Studies with stored judgments: each script prints its recorded figures again, without a judge."""

from __future__ import annotations

from pathlib import Path

import pytest
from mt_bench import votes

from support.forked import run_script

ROOT = Path(__file__).parents[2]
STUDIES = ROOT / "studies"
FORMS = STUDIES / "judges" / "recorded" / "forms.txt"
needs_data = pytest.mark.skipif(
    not votes.DATA.is_dir(), reason="the shared data are not next to this checkout"
)


def printed(script: str, *options: str) -> str:
    """Return what a study prints."""
    done = run_script(ROOT / script, *options, folder=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_context_study() -> None:
    """A judge with and without the context of a question; its data are part of the repository."""
    recorded = (STUDIES / "rubrics" / "recorded" / "rag.txt").read_text(encoding="utf-8")
    assert printed("studies/rubrics/rag.py") == recorded


@pytest.mark.parametrize(
    "name",
    [
        "papers/uncertainty",
        pytest.param("papers/calibration", marks=needs_data),
        pytest.param("mt_bench/authors", marks=needs_data),
        "mt_bench/samples",
    ],
)
def test_studies_of_single_answers(name: str) -> None:
    """Earlier answers, calibration, authors and real samples; the docs quote the record."""
    script = STUDIES / name
    recorded = (script.parent / "recorded" / f"{script.name}.txt").read_text(encoding="utf-8")
    assert printed(f"{script}.py") == recorded
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded}```" in docs


@needs_data
@pytest.mark.parametrize(
    ("name", "options"),
    [("reference_shown", ("--queries", "9")), ("graded_items", ("--documents", "8"))],
)
def test_rubric_studies(name: str, options: tuple[str, ...]) -> None:
    """A judge with and without references, and with levels instead of yes and no."""
    recorded = (STUDIES / "rubrics" / "recorded" / f"{name}.txt").read_text(encoding="utf-8")
    assert printed(f"studies/rubrics/{name}.py", *options) == recorded


def test_rule_of_the_identity_check() -> None:
    """How often it would stop a run, from stored judgments."""
    recorded = (STUDIES / "judges" / "recorded" / "canary_rule.txt").read_text(encoding="utf-8")
    assert printed("studies/judges/canary_rule.py") == recorded
    docs = (ROOT / "docs" / "evidence" / "reproduction.md").read_text(encoding="utf-8")
    assert f"```\n{recorded}```" in docs


@needs_data
def test_lint_of_checklists_with_stored_answers() -> None:
    """The stored judgments become a run, which is linted."""
    recorded = (STUDIES / "lint" / "recorded" / "mt_bench.txt").read_text(encoding="utf-8")
    assert printed("studies/lint/mt_bench.py") == recorded


@needs_data
def test_forms_of_the_judge() -> None:
    """Each command in the record prints the lines below it."""
    parts = FORMS.read_text(encoding="utf-8").split("\npython ")[1:]
    assert len(parts) == 7
    for part in parts:
        command, _, below = part.partition("\n")
        assert printed(*command.split()).strip() == below.split("\n\n")[0].strip()

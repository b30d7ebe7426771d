"""Answers that people marked as wrong are counted in the audit, as a selected sample."""

from __future__ import annotations

from pathlib import Path

from rocketeval.audit.audit import Audit, MarkedAnswers
from rocketeval.benchmarks.collected import CollectedLabels, WrongAnswer
from rocketeval.store.run import RunStore
from support.viewing import finish


def test_marked_answers_are_compared_with_the_judge(tmp_path: Path) -> None:
    """Repeated answers, answers that changed, items that no longer exist, and withdrawn marks."""
    file = CollectedLabels(tmp_path / "collected.jsonl")

    def mark(candidate: str, p_yes: float | None, text: str = "Is it right?", by: str = "A") -> str:
        one = WrongAnswer(
            by=by, query_id="sky", candidate=candidate, item=1, text=text, p_yes=p_yes
        )
        file.add(one)
        return one.id

    mark("left", 0.8)
    mark("left", 0.8, by="B")
    mark("right", 0.7)
    mark("right", 0.7, "An item of before?", by="C")
    file.undo(mark("left", 0.9, "Is it clear?", by="D"))
    (tmp_path / "runs").mkdir()
    benchmark = {"path": str(tmp_path / "benchmark"), "collected": str(file.path)}
    finish(tmp_path, "plain")
    found = RunStore(finish(tmp_path, benchmark=benchmark)).read(Audit)
    # The judge says yes (0.9) about left and no (0.2) about right.
    assert found.marked == MarkedAnswers(answers=3, repeated=1, gone=1, people=3)
    assert "1 of 2 (50%)" in found.advice[-1]
    assert "no error rate" in found.advice[-1]
    assert RunStore(tmp_path / "runs" / "plain").read(Audit).marked is None

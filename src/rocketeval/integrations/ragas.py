"""A metric for ragas: `await ChecklistScore([...], judge=MODEL).ascore(user_input=..., ...)`."""

from __future__ import annotations

from collections.abc import Sequence

from ragas.metrics.collections.base import BaseMetric
from ragas.metrics.result import MetricResult

from rocketeval.grader import Items, ResponseToGrade
from rocketeval.integrations.shared import (
    JudgeChoice,
    checklist_for,
    explain_grade,
    open_grader,
)

__all__ = ["ChecklistScore"]


class ChecklistScore(BaseMetric):
    """Scores `response` with a checklist and a judge, from 0 to 1."""

    def __init__(
        self,
        checklist: Items | str | None = None,
        *,
        judge: JudgeChoice = None,
        base_url: str | None = None,
        answers: str | None = None,
        name: str = "checklist",
    ) -> None:
        self.checklist = checklist
        self.grader = open_grader(judge, base_url, answers)
        super().__init__(name=name)

    async def ascore(
        self,
        user_input: str,
        response: str,
        reference: str | None = None,
        retrieved_contexts: Sequence[str] | None = None,
        checklist: Items | None = None,
    ) -> MetricResult:
        """Return the score and its items in words; EngineError if the judge cannot answer."""
        given = ResponseToGrade(
            user_input,
            response,
            checklist_for(checklist, self.checklist),
            reference=reference,
            context=retrieved_contexts,
        )
        graded = await self.grader.grade_async(given)
        return MetricResult(value=graded.score, reason=explain_grade(graded))

"""A metric for DeepEval: `assert_test(test_case, [ChecklistMetric([...], judge=MODEL)])`."""

from __future__ import annotations

from typing import Any

from deepeval.metrics import BaseMetric
from deepeval.test_case import LLMTestCase

from rocketeval.errors import EngineError
from rocketeval.grader import Items, ResponseGrade, ResponseToGrade
from rocketeval.integrations.shared import (
    JudgeChoice,
    checklist_for,
    explain_grade,
    open_grader,
)

__all__ = ["ChecklistMetric"]


class ChecklistMetric(BaseMetric):
    """Scores `actual_output` with a checklist and a judge, from 0 to 1.

    `expected_output` is the reference and `retrieval_context` the context of items that use them.
    A test case may bring its own items in `metadata["checklist"]`.
    """

    def __init__(
        self,
        checklist: Items | str | None = None,
        *,
        judge: JudgeChoice = None,
        base_url: str | None = None,
        answers: str | None = None,
        threshold: float = 0.8,
    ) -> None:
        self.checklist = checklist
        # DeepEval copies a metric by calling its constructor with the attributes of these names.
        self.judge = self.grader = open_grader(judge, base_url, answers)
        self.base_url = self.answers = None
        self.threshold = threshold
        self.async_mode = True
        self.include_reason = True
        self.error: str | None = None

    @property
    def __name__(self) -> str:
        return "Checklist (RocketEval)"

    def measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Return the score of a test case; EngineError if the judge cannot answer."""
        return self._keep(self.grader.submit(self._given(test_case)).result())

    async def a_measure(self, test_case: LLMTestCase, *args: Any, **kwargs: Any) -> float:
        """Return the score of a test case, awaited."""
        return self._keep(await self.grader.grade_async(self._given(test_case)))

    def _given(self, case: LLMTestCase) -> ResponseToGrade:
        own = getattr(case, "metadata", None) or {}
        contexts = case.retrieval_context
        return ResponseToGrade(
            case.input,
            case.actual_output or "",
            checklist_for(own.get("checklist"), self.checklist),
            reference=case.expected_output,
            context=None if contexts is None else [str(each) for each in contexts],
            about=case.name or "",
        )

    def _keep(self, graded: ResponseGrade) -> float:
        if graded.score is None:
            raise EngineError(f"No item has an answer.\n{explain_grade(graded)}")
        self.score = graded.score
        self.reason = explain_grade(graded)
        self.success = graded.score >= self.threshold
        self.score_breakdown = {item.text: item.value for item in graded.items}
        self.evaluation_model = graded.judged_by
        return graded.score

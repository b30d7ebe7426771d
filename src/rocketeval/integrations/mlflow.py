"""A scorer for MLflow: `mlflow.genai.evaluate(data=..., scorers=[ChecklistScorer(...)])`."""

from __future__ import annotations

from typing import Any

from mlflow.entities import AssessmentSource, Feedback
from mlflow.genai.scorers import Scorer
from pydantic import PrivateAttr

from rocketeval.errors import EngineError
from rocketeval.grader import Grader, Items, ResponseToGrade
from rocketeval.integrations.shared import (
    JudgeChoice,
    asked_in,
    asked_or_text,
    checklist_for,
    explain_grade,
    open_grader,
)
from rocketeval.records import Turn

__all__ = ["ChecklistScorer"]


class ChecklistScorer(Scorer):
    """Scores `outputs` with a checklist and a judge, from 0 to 1.

    A row's own items are `expectations["checklist"]`, its reference is
    `expectations["expected_response"]`. The query is the last user message in the field `messages`
    of `inputs`, the field `query`, `question`, `input` or `prompt`, or the only field; each of them
    may hold chat messages. Do not name the scorer like an expectation:
    MLflow would take one for the other.
    """

    name: str = "checklist_score"
    _grader: Grader = PrivateAttr()
    _checklist: Any = PrivateAttr()

    def __init__(
        self,
        checklist: Items | str | None = None,
        *,
        judge: JudgeChoice = None,
        base_url: str | None = None,
        answers: str | None = None,
        name: str = "checklist_score",
    ) -> None:
        super().__init__(name=name)
        self._grader = open_grader(judge, base_url, answers)
        self._checklist = checklist

    def __call__(
        self,
        *,
        inputs: Any = None,
        outputs: Any = None,
        expectations: dict[str, Any] | None = None,
        trace: Any = None,
        session: Any = None,
    ) -> Feedback:
        """Return the score as feedback; the error of the judge if it cannot answer."""
        expected = expectations or {}
        query, history = query_of(inputs)
        given = ResponseToGrade(
            query,
            outputs if isinstance(outputs, str) else str(outputs),
            checklist_for(expected.get("checklist"), self._checklist),
            history,
            reference=expected.get("expected_response"),
        )
        try:
            graded = self._grader.submit(given).result()
        except EngineError as error:
            return Feedback(name=self.name, error=error)
        return Feedback(
            name=self.name,
            value=graded.score,
            rationale=explain_grade(graded),
            source=AssessmentSource(
                source_type="LLM_JUDGE" if graded.judge else "CODE", source_id=graded.judged_by
            ),
            metadata={item.text: str(item.answer.p_yes) for item in graded.items},
        )


def query_of(inputs: Any) -> tuple[str, tuple[Turn, ...]]:
    """Return the query in the inputs of a row, and the turns before it."""
    if isinstance(inputs, dict):
        messages = inputs.get("messages")
        if isinstance(messages, list) and messages:
            return asked_in(messages)
        for name in ("query", "question", "input", "prompt"):
            if name in inputs:
                return asked_or_text(inputs[name], str(inputs[name]))
        if len(inputs) == 1:
            (only,) = inputs.values()
            return asked_or_text(only, str(only))
    return asked_or_text(inputs, str(inputs))

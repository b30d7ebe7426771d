"""A scorer for Inspect: `inspect score LOG --scorer rocketeval/checklist -S judge=MODEL`.

A sample's checklist is `metadata["checklist"]`, else the scorer's. Inspect finds this module
through its entry point.
"""

from __future__ import annotations

from inspect_ai.scorer import Score, Scorer, Target, mean, scorer, stderr
from inspect_ai.solver import TaskState

from rocketeval.benchmarks.inspect_logs import target_text, with_choices
from rocketeval.errors import EngineError
from rocketeval.grader import Items, ResponseToGrade
from rocketeval.integrations.shared import (
    JudgeChoice,
    asked_in,
    checklist_for,
    explain_grade,
    open_grader,
)
from rocketeval.records import Turn

__all__ = ["checklist"]


@scorer(metrics=[mean(), stderr()])
def checklist(
    judge: JudgeChoice = None,
    base_url: str | None = None,
    checklist: Items | str | None = None,
    answers: str | None = None,
) -> Scorer:
    """Score completions with a checklist and a judge, from 0 to 1.

    A sample that the judge cannot answer is unscored, with the reason. The target is the reference
    of items that use one; several targets are one per line.
    """
    grader = open_grader(judge, base_url, answers)
    default = checklist_for(None, checklist)

    async def score(state: TaskState, target: Target) -> Score:
        completion = state.output.completion
        query, history = _asked(state)
        given = ResponseToGrade(
            query,
            completion,
            checklist_for(state.metadata.get("checklist"), default),
            history,
            target_text(list(target)),
            about=f"sample {state.sample_id}",
        )
        try:
            graded = await grader.grade_async(given)
        except EngineError as error:
            return Score.unscored(reason="judge_failed", answer=completion, explanation=str(error))
        if graded.score is None:
            return Score.unscored(
                reason="no_answer", answer=completion, explanation=explain_grade(graded)
            )
        return Score(
            value=graded.score,
            answer=completion,
            explanation=explain_grade(graded),
            metadata={
                "low": graded.low,
                "high": graded.high,
                "judge": graded.judge.model if graded.judge else None,
                "items": [
                    {"text": item.text, "weight": item.weight, "p_yes": item.answer.p_yes}
                    for item in graded.items
                ],
            },
        )

    return score


def _asked(state: TaskState) -> tuple[str, tuple[Turn, ...]]:
    """Return the query of a sample's input, with its choices, and the turns before it."""
    if isinstance(state.input, str):
        return with_choices(state.input, [choice.value for choice in state.choices]), ()
    return asked_in(message.model_dump(exclude_none=True) for message in state.input)

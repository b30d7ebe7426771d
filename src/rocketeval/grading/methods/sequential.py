"""Items one after the other, each with the judge's own earlier answers before its eyes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rocketeval.engines.base import Engine, Graded
from rocketeval.grading.methods.base import Ask
from rocketeval.prompts.variants import answered, single_questions
from rocketeval.records import Answer, GradingTask, Status, Usage


def one_after_the_other(engine: Engine) -> Ask:
    """Ask the items of a `TranscriptPrompt` in order, the transcript growing with every answer.

    What the judge is shown of its earlier answers is the likelier word. An answer without a
    probability leaves its question out of the transcript.
    """

    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        answers: list[Answer] = []
        usage, said = Usage(), ""
        for place, question in enumerate(single_questions(task.suffixes)):
            answer = known.get(place)
            if answer is None:
                graded = await engine.grade(_single(task, said, question), {})
                usage += graded.usage
                if graded.failure:
                    return _cut_short(task, answers, known, usage, graded)
                answer = graded.answers[0]
            answers.append(answer)
            if answer.p_yes is not None:
                said += answered(question, "Yes" if answer.p_yes >= 0.5 else "No")
        return Graded(tuple(answers), usage)

    return ask


def _single(task: GradingTask, said: str, question: str) -> GradingTask:
    return GradingTask(task.key, task.query_id, task.candidate, task.prefix + said, (question,))


def _cut_short(
    task: GradingTask,
    answers: Sequence[Answer],
    known: Mapping[int, Answer],
    usage: Usage,
    graded: Graded,
) -> Graded:
    place = len(answers)
    left = [known.get(later, Answer(Status.ERROR)) for later in range(place, len(task.suffixes))]
    reason = (graded.failure or "").removeprefix("item 1: ")
    return Graded(
        (*answers, *left), usage, f"item {place + 1}: {reason}", unavailable=graded.unavailable
    )

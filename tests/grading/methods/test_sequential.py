"""Sequential items: the judge sees its earlier answers, and nothing is asked twice."""

from __future__ import annotations

from collections.abc import Mapping

from rocketeval.engines.base import EngineAnswers
from rocketeval.engines.scripted import ScriptedEngine, exact_answer
from rocketeval.grading.ask import sequentially
from rocketeval.prompts.variants import LINK, TranscriptPrompt
from rocketeval.records import Answer, Checklist, GradingTask, Query, Response, Status, Usage

ITEMS = ("Is it right?", "Is it short?", "Is it kind?")
SAID = {"right": 0.9, "short": 0.2, "kind": 0.5}


def make_task() -> GradingTask:
    """Return three items about one response."""
    checklist = Checklist("q", ITEMS)
    return TranscriptPrompt().render(Query("q", "Why?"), Response("q", "c", "So."), checklist, b"k")


class Listening(ScriptedEngine):
    """Answers by the last question's last word, and keeps every prompt."""

    def __init__(self, fail_on: str | None = None, silent_on: str | None = None) -> None:
        super().__init__(self.answer, fail_on=fail_on)
        self.prompts: list[str] = []
        self.silent_on = silent_on

    def answer(self, prefix: str, suffix: str) -> float:
        self.prompts.append(prefix + suffix)
        return next(p for word, p in SAID.items() if suffix.startswith(f"Is it {word}?"))

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        if self.silent_on and task.suffixes[0].startswith(self.silent_on):
            return EngineAnswers((Answer(Status.LOW_MASS),), Usage(requests=1))
        return await super().grade(task, known)


async def test_transcript_contains_earlier_answers() -> None:
    """It has the more likely word after every earlier question; 0.5 counts as yes."""
    engine, task = Listening(), make_task()
    graded = await sequentially(engine)(task, {})
    tail = task.suffixes[0].removeprefix(ITEMS[0])
    one, two, three = (item + tail for item in ITEMS)
    assert engine.prompts == [
        task.prefix + one,
        f"{task.prefix}{one} Yes{LINK}{two}",
        f"{task.prefix}{one} Yes{LINK}{two} No{LINK}{three}",
    ]
    assert [answer.p_yes for answer in graded.answers] == [0.9, 0.2, 0.5]
    assert graded.usage.requests == 3
    assert graded.failure is None


async def test_known_answers_are_in_the_transcript() -> None:
    """Known answers are shown again and not asked."""
    whole, rest, task = Listening(), Listening(), make_task()
    first = await sequentially(whole)(task, {})
    known = {0: first.answers[0], 1: first.answers[1]}
    again = await sequentially(rest)(task, known)
    assert again.answers == first.answers
    assert rest.prompts == whole.prompts[2:]
    assert again.usage.requests == 1


async def test_failure_keeps_earlier_answers() -> None:
    """The failed item is named by its own number; later items are unanswered."""
    graded = await sequentially(Listening(fail_on="Is it short?"))(make_task(), {})
    assert [answer.status for answer in graded.answers] == [Status.OK, Status.ERROR, Status.ERROR]
    assert graded.failure == "item 2: scripted to fail"
    assert not graded.unavailable


async def test_failure_keeps_known_later_answers() -> None:
    """A paid answer is never lost."""
    known = {2: exact_answer(0.7)}
    graded = await sequentially(Listening(fail_on="Is it short?"))(make_task(), known)
    assert graded.answers[2] == known[2]
    assert graded.answers[1].status is Status.ERROR


async def test_unavailable_judge_is_reported() -> None:
    """The loop gives up on it, as with checklists."""

    class Gone(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            error = (Answer(Status.ERROR),)
            return EngineAnswers(error, Usage(requests=2), "item 1: no route", unavailable=True)

    graded = await sequentially(Gone())(make_task(), {})
    assert graded.unavailable
    assert graded.usage.requests == 2
    assert len(graded.answers) == 3


async def test_rejected_item_is_reported() -> None:
    """The message says that a retry is useless, as with checklists."""

    class TooLong(ScriptedEngine):
        async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
            error = (Answer(Status.ERROR),)
            return EngineAnswers(error, Usage(requests=1), "item 1: too long", rejected=True)

    assert (await sequentially(TooLong())(make_task(), {})).rejected


async def test_unanswered_item_is_left_out_of_the_transcript() -> None:
    """The judge never sees an answer that it did not give."""
    engine, task = Listening(silent_on="Is it right?"), make_task()
    graded = await sequentially(engine)(task, {})
    assert graded.answers[0].status is Status.LOW_MASS
    assert "Is it right?" not in engine.prompts[0]
    assert "Is it short?" in engine.prompts[1]

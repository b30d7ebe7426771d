"""Judgments that are written out and read, and judgments by how likely a text is."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from functools import partial

from rocketeval.engines.base import Engine, Graded
from rocketeval.errors import EngineUnavailable, RequestRejected
from rocketeval.grading.methods.base import Ask
from rocketeval.prompts.read_grades import read_answers, read_score, whole_words
from rocketeval.records import Answer, GradingTask, Status, Usage

Read = Callable[[str, int], tuple[Answer, ...]]
"""Finds the answers to so many items in a text."""


def written_score(text: str, items: int) -> tuple[Answer, ...]:
    """Return the one grade of a written judgment."""
    return (read_score(text),)


def writes(read: Read, most_written: int) -> Callable[[Engine], Ask]:
    """Let the judge write, and `read` its answers from the text."""
    return partial(_writing, read, most_written)


writes_answers = partial(writes, read_answers)
writes_score = partial(writes, written_score)


def _writing(read: Read, most_written: int, engine: Engine) -> Ask:
    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        items = len(task.suffixes) if task.items is None else task.items
        try:
            told = await engine.write(task.prefix + task.suffixes[0], max_tokens=most_written)
        except (EngineUnavailable, RequestRejected) as error:
            return _failed(error)
        text = told.text if told.finished else whole_words(told.text)
        return Graded(read(text, items), told.usage)

    return ask


def how_likely(engine: Engine) -> Ask:
    """Score a response by the mean log-probability of its tokens: one over its perplexity."""

    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        try:
            told = await engine.likelihood(task.prefix, task.suffixes[0])
        except (EngineUnavailable, RequestRejected) as error:
            return _failed(error)
        mean = math.fsum(told.logprobs) / len(told.logprobs)
        p = math.exp(mean)
        return Graded((Answer(Status.OK, p, p, p, 1.0, mean),), told.usage)

    return ask


def _failed(error: EngineUnavailable | RequestRejected) -> Graded:
    # One request was made, and it may be on the bill. One error stands for it: a budget counts
    # errors as requests, and a text that never came holds no items.
    return Graded(
        (Answer(Status.ERROR),),
        Usage(requests=1),
        error.message,
        unavailable=isinstance(error, EngineUnavailable),
    )

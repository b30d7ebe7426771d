"""What a grading method is: a prompt, and a way to put it to an engine.

Items one after the other, each with the judge's own earlier answers before its eyes.
Judgments that are written out and read, and judgments by how likely a text is.
Analyses that another judge wrote: the cot run of a stronger model, read response by response.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from rocketeval.config import Section, load_config
from rocketeval.engines.base import Engine, EngineAnswers
from rocketeval.errors import ConfigError, EngineUnavailable, RequestRejected
from rocketeval.grading.schedule import Identities, shown_heads
from rocketeval.hashing import content_hash
from rocketeval.prompts.read_grades import read_answers, read_score, whole_words, without_score
from rocketeval.prompts.render import Prompt, Template
from rocketeval.prompts.variants import AnalysisPrompt, answered, single_questions
from rocketeval.records import Answer, GradingTask, Status, Usage
from rocketeval.store.run import RunStore

Ask = Callable[[GradingTask, Mapping[int, Answer]], Awaitable[EngineAnswers]]
"""Gets the answers to a task, except those that are already known."""


def each_item_alone(engine: Engine) -> Ask:
    """Ask every item by itself: what an engine does best."""
    return engine.grade


@dataclass(frozen=True)
class Method:
    """One way to grade responses, ready to be used."""

    name: str
    prompt: Prompt
    asking: Callable[[Engine], Ask] = each_item_alone
    most_written: int = 1
    """Tokens the judge writes for one request, at most."""
    reading: str = ""
    """How answers are read from what the judge writes; empty where it writes none."""
    alone: bool = False
    """Whether every item is a request of its own, also where an engine takes several at once."""

    @cached_property
    def hash(self) -> str:
        """Hex hash of all that decides what the judge is asked, part of its fingerprint."""
        if self.asking is each_item_alone and self.most_written == 1:
            return self.prompt.hash
        read = (self.reading,) if self.reading else ()
        return content_hash("method", self.name, self.most_written, self.prompt.hash, *read).hex()


def one_after_the_other(engine: Engine) -> Ask:
    """Ask the items of a `TranscriptPrompt` in order, the transcript growing with every answer.

    What the judge is shown of its earlier answers is the likelier word. An answer without a
    probability leaves its question out of the transcript.
    """

    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
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
        return EngineAnswers(tuple(answers), usage)

    return ask


def _single(task: GradingTask, said: str, question: str) -> GradingTask:
    return GradingTask(task.key, task.query_id, task.candidate, task.prefix + said, (question,))


def _cut_short(
    task: GradingTask,
    answers: Sequence[Answer],
    known: Mapping[int, Answer],
    usage: Usage,
    graded: EngineAnswers,
) -> EngineAnswers:
    place = len(answers)
    left = [known.get(later, Answer(Status.ERROR)) for later in range(place, len(task.suffixes))]
    reason = (graded.failure or "").removeprefix("item 1: ")
    return EngineAnswers(
        (*answers, *left), usage, f"item {place + 1}: {reason}", unavailable=graded.unavailable
    )


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
    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        items = len(task.suffixes) if task.items is None else task.items
        try:
            told = await engine.write(task.prefix + task.suffixes[0], max_tokens=most_written)
        except (EngineUnavailable, RequestRejected) as error:
            return _failed(error)
        text = told.text if told.finished else whole_words(told.text)
        return EngineAnswers(read(text, items), told.usage)

    return ask


def how_likely(engine: Engine) -> Ask:
    """Score a response by the mean log-probability of its tokens: one over its perplexity."""

    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        try:
            told = await engine.likelihood(task.prefix, task.suffixes[0])
        except (EngineUnavailable, RequestRejected) as error:
            return _failed(error)
        mean = math.fsum(told.logprobs) / len(told.logprobs)
        p = math.exp(mean)
        return EngineAnswers((Answer(Status.OK, p, p, p, 1.0, mean),), told.usage)

    return ask


def _failed(error: EngineUnavailable | RequestRejected) -> EngineAnswers:
    # One request was made, and it may be on the bill. One error stands for it: a budget counts
    # errors as requests, and a text that never came holds no items.
    return EngineAnswers(
        (Answer(Status.ERROR),),
        Usage(requests=1),
        error.message,
        unavailable=isinstance(error, EngineUnavailable),
    )


WRITER = "cot"
"""The method whose runs hold analyses."""


class AnalysisOptions(Section):
    """Settings of the method analysis."""

    run: Path
    """Directory of a finished run of the same responses with method.kind cot, relative to where
    the command is run."""


def analysis_prompt(template: Template, options: AnalysisOptions) -> AnalysisPrompt:
    """Return the prompt that shows the analyses of the run that `options` name."""
    store = _written_run(options.run)
    return AnalysisPrompt(template, _analyses(store), store.judge().digest.hex(), str(options.run))


def _written_run(path: Path) -> RunStore:
    hint = f"Give the directory of a finished run with method.kind {WRITER}."
    if not (path / "run.yaml").exists():
        raise ConfigError(f"method.options.run: {path} is not a run directory.", hint=hint)
    kind = load_config(path / "run.yaml").method.kind
    if kind != WRITER:
        raise ConfigError(
            f"method.options.run: {path} was graded by the method {kind!r}, which writes no "
            "analyses.",
            hint=hint,
        )
    return RunStore(path)


def _analyses(store: RunStore) -> dict[tuple[bytes, bytes], str]:
    """Return the analysis of every response, by the content of its query and its own.

    Without the score each ends in: the judge is to give its own. Looked up as scores are, because
    a judgment may have been made for a twin of the response.
    """
    texts = {
        row["key"]: row["text"][0]
        for table in store.judgments(["key", "text"])
        for row in table.to_pylist()
        if row["text"]
    }
    queries = store.inputs.queries
    identities = Identities(store.judge().digest, queries, store.inputs.checklists())
    found: dict[tuple[bytes, bytes], str] = {}
    for head, seen in zip(store.inputs.heads(), shown_heads(store.inputs), strict=True):
        key = identities.key(head.query_id, seen.hash)
        text = None if key is None else texts.get(key.hex())
        if text is not None:
            found[queries[head.query_id].content_hash, head.hash] = without_score(text)
    return found

"""Grading methods: a prompt, and a way to send it to an engine.

Besides independent items there are sequential items (the judge sees its earlier answers), written
judgments, the likelihood of a response, and analyses from the cot run of another judge.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path

from rocketeval.config import Section, load_config
from rocketeval.engines.base import (
    Engine,
    EngineAnswers,
    RefusedPartway,
    ask_engine,
    fails_for_good,
    usage_of,
)
from rocketeval.errors import ConfigError, EngineRefused, EngineUnavailable, RequestRejected
from rocketeval.grading.schedule import Identities, shown_heads
from rocketeval.hashing import content_hash
from rocketeval.prompts.read_grades import read_answers, read_score, whole_words, without_score
from rocketeval.prompts.render import GradingPrompt, Prompt, Template
from rocketeval.prompts.variants import AnalysisPrompt, answered, single_questions
from rocketeval.records import Answer, GradingTask, Status, Usage
from rocketeval.store.run import RunStore

Ask = Callable[[GradingTask, Mapping[int, Answer]], Awaitable[EngineAnswers]]
"""Returns the answers to a task, except those that are already known."""


def each_item_independently(engine: Engine) -> Ask:
    """Ask every item in its own prompt."""
    return partial(ask_engine, engine)


@dataclass(frozen=True)
class Method:
    """A grading method, ready for use."""

    name: str
    prompt: Prompt
    asking: Callable[[Engine], Ask] = each_item_independently
    most_written: int = 1
    """Maximum tokens the judge writes per request."""
    reading: str = ""
    """Version of the rules that read answers from written text; empty if the judge writes none."""
    alone: bool = False
    """Whether every item is its own request, even if the engine accepts several at once."""

    @cached_property
    def hash(self) -> str:
        """Hex hash of everything that determines the judge's prompts, part of its fingerprint."""
        if self.asking is each_item_independently and self.most_written == 1:
            return self.prompt.hash
        read = (self.reading,) if self.reading else ()
        return content_hash("method", self.name, self.most_written, self.prompt.hash, *read).hex()


def asks_items_independently(method: Method) -> bool:
    """Return whether the prompt for an item is independent of the other items."""
    prompt = method.prompt
    return (
        method.asking is each_item_independently
        and isinstance(prompt, GradingPrompt)
        and type(prompt).endings is GradingPrompt.endings
    )


def sequentially(engine: Engine) -> Ask:
    """Ask the items of a `TranscriptPrompt` in order, adding each answer to the transcript.

    The transcript shows the more likely word of each earlier answer. A question whose answer has
    no probability is left out of it.
    """

    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        answers: list[Answer] = []
        usage, transcript, neutralised = Usage(), "", 0
        for place, question in enumerate(single_questions(task.suffixes)):
            answer = known.get(place)
            if answer is None:
                try:
                    graded = await ask_engine(engine, _single(task, transcript, question), {})
                except EngineRefused as error:
                    had = {**known, **dict(enumerate(answers))}
                    if isinstance(error, RefusedPartway):
                        usage += error.usage
                    raise RefusedPartway.of(error, task, had, usage) from None
                usage += graded.usage
                if graded.failure:
                    return _cut_short(task, answers, known, usage, graded)
                answer = graded.answers[0]
                neutralised = max(neutralised, graded.neutralised)
            answers.append(answer)
            if answer.p_yes is not None:
                transcript += answered(question, "Yes" if answer.p_yes >= 0.5 else "No")
        return EngineAnswers(tuple(answers), usage, neutralised=neutralised)

    return ask


def _single(task: GradingTask, transcript: str, question: str) -> GradingTask:
    prefix = task.prefix + transcript
    return GradingTask(task.key, task.query_id, task.candidate, prefix, (question,))


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
        (*answers, *left),
        usage,
        f"item {place + 1}: {reason}",
        unavailable=graded.unavailable,
        rejected=graded.rejected,
    )


Read = Callable[[str, int], tuple[Answer, ...]]
"""Finds the answers to a number of items in a text."""


def written_score(text: str, items: int) -> tuple[Answer, ...]:
    """Return the single grade of a written judgment."""
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
            written = await engine.write(task.prefix + task.suffixes[0], max_tokens=most_written)
        except (EngineUnavailable, RequestRejected) as error:
            return _failed(error)
        text = written.text if written.finished else whole_words(written.text)
        answers = read(text, items)
        return EngineAnswers(answers, written.usage, neutralised=written.neutralised)

    return ask


def response_likelihood(engine: Engine) -> Ask:
    """Score a response by one over its perplexity, from the mean log-probability of its tokens."""

    async def ask(task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        try:
            found = await engine.likelihood(task.prefix, task.suffixes[0])
        except (EngineUnavailable, RequestRejected) as error:
            return _failed(error)
        mean = math.fsum(found.logprobs) / len(found.logprobs)
        p = math.exp(mean)
        return EngineAnswers((Answer(Status.OK, p, p, p, 1.0, mean),), found.usage)

    return ask


def _failed(error: EngineUnavailable | RequestRejected) -> EngineAnswers:
    # One error, because a budget counts errors as requests, and a text that never arrived contains
    # no items.
    return EngineAnswers(
        (Answer(Status.ERROR),),
        usage_of(error),
        error.message,
        unavailable=isinstance(error, EngineUnavailable),
        rejected=fails_for_good(error),
    )


WRITER = "cot"
"""The method whose runs contain analyses."""


class AnalysisOptions(Section):
    """Options of the method analysis."""

    run: Path
    """Directory of a finished run of the same responses with method.kind cot, relative to the
    config file."""


def analysis_prompt(template: Template, options: AnalysisOptions) -> AnalysisPrompt:
    """Return the prompt that shows the analyses of the run in `options`."""
    store = _written_run(options.run)
    return AnalysisPrompt(template, _analyses(store), store.judge().digest.hex(), str(options.run))


def _written_run(path: Path) -> RunStore:
    hint = f"Give the directory of a finished run with method.kind {WRITER}."
    if not (path / "run.yaml").exists():
        raise ConfigError(f"method.options.run: {path} is not a run directory.", hint=hint)
    kind = load_config(path / "run.yaml").method.kind
    if kind != WRITER:
        raise ConfigError(
            f"method.options.run: {path} was graded with the method {kind!r}, which writes no "
            "analyses.",
            hint=hint,
        )
    return RunStore(path)


def _analyses(store: RunStore) -> dict[tuple[bytes, bytes], str]:
    """Return the analysis of every response, by the content of its query and response.

    The final score is removed, because the judge gives its own. Analyses are looked up by judgment
    key, because a judgment may have been made for an identical response.
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

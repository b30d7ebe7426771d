"""An engine that answers from a script, for tests without a server.

By default every probability is a fixed function of the prompt, so two runs agree to the last bit.
`options` in the config, or arguments in Python, change the answers.
"""

from __future__ import annotations

import asyncio
import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

import orjson
from pydantic import Field, model_validator

from rocketeval.config import EngineConfig, Section, parse_options
from rocketeval.engines.base import (
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    Likelihood,
    WrittenText,
    need_probability,
)
from rocketeval.engines.likelihood import NO_TEXT
from rocketeval.engines.readout import YES_NO
from rocketeval.errors import ConfigError, RequestRejected
from rocketeval.items import AnswerLabels
from rocketeval.records import Answer, GradingTask, Status, Usage

REQUEST = "Request:"
"""Start of the line that names the request."""
HINT = 'A line looks like {"when": "some words of the prompt", "text": "the text to write"}.'


class RecordedText(NamedTuple):
    """A text, and the words of a prompt it answers."""

    when: str
    text: str


class RecordedTexts:
    """Recorded texts by prompt; RequestRejected if no row matches a prompt.

    >>> RecordedTexts([RecordedText("batch 1", "one"), RecordedText("batch 10", "ten")])("batch 10")
    'ten'
    """

    def __init__(self, rows: Sequence[RecordedText], name: str = "the record") -> None:
        self._rows = [(_as_words(row.when), row.text) for row in rows]
        self._name = name

    @classmethod
    def load(cls, path: Path) -> RecordedTexts:
        """Return the texts in a JSONL file; ConfigError names a line that cannot be read."""
        try:
            lines = path.read_bytes().splitlines()
        except OSError as error:
            raise ConfigError(
                f"Cannot read the recorded texts {path}: {error.strerror}.",
                hint="`options.texts` of the scripted engine is relative to the config file.",
            ) from None
        rows = [_row(path, number, line) for number, line in enumerate(lines, 1) if line.strip()]
        return cls(rows, str(path))

    def __call__(self, prompt: str) -> str:
        """Return the text of the first row that matches."""
        first = prompt.strip().partition("\n")[0]
        searched = first if first.startswith(REQUEST) else prompt
        for when, text in self._rows:
            if when.search(searched):
                return text
        raise RequestRejected(
            f"none of the {len(self._rows)} texts in {self._name} matches the prompt that starts "
            f"{first[:80]!r}"
        )


def _as_words(when: str) -> re.Pattern[str]:
    # `batch 1` must not answer `batch 10`.
    return re.compile(rf"(?<!\w){re.escape(when)}(?!\w)")


def _row(path: Path, number: int, line: bytes) -> RecordedText:
    try:
        row: Any = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise ConfigError(f"{path}, line {number}, is not valid JSON.", hint=HINT) from None
    valid = isinstance(row, dict) and row.keys() == {"when", "text"}
    if not valid or not all(isinstance(value, str) for value in row.values()):
        raise ConfigError(
            f"{path}, line {number}, must have exactly the strings `when` and `text`.",
            hint=HINT,
        )
    if not row["when"].strip():
        raise ConfigError(f"{path}, line {number}: `when` is blank.", hint=HINT)
    return RecordedText(row["when"].strip(), row["text"])


class Script(Section):
    """Engine-specific options of the `scripted` engine."""

    text: str | None = None
    """Text it writes as an author."""
    texts: Path | None = None
    """A JSONL file of texts, selected by words of the prompt, instead of `text`;
    `evolve.optimizer.options.texts` is relative to the config file."""
    delay: Annotated[float, Field(ge=0)] = 0.0
    """Seconds per response."""
    fail_on: str | None = None
    """Fail every task whose prompt contains this text."""

    @model_validator(mode="after")
    def _writes_one_thing(self) -> Self:
        if self.text is not None and self.texts is not None:
            raise ValueError("`text` and `texts` exclude each other: remove one of them.")
        return self


class ScriptedEngine:
    """An engine that answers `p_yes(prefix, suffix)` for every item and writes `text(prompt)`.

    With more than two `labels`, `p_yes` is a grade from the worst label (0) to the best (1). Items
    that may not apply get `p_na(prefix, suffix)`.

    Its identity is `model`: give another script another name, or a run reuses the old answers.

    >>> engine = ScriptedEngine(p_yes=lambda prefix, suffix: 0.9 if "good" in prefix else 0.2)
    >>> task = GradingTask(b"k", "q1", "mine", prefix="a good response", suffixes=("Right?",))
    >>> asyncio.run(engine.grade(task, {})).answers[0].p_yes
    0.9
    """

    durable = False

    def __init__(
        self,
        p_yes: Callable[[str, str], float] | None = None,
        text: Callable[[str], str] | None = None,
        *,
        model: str = "scripted",
        delay: float = 0.0,
        fail_on: str | None = None,
        in_flight: int = 8,
        labels: tuple[str, ...] = YES_NO,
        p_na: Callable[[str, str], float] | None = None,
    ) -> None:
        self._p_yes = p_yes
        self._text = text or (
            lambda _: "1. Is the response helpful?\n2. Is it correct?\n3. Is it clear?"
        )
        self._model = model
        self._delay = delay
        self._fail_on = fail_on
        self.in_flight = in_flight
        self._labels = labels
        self._p_na = p_na
        self.items_asked = 0
        """Number of items answered, so that tests can prove that nothing was asked twice."""

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> ScriptedEngine:
        """Return an engine from the config's `options`."""
        options = parse_options(config.options, Script, "The scripted engine's options")
        return cls(
            text=_text_of(options),
            model=config.model,
            delay=options.delay,
            fail_on=options.fail_on,
            in_flight=config.concurrency or 8,
            labels=config.labels,
        )

    async def ready(self) -> None:
        """Do nothing: a script is always ready."""

    async def identify(self) -> EngineIdentity:
        """Return a constant identity."""
        readout = "script" if self._labels == YES_NO else f"script {', '.join(self._labels)}"
        return EngineIdentity("scripted", self._model, "script", "1", "exact", readout)

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` that is not already `known`."""
        # Yields even without a delay, so that a long scripted run can be stopped.
        await asyncio.sleep(self._delay)
        failing = self._first_failing(task, known)
        end = len(task.suffixes) if failing is None else failing
        asked = [position for position in task.left(known) if position < end]
        self.items_asked += len(asked)
        return EngineAnswers.of(
            task,
            {**self._answers(task, asked), **known},
            Usage(requests=len(asked), prompt_tokens=self._tokens(task, asked)),
            None if failing is None else f"item {failing + 1}: scripted to fail",
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Report that there is no model."""
        return (EngineFinding("script", "answers come from a script, not from a model", "note"),)

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return the bytes of each prompt as its tokens."""
        return [list(prompt.encode()) for prompt in prompts]

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Return the scripted text, at any temperature."""
        self._refuse(prompt)
        return WrittenText(self._text(prompt), Usage(requests=1), finished=True)

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Return fixed log-probabilities of the text's bytes, given the bytes before each."""
        self._refuse(prompt + text)
        if not text:
            raise RequestRejected(NO_TEXT)
        before = hashlib.blake2b(prompt.encode(), digest_size=16)
        logprobs = []
        for byte in text.encode():
            before.update(bytes((byte,)))
            logprobs.append(math.log(_share(before)))
        return Likelihood(tuple(logprobs), Usage(requests=1, prompt_tokens=len(logprobs)))

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""

    def _refuse(self, prompt: str) -> None:
        if self._fail_on is not None and self._fail_on in prompt:
            raise RequestRejected("scripted to fail")

    def _first_failing(self, task: GradingTask, known: Mapping[int, Answer]) -> int | None:
        if self._fail_on is None:
            return None
        for position, suffix in enumerate(task.suffixes):
            skipped = position in known or position in task.checks
            if not skipped and self._fail_on in task.prefix + suffix:
                return position
        return None

    def _tokens(self, task: GradingTask, positions: list[int]) -> int:
        """Return the number of tokens by `tokenise`, so that cost and plan are comparable."""
        suffixes = (task.suffixes[position] for position in positions)
        return sum(len((task.prefix + suffix).encode()) for suffix in suffixes)

    def _answers(self, task: GradingTask, positions: list[int]) -> dict[int, Answer]:
        prefix = hashlib.blake2b(task.prefix.encode(), digest_size=16)
        answers = {}
        for position in positions:
            suffix = task.suffixes[position]
            if self._p_yes is None:
                p_yes = _from_content(prefix, suffix)
            else:
                p_yes = self._p_yes(task.prefix, suffix)
                need_probability(p_yes, self, position, "Correct its function `p_yes`.")
            own = task.labels_of(position)
            if own is not None:
                answers[position] = self._own_labels(task, position, p_yes, own)
            elif len(self._labels) > 2:
                answers[position] = graded_answer(p_yes, self._labels)
            else:
                answers[position] = exact_answer(p_yes)
        return answers

    def _own_labels(
        self, task: GradingTask, position: int, p_yes: float, labels: AnswerLabels
    ) -> Answer:
        """Return the answer to an item with its own labels."""
        exact = len(labels.words) == 2
        answer = exact_answer(p_yes) if exact else graded_answer(p_yes, labels.words)
        if labels.na is None:
            return answer
        suffix = task.suffixes[position]
        if self._p_na is None:
            prefix = hashlib.blake2b(task.prefix.encode(), digest_size=16)
            share = _from_content(prefix, suffix + "NA")
            # Most items apply to most responses.
            p_na = share**4
        else:
            p_na = self._p_na(task.prefix, suffix)
            need_probability(p_na, self, position, "Correct its function `p_na`.")
        return replace(answer, p_na=p_na, na_low=p_na, na_high=p_na)


def exact_answer(p_yes: float) -> Answer:
    """Return the answer of a judge that put `p_yes` on yes and the rest on no."""
    return Answer(
        Status.OK,
        p_yes,
        p_yes,
        p_yes,
        1.0,
        math.log(p_yes) if p_yes > 0 else None,
        math.log1p(-p_yes) if p_yes < 1 else None,
    )


def graded_answer(grade: float, labels: Sequence[str]) -> Answer:
    """Return the answer of a judge with a grade between the worst label (0) and the best (1).

    >>> graded_answer(0.8, ("3", "2", "1")).text
    '3'
    """
    nearest = labels[round((1.0 - grade) * (len(labels) - 1))]
    return Answer(Status.OK, grade, grade, grade, 1.0, text=nearest)


def _from_content(prefix: hashlib.blake2b, suffix: str) -> float:
    digest = prefix.copy()
    digest.update(suffix.encode())
    return _share(digest)


def _share(digest: hashlib.blake2b) -> float:
    """Return a number between 0 and 1 determined by a digest."""
    number = int.from_bytes(digest.digest()[:8], "big")
    return (number + 0.5) / 2**64


def _text_of(options: Script) -> Callable[[str], str] | None:
    if options.texts is not None:
        return RecordedTexts.load(options.texts)
    return None if options.text is None else partial(_always, options.text)


def _always(text: str, _: str) -> str:
    return text

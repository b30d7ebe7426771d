"""A judge that answers from a record: the quickstart without a model, a server or a download.

A record is a JSONL file made by asking a real judge once. Its first line identifies that judge;
every other line holds the hash of one prompt and the probabilities the judge gave. A prompt that is
not in the record is refused. `studies/quickstart/record.py` makes the packaged record.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from rocketeval.config import EngineConfig, Section, parse_options
from rocketeval.engines.base import (
    PACKAGED,
    SUFFIX,
    EngineAnswers,
    EngineFinding,
    EngineIdentity,
    Likelihood,
    WrittenText,
    refuse_settings,
)
from rocketeval.engines.likelihood import refused_likelihood
from rocketeval.errors import ConfigError, EngineRefused
from rocketeval.hashing import content_hash
from rocketeval.records import Answer, GradingTask, Status, Usage
from rocketeval.resources import first_mistake

IN_FLIGHT = 8
Line = TypeVar("Line", bound=Section)
HINT = (
    "To judge your own text, set a model in the config: a GGUF file (`engine: llamacpp`) or a "
    "server (`base_url`). See docs/howto/engines.md."
)


class RecordedJudge(Section):
    """First line of a record: the judge that gave the answers, with its identity."""

    engine: str
    model: str
    endpoint: str
    version: str
    logprobs: str
    readout: str
    precision: str = ""
    weights: str = ""
    """Origin of its weights."""


class RecordedAnswer(Section):
    """Any other line of a record: one prompt and the judge's answer."""

    prompt: str
    """Hash of the prompt, in hex."""
    query: str
    candidate: str
    item: int
    """Position in the checklist, from 1. Like query and candidate, for human readers only."""
    p_yes: float | None
    mass: float | None
    logp_yes: float | None
    logp_no: float | None
    status: Status = Status.OK
    p_low: float | None = None
    """Equals `p_yes` if absent: nothing was hidden."""
    p_high: float | None = None
    p_na: float | None = None
    na_low: float | None = None
    na_high: float | None = None
    text: str | None = None

    @classmethod
    def of(cls, task: GradingTask, item: int, answer: Answer) -> RecordedAnswer:
        """Return the line for one answer; `item` is its position from 0."""
        exact = answer.p_low == answer.p_yes == answer.p_high
        return cls(
            prompt=prompt_hash(task.prefix + task.suffixes[item]),
            query=task.query_id,
            candidate=task.candidate,
            item=item + 1,
            p_yes=answer.p_yes,
            mass=answer.mass,
            logp_yes=answer.logp_yes,
            logp_no=answer.logp_no,
            status=answer.status,
            p_low=None if exact else answer.p_low,
            p_high=None if exact else answer.p_high,
            p_na=answer.p_na,
            na_low=answer.na_low,
            na_high=answer.na_high,
            text=None if answer.p_na is None else answer.text,
        )

    @property
    def answer(self) -> Answer:
        """The answer as the judge gave it."""
        low = self.p_yes if self.p_low is None else self.p_low
        high = self.p_yes if self.p_high is None else self.p_high
        return Answer(
            self.status,
            self.p_yes,
            low,
            high,
            self.mass,
            self.logp_yes,
            self.logp_no,
            self.text,
            self.p_na,
            self.na_low,
            self.na_high,
        )


def prompt_hash(prompt: str) -> str:
    """Return the hash that identifies a prompt in a record."""
    return content_hash("recorded prompt", prompt).hex()


def write_record(path: Path, judge: RecordedJudge, answers: Iterable[RecordedAnswer]) -> None:
    """Write a record file."""
    lines = [
        judge.model_dump_json(),
        *(one.model_dump_json(exclude_defaults=True) for one in answers),
    ]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


@dataclass(frozen=True, slots=True)
class AnswerRecord:
    """A parsed record."""

    judge: RecordedJudge
    answers: Mapping[str, Answer]
    """By the prompt's hash."""
    digest: str
    """Short hash of the file: a new record is a new judge."""

    @property
    def name(self) -> str:
        """The judge's name, marked as recorded."""
        return self.judge.model + SUFFIX

    @classmethod
    def read(cls, content: bytes, name: str) -> AnswerRecord:
        """Return the record in a file; ConfigError names a line that cannot be read."""
        first, *rest = content.splitlines() or [b""]
        judge = _parsed(RecordedJudge, first, name, 1)
        rows = [_parsed(RecordedAnswer, line, name, number) for number, line in enumerate(rest, 2)]
        answers = {row.prompt: row.answer for row in rows}
        return cls(judge, answers, hashlib.blake2b(content, digest_size=6).hexdigest())


class RecordedOptions(Section):
    """Engine-specific options of the `recorded` engine."""

    file: Path | None = None
    """Your own record; the packaged record of the quickstart if absent."""


class RecordedEngine:
    """An engine that gives the answers in a record and refuses all other prompts."""

    durable = False

    def __init__(self, record: AnswerRecord, *, in_flight: int = IN_FLIGHT) -> None:
        self._record = record
        self.in_flight = in_flight

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> RecordedEngine:
        """Return an engine for the record that `config` names."""
        options = parse_options(config.options, RecordedOptions, "The recorded engine's options")
        refuse_settings(config, "base_url")
        record = _packaged() if options.file is None else _user_file(options.file)
        if config.model != record.name:
            raise ConfigError(
                f"The record contains answers of {record.name!r}, not of {config.model!r}.",
                hint=f"Set `model: {record.name}`.",
            )
        return cls(record, in_flight=config.concurrency or IN_FLIGHT)

    async def ready(self) -> None:
        """Do nothing: a record is always ready."""

    async def identify(self) -> EngineIdentity:
        """Return the identity of the judge that gave the answers, marked as recorded."""
        judge = self._record.judge
        return EngineIdentity(
            engine="recorded",
            model=self._record.name,
            endpoint=judge.endpoint,
            version=f"record {self._record.digest} of {judge.engine} {judge.version}",
            logprobs=judge.logprobs,
            readout=judge.readout,
            precision=judge.precision,
        )

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` from the record; EngineRefused if one is not in it.

        Usage is empty, because no model is asked.
        """
        await asyncio.sleep(0)
        answers = dict(known)
        for item, suffix in enumerate(task.suffixes):
            if item in answers:
                continue
            recorded = self._record.answers.get(prompt_hash(task.prefix + suffix))
            if recorded is None:
                raise EngineRefused(self._unknown(task, item), hint=HINT)
            answers[item] = recorded
        return EngineAnswers.of(task, answers, Usage())

    def _unknown(self, task: GradingTask, item: int) -> str:
        judge = self._record.judge.model
        return (
            f"The recorded judge has no answer to item {item + 1} for {task.candidate!r} on query "
            f"{task.query_id!r}: it has only the answers that {judge} gave to the quickstart."
        )

    async def findings(self) -> Sequence[EngineFinding]:
        """Report that there is no model."""
        count, judge = len(self._record.answers), self._record.judge.model
        summary = f"{count} answers of {judge}; no model runs"
        return (EngineFinding("recorded answers", summary, "note", HINT),)

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return None: a record has no tokenizer."""
        return None

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Raise EngineRefused: a record contains probabilities, not texts."""
        raise EngineRefused("The recorded judge writes no text.", hint=HINT)

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Raise EngineRefused: a record contains only answers to items."""
        raise refused_likelihood("The recorded judge")

    async def aclose(self) -> None:
        """Do nothing: there is no connection."""


@cache
def _packaged() -> AnswerRecord:
    file = resources.files("rocketeval") / "examples" / "recorded" / f"{PACKAGED}.jsonl"
    return AnswerRecord.read(file.read_bytes(), file.name)


def _user_file(path: Path) -> AnswerRecord:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            f"Cannot read the record {path}: {error.strerror}.",
            hint="`options.file` of the recorded engine is relative to the config file.",
        ) from None
    return AnswerRecord.read(content, str(path))


def _parsed(kind: type[Line], line: bytes, name: str, number: int) -> Line:
    try:
        return kind.model_validate_json(line)
    except ValidationError as error:
        raise ConfigError(
            f"The record {name}, line {number}, is invalid: {first_mistake(error, 'line')}.",
            hint="Create the record again.",
        ) from None

"""The engine seam: what every judge and author backend offers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

from rocketeval.config import EngineConfig
from rocketeval.errors import ConfigError
from rocketeval.observer import EngineStatus
from rocketeval.records import Answer, GradingTask, JudgeFingerprint, Status, Usage
from rocketeval.registry import Registry

__all__ = [
    "Engine",
    "EngineAnswers",
    "EngineFinding",
    "EngineIdentity",
    "Likelihood",
    "WrittenText",
    "create_engine",
]


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """What an engine knows about itself that can change a probability."""

    engine: str
    model: str
    endpoint: str
    version: str
    logprobs: str
    readout: str
    precision: str = ""
    """How exactly it computes, as told or as measured; empty where the version says it."""
    measured: str = field(default="", compare=False)
    """What it listed after fixed questions; see `rocketeval.precision`."""

    def same_as(self, other: EngineIdentity) -> bool:
        """Whether both are one engine, as far as can be told."""
        ours, theirs = (JudgeFingerprint(**asdict(one), template="") for one in (self, other))
        return not ours.changes(theirs)


@dataclass(frozen=True, slots=True)
class EngineAnswers:
    """An engine's answers to one task, in checklist order."""

    answers: tuple[Answer, ...]
    usage: Usage
    failure: str | None = None
    """Why some answers are errors; None when every item was answered."""
    unavailable: bool = False
    """True when the failure lies with the engine, not with this task: others will fail too."""
    rejected: bool = False
    """True when a server will not answer this task, however often it is asked."""

    @classmethod
    def of(
        cls,
        task: GradingTask,
        answers: Mapping[int, Answer],
        usage: Usage,
        failure: str | None = None,
        unavailable: bool = False,
        rejected: bool = False,
    ) -> EngineAnswers:
        """Return `answers` in order, an error in the place of each that is missing."""
        items = range(len(task.suffixes))
        ordered = tuple(answers.get(item, Answer(Status.ERROR)) for item in items)
        return cls(ordered, usage, failure, unavailable, rejected)


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text an engine wrote."""

    text: str
    usage: Usage
    finished: bool
    """False when the engine stopped at the token limit."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """How likely an engine finds a text as its own answer to a prompt."""

    logprobs: tuple[float, ...]
    """Of each token of the text, given the prompt and the tokens before it; never empty."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class EngineFinding:
    """Something a person should know about an engine before paying for it."""

    name: str
    """What was looked at, such as `logprobs`."""
    told: str
    """What was found, in a few words."""
    level: Literal["good", "note", "bad"] = "good"
    """bad: answers cannot be trusted or will not come; note: worth knowing."""
    advice: str = ""
    """What to do about it."""


class Engine(Protocol):
    """Answers grading tasks and writes text. `create` builds one from its config section."""

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> Engine:
        """Return an engine for `config`; nothing is contacted yet.

        `home` is a folder where it may keep files of its own from one process to the next.
        """
        ...

    @property
    def in_flight(self) -> int:
        """How many tasks at once it can make use of."""
        ...

    @property
    def durable(self) -> bool:
        """Whether work in flight outlives this process, so that waiting for it can be dropped."""
        ...

    async def ready(self) -> None:
        """Raise EngineError unless the engine is there and serves the model."""
        ...

    async def identify(self) -> EngineIdentity:
        """Contact the engine and return its identity; raises EngineError if it cannot serve."""
        ...

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` except those already `known`.

        A failed item becomes an answer with status error and names its `failure`;
        EngineRefused is raised when no task at all can succeed.
        """
        ...

    async def findings(self) -> Sequence[EngineFinding]:
        """Return what is worth knowing about this engine beyond its identity."""
        ...

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return the tokens the judge sees for each prompt, its chat template included.

        None when the engine cannot tell.
        """
        ...

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Return the text the engine writes for `prompt`.

        Above temperature 0 it is a sample; to draw several, give each a `seed` of its own.
        """
        ...

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Return how likely the engine would have been to answer `prompt` with `text`.

        The prompt is a user's message in the chat template, the text the assistant's words.
        EngineRefused if the engine cannot tell at all, RequestRejected if not of this text.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


PACKAGED = "qwen2.5-coder-1.5b-instruct"
"""The judge whose recorded answers to the quickstart are packaged."""
SUFFIX = " (recorded)"
"""Ends the name of a judge that is only recorded, so that every page and file shows it."""

ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "llamacpp": "rocketeval.engines.llamacpp:LlamaCppEngine",
        "openai": "rocketeval.engines.openai_http:OpenAIEngine",
        "openai_batch": "rocketeval.engines.batch.engine:OpenAIBatchEngine",
        "recorded": "rocketeval.engines.recorded:RecordedEngine",
        "scripted": "rocketeval.engines.scripted:ScriptedEngine",
        "vllm": "rocketeval.engines.vllm:VLLMEngine",
    },
)


def status_of(engine: object) -> EngineStatus:
    """Return how an engine or an author fares; one without a `pulse` has nothing to tell."""
    pulse = getattr(engine, "pulse", None)
    return pulse if isinstance(pulse, EngineStatus) else EngineStatus()


def drop_after(engine: object, seconds: float) -> None:
    """Tell an engine to end in `seconds` what it waits for, if it can hand over what it has.

    Its `grade` then returns the answers that came, with a failure for the others.
    """
    drop = getattr(engine, "drop_after", None)
    if drop is not None:
        drop(seconds)


async def offline_identity(engine: Engine) -> EngineIdentity:
    """Return an engine's identity; with `identify_offline`, before it loads its model."""
    identify = getattr(engine, "identify_offline", engine.identify)
    identity: EngineIdentity = await identify()
    return identity


def create_engine(config: EngineConfig, home: Path | None = None) -> Engine:
    """Return the engine that `config` names; `home` is a folder for files of its own."""
    return ENGINES.get(config.engine).create(config, home)


def refuse_settings(config: EngineConfig, *names: str) -> None:
    """Raise ConfigError if one of these settings, which only a server understands, is set."""
    for name in names:
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` means nothing to the engine {config.engine}, which runs in this "
                "process.",
                hint="Remove it, or ask a server with `engine: openai`.",
            )


def need_package(engine: str, package: str, install: str) -> None:
    """Raise ConfigError with the line that installs `package`, unless it is installed."""
    if find_spec(package) is None:
        raise ConfigError(
            f"The engine {engine} needs the package {package}, which is not installed.",
            hint=install,
        )

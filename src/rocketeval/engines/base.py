"""The engine seam: what every judge and author backend offers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from rocketeval.config import EngineConfig
from rocketeval.records import Answer, GradingTask, Usage
from rocketeval.registry import Registry


@dataclass(frozen=True, slots=True)
class EngineIdentity:
    """What an engine knows about itself that can change a probability."""

    engine: str
    model: str
    endpoint: str
    version: str
    logprobs: str
    readout: str


@dataclass(frozen=True, slots=True)
class Graded:
    """An engine's answers to one task, in checklist order."""

    answers: tuple[Answer, ...]
    usage: Usage
    failure: str | None = None
    """Why some answers are errors; None when every item was answered."""
    unavailable: bool = False
    """True when the failure lies with the engine, not with this task: others will fail too."""


@dataclass(frozen=True, slots=True)
class Written:
    """A text an engine wrote."""

    text: str
    usage: Usage
    finished: bool
    """False when the engine stopped at the token limit."""


class Engine(Protocol):
    """Answers grading tasks and writes text. `create` builds one from its config section."""

    @classmethod
    def create(cls, config: EngineConfig) -> Engine:
        """Return an engine for `config`; nothing is contacted yet."""
        ...

    async def identify(self) -> EngineIdentity:
        """Contact the engine and return its identity; raises EngineError if it cannot serve."""
        ...

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> Graded:
        """Answer every item of `task` except those already `known`.

        A failed item becomes an answer with status error and names its `failure`;
        EngineRefused is raised when no task at all can succeed.
        """
        ...

    async def write(self, prompt: str, *, max_tokens: int) -> Written:
        """Return the text the engine writes for `prompt`."""
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "openai": "rocketeval.engines.openai_http:OpenAIEngine",
        "scripted": "rocketeval.engines.scripted:ScriptedEngine",
    },
)


def create_engine(config: EngineConfig) -> Engine:
    """Return the engine that `config` names."""
    return ENGINES.get(config.engine).create(config)

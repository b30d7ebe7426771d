"""The Engine protocol of judge and author backends, their records, and the engine registry."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, Protocol

from rocketeval.config import EngineConfig
from rocketeval.errors import (
    ConfigError,
    EngineError,
    EngineRefused,
    JudgeChanged,
    RequestRejected,
    UnusableReply,
)
from rocketeval.observer import EngineStatus
from rocketeval.records import Answer, GradingTask, JudgeFingerprint, Status, Usage
from rocketeval.registry import Registry
from rocketeval.text import HIDDEN, with_secrets

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
    """Everything an engine reports about itself that can change a probability."""

    engine: str
    model: str
    endpoint: str
    version: str
    logprobs: str
    readout: str
    precision: str = ""
    """Numeric precision, as the server reports it or as measured; empty if `version` states it."""
    measured: str = field(default="", compare=False)
    """Tokens listed after fixed questions; see `rocketeval.precision`."""
    control_tokens: str = ""
    """Hash of the control tokens that are neutralized for this judge only; empty for most."""

    def same_as(self, other: EngineIdentity) -> bool:
        """Return whether both identities describe the same engine."""
        ours, theirs = (JudgeFingerprint(**asdict(one), template="") for one in (self, other))
        return not ours.changes(theirs)


UNANSWERED = Answer(Status.ERROR)
"""An item without an answer."""


@dataclass(frozen=True, slots=True)
class EngineAnswers:
    """An engine's answers to one task, in checklist order."""

    answers: tuple[Answer, ...]
    usage: Usage
    failure: str | None = None
    """Why some answers are errors; None if every item was answered."""
    unavailable: bool = False
    """True if the engine itself failed, so that other tasks would fail too."""
    rejected: bool = False
    """True if the server rejects this task for good, so that retrying is useless."""
    neutralised: int = 0
    """Number of control tokens of this judge's own that were neutralized in the prompts."""

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
        """Return `answers` in checklist order, with an error for each missing one."""
        items = range(len(task.suffixes))
        ordered = tuple([answers.get(item, UNANSWERED) for item in items])
        return cls(ordered, usage, failure, unavailable, rejected)


USABLE = frozenset({Status.OK, Status.TRUNCATED, Status.SAMPLED})
"""Statuses of answers with a probability."""
ROUNDED = 1e-6
"""How far a sum of probabilities may exceed 1 because of rounding."""


async def ask_engine(
    engine: Engine, task: GradingTask, known: Mapping[int, Answer]
) -> EngineAnswers:
    """Return an engine's answers to a task; EngineRefused if a probability is not one."""
    graded = await engine.grade(task, known)
    for place, answer in enumerate(graded.answers):
        p_yes = answer.p_yes
        if type(p_yes) is float and 0.0 <= p_yes <= 1.0 and answer.p_na is None:
            continue  # Nearly every answer; this is done for millions.
        if p_yes is not None or answer.status in USABLE:
            need_probability(p_yes, engine, place)
        if answer.p_na is not None:
            need_probability(answer.p_na, engine, place)
    return graded


def need_probability(value: object, engine: object, place: int, hint: str = "") -> None:
    """Raise EngineRefused, which names the engine and the item, unless `value` is a probability."""
    try:
        if -ROUNDED <= value <= 1.0 + ROUNDED:  # type: ignore[operator]
            return
    except (TypeError, ValueError):
        pass
    raise EngineRefused(
        f"The engine {type(engine).__name__} answered item {place + 1} with {value!r:.40}: this "
        "must be a probability between 0 and 1.",
        hint=hint or "Correct the engine: `rocketeval.testing.check_engine` checks its answers.",
    )


def fails_for_good(error: EngineError) -> bool:
    """Return whether the same request will fail again."""
    return isinstance(error, RequestRejected) and not isinstance(error, UnusableReply)


def usage_of(error: EngineError) -> Usage:
    """Return what a failed request used; if nobody counted, it is one that may be billed."""
    return error.spent if isinstance(error.spent, Usage) else Usage(requests=1)


class RefusedPartway(EngineRefused):
    """The engine refuses all requests from now on; `graded` has the answers it gave before."""

    def __init__(
        self, message: str, *, hint: str = "", graded: EngineAnswers | None = None
    ) -> None:
        super().__init__(message, hint=hint)
        self.graded = graded

    @property
    def usage(self) -> Usage:
        """What the answers before the refusal cost."""
        return self.graded.usage if self.graded else Usage()

    @classmethod
    def of(
        cls, error: EngineRefused, task: GradingTask, answers: Mapping[int, Answer], usage: Usage
    ) -> EngineRefused:
        """Return `error` with the answers that `task` got before it.

        If the judge changed, return it without them: they may be those of another judge.
        """
        if isinstance(error, JudgeChanged):
            return error
        graded = EngineAnswers.of(task, answers, usage, error.message)
        return cls(error.message, hint=error.hint, graded=graded)


@dataclass(frozen=True, slots=True)
class WrittenText:
    """A text written by an engine."""

    text: str
    usage: Usage
    finished: bool
    """False if the engine stopped at the token limit."""
    neutralised: int = 0
    """Number of control tokens of this judge's own that were neutralized in the prompt."""


@dataclass(frozen=True, slots=True)
class Likelihood:
    """The likelihood of a text as the engine's answer to a prompt."""

    logprobs: tuple[float, ...]
    """One per token of the text, given the prompt and the tokens before it; never empty."""
    usage: Usage


@dataclass(frozen=True, slots=True)
class EngineFinding:
    """One property of an engine that a user should know before spending money on it."""

    name: str
    """The property that was checked, such as `logprobs`."""
    told: str
    """The result in a few words."""
    level: Literal["good", "note", "bad"] = "good"
    """bad: answers are unreliable or missing; note: informative."""
    advice: str = ""
    """What the user can do about it."""


class Engine(Protocol):
    """A backend that answers grading tasks and writes text. `create` builds one from its config."""

    @classmethod
    def create(cls, config: EngineConfig, home: Path | None = None) -> Engine:
        """Return an engine for `config` without contacting anything.

        `home` is a folder for files that the engine keeps between processes.
        """
        ...

    @property
    def in_flight(self) -> int:
        """Number of tasks the engine can usefully process at once."""
        ...

    @property
    def durable(self) -> bool:
        """Whether work in flight survives the end of this process."""
        ...

    async def ready(self) -> None:
        """Raise EngineError unless the engine is reachable and serves the model."""
        ...

    async def identify(self) -> EngineIdentity:
        """Contact the engine and return its identity; raise EngineError if it cannot serve."""
        ...

    async def grade(self, task: GradingTask, known: Mapping[int, Answer]) -> EngineAnswers:
        """Answer every item of `task` except those already `known`.

        A failed item becomes an answer with status error, and `failure` gives the reason.
        EngineRefused is raised if no task can succeed.
        """
        ...

    async def findings(self) -> Sequence[EngineFinding]:
        """Return what a user should know about this engine beyond its identity."""
        ...

    async def tokenise(self, prompts: Sequence[str]) -> list[list[int]] | None:
        """Return the tokens the judge sees for each prompt, including its chat template.

        Return None if the engine has no tokenizer.
        """
        ...

    async def write(
        self, prompt: str, *, max_tokens: int, temperature: float = 0.0, seed: int | None = None
    ) -> WrittenText:
        """Return the text the engine writes for `prompt`.

        Above temperature 0 the text is a sample; to draw several, pass a new `seed` each time.
        """
        ...

    async def likelihood(self, prompt: str, text: str) -> Likelihood:
        """Return how likely the engine would have been to answer `prompt` with `text`.

        The prompt is the user message of the chat template, the text the assistant message.
        Raises EngineRefused if the engine does not support this, RequestRejected if only this
        text fails.
        """
        ...

    async def aclose(self) -> None:
        """Release connections."""
        ...


PACKAGED = "qwen2.5-coder-1.5b-instruct"
"""The judge whose recorded answers to the quickstart ship with the package."""
SUFFIX = " (recorded)"
"""Suffix of the name of a recorded judge, so that every page and file shows it."""

ENGINES: Registry[Engine] = Registry(
    "engine",
    {
        "decisions": "rocketeval.engines.decisions:DecisionsEngine",
        "llamacpp": "rocketeval.engines.llamacpp:LlamaCppEngine",
        "openai": "rocketeval.engines.openai_http:OpenAIEngine",
        "openai_batch": "rocketeval.engines.batch.engine:OpenAIBatchEngine",
        "openai_sampled": "rocketeval.engines.sampled:SampledEngine",
        "recorded": "rocketeval.engines.recorded:RecordedEngine",
        "scripted": "rocketeval.engines.scripted:ScriptedEngine",
        "systemone": "rocketeval.engines.decisions:SystemOneEngine",
        "vllm": "rocketeval.engines.vllm:VLLMEngine",
    },
)


def status_of(engine: object) -> EngineStatus:
    """Return the current status of an engine or author; empty if it has no `pulse`."""
    pulse = getattr(engine, "pulse", None)
    return pulse if isinstance(pulse, EngineStatus) else EngineStatus()


def drop_after(engine: object, seconds: float) -> None:
    """Make an engine stop waiting for answers after `seconds`, if it supports that.

    Its `grade` then returns the answers that arrived, and a failure for the others.
    """
    drop = getattr(engine, "drop_after", None)
    if drop is not None:
        drop(seconds)


def confirm_recorded(engine: object, *, everything: bool = False) -> None:
    """Tell an engine or author that its answers are recorded, if it keeps them until then.

    `everything` means that answers to requests of earlier processes are not needed either.
    """
    confirm = getattr(engine, "answers_recorded", None)
    if confirm is not None:
        confirm(everything=everything)


def take_probe_usage(engine: object) -> Usage | None:
    """Return the usage of requests that probed an engine's server, each request once.

    None if the engine does not count them.
    """
    take = getattr(engine, "take_probe_usage", None)
    usage: Usage | None = None if take is None else take()
    return usage


async def offline_identity(engine: Engine) -> EngineIdentity:
    """Return an engine's identity, through `identify_offline` (no model loading) if it has one."""
    identify = getattr(engine, "identify_offline", engine.identify)
    identity: EngineIdentity = await identify()
    return identity


def create_engine(config: EngineConfig, home: Path | None = None) -> Engine:
    """Return the engine that `config` names; `home` is a folder for its own files."""

    def not_hidden(text: str) -> str:
        if text != HIDDEN:
            return text
        raise ConfigError(
            "A secret in `extra_body` or `options` is hidden: a run directory does not keep it.",
            hint="Run with the config file that the run was made from.",
        )

    with_secrets([config.extra_body, config.options], not_hidden)
    return ENGINES.get(config.engine).create(config, home)


def refuse_settings(config: EngineConfig, *names: str) -> None:
    """Raise ConfigError if one of these settings, which only servers understand, is set."""
    for name in names:
        if getattr(config, name):
            raise ConfigError(
                f"`{name}` has no effect on the engine {config.engine}, which runs in this "
                "process.",
                hint="Remove it, or use a server with `engine: openai`.",
            )


def need_package(engine: str, package: str, install: str) -> None:
    """Raise ConfigError with the install command unless `package` is installed."""
    if find_spec(package) is None:
        raise ConfigError(
            f"The engine {engine} needs the package {package}, which is not installed.",
            hint=install,
        )

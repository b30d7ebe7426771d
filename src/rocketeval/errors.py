"""All errors that users may see; each states what happened and what to do next.

RocketEvalError
├── ConfigError            the run's YAML is wrong
├── BenchmarkError         an input file is missing, malformed or contradictory
├── PromptError            a template is missing or lacks a placeholder
├── ChecklistError         a checklist could not be written, parsed or found
├── EngineError            an author or judge could not be used
│   ├── EngineUnavailable  it cannot be reached, or stopped answering
│   ├── EngineRefused      it answered, but refuses all requests (key, model, URL)
│   │   └── JudgeChanged   another model, or other weights, answers than before
│   └── RequestRejected    it rejects this one request (too long, malformed)
│       └── UnusableReply  it answers this one request without a usable answer, again and again
├── ClusterError           a Ray cluster could not be reached or used
├── ArtifactError          a saved scorer is damaged or does not fit the run
├── EvaluatedOnTraining    scores would be compared with their own training data
├── ExportError            the requested export is not possible
├── StoreError             a run directory cannot be used
│   ├── RunLocked          another process is writing it
│   ├── RunMismatch        it was made with another judge
│   └── StageMissing       an earlier stage has not been run
└── Stopped                the run was stopped before its end
    └── BudgetSpent        it would have spent more than `max_cost`
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "ArtifactError",
    "BenchmarkError",
    "BudgetSpent",
    "ChecklistError",
    "ClusterError",
    "ConfigError",
    "EngineError",
    "EngineRefused",
    "EngineUnavailable",
    "EvaluatedOnTraining",
    "ExportError",
    "JudgeChanged",
    "PromptError",
    "RequestRejected",
    "RocketEvalError",
    "RunLocked",
    "RunMismatch",
    "StageMissing",
    "Stopped",
    "StoreError",
    "UnusableReply",
]


class Hint(str):
    """Advice that names options: as text for the command line, and as Python arguments.

    >>> Hint.of("Add ", Hint.option("--format table", 'format="table"'), ".").python
    'Add format="table".'
    """

    __slots__ = ("python",)
    python: str

    @classmethod
    def option(cls, cli: str, python: str) -> Hint:
        """Return an option in both spellings."""
        hint = cls(cli)
        hint.python = python
        return hint

    @classmethod
    def of(cls, *parts: str) -> Hint:
        """Return the parts, some of which may be hints, as one hint."""
        return cls.option("".join(parts), "".join(map(in_python, parts)))


def in_python(hint: str) -> str:
    """Return a hint with its options as Python arguments."""
    return hint.python if isinstance(hint, Hint) else hint


class RocketEvalError(Exception):
    """Base of all errors: `message` says what happened, `hint` what to do next."""

    exit_code = 1

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n{self.hint}" if self.hint else self.message


class ConfigError(RocketEvalError):
    """The run's YAML is wrong."""

    exit_code = 2


class BenchmarkError(RocketEvalError):
    """An input file is missing, malformed or contradictory."""

    exit_code = 2


class PromptError(RocketEvalError):
    """A template is missing or lacks a placeholder."""

    exit_code = 2


class ChecklistError(RocketEvalError):
    """A checklist could not be written, parsed or found."""

    exit_code = 2


class EngineError(RocketEvalError):
    """An author or judge could not be used."""

    exit_code = 4
    spent: object = None
    """The `Usage` of the requests that failed; None if nobody counted it."""


class EngineUnavailable(EngineError):
    """The engine cannot be reached, or stopped answering."""


class EngineRefused(EngineError):
    """The engine answered, but refuses all requests: key, model or URL."""


class JudgeChanged(EngineRefused):
    """Another model, or other weights, answers than before; a run never mixes two judges."""


class RequestRejected(EngineError):
    """The engine rejects this one request; a retry will not help."""


class UnusableReply(RequestRejected):
    """The engine's replies to this request have no usable answer; a later command asks again."""

    kind: str = "unusable"
    """The reason in a word or two; retries are counted by it."""


@contextmanager
def used_as(role: str) -> Iterator[None]:
    """Name the role, judge or author, in the message of an engine's error."""
    try:
        yield
    except EngineError as error:
        if not error.message.startswith(("The judge", "The author")):
            error.message = f"The {role} cannot be used: {error.message}"
        raise


class ClusterError(RocketEvalError):
    """A Ray cluster could not be reached or used."""

    exit_code = 4


class ArtifactError(RocketEvalError):
    """A saved scorer cannot be used."""


class EvaluatedOnTraining(RocketEvalError):
    """Scores would be evaluated on their scorer's training data."""


class ExportError(RocketEvalError):
    """The requested export is not possible."""

    exit_code = 2


class StoreError(RocketEvalError):
    """A run directory cannot be used."""

    exit_code = 5


class RunLocked(StoreError):
    """Another process is writing the run."""


class RunMismatch(StoreError):
    """The run was made with another judge."""


class StageMissing(StoreError):
    """An earlier stage has not been run."""


class Stopped(RocketEvalError):
    """The run was stopped before its end."""

    exit_code = 130


class BudgetSpent(Stopped):
    """The run stopped because it would have spent more than `max_cost`."""

    exit_code = 6

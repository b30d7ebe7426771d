"""Callbacks that report the progress of a run; the library itself never prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rocketeval.records import Failure, Judgment, Status, Usage


@dataclass(frozen=True, slots=True)
class Expected:
    """The planned usage of the current stage."""

    prompt_tokens: int | None
    """None if unknown."""
    cost: float | None
    """The maximum cost, or the cost without cache reuse; None without a price."""
    least_cost: float | None = None
    """Cost with a perfect prefix cache; None if it is not known separately."""
    exact: bool = True
    """False if tokens were sampled or estimated, or the plan was made for more work."""
    at_most: bool = False
    """True if the cost is an upper bound, not an expectation."""
    repriced: bool = False
    """True if the plan was made at a different price; its cost is then not shown."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """Current status of the stage's engine."""

    retries: int = 0
    """Number of retried requests."""
    waiting: str = ""
    """Description of a wait that may take hours; empty otherwise."""
    retry_reasons: Mapping[str, int] = field(default_factory=dict)
    """The retries by reason, such as `timeout` or `HTTP 503`; empty if only their number is
    known."""
    at_once: int | None = None
    """Current limit of concurrent requests, if back-off lowered it below `usually_at_once`."""
    usually_at_once: int | None = None
    answered: int = 0
    """Items answered so far, including those of unfinished responses; 0 if not counted."""


class StageEnd(Protocol):
    """The facts about a finished stage; `store.manifest` has the full records."""

    @property
    def seconds(self) -> float | None:
        """Duration of the stage."""
        ...


class Observer:
    """An observer that does nothing; subclass it to show progress or to log."""

    def part_began(self, name: str, number: int, total: int) -> None:
        """Following stages belong to part `number` of `total`, such as one of several methods."""

    def stage_entered(self, stage: str) -> None:
        """A stage starts to determine its work."""

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """A stage starts; `done` of `total` steps were finished by earlier runs."""

    def reused(self, earlier: int, cached: int) -> None:
        """Steps of the stage were reused: `earlier` of this run, `cached` from the cache."""

    def expected(self, expected: Expected) -> None:
        """There is a plan for the stage that just began."""

    def watched(self, pulse: Callable[[], EngineStatus]) -> None:
        """`pulse` returns the current status of the stage's engine, at little cost."""

    def advanced(self) -> None:
        """One step of the current stage is finished."""

    def judged(self, judgment: Judgment) -> None:
        """A judgment was finished and recorded."""

    def counted(self, judgments: int, missing: Mapping[Status, int]) -> None:
        """Other machines finished more judgments, with these answers `missing`."""

    def failed(self, failure: Failure) -> None:
        """A task could not be finished."""

    def unwritten(self, query_id: str, reason: str) -> None:
        """A query got no checklist."""

    def spent(self, usage: Usage) -> None:
        """The total usage of the stage so far, if `judged` does not report it."""

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        """A stage is finished; `facts` is its record in the manifest."""

    def stage_kept(self, stage: str) -> None:
        """A stage is left out, because its files were made from the same inputs."""

    def closed(self) -> None:
        """No more calls will follow, whether the run finished or not."""

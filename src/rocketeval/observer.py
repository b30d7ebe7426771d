"""What a run tells the outside while it works. The library itself never prints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from rocketeval.records import Failure, Judgment, Status, Usage


@dataclass(frozen=True, slots=True)
class Expected:
    """What the run's plan says that the current stage will use."""

    prompt_tokens: int | None
    """None where nobody could tell."""
    cost: float | None
    """The most it can cost, or what it costs without any reuse; None without a price."""
    least_cost: float | None = None
    """With a perfect prefix cache; None where that is not told apart."""
    exact: bool = True
    """False where tokens were sampled or estimated, or the plan was made for more work."""
    at_most: bool = False
    """True where the cost is a bound, not an expectation."""
    repriced: bool = False
    """True where the plan was made at another price, so that what it says of money is left out."""


@dataclass(frozen=True, slots=True)
class EngineStatus:
    """How the current stage's engine fares, as it says itself at this moment."""

    retries: int = 0
    """Requests it sent again."""
    waiting: str = ""
    """What it waits for, in words, where that may take hours; empty otherwise."""
    retry_reasons: Mapping[str, int] = field(default_factory=dict)
    """The same retries by what happened to the request, such as `timeout` or `HTTP 503`; empty
    where only their number is known."""
    at_once: int | None = None
    """Requests it sends at once, where push-back made it send fewer than `usually_at_once`."""
    usually_at_once: int | None = None
    answered: int = 0
    """Items answered so far, also of responses that are not finished; 0 where nobody counts."""


class StageEnd(Protocol):
    """What a stage did; `store.manifest` has the whole record of each stage."""

    @property
    def seconds(self) -> float | None:
        """How long it took."""
        ...


class Observer:
    """Hears everything and does nothing; subclass it to show progress or to log."""

    def part_began(self, name: str, number: int, total: int) -> None:
        """The stages that follow belong to part `number` of `total`, such as one method of many."""

    def stage_entered(self, stage: str) -> None:
        """A stage begins to find out what there is to do."""

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """A stage starts; `done` of `total` steps were finished by earlier runs."""

    def reused(self, earlier: int, cached: int) -> None:
        """So many steps of the stage cost nothing now: of this run earlier, and of others."""

    def expected(self, expected: Expected) -> None:
        """A plan was made for the stage that just began."""

    def watched(self, pulse: Callable[[], EngineStatus]) -> None:
        """The stage's engine can be asked how it fares, cheaply and at any time."""

    def advanced(self) -> None:
        """One step of the current stage is finished."""

    def judged(self, judgment: Judgment) -> None:
        """A judgment was finished and recorded."""

    def counted(self, judgments: int, missing: Mapping[Status, int]) -> None:
        """So many more judgments were finished on other machines, with answers `missing`."""

    def failed(self, failure: Failure) -> None:
        """A task could not be finished."""

    def unwritten(self, query_id: str, reason: str) -> None:
        """A query got no checklist."""

    def spent(self, usage: Usage) -> None:
        """All that the stage has used so far, where `judged` alone does not tell it."""

    def stage_ended(self, stage: str, facts: StageEnd) -> None:
        """A stage is finished; `facts` is what the manifest says of it."""

    def closed(self) -> None:
        """Nothing more will come, whether the run finished or not."""

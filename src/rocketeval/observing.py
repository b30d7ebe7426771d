"""What a run tells the outside while it works. The library itself never prints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.records import Failure, Judgment


class Observer:
    """Hears everything and does nothing; subclass it to show progress or to log."""

    def stage_began(self, stage: str, total: int | None = None, done: int = 0) -> None:
        """A stage starts; `done` of `total` steps were finished by earlier runs."""

    def advanced(self) -> None:
        """One step of the current stage is finished."""

    def judged(self, judgment: Judgment) -> None:
        """A judgment was finished and recorded."""

    def failed(self, failure: Failure) -> None:
        """A task could not be finished."""

    def stage_ended(self, stage: str, facts: Mapping[str, Any]) -> None:
        """A stage is finished; `facts` is what the manifest says of it."""

    def closed(self) -> None:
        """Nothing more will come, whether the run finished or not."""

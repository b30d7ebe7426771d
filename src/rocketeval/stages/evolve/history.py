"""What each finished round did: one line of rounds.jsonl, written as soon as the round is over."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rocketeval.errors import RunMismatch, StoreError
from rocketeval.stages.evolve.lines import append_line, read_lines


@dataclass(frozen=True, slots=True)
class Measured:
    """A figure on cases that were left out, one fold after the other."""

    value: float
    """The accuracy of pairs, or the rank correlation of labels."""
    error: float
    """Its standard error over queries."""


@dataclass(frozen=True)
class Round:
    """What one round did."""

    round: int
    split: str
    """Who was seen; see `Split.digest`."""
    pool: int
    """Perspectives after it, all that were ever there."""
    people: int
    """Of these, what people added."""
    mistakes: int
    """Cases that were judged wrongly before it."""
    proposed: Mapping[str, int]
    """New perspectives by origin."""
    dropped: Mapping[str, int]
    """Proposals that were not taken, by the reason."""
    failed: Mapping[str, str]
    """Requests to the optimizer that brought nothing, and why."""
    analyses: tuple[str, ...]
    """What the optimizer made of the mistakes."""
    kept: tuple[str, ...]
    """Ids of the perspectives worth keeping after it."""
    before: Measured
    after: Measured
    judge: Mapping[str, Any]
    """What the judge used for it, in the command that finished it, and for how many `questions`."""
    optimizer: Mapping[str, Any]
    seconds: float


class History:
    """The rounds of a run, in their order."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self, split: str) -> list[Round]:
        """Return the finished rounds; RunMismatch if they learned from other queries."""
        rows = [_round(self.path, row) for row in read_lines(self.path)]
        for row in rows:
            if row.split != split:
                raise RunMismatch(
                    f"{self.path.parent} holds rounds that looked at the mistakes of other "
                    "queries: some of those could be held out now.",
                    hint="What changed is the gold, or `gold`, `asking`, `share` or `seed` of "
                    "`evolve`. Give this run another `name`; answers that were paid for are taken "
                    "from the cache.",
                )
        return rows

    def append(self, done: Round) -> None:
        """Write down a finished round, durably."""
        append_line(self.path, asdict(done))

    def announce(self, round: int, news: Iterable[str]) -> None:
        """Write down the ids of what a round proposed, before any of it is in the pool's file."""
        append_line(self._proposed_path, {"round": round, "ids": list(news)})

    def proposed(self) -> set[str]:
        """Return the ids of all that rounds proposed, also those that were not finished."""
        return {name for row in read_lines(self._proposed_path) for name in row["ids"]}

    @property
    def _proposed_path(self) -> Path:
        return self.path.with_name("proposed.jsonl")


def best_round(rounds: Sequence[Round]) -> int:
    """Return the round after which validation was best, the first of equals; 0 for the seeds."""
    best, found = 0, -1.0
    for done in rounds:
        for number, measured in ((done.round - 1, done.before), (done.round, done.after)):
            if measured.value > found:
                best, found = number, measured.value
    return best


def rounds_without_gain(rounds: Sequence[Round], people: int) -> int:
    """Return how many of the last rounds brought nothing.

    What people added since the last one is a new beginning: `people` is how many they are now.
    """
    if not rounds or people > rounds[-1].people:
        return 0
    return rounds[-1].round - best_round(rounds)


def _round(path: Path, row: Mapping[str, Any]) -> Round:
    try:
        return Round(
            **{
                **row,
                "analyses": tuple(row["analyses"]),
                "kept": tuple(row["kept"]),
                "before": Measured(**row["before"]),
                "after": Measured(**row["after"]),
            }
        )
    except (KeyError, TypeError):
        raise StoreError(
            f"{path} is damaged, or was written by another version.",
            hint="Give this run another `name`, or delete the file to begin evolution anew.",
        ) from None

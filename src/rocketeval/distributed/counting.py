"""How far a cluster is: every worker reports, one counter adds up, the driver looks at it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from threading import Lock

from rocketeval.errors import EngineError
from rocketeval.records import Failure, Status, Usage

MOST_FAILURES = 1000
"""Failures that wait to be shown, at most; all are counted, and all are in the results."""


@dataclass
class Report:
    """What a worker did since its last report."""

    asked: int = 0
    """Tasks that were put to the judge."""
    answered: int = 0
    """Of those, the ones that are no longer in flight."""
    retries: int = 0
    """Requests that were sent again."""
    usage: Usage = field(default_factory=Usage)
    missing: Counter[Status] = field(default_factory=Counter)
    """Answers without a probability."""
    failures: list[Failure] = field(default_factory=list)
    batches: dict[int, tuple[int, int]] = field(default_factory=dict)
    """By its first id, how many tasks of a batch are judged and failed by now: totals, so that a
    batch that is done again after its worker died is not counted twice."""


@dataclass(frozen=True)
class Progress:
    """The sum of all reports."""

    asked: int
    in_flight: int
    """Tasks that were asked and not answered, also by workers that died since."""
    judged: int
    failed: int
    failed_queries: int
    retries: int
    usage: Usage
    missing: Mapping[Status, int]
    failures: tuple[Failure, ...]
    """Those since the last look."""
    error: EngineError | None
    """Why a worker gave up."""


class Counting:
    """Adds up reports, which may come from several threads."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._sum = Report()
        self._judged = self._failed = 0
        self._failed_queries: set[str] = set()
        self._error: EngineError | None = None
        self._stopping = False

    def report(self, report: Report) -> bool:
        """Add a report; return whether the worker should stop."""
        with self._lock:
            self._add(report)
        return self._stopping

    def give_up(self, error: EngineError) -> None:
        """Remember why a worker cannot go on; the first reason counts."""
        self._error = self._error or error

    def stop(self) -> None:
        """Tell every worker that reports from now on to start nothing more."""
        self._stopping = True

    def look(self) -> Progress:
        """Return the sums so far."""
        with self._lock:
            failures, self._sum.failures = tuple(self._sum.failures), []
            return Progress(
                self._sum.asked,
                self._sum.asked - self._sum.answered,
                self._judged,
                self._failed,
                len(self._failed_queries),
                self._sum.retries,
                self._sum.usage,
                dict(self._sum.missing),
                failures,
                self._error,
            )

    def _add(self, report: Report) -> None:
        total = self._sum
        total.asked += report.asked
        total.answered += report.answered
        total.retries += report.retries
        total.usage += report.usage
        total.missing.update(report.missing)
        for first, (judged, failed) in report.batches.items():
            judged_before, failed_before = total.batches.get(first, (0, 0))
            self._judged += judged - judged_before
            self._failed += failed - failed_before
            total.batches[first] = (judged, failed)
        total.failures.extend(report.failures[: MOST_FAILURES - len(total.failures)])
        if len(self._failed_queries) < MOST_FAILURES:
            self._failed_queries.update(failure.query_id for failure in report.failures)

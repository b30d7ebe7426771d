"""What a grading has to do and what it did, wherever the judge runs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from rocketeval.config import RunConfig
from rocketeval.cost import usage_facts
from rocketeval.errors import EngineRefused, EngineUnavailable
from rocketeval.grading.grade import Grading
from rocketeval.grading.methods.base import Method
from rocketeval.grading.reuse import Known, known_answers
from rocketeval.grading.schedule import cells, unfinished_tasks
from rocketeval.observing import Observer
from rocketeval.records import Failure, GradingTask, JudgeFingerprint, Usage
from rocketeval.stages.bill import expected_use, make_bill
from rocketeval.store.ledger import Ledger, adopt_from_cache
from rocketeval.store.run import RunStore


@dataclass
class GradingWork:
    """The judgments a run needs, and the ledger they go to."""

    store: RunStore
    config: RunConfig
    method: Method
    judge: JudgeFingerprint
    ledger: Ledger
    wanted: dict[bytes, tuple[str, str]]
    """Every judgment the run needs, with its query and candidate."""
    without_checklist: int
    """Responses that cannot have one."""
    earlier: int
    """Judgments that this run had already."""
    adopted: int
    """Judgments that other runs paid for."""
    observer: Observer
    also: Sequence[RunStore] = ()
    """Runs whose answers to the same items are taken over."""

    @property
    def left(self) -> int:
        """How many judgments were missing at the beginning."""
        return len(self.wanted) - self.earlier - self.adopted

    def announce(self, waiting: int) -> None:
        """Tell the observer what is there and what is left.

        `waiting` judgments were finished before, but are not in the ledger yet.
        """
        earlier = self.earlier + waiting
        self.observer.stage_began("grade", len(self.wanted), earlier + self.adopted)
        self.observer.reused(earlier, self.adopted)
        left = self.left - waiting
        price = self.config.judge.price
        expected = expected_use(self.store.plan(), self.wanted, left, price)
        if expected is not None:
            self.observer.expected(expected)

    def unfinished(self) -> set[bytes]:
        """Return the judgments that are missing now."""
        return {key for key in self.wanted if key not in self.ledger.finished}

    def tasks(self, but: Collection[bytes] = ()) -> Iterator[GradingTask]:
        """Yield the tasks that are left, in query order, `but` these."""

        def done(key: bytes) -> bool:
            return key in self.ledger.finished or key in but

        return unfinished_tasks(self.store.inputs, self.method.prompt, self.judge.digest, done)

    def known(self) -> Known:
        """Return the answers that need not be asked again."""
        checklists = self.store.inputs.checklists()
        finished = self.ledger.finished
        return known_answers(
            self.store, self.method, self.judge.digest, checklists, finished, also=self.also
        )

    def keep_failures(self, failures: Iterable[Failure]) -> None:
        """Remember what failed now, and what failed before and was not tried again."""
        latest = {failure.key: failure for failure in (*self.store.failures(), *failures)}
        unfinished = self.unfinished()
        self.store.save_failures(failure for key, failure in latest.items() if key in unfinished)

    def facts(
        self, *, judged: int, failed: int, spent: Usage, seconds: float, bill: bool = True
    ) -> dict[str, Any]:
        """Return counts and cost of this grading, for the manifest.

        Without a `bill` where what was planned is not what this command paid for.
        """
        price = self.config.judge.price
        unfinished = self.unfinished()
        return {
            "tasks": len(self.wanted),
            "finished_earlier": self.earlier,
            "from_cache": self.adopted,
            "judged": judged,
            "failed": failed,
            "unfinished": len(unfinished),
            "responses_unfinished": self._responses(unfinished),
            "responses_without_checklist": self.without_checklist,
            "usage": usage_facts(spent, price),
            "usage_of_ledger": usage_facts(self.store.ledger_usage(), price),
            "bill": make_bill(self.store.plan(), self.wanted, self.left, spent, seconds, price)
            if bill
            else None,
        }

    def _responses(self, keys: Collection[bytes]) -> int:
        """Return how many responses these judgments are about: equal responses share one."""
        if not keys:
            return 0
        return sum(cell.key in keys for cell in cells(self.store.inputs, self.judge.digest))


@contextmanager
def open_grading(
    store: RunStore,
    config: RunConfig,
    method: Method,
    judge: JudgeFingerprint,
    observer: Observer,
    *,
    also: Sequence[RunStore] = (),
) -> Iterator[GradingWork]:
    """Claim the run for the judge and open its ledger, with what the cache has already in it.

    Answers that the runs `also` named hold are not asked for again.
    """
    store.claim(judge)
    wanted, without_checklist = _wanted(store, judge.digest)
    cache = store.shared_ledger(judge.digest, config.cache)
    with store.ledger(judge.digest, cache) as ledger:
        earlier = sum(key in ledger.finished for key in wanted)
        adopted = adopt_from_cache(ledger, cache, wanted) if cache else 0
        work = GradingWork(
            store,
            config,
            method,
            judge,
            ledger,
            wanted,
            without_checklist,
            earlier,
            adopted,
            observer,
            also,
        )
        work.announce(0)
        yield work


def stop_without_judge(grading: Grading, safe: int) -> None:
    """Raise if grading gave up on the judge."""
    if grading.gone:
        raise EngineUnavailable(
            f"The judge is gone; the last task: {grading.failures[-1].reason}",
            hint=f"{safe} judgments are safe: run the same command again to go on.",
        )
    if grading.useless:
        raise EngineRefused(
            f"Not one of the first {len(grading.failures)} tasks could be judged; the last: "
            f"{grading.failures[-1].reason}",
            hint="Check the judge's settings: some servers allow fewer `top_logprobs` or none, "
            "or too short a context.",
        )


def _wanted(store: RunStore, judge: bytes) -> tuple[dict[bytes, tuple[str, str]], int]:
    """Return every judgment the run needs, and how many responses cannot have one."""
    wanted: dict[bytes, tuple[str, str]] = {}
    without_checklist = 0
    for cell in cells(store.inputs, judge):
        if cell.key is None:
            without_checklist += 1
        else:
            wanted.setdefault(cell.key, (cell.query_id, cell.candidate))
    return wanted, without_checklist

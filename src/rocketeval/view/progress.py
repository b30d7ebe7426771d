"""How far a run is, told from its files alone: the run's lock is never taken."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rocketeval.config import load_config
from rocketeval.errors import StageMissing
from rocketeval.grading.schedule import cells
from rocketeval.store.run import RunStore
from rocketeval.store.watch import LedgerWatch, inputs_version, is_held, made_by, newest_change

QUIET_SECONDS = 30.0
"""A run that nothing was written to for so long is not going, as far as can be told."""
RATE_SECONDS = 60.0
"""The rate is that of the last minute."""
_LATER = ("score", "rank", "audit")
"""Stages that a run must have behind it to be shown with its final figures."""
_UNKNOWN = (None, None)


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a run is."""

    state: Literal["finished", "going", "paused"]
    stage: str
    """The stage it is in; empty when it is finished."""
    done: int
    """Responses that are judged."""
    total: int
    """Responses that can be."""
    rate: float | None
    seconds_left: float | None


class ProgressMeter:
    """Follows one run; asked again and again, it reads only what is new."""

    def __init__(
        self,
        path: Path,
        *,
        quiet: float = QUIET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`quiet` seconds without a change make a run one that is not going."""
        self.path = path
        self._quiet = quiet
        self._clock = clock
        self._watch: LedgerWatch | None = None
        self._seen: tuple[str, float] | None = None
        self._counts = (0, 0)
        self._held_once = False
        self._alone = threading.Lock()
        self._samples: deque[tuple[float, int]] = deque()

    def look(self) -> Progress:
        """Return how far the run is now."""
        with self._alone:
            return self._look()

    def _look(self) -> Progress:
        store = RunStore(self.path)
        if is_finished(store):
            self._watch, self._seen = None, None
            self._samples.clear()
            done, total = _graded(store)
            return Progress("finished", "", done, total, None, None)
        written = "checklist" in store.manifest().get("stages", {})
        changed = newest_change(store, () if written else _outside(store))
        going = self._is_going(store, changed)
        done, total = self._count(store)
        stage = _later_stage(store, done, total) or ("grade" if written else "checklist")
        if not going:
            # A run at rest need not be remembered key by key.
            self._watch = None
            self._samples.clear()
            return Progress("paused", stage, done, total, *_UNKNOWN)
        rate = self._rate(done)
        left = (total - done) / rate if rate else None
        return Progress("going", stage, done, total, rate, left)

    def _is_going(self, store: RunStore, changed: float) -> bool:
        if is_held(store):
            self._held_once = True
            return True
        # Where the holder of the lock can be seen, nobody holding it is known and not guessed.
        return not self._held_once and abs(time.time() - changed) < self._quiet

    def _count(self, store: RunStore) -> tuple[int, int]:
        seen = (inputs_version(store), newest_change(store))
        if seen == self._seen and self._watch is None:
            return self._counts
        if self._watch is None or self._seen is None or seen[0] != self._seen[0]:
            self._watch = _watch(store)
            self._samples.clear()
        if self._watch is None:
            self._counts = (0, int(store.inputs.summary()["responses"]))
        else:
            self._counts = (self._watch.look(), self._watch.total)
        self._seen = seen
        return self._counts

    def _rate(self, done: int) -> float | None:
        now = self._clock()
        self._samples.append((now, done))
        while now - self._samples[0][0] > RATE_SECONDS:
            self._samples.popleft()
        then, before = self._samples[0]
        return (done - before) / (now - then) if done > before and now > then else None


def is_finished(store: RunStore) -> bool:
    """Return whether the run has its final figures."""
    return made_by(store).issuperset(_LATER)


def _watch(store: RunStore) -> LedgerWatch | None:
    """Return a watch for the judgments the run wants; None before it is known which these are."""
    try:
        wanted = Counter(cell.key for cell in cells(store.inputs, store.judge().digest))
    except StageMissing:
        return None
    keys = {key: count for key, count in wanted.items() if key is not None}
    return LedgerWatch(store.ledger_folder, keys)


def _later_stage(store: RunStore, done: int, total: int) -> str | None:
    """Return the stage after grading that comes next; None while responses are being judged."""
    made = made_by(store)
    if done < total and "score" not in made:
        return None
    return next((stage for stage in _LATER if stage not in made), _LATER[-1])


def _outside(store: RunStore) -> tuple[Path, ...]:
    """Return the journal outside a run that its author writes checklists to, if there is one."""
    cache = load_config(store.path / "run.yaml").cache
    return () if cache is None else (store.authored(cache).path,)


def _graded(store: RunStore) -> tuple[int, int]:
    facts = store.manifest().get("stages", {}).get("grade", {})
    total = int(facts.get("tasks", 0))
    return total - int(facts.get("unfinished", 0)), total

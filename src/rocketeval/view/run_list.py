"""The list of runs and their progress, read from files without taking a run's lock."""

from __future__ import annotations

import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import yaml

from rocketeval.audit.audit import Audit
from rocketeval.config import load_config
from rocketeval.errors import RocketEvalError, StageMissing
from rocketeval.grading.schedule import cells
from rocketeval.hashing import content_hash
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.stage import read_ranking
from rocketeval.report.findings import Findings
from rocketeval.report.head import name_of_benchmark
from rocketeval.report.model import LiveProgress, RankedLine, RunLine, TrustNumber
from rocketeval.report.trust import trust
from rocketeval.resources import load_yaml
from rocketeval.store.manifest import Manifest, Stages
from rocketeval.store.run import RunStore
from rocketeval.store.watch import (
    READ_ERRORS,
    LedgerWatch,
    files_version,
    inputs_version,
    is_held,
    made_by,
    newest_change,
)

QUIET_SECONDS = 30.0
"""Seconds without a write after which a run counts as stopped."""
RATE_SECONDS = 60.0
"""Window of the displayed rate."""
_LATER = ("score", "rank", "audit")
"""Stages that must be finished before final figures are shown."""


class ProgressMeter:
    """Measures the progress of one run; repeated calls read only new data."""

    def __init__(
        self,
        path: Path,
        *,
        quiet: float = QUIET_SECONDS,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Treat a run as stopped after `quiet` seconds without a change."""
        self.path = path
        self._quiet = quiet
        self._clock = clock
        self._watch: LedgerWatch | None = None
        self._seen: tuple[str, float] | None = None
        self._counts = (0, 0)
        self._held_once = False
        self._alone = threading.Lock()
        self._samples: deque[tuple[float, int]] = deque()

    def look(self) -> LiveProgress:
        """Return the current progress of the run."""
        with self._alone:
            return self._look()

    def _look(self) -> LiveProgress:
        store = RunStore(self.path)
        if is_finished(store):
            self._watch, self._seen = None, None
            self._samples.clear()
            done, total = _graded(store)
            return LiveProgress("finished", "", done, total)
        written = "checklist" in store.manifest().stages.made()
        changed = newest_change(store, () if written else _outside(store))
        going = self._is_going(store, changed)
        done, total = self._count(store)
        stage = _later_stage(store, done, total) or ("grade" if written else "checklist")
        if not going:
            # Free the keys of a stopped run.
            self._watch = None
            self._samples.clear()
            return LiveProgress("paused", stage, done, total)
        rate = self._rate(done)
        left = (total - done) / rate if rate else None
        return LiveProgress("going", stage, done, total, rate, left)

    def _is_going(self, store: RunStore, changed: float) -> bool:
        if is_held(store):
            self._held_once = True
            return True
        # If the lock was seen held before, its absence means that the run stopped.
        return not self._held_once and abs(time.time() - changed) < self._quiet

    def _count(self, store: RunStore) -> tuple[int, int]:
        seen = (inputs_version(store), newest_change(store))
        if seen == self._seen and self._watch is None:
            return self._counts
        if self._watch is None or self._seen is None or seen[0] != self._seen[0]:
            self._watch = _watch(store)
            self._samples.clear()
        if self._watch is None:
            self._counts = (0, store.inputs.summary().responses)
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
    """Return a watch for the run's judgments; None before they are known."""
    try:
        wanted = Counter(cell.key for cell in cells(store.inputs, store.judge().digest))
    except StageMissing:
        return None
    keys = {key: count for key, count in wanted.items() if key is not None}
    return LedgerWatch(store.ledger_folder, keys)


def _later_stage(store: RunStore, done: int, total: int) -> str | None:
    """Return the next stage after grading; None during grading."""
    made = made_by(store)
    if done < total and "score" not in made:
        return None
    return next((stage for stage in _LATER if stage not in made), _LATER[-1])


def _outside(store: RunStore) -> tuple[Path, ...]:
    """Return the author's checklist journal outside the run, if there is one."""
    cache = load_config(store.path / "run.yaml").cache
    return () if cache is None else (store.authored(cache).path,)


def _graded(store: RunStore) -> tuple[int, int]:
    facts = store.manifest().stages.grade
    return facts.tasks - facts.unfinished - facts.not_needed, facts.tasks


MOST_RANKED = 200
"""Maximum number of candidates per run in the list, best first."""
MOST_WORDS = 300
"""Maximum length of a message about a damaged file, which may quote its content."""
_READ = ("manifest.json", "run.yaml", "ranking.json", "audit.json")
_AGAIN_SECONDS = 0.1
T = TypeVar("T")


class RunLines:
    """A cache of the list entries of runs, which are read again only if files changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[str, str, RunLine]] = {}

    def read(self, path: Path, at: str, progress: LiveProgress | str) -> tuple[str, RunLine]:
        """Return the hash of the run's queries, and its list entry.

        `progress` is the run's progress, or the reason why it cannot be shown.
        """
        if isinstance(progress, str):
            return "", damaged(path, at, progress)
        version = files_version(path, _READ)
        if self._known.get(path, ("",))[0] != version:
            try:
                self._known[path] = (version, *_read(RunStore(path)))
            except RocketEvalError as error:
                return "", damaged(path, at, error.message)
            except READ_ERRORS as error:
                return "", damaged(path, at, unreadable(path, error))
        _, queries, line = self._known[path]
        return queries, replace(
            line, at=at, state=progress.state, done=progress.done, total=progress.total
        )


def damaged(path: Path, at: str, why: str) -> RunLine:
    """Return the list entry of a run that cannot be shown, with the reason."""
    return RunLine(path.name, at, state="damaged", why=why)


def unreadable(path: Path, error: BaseException) -> str:
    """Return the message for a folder that cannot be read as a run."""
    message = f"{path.name} cannot be read as a run: {type(error).__name__}: {error}"
    return message if len(message) <= MOST_WORDS else f"{message[:MOST_WORDS]}..."


def with_patience(read: Callable[[], T]) -> T:
    """Return `read()`, retried once, because a run may change while it is read."""
    try:
        return read()
    except (RocketEvalError, *READ_ERRORS):
        time.sleep(_AGAIN_SECONDS)
        return read()


def age_order(created: str, name: str) -> tuple[str, list[str | int], str]:
    """Return a key that sorts runs from the oldest to the newest.

    Runs created at the same time are sorted by name, with numbers by value: v2 before v10.
    """
    parts: list[str | int] = [
        int(part) if place % 2 else part.casefold()
        for place, part in enumerate(re.split(r"([0-9]{1,18})", name))
    ]
    return created, parts, name


def named_benchmarks(lines: Iterable[tuple[str, RunLine]]) -> tuple[RunLine, ...]:
    """Return the list entries, newest first, with a unique benchmark name per set of queries.

    A damaged run has no benchmark. A run with unknown queries shares none with other runs.
    """
    newest = sorted(lines, key=lambda line: age_order(line[1].created, line[1].name), reverse=True)
    names: dict[str, str] = {}
    for queries, line in newest:
        if queries:
            names.setdefault(queries, line.benchmark)
    taken = Counter(names.values())
    return tuple(
        replace(line, benchmark=_unique_name(queries, names.get(queries, line.benchmark), taken))
        for queries, line in newest
    )


def _unique_name(queries: str, name: str, taken: Counter[str]) -> str:
    if not queries:
        return f"{name} [queries unknown]" if name in taken else name
    return name if taken[name] == 1 else f"{name} [{queries[:6]}]"


def _read(store: RunStore) -> tuple[str, RunLine]:
    manifest, config = store.manifest(), _config(store.path / "run.yaml")
    if not (store.path / "manifest.json").exists():
        raise RocketEvalError(f"{store.path.name} has no manifest.json.")
    if not manifest.run_id:
        raise RocketEvalError(f"The manifest.json in {store.path.name} is not a run's manifest.")
    stages, load, made = manifest.stages, manifest.stages.load, manifest.stages.made()
    tokens, cost, currency = _spent(stages)
    ranking = read_ranking(store) if "rank" in made_by(store) else None
    line = RunLine(
        name=store.path.name,
        at="",
        benchmark=_benchmark(config["benchmark"]),
        created=manifest.created,
        judge=manifest.judge.name if manifest.judge else str(config["judge"]["model"]),
        method=str(config.get("method", {}).get("kind", "checklist")),
        scorer=stages.score.scorer or str(config["scorer"]["kind"]),
        queries=load.queries,
        candidates=load.candidates,
        seconds=sum(facts.seconds or 0.0 for facts in made.values()) if made else None,
        prompt_tokens=tokens,
        cost=cost,
        currency=currency,
        trust=_trust(store, ranking, manifest) if ranking else None,
        series=_series(store, manifest, config) if ranking else "",
        ranking=tuple(
            RankedLine(row.candidate, row.rating, row.mean_score)
            for row in (ranking.rows[:MOST_RANKED] if ranking else ())
        ),
    )
    return load.queries_hash, line


def _series(store: RunStore, manifest: Manifest, config: Mapping[str, Any]) -> str:
    """Return a hash that runs share if their ratings can be joined by a line."""
    judge = manifest.judge.digest.hex() if manifest.judge else ""
    ranking = read_ranking(store)
    names = sorted([*(row.candidate for row in ranking.rows), *ranking.unranked])
    how = [config.get(part) for part in ("method", "scorer", "evaluator")]
    return content_hash(judge, manifest.stages.load.queries_hash, names, how).hex()[:12]


def _config(path: Path) -> Mapping[str, Any]:
    # The list does not validate hundreds of configs; the run's page does.
    try:
        found = load_yaml(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise RocketEvalError(f"{path.parent.name} has no run.yaml.") from None
    except (yaml.YAMLError, ValueError, RecursionError):
        raise RocketEvalError(f"The run.yaml in {path.parent.name} is damaged.") from None
    if not isinstance(found, dict):
        raise RocketEvalError(f"The run.yaml in {path.parent.name} is not a config.")
    return found


def _benchmark(config: Mapping[str, Any]) -> str:
    return name_of_benchmark(Path(str(config["path"])), str(config.get("kind", "jsonl")))


def _spent(stages: Stages) -> tuple[int, float | None, str]:
    """Return prompt tokens, cost and currency; the cost is None if a price is missing."""
    tokens, cost, currency = 0, 0.0, ""
    priced = True
    for usage in (stages.checklist.paid, stages.grade.paid):
        tokens += usage.prompt_tokens
        if usage.requests:
            priced = priced and usage.cost is not None
            cost += usage.cost or 0.0
            currency = usage.currency or currency
    return tokens, cost if priced and tokens else None, currency


def _trust(store: RunStore, ranking: Ranking, manifest: Manifest) -> TrustNumber | None:
    """Return the first trust figure of the run's page; None before the audit."""
    audit = store.read_if_made(Audit)
    if audit is None:
        return None
    return trust(Findings(pa.table({}), ranking, audit=audit, manifest=manifest))[0]

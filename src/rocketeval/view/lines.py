"""The list of runs: one line a run, from its small files alone."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import yaml

from rocketeval.errors import RocketEvalError
from rocketeval.ranking.rank import Ranking
from rocketeval.report.data import RankedLine, RunLine, TrustNumber
from rocketeval.stages.rank import read_ranking
from rocketeval.stages.report.head import name_of_benchmark
from rocketeval.stages.report.stage import Findings
from rocketeval.stages.report.trust import trust
from rocketeval.store.run import RunStore
from rocketeval.store.watch import READ_ERRORS, files_version, made_by
from rocketeval.view.progress import Progress

MOST_RANKED = 200
"""Candidates of a run that the list shows, best first."""
MOST_WORDS = 300
"""Characters of a message about a damaged file, which may quote all of it."""
_READ = ("manifest.json", "run.yaml", "ranking.json", "audit.json")
_AGAIN_SECONDS = 0.1
T = TypeVar("T")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Lines:
    """Reads the line of a run again only when its files changed."""

    def __init__(self) -> None:
        self._known: dict[Path, tuple[str, str, RunLine]] = {}

    def read(self, path: Path, at: str, progress: Progress | str) -> tuple[str, RunLine]:
        """Return the hash of the run's queries, and its line.

        `progress` says how far the run is, or in words why it cannot be shown.
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
    """Return the line of a run that cannot be shown, with the reason."""
    return RunLine(
        name=path.name,
        at=at,
        benchmark="",
        created="",
        state="damaged",
        why=why,
        judge="",
        method="",
        scorer="",
        queries=0,
        candidates=0,
        done=0,
        total=0,
        seconds=None,
        prompt_tokens=0,
        cost=None,
        currency="",
        trust=None,
        ranking=(),
    )


def unreadable(path: Path, error: BaseException) -> str:
    """Return in words that a run's folder does not hold what a run's does."""
    told = f"{path.name} cannot be read as a run: {type(error).__name__}: {error}"
    return told if len(told) <= MOST_WORDS else f"{told[:MOST_WORDS]}..."


def with_patience(read: Callable[[], T]) -> T:
    """Return `read()`, tried once more: a run that is being written can change while it is read."""
    try:
        return read()
    except (RocketEvalError, *READ_ERRORS):
        time.sleep(_AGAIN_SECONDS)
        return read()


def named_benchmarks(lines: Iterable[tuple[str, RunLine]]) -> tuple[RunLine, ...]:
    """Return the lines, newest first, with one name for each set of queries and one set a name.

    A damaged run belongs to no benchmark; one whose queries are not known belongs to none of those
    that are.
    """
    newest = sorted(lines, key=lambda line: (line[1].created, line[1].name), reverse=True)
    names: dict[str, str] = {}
    for queries, line in newest:
        if queries:
            names.setdefault(queries, line.benchmark)
    taken = Counter(names.values())
    return tuple(
        replace(line, benchmark=_told_apart(queries, names.get(queries, line.benchmark), taken))
        for queries, line in newest
    )


def _told_apart(queries: str, name: str, taken: Counter[str]) -> str:
    if not queries:
        return f"{name} [queries not known]" if name in taken else name
    return name if taken[name] == 1 else f"{name} [{queries[:6]}]"


def _read(store: RunStore) -> tuple[str, RunLine]:
    manifest, config = store.manifest(), _config(store.path / "run.yaml")
    if not manifest:
        raise RocketEvalError(f"{store.path.name} has no manifest.json.")
    if "run_id" not in manifest:
        raise RocketEvalError(f"The manifest.json in {store.path.name} is not that of a run.")
    stages: Mapping[str, Any] = manifest.get("stages", {})
    load = stages.get("load", {})
    tokens, cost, currency = _spent(stages)
    ranking = read_ranking(store) if "rank" in made_by(store) else None
    line = RunLine(
        name=store.path.name,
        at="",
        benchmark=_benchmark(config["benchmark"]),
        created=str(manifest.get("created", "")),
        state="paused",
        why="",
        judge=str(manifest.get("judge", {}).get("model") or config["judge"]["model"]),
        method=str(config.get("method", {}).get("kind", "checklist")),
        scorer=str(stages.get("score", {}).get("scorer") or config["scorer"]["kind"]),
        queries=int(load.get("queries", 0)),
        candidates=int(load.get("candidates", 0)),
        done=0,
        total=0,
        seconds=sum(facts.get("seconds", 0.0) for facts in stages.values()) if stages else None,
        prompt_tokens=tokens,
        cost=cost,
        currency=currency,
        trust=_trust(store, ranking, manifest) if ranking else None,
        ranking=tuple(
            RankedLine(row.candidate, row.rating, row.mean_score)
            for row in (ranking.rows[:MOST_RANKED] if ranking else ())
        ),
    )
    return str(load.get("queries_hash", "")), line


def _config(path: Path) -> Mapping[str, Any]:
    # Two hundred configs are not validated for a list: the run's own page does that.
    try:
        found = yaml.load(path.read_text(encoding="utf-8"), _LOADER)
    except FileNotFoundError:
        raise RocketEvalError(f"{path.parent.name} has no run.yaml.") from None
    except yaml.YAMLError:
        raise RocketEvalError(f"The run.yaml in {path.parent.name} is damaged.") from None
    if not isinstance(found, dict):
        raise RocketEvalError(f"The run.yaml in {path.parent.name} is not a config.")
    return found


def _benchmark(config: Mapping[str, Any]) -> str:
    return name_of_benchmark(Path(str(config["path"])), str(config.get("kind", "jsonl")))


def _spent(stages: Mapping[str, Any]) -> tuple[int, float | None, str]:
    """Return prompt tokens, cost and currency; no cost unless everything asked has a price."""
    tokens, cost, currency = 0, 0.0, ""
    priced = True
    for stage in ("checklist", "grade"):
        facts = stages.get(stage, {})
        usage = facts.get("usage_of_ledger") or facts.get("usage") or {}
        tokens += int(usage.get("prompt_tokens", 0))
        if usage.get("requests"):
            priced = priced and usage.get("cost") is not None
            cost += usage.get("cost") or 0.0
            currency = usage.get("currency") or currency
    return tokens, cost if priced and tokens else None, currency


def _trust(store: RunStore, ranking: Ranking, manifest: Mapping[str, Any]) -> TrustNumber | None:
    """Return the first of the numbers on trust that the run's page shows; None before the audit."""
    audit = store.json_if_made("audit")
    if audit is None:
        return None
    return trust(Findings(pa.table({}), ranking, audit=audit, manifest=manifest))[0]

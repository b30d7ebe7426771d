"""Grading that stops early: the tasks of a race, query by query, and its result in the run.

A look needs all scores up to it. While its last tasks are in flight, the queries after it are
graded for the candidates still in the race, so that the engine is never idle. What was graded ahead
and is not needed stays in the ledger, unused: decisions, scores and rankings depend on the race
alone, not on timing, and a resumed run repeats them from the ledger.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.config import RunConfig
from rocketeval.errors import ConfigError
from rocketeval.goal import parse_goal
from rocketeval.grading.loop import Grading
from rocketeval.grading.schedule import cells
from rocketeval.grading.work import GradingWork
from rocketeval.records import GradingTask, Response
from rocketeval.scoring.base import learns_from_run
from rocketeval.scoring.stage import read_grid, score_judged
from rocketeval.stopping.plan import AssumedSpread, ExpectedStop, expect_stop
from rocketeval.stopping.race import Race, RaceOrder, RaceResult, check_goal, draw_order
from rocketeval.store.inputs import Inputs
from rocketeval.store.manifest import GradeFacts, Plan
from rocketeval.store.run import RunStore

AHEAD = 2
"""Looks up to which queries are graded while a look waits for its last scores."""


def check_until(store: RunStore, config: RunConfig) -> None:
    """Raise ConfigError, before anything is spent, if the run cannot stop early."""
    if config.until is None:
        return
    if config.distributed.cluster is not None:
        raise ConfigError(
            "`until` decides query by query on this machine, but the run is graded on a cluster.",
            hint="Drop --until, or grade with --on local.",
        )
    if learns_from_run(config.scorer):
        raise ConfigError(
            f"`until` needs scores while grading, and the scorer {config.scorer.kind!r} is fitted "
            "afterwards.",
            hint="Use `scorer.kind: mean`, or a saved scorer in `scorer.fitted`.",
        )
    check_goal(parse_goal(config.until.goal), sorted(store.inputs.candidates()))


def order_queries(inputs: Inputs, seed: int) -> tuple[list[str], RaceOrder]:
    """Return the ids of the queries in the order of the inputs, and their drawn order."""
    queries, named = inputs.queries, inputs.clusters()
    numbers: dict[str, int] = {}
    clusters = [numbers.setdefault(named[name], len(numbers)) for name in queries]
    categories = [query.category or "" for query in queries.values()]
    return list(queries), draw_order(np.array(clusters, np.int64), categories, seed)


class RacedWork:
    """The tasks of a race in progress, after the looks that the ledger has all judgments for."""

    def __init__(self, work: GradingWork, config: RunConfig) -> None:
        until = config.until
        assert until is not None
        self._work, self._scorer, self._until = work, config.scorer, until
        names, order = order_queries(work.store.inputs, until.seed)
        self._drawn = [names[row] for row in order.rows.tolist()]
        self._candidates = sorted(work.candidates)
        self.race = Race(
            parse_goal(until.goal),
            self._candidates,
            order,
            level=until.level,
            futility=until.futility,
            scale=config.scorer.scale,
        )
        self._keys = {
            (cell.query_id, cell.candidate): cell.key
            for cell in cells(work.inputs, work.digest)
            if cell.key is not None
        }
        self._given: set[bytes] = set()
        self._failed: set[bytes] = set()
        self._waiting = self._needed()
        """Judgments that the next look waits for."""
        self._look_if_ready(Grading())

    @property
    def left(self) -> int:
        """Judgments that the whole run lacks; 0 if the race has ended."""
        return 0 if self.ended else self._work.left

    @property
    def ended(self) -> bool:
        """Whether the race has ended."""
        return self.race.ending is not None

    def tasks(self, grading: Grading) -> Iterator[GradingTask]:
        """Yield the tasks of the next look, then some of those after it, while scores arrive."""
        self._look_if_ready(grading)
        start = 0
        while not self.ended and start < (end := self._next_end(start)):
            for task in self._block(start, end):
                if not self.race.live[self._candidates.index(task.candidate)]:
                    continue
                self._given.add(task.key)
                yield task
                self._look_if_ready(grading)
                if self.ended:
                    return
            start = end

    def used(self) -> set[tuple[str, str]]:
        """Return the query and candidate of every response that the race used."""
        lengths = dict(zip(self._candidates, self.race.lengths().tolist(), strict=True))
        return _used(self._drawn, lengths)

    def finish(self, facts: GradeFacts) -> GradeFacts:
        """Save the result of the race, if it ended; return the facts without what it spares."""
        store = self._work.store
        if not self.ended:
            forget_race(store)
            return facts
        if store.save(self.race.result(self._until.goal, self._until.seed)):
            store.drop_from("score")
        used, finished = self.used(), self._work.ledger.finished
        missing = [key for cell, key in self._keys.items() if cell in used and key not in finished]
        spared = {key for cell, key in self._keys.items() if cell not in used}
        spared -= {self._keys[cell] for cell in used if cell in self._keys}
        return replace(
            facts,
            unfinished=len(set(missing)),
            responses_unfinished=len(missing),
            not_needed=len(self._keys.keys() - used),
            graded_ahead=sum(key in finished for key in spared),
        )

    def _block(self, start: int, end: int) -> Iterator[GradingTask]:
        """Yield the unfinished tasks of some queries, in drawn order, a query's together."""
        inputs, prompt = self._work.store.inputs, self._work.method.prompt
        chosen = self._drawn[start:end]
        queries, checklists = inputs.queries, inputs.checklists()
        responses: dict[str, list[Response]] = {name: [] for name in chosen}
        for response in inputs.responses_to(chosen):
            responses[response.query_id].append(response)
        for query_id in chosen:
            for response in responses.pop(query_id):
                key = self._keys.get((query_id, response.candidate))
                if key is None or key in self._given or key in self._work.ledger.finished:
                    continue
                yield prompt.render(queries[query_id], response, checklists[query_id], key)

    def _next_end(self, start: int) -> int:
        """Return the first look after `start`, as a number of queries; `start` if it is too far."""
        race = self.race
        for units in race.bounds.looks[: race.look + 2 + AHEAD]:
            if (length := race.order.length(units)) > start:
                return length
        return start

    def _look_if_ready(self, grading: Grading) -> None:
        self._failed.update(failure.key for failure in grading.failures[len(self._failed) :])
        while not self.ended:
            while self._waiting and self._is_done(self._waiting[-1]):
                self._waiting.pop()
            if self._waiting:
                return
            self.race.advance(self._scores())
            self._waiting = self._needed()

    def _needed(self) -> list[bytes]:
        """Return the judgments up to the next look, in reverse order."""
        if self.ended:
            return []
        lengths = self.race.lengths()
        cell_keys = (
            self._keys.get((query_id, name))
            for place, query_id in enumerate(self._drawn[: int(lengths.max())])
            for name, length in zip(self._candidates, lengths.tolist(), strict=True)
            if place < length
        )
        return [key for key in cell_keys if key is not None][::-1]

    def _is_done(self, key: bytes) -> bool:
        return key in self._work.ledger.finished or key in self._failed

    def _scores(self) -> Floats:
        """Return the scores up to the next look, one row per query in drawn order."""
        drawn = self._drawn[: int(self.race.lengths().max())]
        grid = score_judged(self._work.store, self._scorer, drawn)
        scores = np.full((len(drawn), len(self._candidates)), math.nan)
        rows = {name: row for row, name in enumerate(drawn)}
        columns = [self._candidates.index(name) for name in grid.candidates]
        scores[np.ix_([rows[name] for name in grid.query_ids], columns)] = grid.scores
        return scores


def plan_stop(
    store: RunStore,
    config: RunConfig,
    plan: Plan,
    *,
    pilot: Path | None = None,
    spread: AssumedSpread | None = None,
) -> ExpectedStop:
    """Return what the planned run would use if it stops early.

    The estimate comes from a `spread`, or from the scores of the run in `pilot`, or from those that
    the planned run already has.
    """
    if config.until is None:
        raise ConfigError("There is no goal to stop at.", hint="Give --until, such as best.")
    source = store if pilot is None else RunStore(pilot)
    if spread is None and not (source.path / "scores.parquet").exists():
        raise ConfigError(
            f"{source.path} has no scores to estimate from.",
            hint="Grade some queries first (`rocketeval run --limit 30`) and name that run with "
            "--pilot, or give --spread and --gap.",
        )
    names = [f"candidate {number}" for number in range(plan.candidates)]
    goal = parse_goal(config.until.goal)
    if goal.kind == "beats" and spread is not None:
        names[-1] = goal.against
    return expect_stop(plan, config.until, names, spread or read_grid(source))


def forget_race(store: RunStore) -> None:
    """Remove the result of an earlier race, because the run is graded further."""
    if store.read_if_made(RaceResult) is not None:
        store.drop_from("attack")


def used_responses(store: RunStore) -> set[tuple[str, str]] | None:
    """Return the responses that the run's race used; None if the run did not stop early."""
    race = store.read_if_made(RaceResult)
    if race is None:
        return None
    names, order = order_queries(store.inputs, race.seed)
    drawn = [names[row] for row in order.rows.tolist()]
    return _used(drawn, {row.candidate: row.queries for row in race.rows})


def _used(drawn: Sequence[str], lengths: Mapping[str, int]) -> set[tuple[str, str]]:
    return {(query, name) for name, length in lengths.items() for query in drawn[:length]}

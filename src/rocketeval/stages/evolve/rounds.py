"""Rounds of evolution: what is judged wrongly brings new perspectives, and the best of all stay."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rocketeval.config import EvolveConfig
from rocketeval.cost import usage_facts
from rocketeval.evolve.cases import CaseTable
from rocketeval.evolve.choose import credit_of
from rocketeval.evolve.groups import error_of_mean
from rocketeval.evolve.optimizer import Optimizer
from rocketeval.evolve.perspective import Origin, Perspective, Pool
from rocketeval.evolve.predictions import Predictions
from rocketeval.evolve.select import weigh_perspectives
from rocketeval.evolve.validate import out_of_fold
from rocketeval.names import counted
from rocketeval.records import Response, Usage
from rocketeval.stages.evolve.ask import Asked
from rocketeval.stages.evolve.history import History, Measured, Round, rounds_without_gain
from rocketeval.stages.evolve.limit import CallLimit
from rocketeval.stages.evolve.mistakes import show_mistakes, wrong_cases
from rocketeval.stages.evolve.questions import most_for_optimizer
from rocketeval.stages.evolve.shared_pool import SharedPool
from rocketeval.stages.evolve.spending import QUESTIONS
from rocketeval.stages.evolve.split import Split
from rocketeval.stages.evolve.workshop import Workshop

SEEN = "evolve/seen"
"""Folder of the sheets on the cases that are seen."""


@dataclass(frozen=True, eq=False)
class View:
    """How a pool does on the cases that are seen."""

    pool: Pool
    """With what each perspective is worth."""
    kept: tuple[str, ...]
    """Ids of those worth keeping."""
    asked: Asked
    said: Predictions
    """Of each case by an evaluator that did not learn from its query."""
    measured: Measured

    @property
    def table(self) -> CaseTable:
        """What the judge answered."""
        return self.asked.table


@dataclass(frozen=True, eq=False)
class Evolved:
    """What the rounds led to."""

    view: View
    """Of the whole pool, as it is now."""
    rounds: tuple[Round, ...]
    stopped: str
    """Why no further round was begun, in words."""
    joined: int
    """Perspectives that people added while it ran, and that a round took in."""
    waiting: int
    """Those that no round took in any more: they are in the file for the next command."""


class Rounds:
    """Goes on with a run's rounds where the last command ended."""

    def __init__(
        self,
        workshop: Workshop,
        split: Split,
        history: History,
        shared: SharedPool,
        limit: CallLimit,
        optimizer: Optimizer | None,
    ) -> None:
        self._workshop = workshop
        self._settings = workshop.settings
        self._split = split
        self._history = history
        self._shared = shared
        self._limit = limit
        self._optimizer = optimizer

    async def go_on(self, pool: Pool) -> Evolved:
        """Do the rounds that are left; return how the pool does after the last."""
        done = self._history.read(self._split.digest)
        name = f"round {done[-1].round}" if done else "beginning"
        view = await self._look(pool, name)
        added = self._shared.write(view.pool, len(done))
        joined = 0
        while True:
            why = self._why_not(done, view, added)
            if why is not None or self._optimizer is None:
                return Evolved(view, tuple(done), why or "", joined, len(added))
            finished = await self._round(self._optimizer, len(done) + 1, view, added)
            if isinstance(finished, str):
                return Evolved(view, tuple(done), finished, joined, len(added))
            view, record = finished
            joined += len(added)
            # The pool first: a round that is written down has its perspectives in the file.
            self._history.announce(record.round, _of_round(view.pool, record.round))
            added = self._shared.write(view.pool, len(done))
            self._history.append(record)
            done.append(record)

    async def _round(
        self, optimizer: Optimizer, number: int, before: View, added: Sequence[Perspective]
    ) -> tuple[View, Round] | str:
        """Return the pool after a round and what it did; in words, why it was not finished.

        What people `added` since the pool was last looked at joins it.
        """
        started = time.monotonic()
        mistakes = show_mistakes(
            before.table, before.said, self._workshop.store.inputs.queries, self._responses()
        )
        proposals = await self._workshop.propose(optimizer, number, mistakes, before.pool)
        grown, repeated = Pool([*before.pool, *added]).add(proposals.perspectives)
        news = [each for each in grown if each.round == number]
        over = self._limit.over(f"round {number}", [*added, *news], grown)
        if over is not None:
            return over
        before_it = self._judge_so_far()
        after = await self._look(grown, f"round {number}")
        dropped = Counter(each.why.value for each in proposals.dropped)
        dropped["repeat"] += len(repeated)
        return after, Round(
            round=number,
            split=self._split.digest,
            pool=len(grown),
            people=people_in(grown),
            mistakes=len(mistakes),
            proposed=dict(Counter(each.origin.value for each in news)),
            dropped={why: count for why, count in dropped.items() if count},
            failed=dict(proposals.failed),
            analyses=tuple(proposals.analyses.values()),
            kept=after.kept,
            before=before.measured,
            after=after.measured,
            judge=self._judge_use(before_it),
            optimizer=usage_facts(proposals.usage, self._settings.price),
            seconds=round(time.monotonic() - started, 3),
        )

    async def _look(self, pool: Pool, name: str) -> View:
        asked = await self._workshop.ask(pool, self._split.seen, SEEN, name)
        self._workshop.observer.part_began(name, 1, 1)
        self._workshop.observer.stage_entered("fit")
        view = await asyncio.to_thread(make_view, pool, asked, self._settings)
        self._workshop.go_on("what was answered is kept")
        return view

    def _why_not(self, done: list[Round], view: View, added: Sequence[Perspective]) -> str | None:
        """Return why no round begins; None if one may."""
        settings = self._settings
        if self._optimizer is None:
            return "the config has no `evolve.optimizer`, so nothing new is proposed"
        if len(done) >= settings.rounds:
            return f"all {counted(settings.rounds, 'round is', 'rounds are')} done"
        idle = rounds_without_gain(done, people_in(view.pool) + len(added))
        if idle >= settings.patience:
            return f"{counted(idle, 'round', 'rounds')} in a row brought no gain"
        if not len(wrong_cases(view.table, view.said)):
            return "no case is judged wrongly"
        requests = most_for_optimizer(settings)
        return self._limit.over(
            f"round {len(done) + 1}", added, Pool([*view.pool, *added]), requests
        )

    def _judge_so_far(self) -> tuple[int, Usage]:
        """Return how many questions the judge has answered in all, and what they used."""
        spending = self._workshop.spending
        return spending.questions, spending.total("judge")

    def _judge_use(self, before: tuple[int, Usage]) -> Mapping[str, Any]:
        """Return what the judge did since then."""
        questions, used = self._judge_so_far()
        price = self._workshop.config.judge.price
        return {QUESTIONS: questions - before[0], **usage_facts(used - before[1], price)}

    def _responses(self) -> dict[tuple[str, str], Response]:
        """Return the responses to the queries that are seen."""
        names = list(dict.fromkeys(case.query_id for case in self._split.seen))
        found = self._workshop.store.inputs.responses_to(names)
        return {(each.query_id, each.candidate): each for each in found}


def make_view(pool: Pool, asked: Asked, settings: EvolveConfig) -> View:
    """Return how a pool does on cases, from the judge's answers about them.

    Perspectives are selected anew within each fold, so that the figure does not rest on a
    selection that saw the case.
    """
    standings = weigh_perspectives(asked.table, settings)
    said = out_of_fold(asked.table, settings)
    return View(
        pool.weigh(standings.by_id()),
        standings.keep(settings.most_about_responses, settings.most_about_queries),
        asked,
        said,
        measure(asked.table, said),
    )


def measure(table: CaseTable, said: Predictions) -> Measured:
    """Return the accuracy of pairs, or the rank correlation of labels, with its standard error."""
    credit = credit_of(said, table.gold)
    return Measured(float(credit.mean()), error_of_mean(credit, table.query_ids))


def _of_round(pool: Pool, number: int) -> list[str]:
    return [each.id for each in pool if each.round == number]


def people_in(pool: Pool) -> int:
    """Return how many perspectives of a pool somebody added."""
    return sum(each.origin is Origin.PERSON for each in pool)

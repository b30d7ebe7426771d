"""What every step of an evolution works with: the run, its judge, its optimizer and their bill."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rocketeval.budget import Budget, Purse
from rocketeval.checklists.base import Desk
from rocketeval.config import EngineConfig, EvolveConfig, RunConfig
from rocketeval.engines.base import Engine, pulse_of
from rocketeval.errors import Stopped
from rocketeval.evolve.cases import Case
from rocketeval.evolve.failed_case import FailedCase
from rocketeval.evolve.optimizer import Optimizer
from rocketeval.evolve.perspective import Perspective, Pool
from rocketeval.evolve.proposals import Proposals
from rocketeval.names import counted
from rocketeval.observing import Observer
from rocketeval.stages.evolve.ask import Asked, Asker, MakeEngine
from rocketeval.stages.evolve.metered import metered
from rocketeval.stages.evolve.part_names import NamedParts
from rocketeval.stages.evolve.spending import Spending
from rocketeval.store.run import RunStore

GoOn = Callable[[str], None]
"""Raises what says that the command was stopped, or its money spent; hears what is left."""
PROPOSING = "propose"
"""The stage in which the optimizer is asked."""


@dataclass(frozen=True)
class Workshop:
    """Asks judge and optimizer for one command, and writes down what they used."""

    store: RunStore
    config: RunConfig
    settings: EvolveConfig
    observer: Observer
    stop: asyncio.Event
    budget: Budget | None
    go_on: GoOn
    make_engine: MakeEngine
    spending: Spending

    async def ask(
        self, pool: Iterable[Perspective], cases: Sequence[Case], folder: str, name: str
    ) -> Asked:
        """Return what the judge says about cases; ends the command if it was stopped.

        What each sheet used is on the bill as soon as its judge is closed, whatever ended it.
        """

        def make_engine(config: EngineConfig, home: Path | None) -> Engine:
            return metered(self.make_engine(config, home), partial(self.spending.judge_used, name))

        asker = Asker(
            self.store,
            self.config,
            NamedParts(self.observer, name),
            self.stop,
            self.budget,
            asking=self.settings.asking,
            folder=folder,
            make_engine=make_engine,
        )
        asked = await asker.ask(pool, cases)
        left = counted(asked.unfinished, "prompt is", "prompts are")
        self.go_on(f"{left} not put to the judge ({name})")
        return asked

    def open_optimizer(self) -> Optimizer | None:
        """Return the optimizer of the config; None where it names none."""
        section = self.settings.optimizer
        if section is None:
            return None
        engine = self.make_engine(section, self.store.engine_home("optimizer"))
        return Optimizer(self.settings, engine, section.model)

    async def propose(
        self, optimizer: Optimizer, round: int, mistakes: Sequence[FailedCase], pool: Pool
    ) -> Proposals:
        """Return what a round brings; ends the command if it was stopped."""
        desk = self._desk_for(optimizer, f"round {round}", round, self.settings.rounds)
        await optimizer.prepare()
        with self._on_the_bill(optimizer, f"round {round}"):
            proposals = await optimizer.propose(round, mistakes, pool, desk)
        return self._whole(proposals, f"round {round}")

    async def decompose(self, optimizer: Optimizer, guidelines: str, pool: Pool) -> Proposals:
        """Return what annotation guidelines ask beyond the pool."""
        desk = self._desk_for(optimizer, "guidelines", 1, 1)
        await optimizer.prepare()
        with self._on_the_bill(optimizer, "guidelines"):
            proposals = await optimizer.decompose(guidelines, pool, desk)
        return self._whole(proposals, "guidelines")

    def _desk_for(self, optimizer: Optimizer, name: str, number: int, total: int) -> Desk:
        self.observer.part_began(name, number, max(number, total))
        self.observer.stage_entered(PROPOSING)
        self.observer.watched(partial(pulse_of, optimizer))
        journal = self.store.authored(self.config.cache)
        run = self.store.manifest()["run_id"]
        price = self.settings.price
        return Desk(
            known=journal.known(),
            record=partial(journal.append, run=run),
            # What failed is in the round's record; an observer would call it a checklist.
            failed=lambda name, reason: None,
            spent=self.observer.spent,
            stop=self.stop,
            purse=Purse(self.budget, price) if self.budget and price else None,
            run=run,
        )

    @contextmanager
    def _on_the_bill(self, optimizer: Optimizer, name: str) -> Iterator[None]:
        """Write down what the optimizer uses, also when it ends in an error."""
        before = optimizer.usage
        try:
            yield
        finally:
            self.spending.optimizer_used(name, optimizer.usage - before)

    def _whole(self, proposals: Proposals, name: str) -> Proposals:
        """Return the proposals; ends the command if the optimizer was cut short."""
        if proposals.cut_short is not None:
            self.go_on(f"the optimizer was not asked all that belongs to {name}")
            raise Stopped(
                f"The optimizer was cut short ({proposals.cut_short}).",
                hint="Run the same command again to go on from here.",
            )
        return proposals

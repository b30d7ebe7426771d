"""The optimizer: a strong LLM that proposes perspectives, asked for each thing once.

A round looks at mistakes (semantic back-propagation), puts the most important perspectives into
other words (in depth), looks for what none asks about (in breadth), and derives questions about
queries from what these brought. Every request is journaled as it is answered: the same round over
the same pool is replayed without a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from rocketeval.checklists.asking import Writer
from rocketeval.checklists.base import Desk
from rocketeval.checklists.steps import Done, do_steps
from rocketeval.config import EvolveConfig
from rocketeval.engines.base import Engine, create_engine, pulse_of
from rocketeval.errors import ChecklistError, ConfigError
from rocketeval.evolve.failed_case import FailedCase
from rocketeval.evolve.perspective import Kind, Pool
from rocketeval.evolve.proposals import CutShort, Gathering, Proposals
from rocketeval.evolve.requests import Request, RequestMaker
from rocketeval.observing import Pulse
from rocketeval.records import Usage

SHOWN_FAILURES = 3


class Optimizer:
    """Proposes perspectives for a pool."""

    def __init__(self, config: EvolveConfig, engine: Engine, model: str) -> None:
        self._config = config
        self._engine = engine
        self._model = model
        self._extra_body = config.optimizer.extra_body if config.optimizer else {}
        self._requests = RequestMaker(model, self._extra_body)
        self.usage = Usage()
        """What its work has cost so far, lists that could not be read included."""
        self.lost = 0
        """Calls that brought no answer."""

    @classmethod
    def create(cls, config: EvolveConfig, home: Path | None = None) -> Optimizer:
        """Return the optimizer of a config; `home` is a folder for files of its engine."""
        if config.optimizer is None:
            raise ConfigError(
                "Proposing perspectives needs an optimizer LLM.",
                hint="Set evolve.optimizer.model (and base_url, api_key_env if not the OpenAI "
                "API), or evolve.rounds: 0 to choose among the seeds alone.",
            )
        return cls(config, create_engine(config.optimizer, home), config.optimizer.model)

    @property
    def pulse(self) -> Pulse:
        """How its engine fares at this moment."""
        return pulse_of(self._engine)

    async def prepare(self) -> None:
        """Check that the optimizer answers; raises EngineError if it does not."""
        await self._engine.ready()

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    async def decompose(self, guidelines: str, pool: Pool, desk: Desk) -> Proposals:
        """Return what annotation guidelines ask beyond `pool`, as single questions."""
        gathering = self._gathering(pool)
        done: Done[Request] = Done()
        asked = [self._requests.decompose(guidelines)]
        with self._counted(done):
            whole = await self._do(asked, _asking_again(asked, desk), done, gathering)
        _stop_if_all_failed(asked, done)
        return _told(asked, gathering, done, None if whole else _cut_short(desk))

    async def propose(
        self, round: int, failures: Sequence[FailedCase], pool: Pool, desk: Desk
    ) -> Proposals:
        """Return what a round brings to `pool`; ChecklistError when every request failed.

        When it was stopped, or the money did not suffice, `cut_short` says so: the same call goes
        on where it ended, with what was paid for.
        """
        gathering = self._gathering(pool)
        done: Done[Request] = Done()
        asked = self._of_round(round, failures, pool)
        with self._counted(done):
            whole = await self._do(asked, _asking_again(asked, desk), done, gathering)
            _stop_if_all_failed(asked, done)
            # The others see the pool alone, and are done at once; this one sees what they brought.
            last = self._routing(round, gathering, pool) if whole else []
            whole = whole and await self._do(last, desk, done, gathering)
        return _told([*asked, *last], gathering, done, None if whole else _cut_short(desk))

    def _of_round(self, round: int, failures: Sequence[FailedCase], pool: Pool) -> list[Request]:
        config = self._config
        batches = self._requests.of_failures(
            round, failures, pool, batches=config.batches, size=config.batch
        )
        deepen = self._requests.deepen(round, pool, config.deepen)
        broaden = self._requests.broaden(round, pool, config.broaden)
        return [each for each in (*batches, deepen, broaden) if each is not None]

    def _routing(self, round: int, gathering: Gathering, pool: Pool) -> list[Request]:
        """Return the request for questions about queries, if any are wanted."""
        if not self._queries_wanted:
            return []
        news = [each for each in gathering.taken if each.kind is Kind.RESPONSE]
        known, _ = pool.add(each for each in gathering.taken if each.kind is Kind.QUERY)
        request = self._requests.route(round, news, known)
        return [] if request is None else [request]

    async def _do(
        self, asked: Sequence[Request], desk: Desk, done: Done[Request], gathering: Gathering
    ) -> bool:
        """Do some requests and take in what they bring, in their own order."""
        before = self.usage
        whole = await do_steps(
            asked,
            replace(desk, spent=lambda now: desk.spent(before + now)),
            done,
            make_writer=self._writer,
            author=self._model,
            in_flight=self._engine.in_flight,
            durable=self._engine.durable,
            skip=True,
        )
        for request in asked:
            if request in done.lines:
                gathering.take(request, done.lines[request])
        return whole

    @property
    def _queries_wanted(self) -> bool:
        return self._config.most_about_queries > 0

    def _gathering(self, pool: Pool) -> Gathering:
        return Gathering(pool, self._config.answers, queries_wanted=self._queries_wanted)

    def _writer(self) -> Writer:
        return Writer(self._engine, self._config.attempts, self._extra_body, who="the optimizer")

    @contextmanager
    def _counted(self, done: Done[Request]) -> Iterator[None]:
        """Add up what the work costs, also when it ends in an error."""
        try:
            yield
        finally:
            self.usage += done.usage
            self.lost += done.lost


def _asking_again(asked: Sequence[Request], desk: Desk) -> Desk:
    """Return a desk that has forgotten failed requests if there was nothing else.

    A round that went on without some is resumed without them; where all failed, none went on.
    """
    if not all(request.was_skipped(desk.known) for request in asked):
        return desk
    keys = {request.key for request in asked}
    return replace(desk, known={key: desk.known[key] for key in desk.known if key not in keys})


def _cut_short(desk: Desk) -> CutShort:
    return "stopped" if desk.stop.is_set() else "out of money"


def _stop_if_all_failed(asked: Sequence[Request], done: Done[Request]) -> None:
    failed = done.failed
    if not failed or len(failed) < len(asked):
        return
    named = [f"{request.name}: {reason}" for request, reason in failed.items()][:SHOWN_FAILURES]
    more = f"\nand {len(failed) - SHOWN_FAILURES} more." if len(failed) > SHOWN_FAILURES else ""
    raise ChecklistError(
        "The optimizer brought nothing; every request failed:\n" + "\n".join(named) + more,
        hint="Run the same command again to ask once more, or use another `evolve.optimizer`.",
    )


def _told(
    asked: Sequence[Request],
    gathering: Gathering,
    done: Done[Request],
    cut_short: CutShort | None,
) -> Proposals:
    return Proposals(
        perspectives=gathering.perspectives(),
        steps=gathering.steps(),
        dropped=tuple(gathering.dropped),
        analyses=gathering.analyses,
        traces={each.name: done.traces[each] for each in asked if each in done.traces},
        failed={each.name: done.failed[each] for each in asked if each in done.failed},
        reused=done.reused,
        usage=done.usage,
        lost=done.lost,
        cut_short=cut_short,
    )

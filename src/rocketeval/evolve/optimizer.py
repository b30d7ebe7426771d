"""The optimizer: a strong LLM that proposes perspectives, asked for each thing once.

A round looks at mistakes (semantic back-propagation), puts the most important perspectives into
other words (in depth), looks for what none asks about (in breadth), and derives questions about
queries from what these brought. Every request is journaled as it is answered: the same round over
the same pool is replayed without a call.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from typing import Literal

from rocketeval.checklists.base import AuthorContext, AuthoringTrace
from rocketeval.checklists.dimension_steps import StepResults, do_steps
from rocketeval.checklists.instance import Writer
from rocketeval.config import EvolveConfig
from rocketeval.engines.base import Engine, status_of
from rocketeval.errors import ChecklistError
from rocketeval.evolve.perspective import (
    EXPLORED,
    AnswerFormat,
    Answers,
    KnownQuestions,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    Pool,
    formats_of,
    with_formats,
)
from rocketeval.evolve.requests import (
    FailedCase,
    OptimizerRequest,
    RequestMaker,
    RequestPurpose,
    read_failures,
    replies_in,
)
from rocketeval.observer import EngineStatus
from rocketeval.prompts.read_perspectives import read_questions
from rocketeval.records import Usage

CutShort = Literal["stopped", "out of money"]


class RejectionReason(StrEnum):
    """Why a proposal was not taken."""

    REPEAT = "repeat"
    """It has the same words as one that is there."""
    TWIN = "twin"
    """It asks almost the same, by its words, as one that is there."""
    UNWANTED = "unwanted"
    """It is about queries, of which none are kept."""


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A proposal that was not taken."""

    text: str
    kind: PerspectiveKind
    step: str
    """The request that brought it."""
    why: RejectionReason
    repeats: str | None = None
    """The perspective that asks the same."""


@dataclass(frozen=True)
class Proposals:
    """What an optimizer brought, and how it came about."""

    perspectives: tuple[Perspective, ...] = ()
    """What is new, in the wanted forms, in an order that the optimizer's speed does not change."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """The request that brought each, by its id."""
    dropped: tuple[RejectedProposal, ...] = ()
    """What was not taken, and why."""
    analyses: Mapping[str, str] = field(default_factory=dict)
    """What the optimizer said about mistakes, by request."""
    traces: Mapping[str, AuthoringTrace] = field(default_factory=dict)
    """What each request took: attempts, what was refused, usage; failed ones included."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Requests that brought nothing, and why."""
    reused: int = 0
    """Requests that an earlier command had paid for."""
    usage: Usage = field(default_factory=Usage)
    """What the others cost."""
    lost: int = 0
    """Calls that brought no answer; they may be on the bill all the same."""
    cut_short: CutShort | None = None
    """Why not all was asked that was to be; None when all was."""


class ProposalCollector:
    """Takes in answers one request after the other, and leaves out what repeats."""

    def __init__(self, pool: Pool, answers: Answers, *, queries_wanted: bool) -> None:
        self.taken: list[Perspective] = []
        """New perspectives, each in its first form."""
        self.analyses: dict[str, str] = {}
        self.dropped: list[RejectedProposal] = []
        self._steps: dict[tuple[PerspectiveKind, str], str] = {}
        self._asked = KnownQuestions(pool)
        self._answers = answers
        self._queries_wanted = queries_wanted

    def take(self, request: OptimizerRequest, lines: Sequence[str]) -> None:
        """Take in what a request brought."""
        if request.ask is RequestPurpose.FAILURES:
            self.analyses[request.name] = read_failures("\n".join(lines)).analysis
        for proposal in proposed(request, lines, formats_of(self._answers)[0]):
            self._take(request, proposal)

    def perspectives(self) -> tuple[Perspective, ...]:
        """Return what was taken, in all wanted forms."""
        return with_formats(self.taken, self._answers)

    def steps(self) -> dict[str, str]:
        """Return the request that brought each perspective, by its id."""
        return {each.id: self._steps[each.kind, each.text] for each in self.perspectives()}

    def _take(self, request: OptimizerRequest, proposal: Perspective) -> None:
        duplicate = self._asked.duplicate_of(proposal)
        if proposal.kind is PerspectiveKind.QUERY and not self._queries_wanted:
            self._drop(request, proposal, RejectionReason.UNWANTED)
        elif duplicate is not None:
            self._drop(
                request,
                proposal,
                RejectionReason.REPEAT if duplicate.exact else RejectionReason.TWIN,
                duplicate.of.text,
            )
        else:
            self._asked.add(proposal)
            self._steps[proposal.kind, proposal.text] = request.name
            self.taken.append(proposal)

    def _drop(
        self,
        request: OptimizerRequest,
        proposal: Perspective,
        why: RejectionReason,
        repeats: str | None = None,
    ) -> None:
        self.dropped.append(
            RejectedProposal(proposal.text, proposal.kind, request.name, why, repeats)
        )


def proposed(
    request: OptimizerRequest, lines: Sequence[str], form: AnswerFormat
) -> Iterator[Perspective]:
    """Yield what journaled lines of a request propose; questions about responses in `form`."""
    text, response, query = "\n".join(lines), PerspectiveKind.RESPONSE, PerspectiveKind.QUERY
    made = partial(Perspective, round=request.round)
    if request.ask is RequestPurpose.FAILURES:
        found, origin = read_failures(text), PerspectiveOrigin.FAILURES
        yield from (made(each, response, origin, form) for each in found.about_responses)
        yield from (made(each, query, origin) for each in found.about_queries)
    elif request.ask in (RequestPurpose.DEEPEN, RequestPurpose.ROUTING):
        replies = replies_in(request.ask, text, len(request.sources))
        for source, reply in zip(request.sources, replies, strict=True):
            derived = partial(made, parents=(source.id,), types=source.types)
            origin = PerspectiveOrigin.MIX if source.origin in EXPLORED else PerspectiveOrigin.DEPTH
            if reply is not None and request.ask is RequestPurpose.ROUTING:
                yield derived(reply, query, PerspectiveOrigin.ROUTING)
            elif reply is not None:
                yield derived(reply, response, origin, form)
    else:
        rule = request.ask is RequestPurpose.DECOMPOSE
        origin = PerspectiveOrigin.RULE if rule else PerspectiveOrigin.BREADTH
        for each in read_questions(text, 1, len(lines)):
            yield made(each, response, origin, form)


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

    @property
    def pulse(self) -> EngineStatus:
        """How its engine fares at this moment."""
        return status_of(self._engine)

    async def prepare(self) -> None:
        """Check that the optimizer answers; raises EngineError if it does not."""
        await self._engine.ready()

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    async def decompose(self, guidelines: str, pool: Pool, context: AuthorContext) -> Proposals:
        """Return what annotation guidelines ask beyond `pool`, as single questions."""
        gathering = self._gathering(pool)
        done: StepResults[OptimizerRequest] = StepResults()
        asked = [self._requests.decompose(guidelines)]
        with self._counted(done):
            whole = await self._do(asked, _asking_again(asked, context), done, gathering)
        _stop_if_all_failed(asked, done)
        return _proposals(asked, gathering, done, None if whole else _cut_short(context))

    async def propose(
        self, round: int, failures: Sequence[FailedCase], pool: Pool, context: AuthorContext
    ) -> Proposals:
        """Return what a round brings to `pool`; ChecklistError when every request failed.

        When it was stopped, or the money did not suffice, `cut_short` says so: the same call goes
        on where it ended, with what was paid for.
        """
        gathering = self._gathering(pool)
        done: StepResults[OptimizerRequest] = StepResults()
        asked = self._of_round(round, failures, pool)
        with self._counted(done):
            whole = await self._do(asked, _asking_again(asked, context), done, gathering)
            _stop_if_all_failed(asked, done)
            # The others see the pool alone, and are done at once; this one sees what they brought.
            last = self._routing(round, gathering, pool) if whole else []
            whole = whole and await self._do(last, context, done, gathering)
        return _proposals([*asked, *last], gathering, done, None if whole else _cut_short(context))

    def _of_round(
        self, round: int, failures: Sequence[FailedCase], pool: Pool
    ) -> list[OptimizerRequest]:
        config = self._config
        batches = self._requests.of_failures(
            round, failures, pool, batches=config.batches, size=config.batch
        )
        deepen = self._requests.deepen(round, pool, config.deepen)
        broaden = self._requests.broaden(round, pool, config.broaden)
        return [each for each in (*batches, deepen, broaden) if each is not None]

    def _routing(
        self, round: int, gathering: ProposalCollector, pool: Pool
    ) -> list[OptimizerRequest]:
        """Return the request for questions about queries, if any are wanted."""
        if not self._queries_wanted:
            return []
        news = [each for each in gathering.taken if each.kind is PerspectiveKind.RESPONSE]
        known, _ = pool.add(each for each in gathering.taken if each.kind is PerspectiveKind.QUERY)
        request = self._requests.route(round, news, known)
        return [] if request is None else [request]

    async def _do(
        self,
        asked: Sequence[OptimizerRequest],
        context: AuthorContext,
        done: StepResults[OptimizerRequest],
        gathering: ProposalCollector,
    ) -> bool:
        """Do some requests and take in what they bring, in their own order."""
        before = self.usage
        whole = await do_steps(
            asked,
            replace(context, spent=lambda now: context.spent(before + now)),
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

    def _gathering(self, pool: Pool) -> ProposalCollector:
        return ProposalCollector(pool, self._config.answers, queries_wanted=self._queries_wanted)

    def _writer(self) -> Writer:
        return Writer(self._engine, self._config.attempts, self._extra_body, who="the optimizer")

    @contextmanager
    def _counted(self, done: StepResults[OptimizerRequest]) -> Iterator[None]:
        """Add up what the work costs, also when it ends in an error."""
        try:
            yield
        finally:
            self.usage += done.usage
            self.lost += done.lost


def _asking_again(asked: Sequence[OptimizerRequest], context: AuthorContext) -> AuthorContext:
    """Return a context that has forgotten failed requests if there was nothing else.

    A round that went on without some is resumed without them; where all failed, none went on.
    """
    if not all(request.was_skipped(context.known) for request in asked):
        return context
    keys = {request.key for request in asked}
    return replace(
        context, known={key: context.known[key] for key in context.known if key not in keys}
    )


def _cut_short(context: AuthorContext) -> CutShort:
    return "stopped" if context.stop.is_set() else "out of money"


def _stop_if_all_failed(
    asked: Sequence[OptimizerRequest], done: StepResults[OptimizerRequest]
) -> None:
    failed = done.failed
    if not failed or len(failed) < len(asked):
        return
    named = [f"{request.name}: {reason}" for request, reason in failed.items()][:SHOWN_FAILURES]
    more = f"\nand {len(failed) - SHOWN_FAILURES} more." if len(failed) > SHOWN_FAILURES else ""
    raise ChecklistError(
        "The optimizer brought nothing; every request failed:\n" + "\n".join(named) + more,
        hint="Run the same command again to ask once more, or use another `evolve.optimizer`.",
    )


def _proposals(
    asked: Sequence[OptimizerRequest],
    gathering: ProposalCollector,
    done: StepResults[OptimizerRequest],
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

"""The optimizer: a strong LLM that proposes perspectives.

A round analyzes mistakes (semantic back-propagation), rewords the most important perspectives
(in depth), looks for aspects that no perspective covers (in breadth), and derives questions about
queries from the new ones. Every answered request is journaled, so the same round over the same
pool is replayed without a call.
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
from rocketeval.checklists.instance import AuthorTrial, Writer
from rocketeval.config import EvolveConfig
from rocketeval.engines.base import Engine, confirm_recorded, status_of
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
from rocketeval.store.journal import PaidWork

CutShort = Literal["stopped", "out of money"]


class RejectionReason(StrEnum):
    """Why a proposal was rejected."""

    REPEAT = "repeat"
    """It has the same words as an existing perspective."""
    NEAR_DUPLICATE = "twin"
    """It is a near-duplicate of an existing perspective."""
    UNWANTED = "unwanted"
    """It is about queries, and the settings keep none of these."""


@dataclass(frozen=True, slots=True)
class RejectedProposal:
    """A rejected proposal."""

    text: str
    kind: PerspectiveKind
    step: str
    """The request that proposed it."""
    why: RejectionReason
    repeats: str | None = None
    """Text of the perspective that it repeats."""


@dataclass(frozen=True)
class Proposals:
    """The proposals of an optimizer, with their origin and cost."""

    perspectives: tuple[Perspective, ...] = ()
    """New perspectives in the configured answer formats, in an order independent of timing."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """The request that proposed each perspective, by perspective id."""
    dropped: tuple[RejectedProposal, ...] = ()
    """Rejected proposals."""
    analyses: Mapping[str, str] = field(default_factory=dict)
    """The optimizer's analyses of mistakes, by request."""
    traces: Mapping[str, AuthoringTrace] = field(default_factory=dict)
    """Attempts, refusals and usage of each request, including failed ones."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Failed requests with their reason."""
    reused: int = 0
    """Number of requests reused from earlier commands."""
    usage: Usage = field(default_factory=Usage)
    """Usage of the other requests."""
    lost: int = 0
    """Number of calls without an answer; the provider may still charge for them."""
    cut_short: CutShort | None = None
    """Why some requests were not sent; None if all were."""


class ProposalCollector:
    """Collects proposals request by request, and rejects duplicates."""

    def __init__(self, pool: Pool, answers: Answers, *, queries_wanted: bool) -> None:
        self.taken: list[Perspective] = []
        """New perspectives, each in its first answer format."""
        self.analyses: dict[str, str] = {}
        self.dropped: list[RejectedProposal] = []
        self._steps: dict[tuple[PerspectiveKind, str], str] = {}
        self._asked = KnownQuestions(pool)
        self._answers = answers
        self._queries_wanted = queries_wanted

    def take(self, request: OptimizerRequest, lines: Sequence[str]) -> None:
        """Add the proposals of a request."""
        if request.ask is RequestPurpose.FAILURES:
            self.analyses[request.name] = read_failures("\n".join(lines)).analysis
        for proposal in proposed(request, lines, formats_of(self._answers)[0]):
            self._take(request, proposal)

    def perspectives(self) -> tuple[Perspective, ...]:
        """Return the accepted perspectives in all configured answer formats."""
        return with_formats(self.taken, self._answers)

    def steps(self) -> dict[str, str]:
        """Return the request that proposed each perspective, by perspective id."""
        return {each.id: self._steps[each.kind, each.text] for each in self.perspectives()}

    def _take(self, request: OptimizerRequest, proposal: Perspective) -> None:
        duplicate = self._asked.duplicate_of(proposal)
        if proposal.kind is PerspectiveKind.QUERY and not self._queries_wanted:
            self._drop(request, proposal, RejectionReason.UNWANTED)
        elif duplicate is not None:
            self._drop(
                request,
                proposal,
                RejectionReason.REPEAT if duplicate.exact else RejectionReason.NEAR_DUPLICATE,
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
    """Yield the perspectives in a request's journaled lines, those about responses in `form`."""
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
        """Usage so far, including unreadable answers."""
        self.lost = 0
        """Number of calls without an answer."""
        # A round may do without some requests, so only many failures in a row give it up.
        self._trial = AuthorTrial(config.attempts, proven=True)

    @property
    def pulse(self) -> EngineStatus:
        """Return the current status of its engine."""
        return status_of(self._engine)

    async def prepare(self) -> None:
        """Raise EngineError unless the optimizer answers."""
        await self._engine.ready()

    def answers_recorded(self, *, everything: bool = False) -> None:
        """Tell its engine that the answers are recorded."""
        confirm_recorded(self._engine, everything=everything)

    async def aclose(self) -> None:
        """Close the engine."""
        await self._engine.aclose()

    async def decompose(self, guidelines: str, pool: Pool, context: AuthorContext) -> Proposals:
        """Return the questions in annotation guidelines that `pool` lacks."""
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
        """Return a round's proposals for `pool`; raise ChecklistError if every request failed.

        If the command was stopped or reached its cost limit, `cut_short` says so, and the same
        call continues from there.
        """
        gathering = self._gathering(pool)
        done: StepResults[OptimizerRequest] = StepResults()
        asked = self._of_round(round, failures, pool)
        with self._counted(done):
            whole = await self._do(asked, _asking_again(asked, context), done, gathering)
            _stop_if_all_failed(asked, done)
            # The other requests see only the pool and run concurrently; routing sees their results.
            last = self._routing(round, gathering, pool) if whole else []
            whole = whole and await self._do(last, context, done, gathering)
        return _proposals([*asked, *last], gathering, done, None if whole else _cut_short(context))

    def most_requests(
        self,
        round: int,
        failures: Sequence[FailedCase],
        pool: Pool,
        known: Mapping[bytes, PaidWork],
    ) -> int:
        """Return the maximum number of requests that `propose` would send, with all attempts."""
        gathering = self._gathering(pool)
        done: StepResults[OptimizerRequest] = StepResults()
        asked = self._of_round(round, failures, pool)
        left = done.take_known(asked, known, skip=True)
        if left or not done.lines:
            # The routing request depends on these.
            return self._config.attempts * (len(left or asked) + self._queries_wanted)
        for request, lines in done.lines.items():
            gathering.take(request, lines)
        last = self._routing(round, gathering, pool)
        return self._config.attempts * len(done.take_known(last, known, skip=True))

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
        """Return the request for questions about queries, if the settings keep any."""
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
        """Send requests and collect their proposals in request order."""
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
            trial=self._trial,
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
        """Add up the usage of the work, even after an error."""
        try:
            yield
        finally:
            self.usage += done.usage
            self.lost += done.lost


def _asking_again(asked: Sequence[OptimizerRequest], context: AuthorContext) -> AuthorContext:
    """Return a context that retries failed requests if all of them failed.

    A round that continued without some requests is resumed without them.
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
        "The optimizer proposed nothing; every request failed:\n" + "\n".join(named) + more,
        hint="Run the same command again to retry, or use another `evolve.optimizer`.",
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

"""What came of an optimizer's work: new perspectives, and what was not taken and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Literal

from rocketeval.checklists.trace import Trace
from rocketeval.evolve.forms import Answers, forms_of, with_forms
from rocketeval.evolve.perspective import EXPLORED, Form, Kind, Origin, Perspective, Pool
from rocketeval.evolve.requests import Ask, Request, read_failures, replies_in
from rocketeval.evolve.twins import Asked
from rocketeval.prompts.read_perspectives import read_questions
from rocketeval.records import Usage

CutShort = Literal["stopped", "out of money"]


class Why(StrEnum):
    """Why a proposal was not taken."""

    REPEAT = "repeat"
    """It has the same words as one that is there."""
    TWIN = "twin"
    """It asks almost the same, by its words, as one that is there."""
    UNWANTED = "unwanted"
    """It is about queries, of which none are kept."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """A proposal that was not taken."""

    text: str
    kind: Kind
    step: str
    """The request that brought it."""
    why: Why
    repeats: str | None = None
    """The perspective that asks the same."""


@dataclass(frozen=True)
class Proposals:
    """What an optimizer brought, and how it came about."""

    perspectives: tuple[Perspective, ...] = ()
    """What is new, in the wanted forms, in an order that the optimizer's speed does not change."""
    steps: Mapping[str, str] = field(default_factory=dict)
    """The request that brought each, by its id."""
    dropped: tuple[Dropped, ...] = ()
    """What was not taken, and why."""
    analyses: Mapping[str, str] = field(default_factory=dict)
    """What the optimizer said about mistakes, by request."""
    traces: Mapping[str, Trace] = field(default_factory=dict)
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


class Gathering:
    """Takes in answers one request after the other, and leaves out what repeats."""

    def __init__(self, pool: Pool, answers: Answers, *, queries_wanted: bool) -> None:
        self.taken: list[Perspective] = []
        """New perspectives, each in its first form."""
        self.analyses: dict[str, str] = {}
        self.dropped: list[Dropped] = []
        self._steps: dict[tuple[Kind, str], str] = {}
        self._asked = Asked(pool)
        self._answers = answers
        self._queries_wanted = queries_wanted

    def take(self, request: Request, lines: Sequence[str]) -> None:
        """Take in what a request brought."""
        if request.ask is Ask.FAILURES:
            self.analyses[request.name] = read_failures("\n".join(lines)).analysis
        for proposal in proposed(request, lines, forms_of(self._answers)[0]):
            self._take(request, proposal)

    def perspectives(self) -> tuple[Perspective, ...]:
        """Return what was taken, in all wanted forms."""
        return with_forms(self.taken, self._answers)

    def steps(self) -> dict[str, str]:
        """Return the request that brought each perspective, by its id."""
        return {each.id: self._steps[each.kind, each.text] for each in self.perspectives()}

    def _take(self, request: Request, proposal: Perspective) -> None:
        twin = self._asked.twin_of(proposal)
        if proposal.kind is Kind.QUERY and not self._queries_wanted:
            self._drop(request, proposal, Why.UNWANTED)
        elif twin is not None:
            self._drop(request, proposal, Why.REPEAT if twin.exact else Why.TWIN, twin.of.text)
        else:
            self._asked.add(proposal)
            self._steps[proposal.kind, proposal.text] = request.name
            self.taken.append(proposal)

    def _drop(
        self, request: Request, proposal: Perspective, why: Why, repeats: str | None = None
    ) -> None:
        self.dropped.append(Dropped(proposal.text, proposal.kind, request.name, why, repeats))


def proposed(request: Request, lines: Sequence[str], form: Form) -> Iterator[Perspective]:
    """Yield what journaled lines of a request propose; questions about responses in `form`."""
    text = "\n".join(lines)
    if request.ask is Ask.FAILURES:
        found = read_failures(text)
        for each in found.about_responses:
            yield Perspective(each, Kind.RESPONSE, Origin.FAILURES, form, (), request.round)
        for each in found.about_queries:
            yield Perspective(each, Kind.QUERY, Origin.FAILURES, Form.CHOICE, (), request.round)
    elif request.ask in (Ask.DEEPEN, Ask.ROUTING):
        for source, reply in zip(
            request.sources, replies_in(request.ask, text, len(request.sources)), strict=True
        ):
            if reply is not None:
                yield _made_from(source, reply, request, form)
    else:
        origin = Origin.RULE if request.ask is Ask.DECOMPOSE else Origin.BREADTH
        for each in read_questions(text, 1, len(lines)):
            yield Perspective(each, Kind.RESPONSE, origin, form, (), request.round)


def _made_from(source: Perspective, text: str, request: Request, form: Form) -> Perspective:
    parents = (source.id,)
    if request.ask is Ask.ROUTING:
        kind, origin = Kind.QUERY, Origin.ROUTING
        return Perspective(text, kind, origin, Form.CHOICE, parents, request.round, source.types)
    origin = Origin.MIX if source.origin in EXPLORED else Origin.DEPTH
    return Perspective(text, Kind.RESPONSE, origin, form, parents, request.round, source.types)

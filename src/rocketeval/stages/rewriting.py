"""Let an author rewrite flagged items, a checklist a request, and pay for each once."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import orjson

from rocketeval.budget import Purse
from rocketeval.checklists.asking import Writer, list_tokens, pay_for
from rocketeval.config import AuthorConfig, EngineConfig
from rocketeval.engines.base import Engine, pulse_of
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.lint.fixing import Attempts, Request, Settled, find_problems
from rocketeval.lint.item_text import Context
from rocketeval.lint.static import context_of
from rocketeval.observing import Observer
from rocketeval.prompts.neutralise import RULES
from rocketeval.prompts.render import Template
from rocketeval.prompts.rewrite_request import NEEDS, render_rewrite_request
from rocketeval.records import Checklist, Usage
from rocketeval.store.authored import AuthoredJournal
from rocketeval.workers import run_workers

STAGE = "rewrite"
ITEM_TOKENS = 150
"""What one new question is long at most."""


@dataclass
class Rewriting:
    """What came of some requests, by their names."""

    settled: dict[str, Settled] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Why nothing could be taken for others."""
    reused: int = 0
    """Requests that were paid for earlier."""
    usage: Usage = field(default_factory=Usage)


class Rewriter:
    """Asks an engine, with everything that was paid for earlier at hand."""

    def __init__(
        self,
        config: AuthorConfig,
        section: EngineConfig,
        engine: Engine,
        journal: AuthoredJournal,
        candidates: Sequence[str],
        run: str | None = None,
    ) -> None:
        self._attempts = config.attempts
        self._extra_body = section.extra_body
        self._model = section.model
        self._engine = engine
        self._journal = journal
        self._known: dict[bytes, tuple[str, ...]] = {
            key: paid[1] for key, paid in journal.known().items()
        }
        self._candidates = candidates
        self._run = run
        self._template = Template.load("rewrite", needs=NEEDS)
        self.digest = content_hash(
            "rewrite", self._model, self._extra_body, self._template.hash, RULES
        )

    def identity(self, request: Request) -> bytes:
        """Return what is the same for two requests that would be asked in the same words."""
        return self._keys(self._asked(request))[0]

    def paid_for(self, request: Request) -> Settled | None:
        """Return what was given for it, or an equal one, before; None when it has to be asked for.

        What cannot be used any more does not hide what was left unfinished later.
        """
        for key in self._keys(self._asked(request)):
            settled = self._from_lines(request, self._known.get(key, ()))
            if settled is not None:
                return settled
        return None

    def writer(self) -> Writer:
        """Return what asks for one request."""
        return Writer(self._engine, self._attempts, self._extra_body)

    def most(self, request: Request) -> Usage:
        """Return what all attempts together use at most."""
        return self.writer().most(self._asked(request), _longest(request))

    async def rewrite(self, request: Request, writer: Writer) -> Settled:
        """Return what the author writes, recorded; ChecklistError when nothing can be taken."""
        asked = self._asked(request)
        whole, in_part = self._keys(asked)
        attempts = Attempts(request, self._context(request))
        try:
            settled = await writer.write(asked, attempts.read, _longest(request))
        except ChecklistError:
            best = attempts.salvage()
            if best is None:
                raise
            settled = best
        # Also what was salvaged is no failure: there is something to take.
        effort = replace(writer.effort, failure=None)
        key = in_part if settled.left else whole
        lines = _to_lines(request, settled)
        named = f"rewrite {request.checklist.query_id}"
        self._journal.append(key, Checklist(named, lines, self._model), effort, self._run)
        self._known[key] = lines
        return settled

    def _asked(self, request: Request) -> str:
        wrong = {
            number: [found.why for found in findings]
            for number, findings in request.findings.items()
        }
        return render_rewrite_request(self._template, request.query, request.checklist, wrong)

    def _keys(self, asked: str) -> tuple[bytes, bytes]:
        """Return the identity of the work, and of what few attempts left unfinished of it."""
        whole = content_hash("rewrite", self.digest.hex(), asked)
        return whole, content_hash("rewrite in part", whole.hex(), self._attempts)

    def _context(self, request: Request) -> Context:
        return context_of(request.query, self._candidates)

    def _from_lines(self, request: Request, lines: Sequence[str]) -> Settled | None:
        """Return what a row of the journal holds; None if it cannot be used."""
        try:
            rows = [orjson.loads(line) for line in lines]
            if [row["item"] for row in rows] != list(request.numbers):
                return None
            new = {row["item"]: row["new"] for row in rows if "new" in row}
            left = {row["item"]: str(row["left"]) for row in rows if "left" in row}
            # Rules may have become stricter since.
            flagged = find_problems(request, new, self._context(request))
        except (ChecklistError, KeyError, TypeError, ValueError):
            return None
        return None if flagged else Settled(new, left)


async def rewrite_all(
    requests: Sequence[Request],
    rewriter: Rewriter,
    engine: Engine,
    observer: Observer,
    stop: asyncio.Event,
    purse: Purse | None,
) -> Rewriting:
    """Ask for every request that was not paid for, several at once; what is finished is kept.

    Requests in the same words are asked for once, and each gets what came of it.
    Fewer have an outcome than there are requests when it was stopped, or the `purse` was empty.
    """
    done = Rewriting()
    left: dict[bytes, list[Request]] = {}
    for request in requests:
        settled = rewriter.paid_for(request)
        if settled is None:
            left.setdefault(rewriter.identity(request), []).append(request)
        else:
            done.settled[request.name] = settled
    done.reused = len(done.settled)
    observer.stage_began(STAGE, len(requests))
    observer.watched(partial(pulse_of, engine))
    observer.reused(done.reused, 0)
    for _ in done.settled:
        observer.advanced()
    remaining = iter(left.values())

    async def work() -> None:
        for same in remaining:
            for request in same:
                known = request is not same[0] and _take_over(request, same[0], rewriter, done)
                if not known and not await _ask(request, rewriter, done, stop, purse):
                    return
                observer.spent(done.usage)
                observer.advanced()

    if left:
        await engine.ready()
        await run_workers(work, engine.in_flight, drop_at=stop if engine.durable else None)
    return done


def _take_over(request: Request, equal: Request, rewriter: Rewriter, done: Rewriting) -> bool:
    """Give a request what came of an equal one; False if it has to be asked for all the same."""
    if equal.name in done.failures:
        done.failures[request.name] = done.failures[equal.name]
        return True
    settled = rewriter.paid_for(request)
    if settled is not None:
        done.settled[request.name] = settled
    return settled is not None


async def _ask(
    request: Request,
    rewriter: Rewriter,
    done: Rewriting,
    stop: asyncio.Event,
    purse: Purse | None,
) -> bool:
    """Ask for one request, and pay; False when it was stopped, or the `purse` was empty, before."""
    writer = rewriter.writer()
    ask = partial(_one, request, rewriter, writer, done)
    try:
        return await pay_for(ask, writer, rewriter.most(request), stop=stop, purse=purse)
    finally:
        done.usage += writer.usage


async def _one(request: Request, rewriter: Rewriter, writer: Writer, done: Rewriting) -> None:
    try:
        done.settled[request.name] = await rewriter.rewrite(request, writer)
    except ChecklistError as error:
        done.failures[request.name] = error.message


def _longest(request: Request) -> int:
    return list_tokens(len(request.numbers), ITEM_TOKENS)


def _to_lines(request: Request, settled: Settled) -> tuple[str, ...]:
    def row(number: int) -> Mapping[str, Any]:
        if number in settled.new:
            return {"item": number, "new": settled.new[number]}
        return {"item": number, "left": settled.left[number]}

    return tuple(orjson.dumps(row(number)).decode() for number in request.numbers)

"""Which flagged items an author is asked to rewrite, and what is taken of what it writes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from rocketeval.budget import PricedBudget
from rocketeval.checklists.instance import Writer, list_tokens, pay_for
from rocketeval.config import AuthorConfig, EngineConfig
from rocketeval.engines.base import Engine, status_of
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.lint.findings import KINDS, ItemFinding
from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.static import check_item, context_of, find_near_duplicates
from rocketeval.observer import Observer
from rocketeval.prices import PricedUsage
from rocketeval.prompts.parse import DROP, NEEDS, Unreadable, read_rewrites, render_rewrite_request
from rocketeval.prompts.render import FIRST_RULES, Template
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import AuthoredJournal
from rocketeval.workers import GRACE_SECONDS, run_workers, unless_stopped

OFFERED = (
    *(kind for kind, about in KINDS.items() if not about.behavioural),
    "unanswered",
    "backwards",
)
"""Kinds that are rewritten unless others are named: what is wrong with the item itself.

Left out are kinds that say how these candidates fare with it (every response passes, or fails, or
gets what another item gives it), how sure this judge is, and what labels say: a checklist that was
fitted to the labels cannot be held against them any more."""


@dataclass(frozen=True)
class RewriteRequest:
    """One checklist with the items that are to be rewritten."""

    checklist: Checklist
    """The query's own, or the one that all queries share."""
    query: Query | None
    """None for a shared checklist, which is asked about without any."""
    query_ids: tuple[str, ...]
    """Every query that has this checklist."""
    findings: Mapping[int, Sequence[ItemFinding]]
    """What is wrong with each of these items, by their numbers from 1, in order."""

    @property
    def name(self) -> str:
        """What it is called for people."""
        return self.checklist.query_id if self.query else f"all {len(self.query_ids):,} queries"

    @property
    def numbers(self) -> tuple[int, ...]:
        """The items' numbers, in order."""
        return tuple(self.findings)

    def old(self, number: int) -> str:
        """Return an item as it is."""
        return self.checklist.items[number - 1]


@dataclass(frozen=True)
class RewriteResult:
    """What comes of one request, by the items' numbers."""

    new: Mapping[int, str | None]
    """The new question; None where the item is dropped."""
    left: Mapping[int, str] = field(default_factory=dict)
    """Why others stay as they were."""


def gather_requests(
    findings: Iterable[ItemFinding],
    checklists: Mapping[str, Checklist],
    queries: Mapping[str, Query],
    *,
    shared: bool,
) -> list[RewriteRequest]:
    """Return a request for every checklist that has findings, in the checklists' order."""
    by_query: dict[str, dict[int, list[ItemFinding]]] = {}
    for found in findings:
        by_query.setdefault(found.query_id, {}).setdefault(found.item, []).append(found)
    return [
        RewriteRequest(
            checklist,
            None if shared else queries[query_id],
            tuple(checklists) if shared else (query_id,),
            dict(sorted(by_query[query_id].items())),
        )
        for query_id, checklist in checklists.items()
        if query_id in by_query
    ]


def count_unoffered(findings: Iterable[ItemFinding], offered: Collection[str]) -> dict[str, int]:
    """Return how many items have findings of kinds that are not offered, by kind."""
    return dict(Counter(found.kind for found in findings if found.kind not in offered))


def with_rewrites(checklist: Checklist, new: Mapping[int, str | None]) -> Checklist:
    """Return the checklist with items replaced, or left out, by their numbers from 1.

    >>> with_rewrites(Checklist("q", ("a", "b", "c")), {1: "A", 2: None}).items
    ('A', 'c')
    """
    kept = [place for place in range(len(checklist.items)) if new.get(place + 1, "") is not None]
    groups = checklist.groups
    return replace(
        checklist,
        items=tuple(new.get(place + 1) or checklist.items[place] for place in kept),
        groups=None if groups is None else tuple(groups[place] for place in kept),
    )


def find_problems(
    request: RewriteRequest, new: Mapping[int, str | None], context: Context
) -> dict[int, str]:
    """Return what is wrong with new questions, by number: by the same rules that flag items."""
    problems: dict[int, str] = {}
    if all(new.get(number, "") is None for number in range(1, len(request.checklist.items) + 1)):
        return dict.fromkeys(new, "the checklist would lose all its items")
    for number, question in new.items():
        if question is None:
            continue
        if question.split() == request.old(number).split():
            problems[number] = "it is the old question unchanged"
            continue
        reasons = check_item(ItemText(question), context)
        if reasons:
            listed = (f"{kind}: {why.rstrip('.')}" for kind, why in reasons.items())
            problems[number] = "; ".join(listed)
    return {**_repeats(request, new), **problems}


def _repeats(request: RewriteRequest, new: Mapping[int, str | None]) -> dict[int, str]:
    """Return the new questions that ask what another item of the new checklist asks."""
    items = request.checklist.items
    kept = [number for number in range(1, len(items) + 1) if new.get(number, "") is not None]
    texts = [ItemText(new.get(number) or request.old(number)) for number in kept]
    found: dict[int, str] = {}
    for place, first, _ in find_near_duplicates(texts):
        later, earlier = kept[place], kept[first]
        if later in new:
            found[later] = f"it asks the same as item {earlier}"
        elif earlier in new:
            found[earlier] = f"it asks the same as item {later}"
    return found


class RewriteAttempts:
    """Reads what an author writes for one request, and remembers the best of it."""

    def __init__(self, request: RewriteRequest, context: Context) -> None:
        self._request = request
        self._context = context
        self._best: dict[int, str | None] | None = None
        self._fewest = 0

    def read(self, text: str) -> RewriteResult:
        """Return the new questions; Unreadable when any is missing, or flagged itself."""
        numbers = self._request.numbers
        new = dict(zip(numbers, read_rewrites(text, numbers), strict=True))
        problems = find_problems(self._request, new, self._context)
        if not problems:
            return RewriteResult(new)
        if self._best is None or len(problems) < self._fewest:
            self._best, self._fewest = new, len(problems)
        if all(question is None for question in new.values()) and len(problems) == len(new):
            raise Unreadable(
                "every item dropped",
                f"{DROP} stands for every item of the checklist; one must stay at least.",
            )
        listed = " ".join(f"item {number}: {why}." for number, why in problems.items())
        raise Unreadable("a new question is flagged", f"what you wrote for {listed}")

    def salvage(self) -> RewriteResult | None:
        """Return what can be taken of the best list; None when no list could be read at all."""
        if self._best is None:
            return None
        new, left = dict(self._best), {}
        # An item that goes back to its old text may be the near-duplicate of another's new one.
        while problems := find_problems(self._request, new, self._context):
            for number, why in problems.items():
                del new[number]
                left[number] = f"no proposal was good enough; the best: {why}"
        return RewriteResult(new, dict(sorted(left.items())))


class FixOutcome(StrEnum):
    """What became of an item."""

    REWRITTEN = "rewritten"
    DROPPED = "dropped"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class ItemChange:
    """What is proposed for one flagged item."""

    query_id: str
    """The query; the first one where all queries share one checklist."""
    queries: int
    """How many queries have this checklist: more than one where all share it."""
    item: int
    """Its number in the old checklist, from 1."""
    outcome: FixOutcome
    old: str
    new: str | None
    """The new question; None unless it is rewritten."""
    kinds: tuple[str, ...]
    """What is wrong with the old one."""
    why: tuple[str, ...]
    """The same in words, as the author was told."""
    left_because: str | None = None
    """Why it stays as it was; None unless it does."""


@dataclass(frozen=True, slots=True)
class Fixes:
    """What is proposed for the flagged items of a run. The run itself is as it was."""

    source: str
    author: str
    """The LLM that was asked."""
    asked: int
    """Checklists with items to rewrite."""
    changes: tuple[ItemChange, ...]
    """One for every item that was to be rewritten."""
    rewritten: int
    dropped: int
    left: int
    """Items that stay as they were."""
    failures: Mapping[str, str]
    """Checklists for which nothing could be taken, and why."""
    not_offered: Mapping[str, int]
    """Items with findings of kinds that are rewritten only if they are named, by kind."""
    unasked: int
    """Checklists that were not reached before it was stopped; then nothing is written."""
    reused: int
    """Checklists that were paid for earlier."""
    usage: PricedUsage
    """What it cost."""
    checklists: tuple[Checklist, ...]
    """Every checklist of the run as it is proposed, unflagged ones too."""
    path: Path | None = None
    """The file they were written to; None where nothing was changed."""


def change_of(
    request: RewriteRequest, number: int, settled: RewriteResult | None, failure: str | None
) -> ItemChange:
    """Return what becomes of one item of a request."""
    findings = request.findings[number]
    new, left = None, failure
    outcome = FixOutcome.LEFT
    if settled is not None and number in settled.new:
        new, left = settled.new[number], None
        outcome = FixOutcome.DROPPED if new is None else FixOutcome.REWRITTEN
    elif settled is not None:
        left = settled.left[number]
    return ItemChange(
        query_id=request.checklist.query_id,
        queries=len(request.query_ids),
        item=number,
        outcome=outcome,
        old=request.old(number),
        new=new,
        kinds=tuple(found.kind for found in findings),
        why=tuple(found.why for found in findings),
        left_because=left,
    )


STAGE = "rewrite"
ITEM_TOKENS = 150
"""What one new question is long at most."""


@dataclass
class RewriteResults:
    """What came of some requests, by their names."""

    settled: dict[str, RewriteResult] = field(default_factory=dict)
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
            "rewrite", self._model, self._extra_body, self._template.hash, FIRST_RULES
        )

    def identity(self, request: RewriteRequest) -> bytes:
        """Return what is the same for two requests that would be asked in the same words."""
        return self._keys(self._asked(request))[0]

    def paid_for(self, request: RewriteRequest) -> RewriteResult | None:
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

    def most(self, request: RewriteRequest) -> Usage:
        """Return what all attempts together use at most."""
        return self.writer().most(self._asked(request), _longest(request))

    async def rewrite(self, request: RewriteRequest, writer: Writer) -> RewriteResult:
        """Return what the author writes, recorded; ChecklistError when nothing can be taken."""
        asked = self._asked(request)
        whole, in_part = self._keys(asked)
        attempts = RewriteAttempts(request, self._context(request))
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

    def _asked(self, request: RewriteRequest) -> str:
        wrong = {
            number: [found.why for found in findings]
            for number, findings in request.findings.items()
        }
        return render_rewrite_request(self._template, request.query, request.checklist, wrong)

    def _keys(self, asked: str) -> tuple[bytes, bytes]:
        """Return the identity of the work, and of what few attempts left unfinished of it."""
        whole = content_hash("rewrite", self.digest.hex(), asked)
        return whole, content_hash("rewrite in part", whole.hex(), self._attempts)

    def _context(self, request: RewriteRequest) -> Context:
        return context_of(request.query, self._candidates)

    def _from_lines(self, request: RewriteRequest, lines: Sequence[str]) -> RewriteResult | None:
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
        return None if flagged else RewriteResult(new, left)


async def rewrite_all(
    requests: Sequence[RewriteRequest],
    rewriter: Rewriter,
    engine: Engine,
    observer: Observer,
    stop: asyncio.Event,
    budget: PricedBudget | None,
) -> RewriteResults:
    """Ask for every request that was not paid for, several at once; what is finished is kept.

    Requests in the same words are asked for once, and each gets what came of it.
    Fewer have an outcome than there are requests when it was stopped, or the `budget` was empty.
    """
    done = RewriteResults()
    left: dict[bytes, list[RewriteRequest]] = {}
    for request in requests:
        settled = rewriter.paid_for(request)
        if settled is None:
            left.setdefault(rewriter.identity(request), []).append(request)
        else:
            done.settled[request.name] = settled
    done.reused = len(done.settled)
    observer.stage_began(STAGE, len(requests))
    observer.watched(partial(status_of, engine))
    observer.reused(done.reused, 0)
    for _ in done.settled:
        observer.advanced()
    remaining = iter(left.values())

    async def work() -> None:
        for same in remaining:
            for request in same:
                known = request is not same[0] and _take_over(request, same[0], rewriter, done)
                if not known and not await _ask(request, rewriter, done, stop, budget):
                    return
                observer.spent(done.usage)
                observer.advanced()

    if left:
        await unless_stopped(engine.ready(), stop)
        grace = 0.0 if engine.durable else GRACE_SECONDS
        await run_workers(work, engine.in_flight, stop=stop, grace=grace)
    return done


def _take_over(
    request: RewriteRequest, equal: RewriteRequest, rewriter: Rewriter, done: RewriteResults
) -> bool:
    """Give a request what came of an equal one; False if it has to be asked for all the same."""
    if equal.name in done.failures:
        done.failures[request.name] = done.failures[equal.name]
        return True
    settled = rewriter.paid_for(request)
    if settled is not None:
        done.settled[request.name] = settled
    return settled is not None


async def _ask(
    request: RewriteRequest,
    rewriter: Rewriter,
    done: RewriteResults,
    stop: asyncio.Event,
    budget: PricedBudget | None,
) -> bool:
    """Ask for one request, and pay; False when it was stopped, or the `budget` was spent."""
    writer = rewriter.writer()
    ask = partial(_one, request, rewriter, writer, done)
    try:
        return await pay_for(ask, writer, rewriter.most(request), stop=stop, budget=budget)
    finally:
        done.usage += writer.usage


async def _one(
    request: RewriteRequest, rewriter: Rewriter, writer: Writer, done: RewriteResults
) -> None:
    try:
        done.settled[request.name] = await rewriter.rewrite(request, writer)
    except ChecklistError as error:
        done.failures[request.name] = error.message


def _longest(request: RewriteRequest) -> int:
    return list_tokens(len(request.numbers), ITEM_TOKENS)


def _to_lines(request: RewriteRequest, settled: RewriteResult) -> tuple[str, ...]:
    def row(number: int) -> Mapping[str, Any]:
        if number in settled.new:
            return {"item": number, "new": settled.new[number]}
        return {"item": number, "left": settled.left[number]}

    return tuple(orjson.dumps(row(number)).decode() for number in request.numbers)

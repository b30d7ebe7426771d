"""Rewrites of flagged items by the author LLM, and the checks that accept or reject them."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from rocketeval.budget import PricedBudget
from rocketeval.checklists.instance import AuthorTrial, Writer, list_tokens, pay_for
from rocketeval.config import AuthorConfig, EngineConfig
from rocketeval.engines.base import Engine, status_of
from rocketeval.errors import ChecklistError
from rocketeval.hashing import content_hash
from rocketeval.lint.findings import KINDS, ItemFinding
from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.rubric_checks import not_checked
from rocketeval.lint.static import check_item, context_of, find_near_duplicates
from rocketeval.observer import Observer
from rocketeval.prices import PricedUsage
from rocketeval.prompts.parse import DROP, NEEDS, Unreadable, read_rewrites, render_rewrite_request
from rocketeval.prompts.render import FIRST_RULES, Template
from rocketeval.records import Checklist, Query, Usage
from rocketeval.store.journal import AuthoredJournal
from rocketeval.workers import GRACE_SECONDS, run_workers, unless_stopped

OFFERED = (
    *(kind for kind, about in KINDS.items() if about.wording and not about.behavioural),
    "unanswered",
    "backwards",
)
"""Kinds that are rewritten by default: problems of the item itself.

Other kinds depend on these candidates (every response passes or fails, or gets the answers of
another item), on this judge, or on labels: a checklist fitted to labels could no longer be tested
against them."""


@dataclass(frozen=True)
class RewriteRequest:
    """One checklist with the items to rewrite."""

    checklist: Checklist
    """The query's checklist, or the one that all queries share."""
    query: Query | None
    """None for a shared checklist."""
    query_ids: tuple[str, ...]
    """All queries with this checklist."""
    findings: Mapping[int, Sequence[ItemFinding]]
    """Findings by item number, from 1, in order."""

    @property
    def name(self) -> str:
        """Return a display name."""
        return self.checklist.query_id if self.query else f"all {len(self.query_ids):,} queries"

    @property
    def numbers(self) -> tuple[int, ...]:
        """Return the item numbers, in order."""
        return tuple(self.findings)

    def old(self, number: int) -> str:
        """Return the current text of an item."""
        return self.checklist.items[number - 1]


@dataclass(frozen=True)
class RewriteResult:
    """Result of one request, by item number."""

    new: Mapping[int, str | None]
    """The new question; None for a dropped item."""
    left: Mapping[int, str] = field(default_factory=dict)
    """The reason for each unchanged item."""


def gather_requests(
    findings: Iterable[ItemFinding],
    checklists: Mapping[str, Checklist],
    queries: Mapping[str, Query],
    *,
    shared: bool,
) -> list[RewriteRequest]:
    """Return one request per checklist with findings, in checklist order."""
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


def with_rewrites(checklist: Checklist, new: Mapping[int, str | None]) -> Checklist:
    """Return the checklist with items replaced or dropped, by item number.

    >>> with_rewrites(Checklist("q", ("a", "b", "c")), {1: "A", 2: None}).items
    ('A', 'c')
    """
    kept = [place for place in range(len(checklist.items)) if new.get(place + 1, "") is not None]
    groups, details = checklist.groups, checklist.details
    return replace(
        checklist,
        items=tuple(new.get(place + 1) or checklist.items[place] for place in kept),
        groups=None if groups is None else tuple(groups[place] for place in kept),
        details=None if details is None else tuple(details[place] for place in kept),
    )


def find_problems(
    request: RewriteRequest, new: Mapping[int, str | None], context: Context
) -> dict[int, str]:
    """Return the problems of new questions by item number, by the same checks that flag items."""
    problems: dict[int, str] = {}
    if all(new.get(number, "") is None for number in range(1, len(request.checklist.items) + 1)):
        return dict.fromkeys(new, "the checklist would lose all its items")
    for number, question in new.items():
        if question is None:
            continue
        if question.split() == request.old(number).split():
            problems[number] = "it is the old question unchanged"
            continue
        skipped = not_checked(request.checklist.detail(number - 1))
        reasons = check_item(ItemText(question), context)
        reasons = {kind: why for kind, why in reasons.items() if kind not in skipped}
        if reasons:
            listed = (f"{kind}: {why.rstrip('.')}" for kind, why in reasons.items())
            problems[number] = "; ".join(listed)
    return {**_repeats(request, new), **problems}


def _repeats(request: RewriteRequest, new: Mapping[int, str | None]) -> dict[int, str]:
    """Return the new questions that duplicate another item of the new checklist."""
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
    """Reader of an author's replies to one request, which remembers the best one."""

    def __init__(self, request: RewriteRequest, context: Context) -> None:
        self._request = request
        self._context = context
        self._best: dict[int, str | None] | None = None
        self._fewest = 0

    def read(self, text: str) -> RewriteResult:
        """Parse the new questions; raise Unreadable if one is missing or flagged itself."""
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
        """Return the usable part of the best reply; None if no reply could be parsed."""
        if self._best is None:
            return None
        new, left = dict(self._best), {}
        # An item that keeps its old text may nearly duplicate another's new text.
        while problems := find_problems(self._request, new, self._context):
            for number, why in problems.items():
                del new[number]
                left[number] = f"no proposal was good enough; the best: {why}"
        return RewriteResult(new, dict(sorted(left.items())))


class FixOutcome(StrEnum):
    """Outcome for one item."""

    REWRITTEN = "rewritten"
    DROPPED = "dropped"
    LEFT = "left"


@dataclass(frozen=True, slots=True)
class ItemChange:
    """Proposed change of one flagged item."""

    query_id: str
    """The query; the first one if all queries share a checklist."""
    queries: int
    """Number of queries with this checklist."""
    item: int
    """Item number in the old checklist, from 1."""
    outcome: FixOutcome
    old: str
    new: str | None
    """The new question; None unless rewritten."""
    kinds: tuple[str, ...]
    """Kinds of findings on the old item."""
    why: tuple[str, ...]
    """The findings as the author read them."""
    left_because: str | None = None
    """The reason if it is unchanged, else None."""


@dataclass(frozen=True, slots=True)
class Fixes:
    """Proposed changes of the flagged items of a run. The run itself is unchanged."""

    source: str
    author: str
    """The author LLM."""
    asked: int
    """Checklists with items to rewrite."""
    changes: tuple[ItemChange, ...]
    """One per item to rewrite."""
    rewritten: int
    dropped: int
    left: int
    """Unchanged items."""
    failures: Mapping[str, str]
    """Reasons for checklists without a usable reply."""
    not_offered: Mapping[str, int]
    """Items with findings that are rewritten only with `--kind`, by kind."""
    unasked: int
    """Checklists not reached before the stop; if any, no file is written."""
    reused: int
    """Checklists whose rewrites were reused from the cache."""
    usage: PricedUsage
    """Usage and cost."""
    checklists: tuple[Checklist, ...]
    """All proposed checklists of the run, including unflagged ones."""
    path: Path | None = None
    """The proposal file; None if nothing was changed."""


def change_of(
    request: RewriteRequest, number: int, settled: RewriteResult | None, failure: str | None
) -> ItemChange:
    """Return the change of one item of a request."""
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
"""Maximum tokens of one new question."""


@dataclass
class RewriteResults:
    """Results of requests, by name."""

    settled: dict[str, RewriteResult] = field(default_factory=dict)
    failures: dict[str, str] = field(default_factory=dict)
    """Reasons for requests without a usable reply."""
    reused: int = 0
    """Requests reused from the cache."""
    usage: Usage = field(default_factory=Usage)


class Rewriter:
    """Sends rewrite requests to an engine, and reuses earlier results from the journal."""

    def __init__(
        self,
        config: AuthorConfig,
        section: EngineConfig,
        engine: Engine,
        journal: AuthoredJournal,
        candidates: Sequence[str],
        run: str | None = None,
    ) -> None:
        self.attempts = config.attempts
        self._extra_body = section.extra_body
        self.model = section.model
        self._engine = engine
        self._journal = journal
        self._known: dict[bytes, tuple[str, ...]] = {
            key: paid[1] for key, paid in journal.known().items()
        }
        self._candidates = candidates
        self._run = run
        self._template = Template.load("rewrite", needs=NEEDS)
        self.digest = content_hash(
            "rewrite", self.model, self._extra_body, self._template.hash, FIRST_RULES
        )

    def identity(self, request: RewriteRequest) -> bytes:
        """Return a key that is equal for requests with the same prompt."""
        return self._keys(self._asked(request))[0]

    def paid_for(self, request: RewriteRequest) -> RewriteResult | None:
        """Return the recorded result of this or an equal request; None if it must be sent."""
        # An unusable record does not hide a later partial one.
        for key in self._keys(self._asked(request)):
            settled = self._from_lines(request, self._known.get(key, ()))
            if settled is not None:
                return settled
        return None

    def writer(self) -> Writer:
        """Return a writer for one request."""
        return Writer(self._engine, self.attempts, self._extra_body)

    def most(self, request: RewriteRequest) -> Usage:
        """Return the maximum usage of all attempts together."""
        return self.writer().most(self._asked(request), _longest(request))

    async def rewrite(self, request: RewriteRequest, writer: Writer) -> RewriteResult:
        """Send a request and record the result; raise ChecklistError without a usable reply."""
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
        # A partly usable reply does not count as a failure.
        effort = replace(writer.effort, failure=None)
        key = in_part if settled.left else whole
        lines = _to_lines(request, settled)
        named = f"rewrite {request.checklist.query_id}"
        self._journal.append(key, Checklist(named, lines, self.model), effort, self._run)
        self._known[key] = lines
        return settled

    def _asked(self, request: RewriteRequest) -> str:
        wrong = {
            number: [found.why for found in findings]
            for number, findings in request.findings.items()
        }
        return render_rewrite_request(self._template, request.query, request.checklist, wrong)

    def _keys(self, asked: str) -> tuple[bytes, bytes]:
        """Return the key of a complete result, and the key of a partial one."""
        whole = content_hash("rewrite", self.digest.hex(), asked)
        return whole, content_hash("rewrite in part", whole.hex(), self.attempts)

    def _context(self, request: RewriteRequest) -> Context:
        return context_of(request.query, self._candidates)

    def _from_lines(self, request: RewriteRequest, lines: Sequence[str]) -> RewriteResult | None:
        """Parse a journal row; None if it cannot be used."""
        try:
            rows = [orjson.loads(line) for line in lines]
            if [row["item"] for row in rows] != list(request.numbers):
                return None
            new = {row["item"]: row["new"] for row in rows if "new" in row}
            left = {row["item"]: str(row["left"]) for row in rows if "left" in row}
            # The checks may have become stricter since.
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
    """Send all requests that have no recorded result, concurrently; keep what is finished.

    Equal prompts are sent once. If stopped, or if the `budget` is spent, some have no result.
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
    remaining, trial = iter(left.values()), AuthorTrial(rewriter.attempts, proven=True)

    async def work() -> None:
        for same in remaining:
            for request in same:
                known = request is not same[0] and _reuse(request, same[0], rewriter, done)
                if not known and not await _ask(request, rewriter, done, stop, budget, trial):
                    return
                observer.spent(done.usage)
                observer.advanced()

    if left:
        await unless_stopped(engine.ready(), stop)
        grace = 0.0 if engine.durable else GRACE_SECONDS
        await run_workers(work, engine.in_flight, stop=stop, grace=grace)
        trial.raise_if_useless(rewriter.model, len(done.settled))
    return done


def _reuse(
    request: RewriteRequest, equal: RewriteRequest, rewriter: Rewriter, done: RewriteResults
) -> bool:
    """Give a request the result of an equal one; return False if it must still be sent."""
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
    trial: AuthorTrial,
) -> bool:
    """Send one request within the budget; return False if no more should be sent."""
    if not await trial.admit():
        return False
    writer = rewriter.writer()
    ask = partial(_one, request, rewriter, writer, done)
    try:
        return await pay_for(ask, writer, rewriter.most(request), stop=stop, budget=budget)
    finally:
        done.usage += writer.usage
        trial.settled(request.name in done.settled, done.failures.get(request.name), writer)


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

"""What a run has to do: its judgments, those that are there, and the tasks that are left.

What a grading has to do and what it did, wherever the judge runs.
bill: what a grading used, beside what its plan said.
Answers that are there already though the checklist was changed: only new items are asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Protocol

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists
from rocketeval.checklists.base import SharedAuthor, create_author
from rocketeval.checklists.write import authoring_key
from rocketeval.config import PriceConfig, RunConfig
from rocketeval.errors import ChecklistError, EngineRefused, EngineUnavailable, StageMissing
from rocketeval.grading.ask import Method, each_item_alone
from rocketeval.grading.loop import Grading
from rocketeval.grading.schedule import Identities, cells, unfinished_tasks
from rocketeval.hashing import combine
from rocketeval.observer import Expected, Observer
from rocketeval.prices import same_price, usage_facts
from rocketeval.prompts.render import GradingPrompt, Prompt
from rocketeval.records import (
    NO_ANSWER,
    Answer,
    Checklist,
    Failure,
    GradingTask,
    JudgeFingerprint,
    Judgment,
    Query,
    Response,
    Usage,
)
from rocketeval.store.inputs import Inputs
from rocketeval.store.ledger import Ledger, adopt_from_cache
from rocketeval.store.run import RunStore

Known = dict[bytes, dict[int, Answer]]


def asks_items_alone(method: Method) -> bool:
    """Whether what is asked about an item does not depend on the other items."""
    prompt = method.prompt
    return (
        method.asking is each_item_alone
        and isinstance(prompt, GradingPrompt)
        and type(prompt).endings is GradingPrompt.endings
    )


def known_answers(
    store: RunStore,
    method: Method,
    judge: bytes,
    checklists: Mapping[str, Checklist],
    finished: Collection[bytes],
    *,
    also: Sequence[RunStore] = (),
) -> Known:
    """Return, by the key of an unfinished judgment, the answers that need not be asked again.

    Those of tasks that failed half way, those that the judge gave to the same items of an earlier
    checklist, and those that it gave to them in the runs `also` named, about the same query and
    response. What is returned is held in memory; of the run itself it concerns edited queries
    alone.
    """
    known = {key: dict(answers) for key, answers in store.half_answered().items()}
    if not asks_items_alone(method):
        return known
    for source in (store, *also):
        if not source.inputs.exist:
            continue
        had = _had(source.inputs, checklists)
        if source is store:
            had = _without_current(had, checklists)
        theirs = finished if source is store else source.finished()
        pairs = list(_pairs(source.inputs, had, judge, checklists, finished, theirs))
        judged = source.judgments_of({old.hex() for _, old, _, _ in pairs}) if pairs else {}
        for new, old, now, before in pairs:
            for place, answer in _same_items(judged[old.hex()], now, before):
                known.setdefault(new, {}).setdefault(place, answer)
    return known


def _pairs(
    inputs: Inputs,
    had: Mapping[str, Sequence[Checklist]],
    judge: bytes,
    checklists: Mapping[str, Checklist],
    finished: Collection[bytes],
    theirs: Collection[bytes],
) -> Iterator[tuple[bytes, bytes, Checklist, Checklist]]:
    """Yield each unfinished judgment with one of `theirs` on the same response, latest first."""
    if not had:
        return
    for head in inputs.heads():
        if head.query_id not in had:
            continue
        seen = judge + inputs.queries[head.query_id].content_hash
        now = checklists[head.query_id]
        new = combine(seen, head.hash, now.content_hash)
        if new in finished:
            continue
        for before in had[head.query_id]:
            old = combine(seen, head.hash, before.content_hash)
            if old in theirs:
                yield new, old, now, before


def _had(inputs: Inputs, checklists: Mapping[str, Checklist]) -> dict[str, list[Checklist]]:
    """Return the checklists that queries have and had in a run, the latest first."""
    try:
        latest = list(inputs.checklists().values())
    except StageMissing:
        latest = []
    found: dict[str, list[Checklist]] = {}
    for before in chain(latest, reversed(inputs.earlier_checklists())):
        if before.query_id in checklists:
            found.setdefault(before.query_id, []).append(before)
    return found


def _without_current(
    had: Mapping[str, Sequence[Checklist]], checklists: Mapping[str, Checklist]
) -> dict[str, list[Checklist]]:
    """Return the others than a query has now, of the queries that have any.

    A run's own judgments under its checklist are finished, and most of its queries have no other.
    """
    others = {
        name: [one for one in own if one.content_hash != checklists[name].content_hash]
        for name, own in had.items()
    }
    return {name: own for name, own in others.items() if own}


def _same_items(
    judgment: Judgment, now: Checklist, before: Checklist
) -> Iterator[tuple[int, Answer]]:
    answers = dict(zip(before.items, judgment.answers, strict=True))
    for place, item in enumerate(now.items):
        answer = answers.get(item)
        if answer is not None and answer.status not in NO_ANSWER:
            yield place, answer


@dataclass
class PlannedChecklists:
    """The checklists a run will have, without writing any."""

    made: dict[str, Checklist] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)
    """Queries whose checklist an author would be paid for."""
    most: Usage = field(default_factory=Usage)
    """What writing those uses at most."""


async def foresee_checklists(
    store: RunStore, config: RunConfig, queries: Iterable[Query]
) -> PlannedChecklists:
    """Return the checklists that are there, and what writing the others would take."""
    imported = imported_checklists(open_benchmark(config.benchmark))
    author = create_author(config.author, imported, store.engine_home("author"))
    paid_for = store.authored(config.cache).known() if author.costly else {}
    found = PlannedChecklists()
    try:
        if isinstance(author, SharedAuthor) and (most := author.foresee(paid_for)) is not None:
            found.unwritten, found.most = {query.id for query in queries}, most
            return found
        shared = isinstance(author, SharedAuthor)
        for query in queries:
            if shared or not author.costly:
                try:
                    found.made[query.id] = await author.write(query)
                except ChecklistError:
                    continue
            elif (key := authoring_key(author, query)) in paid_for:
                paid = paid_for[key]
                found.made[query.id] = Checklist(query.id, paid.items, paid.author)
            else:
                found.unwritten.add(query.id)
                found.most += author.most(query)
    finally:
        await author.aclose()
    return found


class JudgingMaterial(Protocol):
    """What is to be judged: a benchmark, or what a judge is shown of one."""

    @property
    def queries(self) -> Sequence[Query]:
        """The queries."""
        ...

    def responses(self) -> Iterator[Response]:
        """Yield the responses, each time anew."""
        ...


class PlannedWork:
    """The judgments of one run by identity, found by reading the benchmark once."""

    def __init__(
        self,
        store: RunStore,
        config: RunConfig,
        loaded: JudgingMaterial,
        checklists: PlannedChecklists,
        judge: bytes,
        method: Method,
        *,
        also: Sequence[RunStore] = (),
    ) -> None:
        self.queries = {query.id: query for query in loaded.queries}
        self.checklists = checklists
        self._prompt: Prompt = method.prompt
        self._loaded = loaded
        self._identities = Identities(judge, self.queries, checklists.made)
        self.candidates: set[str] = set()
        self.responses: Counter[str] = Counter()
        """By query."""
        self.wanted: dict[bytes, str] = {}
        """Every judgment the run needs, with its query."""
        for response in loaded.responses():
            self.candidates.add(response.candidate)
            self.responses[response.query_id] += 1
            key = self._identities.key(response.query_id, response.content_hash)
            if key is not None:
                self.wanted.setdefault(key, response.query_id)
        finished = store.finished()
        self._known: Mapping[bytes, Mapping[int, Answer]] = known_answers(
            store, method, judge, checklists.made, finished, also=also
        )
        cached = store.cached(judge, config.cache)
        self.finished = sum(key in finished for key in self.wanted)
        self.from_cache = sum(key in cached and key not in finished for key in self.wanted)
        self.left = {key for key in self.wanted if key not in finished and key not in cached}
        """Judgments that are neither in the run nor in the cache."""

    def items(self) -> Counter[str]:
        """Return how many items are left to ask, by query."""
        asked: Counter[str] = Counter()
        for key, query_id in self.wanted.items():
            if key in self.left:
                items = len(self.checklists.made[query_id].items)
                asked[query_id] += items - len(self._known.get(key, ()))
        return asked

    def tasks(self) -> Iterator[tuple[GradingTask, list[str]]]:
        """Yield the tasks that are left, each with the prompts that will be asked."""
        given: set[bytes] = set()
        for response in self._loaded.responses():
            query_id = response.query_id
            key = self._identities.key(query_id, response.content_hash)
            if key is None or key not in self.left or key in given:
                continue
            given.add(key)
            query, checklist = self.queries[query_id], self.checklists.made[query_id]
            task = self._prompt.render(query, response, checklist, key)
            known = self._known.get(key, {})
            yield (
                task,
                [
                    task.prefix + suffix
                    for place, suffix in enumerate(task.suffixes)
                    if place not in known
                ],
            )


def identity(keys: Collection[bytes]) -> str:
    """Return a hash that stands for a set of judgments, so that a plan is held against its own."""
    return combine(*sorted(keys)).hex()


_ROWS = ("requests", "prompt_tokens", "computed_tokens", "completion_tokens", "cost", "seconds")


def expected_use(
    plan: Mapping[str, Any] | None,
    wanted: Collection[bytes],
    to_judge: int,
    price: PriceConfig | None,
) -> Expected | None:
    """Return what the plan says of the judgments that are left; None if it is about others.

    Of a plan for more judgments, some of which are there by now, the share that is left. Of a plan
    at another price, no money.
    """
    if plan is None or not 0 < to_judge <= plan["to_judge"]:
        return None
    if plan["made_for"] != identity(wanted):
        return None
    share = to_judge / plan["to_judge"]
    repriced = not same_price(plan.get("price"), price)

    def part(amount: float | None) -> float | None:
        return None if amount is None or repriced else share * amount

    return Expected(
        prompt_tokens=round(share * plan["prompt_tokens"]),
        cost=part(plan["cost"]),
        least_cost=part(plan["cost_with_reuse"]),
        exact=share == 1.0 and plan["tokens_known"] == "exact",
        repriced=repriced,
    )


def make_bill(
    plan: Mapping[str, Any] | None,
    wanted: Collection[bytes],
    to_judge: int,
    spent: Usage,
    seconds: float,
    price: PriceConfig | None,
) -> dict[str, Any] | None:
    """Return plan and bill, figure by figure; None unless the plan was made for this grading.

    A figure that nobody told is None, and so is the money of a plan at another price. Engines that
    do not tell cached tokens tell none.
    """
    if plan is None or not to_judge:
        return None
    if (plan["made_for"], plan["to_judge"]) != (identity(wanted), to_judge):
        return None
    computed = spent.prompt_tokens - spent.cached_tokens if spent.cached_tokens else None
    billed = {
        **usage_facts(spent, price),
        "prompt_tokens": spent.prompt_tokens or None,
        "computed_tokens": computed,
        "completion_tokens": spent.completion_tokens or None,
        "seconds": round(seconds, 1),
    }
    repriced = not same_price(plan.get("price"), price)
    cost = None if repriced else plan["cost"]
    planned = {**plan, "completion_tokens": plan["items"], "cost": cost}
    return {
        "plan": {name: planned[name] for name in _ROWS},
        "bill": {name: billed[name] for name in _ROWS},
        "tokens_known": plan["tokens_known"],
        "times_least": computed / plan["computed_tokens"] if computed else None,
        "currency": billed["currency"],
        "repriced": repriced,
    }


@dataclass
class GradingWork:
    """The judgments a run needs, and the ledger they go to."""

    store: RunStore
    config: RunConfig
    method: Method
    judge: JudgeFingerprint
    ledger: Ledger
    wanted: dict[bytes, tuple[str, str]]
    """Every judgment the run needs, with its query and candidate."""
    without_checklist: int
    """Responses that cannot have one."""
    earlier: int
    """Judgments that this run had already."""
    adopted: int
    """Judgments that other runs paid for."""
    observer: Observer
    also: Sequence[RunStore] = ()
    """Runs whose answers to the same items are taken over."""

    @property
    def left(self) -> int:
        """How many judgments were missing at the beginning."""
        return len(self.wanted) - self.earlier - self.adopted

    def announce(self, waiting: int) -> None:
        """Tell the observer what is there and what is left.

        `waiting` judgments were finished before, but are not in the ledger yet.
        """
        earlier = self.earlier + waiting
        self.observer.stage_began("grade", len(self.wanted), earlier + self.adopted)
        self.observer.reused(earlier, self.adopted)
        left = self.left - waiting
        price = self.config.judge.price
        expected = expected_use(self.store.plan(), self.wanted, left, price)
        if expected is not None:
            self.observer.expected(expected)

    def unfinished(self) -> set[bytes]:
        """Return the judgments that are missing now."""
        return {key for key in self.wanted if key not in self.ledger.finished}

    def tasks(self, but: Collection[bytes] = ()) -> Iterator[GradingTask]:
        """Yield the tasks that are left, in query order, `but` these."""

        def done(key: bytes) -> bool:
            return key in self.ledger.finished or key in but

        return unfinished_tasks(self.store.inputs, self.method.prompt, self.judge.digest, done)

    def known(self) -> Known:
        """Return the answers that need not be asked again."""
        checklists = self.store.inputs.checklists()
        finished = self.ledger.finished
        return known_answers(
            self.store, self.method, self.judge.digest, checklists, finished, also=self.also
        )

    def keep_failures(self, failures: Iterable[Failure]) -> None:
        """Remember what failed now, and what failed before and was not tried again."""
        latest = {failure.key: failure for failure in (*self.store.failures(), *failures)}
        unfinished = self.unfinished()
        self.store.save_failures(failure for key, failure in latest.items() if key in unfinished)

    def facts(
        self, *, judged: int, failed: int, spent: Usage, seconds: float, bill: bool = True
    ) -> dict[str, Any]:
        """Return counts and cost of this grading, for the manifest.

        Without a `bill` where what was planned is not what this command paid for.
        """
        price = self.config.judge.price
        unfinished = self.unfinished()
        return {
            "tasks": len(self.wanted),
            "finished_earlier": self.earlier,
            "from_cache": self.adopted,
            "judged": judged,
            "failed": failed,
            "unfinished": len(unfinished),
            "responses_unfinished": self._responses(unfinished),
            "responses_without_checklist": self.without_checklist,
            "usage": usage_facts(spent, price),
            "usage_of_ledger": usage_facts(self.store.ledger_usage(), price),
            "bill": make_bill(self.store.plan(), self.wanted, self.left, spent, seconds, price)
            if bill
            else None,
        }

    def _responses(self, keys: Collection[bytes]) -> int:
        """Return how many responses these judgments are about: equal responses share one."""
        if not keys:
            return 0
        return sum(cell.key in keys for cell in cells(self.store.inputs, self.judge.digest))


@contextmanager
def open_grading(
    store: RunStore,
    config: RunConfig,
    method: Method,
    judge: JudgeFingerprint,
    observer: Observer,
    *,
    also: Sequence[RunStore] = (),
) -> Iterator[GradingWork]:
    """Claim the run for the judge and open its ledger, with what the cache has already in it.

    Answers that the runs `also` named hold are not asked for again.
    """
    store.claim(judge)
    wanted, without_checklist = _wanted(store, judge.digest)
    cache = store.shared_ledger(judge.digest, config.cache)
    with store.ledger(judge.digest, cache) as ledger:
        earlier = sum(key in ledger.finished for key in wanted)
        adopted = adopt_from_cache(ledger, cache, wanted) if cache else 0
        work = GradingWork(
            store,
            config,
            method,
            judge,
            ledger,
            wanted,
            without_checklist,
            earlier,
            adopted,
            observer,
            also,
        )
        work.announce(0)
        yield work


def stop_without_judge(grading: Grading, safe: int) -> None:
    """Raise if grading gave up on the judge."""
    if grading.gone:
        raise EngineUnavailable(
            f"The judge is gone; the last task: {grading.failures[-1].reason}",
            hint=f"{safe} judgments are safe: run the same command again to go on.",
        )
    if grading.useless:
        raise EngineRefused(
            f"Not one of the first {len(grading.failures)} tasks could be judged; the last: "
            f"{grading.failures[-1].reason}",
            hint="Check the judge's settings: some servers allow fewer `top_logprobs` or none, "
            "or too short a context.",
        )


def _wanted(store: RunStore, judge: bytes) -> tuple[dict[bytes, tuple[str, str]], int]:
    """Return every judgment the run needs, and how many responses cannot have one."""
    wanted: dict[bytes, tuple[str, str]] = {}
    without_checklist = 0
    for cell in cells(store.inputs, judge):
        if cell.key is None:
            without_checklist += 1
        else:
            wanted.setdefault(cell.key, (cell.query_id, cell.candidate))
    return wanted, without_checklist

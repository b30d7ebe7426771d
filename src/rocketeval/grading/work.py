"""The work list of a run: the judgments it needs, those it has, and the tasks that are left.

A plan reads the inputs from the benchmark, a grading from the run. After a grading, its bill
compares the usage with the plan. Known answers are reused even if the checklist changed: only new
items are asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists
from rocketeval.checklists.base import SharedAuthor, create_author
from rocketeval.checklists.rubric import bind_checklist, rubric_options
from rocketeval.checklists.simple import leaves_out
from rocketeval.checklists.write import authoring_key
from rocketeval.config import PriceConfig, RunConfig
from rocketeval.errors import ChecklistError, RocketEvalError, StageMissing
from rocketeval.grading.ask import Method, asks_items_independently
from rocketeval.grading.schedule import (
    JudgingInputs,
    cells,
    identity,
    judgment_key,
    keys_before_precision,
    shown_heads,
    unfinished_tasks,
)
from rocketeval.observer import Expected, Observer
from rocketeval.prices import priced, priced_if_used
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
from rocketeval.store.inputs import Inputs, ResponseHead
from rocketeval.store.ledger import Ledger, adopt_from_cache, keep_measured, live_files
from rocketeval.store.manifest import Bill, BillColumn, GradeFacts, Plan
from rocketeval.store.run import RunStore

Known = dict[bytes, dict[int, Answer]]


def known_answers(
    store: RunStore,
    method: Method,
    judge: JudgeFingerprint,
    checklists: Mapping[str, Checklist],
    finished: Collection[bytes],
    *,
    also: Sequence[RunStore] = (),
) -> Known:
    """Return, by the key of an unfinished judgment, the answers that can be reused.

    These are the answers of tasks that were interrupted, answers to the same items of an earlier
    checklist, and answers to the same items for the same query and response in the runs `also`.
    The result is held in memory; for the run itself it covers only queries whose checklist changed.
    """
    known = {key: dict(answers) for key, answers in store.half_answered().items()}
    if not asks_items_independently(method):
        return known
    for source in (store, *also):
        if not source.inputs.exist:
            continue
        had = _had(source.inputs, checklists)
        if source is store:
            had = _without_current(had, checklists)
        theirs = finished if source is store else source.finished()
        them = source.manifest().judge
        them = judge if them is None or them.changes(judge) else them
        digests = judge.digest, them.digest
        pairs = list(_pairs(source.inputs, had, digests, checklists, finished, theirs))
        judged = source.judgments_of({old.hex() for _, old, _, _ in pairs}) if pairs else {}
        for new, old, now, before in pairs:
            for place, answer in _same_items(judged[old.hex()], now, before):
                known.setdefault(new, {}).setdefault(place, answer)
    return known


def _pairs(
    inputs: Inputs,
    had: Mapping[str, Sequence[Checklist]],
    digests: tuple[bytes, bytes],
    checklists: Mapping[str, Checklist],
    finished: Collection[bytes],
    theirs: Collection[bytes],
) -> Iterator[tuple[bytes, bytes, Checklist, Checklist]]:
    """Yield each unfinished judgment with one of `theirs` on the same response, latest first."""
    if not had:
        return
    ours, earlier = digests
    for head in shown_heads(inputs):
        if head.query_id not in had:
            continue
        query = inputs.queries[head.query_id]
        now = checklists[head.query_id]
        new = judgment_key(ours, query, head, now)
        if new in finished:
            continue
        for before in had[head.query_id]:
            old = judgment_key(earlier, query, head, before)
            if old in theirs:
                yield new, old, now, before


def _had(inputs: Inputs, checklists: Mapping[str, Checklist]) -> dict[str, list[Checklist]]:
    """Return the current and earlier checklists of each query in a run, the latest first."""
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
    """Return the earlier checklists of queries whose checklist changed.

    A run's judgments under its current checklist are finished, and most queries have no other.
    """
    others = {
        name: [one for one in own if one.content_hash != checklists[name].content_hash]
        for name, own in had.items()
    }
    return {name: own for name, own in others.items() if own}


def _same_items(
    judgment: Judgment, now: Checklist, before: Checklist
) -> Iterator[tuple[int, Answer]]:
    answers = dict(zip(before.item_hashes, judgment.answers, strict=True))
    for place, item in enumerate(now.item_hashes):
        answer = answers.get(item)
        if answer is not None and answer.status not in NO_ANSWER:
            yield place, answer


@dataclass
class PlannedChecklists:
    """The checklists a run will have, determined without writing any."""

    made: dict[str, Checklist] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)
    """Queries whose checklist an author has yet to write."""
    most: Usage = field(default_factory=Usage)
    """Upper bound of the usage to write those."""


async def foresee_checklists(
    store: RunStore, config: RunConfig, queries: Iterable[Query]
) -> PlannedChecklists:
    """Return the existing checklists, and the most that writing the others would use."""
    imported = imported_checklists(open_benchmark(config.benchmark))
    author = create_author(config.author, imported, store.engine_home("author"))
    paid_for = store.authored(config.cache).known() if author.costly else {}
    found = PlannedChecklists()
    try:
        if isinstance(author, SharedAuthor) and (most := author.foresee(paid_for)) is not None:
            found.unwritten, found.most = {query.id for query in queries}, most
            return found
        shared, options = isinstance(author, SharedAuthor), rubric_options(config)
        left_out: list[str] | None = [] if leaves_out(author) else None
        for query in queries:
            if shared or not author.costly:
                try:
                    made = await author.write(query)
                    found.made[query.id] = bind_checklist(made, query, options, left_out)
                except ChecklistError:
                    continue
            elif (key := authoring_key(author, query)) in paid_for:
                paid = paid_for[key].checklist(query.id)
                with suppress(ChecklistError):
                    found.made[query.id] = bind_checklist(paid, query, options)
            else:
                found.unwritten.add(query.id)
                found.most += author.most(query)
    finally:
        await author.aclose()
    return found


@dataclass(frozen=True)
class PlannedInputs:
    """The inputs that a run would have."""

    queries: Mapping[str, Query]
    responses: Callable[[], Iterator[Response]]
    """Yields the responses; can be called repeatedly."""
    planned: PlannedChecklists

    def checklists(self) -> dict[str, Checklist]:
        """Return the existing checklists by query id."""
        return self.planned.made

    def heads(self) -> Iterator[ResponseHead]:
        """Yield every response without its text."""
        for one in self.responses():
            own = None if one.context is None else one.hash_with_context
            yield ResponseHead(one.query_id, one.candidate, one.content_hash, len(one.text), own)

    def shown_as_written(self, rules: str) -> bool:
        """Return False: it is not known before the responses are read."""
        return False


class WorkList:
    """The judgments a run needs, by identity; those it has; and the tasks that are left."""

    def __init__(
        self,
        store: RunStore,
        inputs: JudgingInputs,
        method: Method,
        judge: JudgeFingerprint | None,
        finished: Collection[bytes],
        cached: Collection[bytes] = (),
        *,
        also: Sequence[RunStore] = (),
    ) -> None:
        """Build the list from judgments in the run (`finished`), the cache, and the runs `also`."""
        self.store = store
        self.inputs = inputs
        self.method = method
        self.judge = judge
        self.digest = judge.digest if judge else b""
        self.wanted: dict[bytes, tuple[str, str]] = {}
        """Every judgment the run needs, with its query and candidate."""
        self.candidates: set[str] = set()
        self.responses: Counter[str] = Counter()
        """By query."""
        self.without_checklist = 0
        """Responses without a judgment because their query has no checklist."""
        for cell in cells(inputs, self.digest):
            self.candidates.add(cell.candidate)
            self.responses[cell.query_id] += 1
            if cell.key is None:
                self.without_checklist += 1
            else:
                self.wanted.setdefault(cell.key, (cell.query_id, cell.candidate))
        self._finished = finished
        self._cached = cached
        self._also = also
        self.earlier = sum(key in finished for key in self.wanted)
        """Judgments that the run already has."""
        self.from_cache = sum(key in cached and key not in finished for key in self.wanted)
        """Judgments reused from the cache."""

    @property
    def left(self) -> int:
        """Number of judgments that were missing at the start."""
        return len(self.wanted) - self.earlier - self.from_cache

    def unfinished(self) -> set[bytes]:
        """Return the judgments that are missing now."""
        return {key for key in self.wanted if not self._is_done(key)}

    def tasks(self, but: Collection[bytes] = ()) -> Iterator[GradingTask]:
        """Yield the remaining tasks in the order of the responses, except those in `but`."""

        def done(key: bytes) -> bool:
            return self._is_done(key) or key in but

        return unfinished_tasks(self.inputs, self.method.prompt, self.digest, done)

    def known(self) -> Known:
        """Return the answers that can be reused."""
        if self.judge is None:
            return {}
        checklists = self.inputs.checklists()
        return known_answers(
            self.store, self.method, self.judge, checklists, self._finished, also=self._also
        )

    def _is_done(self, key: bytes) -> bool:
        return key in self._finished or key in self._cached


def expected_use(
    plan: Plan | None, wanted: Collection[bytes], to_judge: int, price: PriceConfig | None
) -> Expected | None:
    """Return the plan's expectation for the remaining judgments; None if it is for other ones.

    If some of the planned judgments are done by now, return the remaining share. If the price
    changed, leave the cost out.
    """
    if plan is None or not 0 < to_judge <= plan.to_judge or plan.made_for != identity(wanted):
        return None
    share = to_judge / plan.to_judge
    repriced = plan.price != price

    def part(amount: float | None) -> float | None:
        return None if amount is None or repriced else share * amount

    return Expected(
        prompt_tokens=round(share * plan.prompt_tokens),
        cost=part(plan.cost),
        least_cost=part(plan.cost_with_reuse),
        exact=share == 1.0 and plan.tokens_known == "exact",
        repriced=repriced,
    )


def make_bill(
    plan: Plan | None,
    wanted: Collection[bytes],
    to_judge: int,
    spent: Usage,
    seconds: float,
    price: PriceConfig | None,
) -> Bill | None:
    """Return plan and bill, figure by figure; None unless the plan was made for this grading.

    A figure that is unknown is None, and so is the planned cost if the price changed. Engines that
    do not report cached tokens count as using none.
    """
    if plan is None or not to_judge:
        return None
    if (plan.made_for, plan.to_judge) != (identity(wanted), to_judge):
        return None
    computed = spent.prompt_tokens - spent.cached_tokens if spent.cached_tokens else None
    repriced, paid = plan.price != price, priced(spent, price)
    return Bill(
        plan=BillColumn(
            requests=plan.requests,
            prompt_tokens=plan.prompt_tokens,
            computed_tokens=plan.computed_tokens,
            completion_tokens=plan.items,
            cost=None if repriced else plan.cost,
            seconds=plan.seconds,
        ),
        bill=BillColumn(
            requests=paid.requests,
            prompt_tokens=paid.prompt_tokens or None,
            computed_tokens=computed,
            completion_tokens=paid.completion_tokens or None,
            cost=paid.cost,
            seconds=round(seconds, 1),
        ),
        tokens_known=plan.tokens_known,
        times_least=computed / plan.computed_tokens if computed else None,
        currency=paid.currency,
        repriced=repriced,
    )


class GradingWork(WorkList):
    """The work list of a run that is being graded, with its ledger."""

    def __init__(
        self,
        store: RunStore,
        config: RunConfig,
        method: Method,
        judge: JudgeFingerprint,
        ledger: Ledger,
        observer: Observer,
        *,
        also: Sequence[RunStore] = (),
    ) -> None:
        super().__init__(store, store.inputs, method, judge, ledger.finished, also=also)
        self.ledger = ledger
        self.observer = observer
        self._price = config.judge.price
        self.precision_unknown = 0
        """Judgments from the cache that were made before precision was recorded."""
        cache = store.shared_ledger(judge.digest, config.cache)
        self.from_cache = adopt_from_cache(ledger, cache, self.wanted) if cache else 0
        before = store.shared_ledger(judge.before_precision.digest, config.cache)
        if before and judge.precision and live_files(before):
            renamed = keys_before_precision(self.inputs, judge)
            self.precision_unknown = adopt_from_cache(ledger, before, self.wanted, renamed)
            self.from_cache += self.precision_unknown
        self._ledger_before = store.ledger_usage()
        self.spent: Callable[[], tuple[Usage, Usage]] = lambda: (Usage(), Usage())
        """Returns what tasks cost so far, and the requests beyond them."""

    def announce(self, waiting: int) -> None:
        """Report to the observer what is done and what is left.

        `waiting` judgments were finished before, but are not in the ledger yet.
        """
        earlier = self.earlier + waiting
        self.observer.stage_began("grade", len(self.wanted), earlier + self.from_cache)
        self.observer.reused(earlier, self.from_cache)
        plan, left = self.store.read_if_made(Plan), self.left - waiting
        expected = expected_use(plan, self.wanted, left, self._price)
        if expected is not None:
            self.observer.expected(expected)

    def set_aside(self, keys: Collection[bytes]) -> None:
        """Take judgments out of the ledger, so that they are made again."""
        self.ledger.set_aside(keys)
        self.earlier = sum(key in self.ledger.finished for key in self.wanted) - self.from_cache
        self.announce(0)

    def keep_failures(self, failures: Iterable[Failure]) -> None:
        """Save this grading's failures, and earlier ones that were not retried."""
        latest = {failure.key: failure for failure in (*self.store.failures(), *failures)}
        unfinished = self.unfinished()
        self.store.save_failures(failure for key, failure in latest.items() if key in unfinished)

    def facts(self, *, judged: int, failed: int, seconds: float, bill: bool = True) -> GradeFacts:
        """Return counts and cost of this grading, for the manifest.

        Pass `bill=False` if it did not pay for what was planned.
        """
        price, unfinished = self._price, self.unfinished()
        spent, overhead = self.spent()
        plan = self.store.read_if_made(Plan) if bill else None
        facts = GradeFacts(
            tasks=len(self.wanted),
            finished_earlier=self.earlier,
            from_cache=self.from_cache,
            precision_unknown=self.precision_unknown,
            judged=judged,
            failed=failed,
            unfinished=len(unfinished),
            responses_unfinished=self._responses(unfinished),
            responses_without_checklist=self.without_checklist,
            usage=priced(spent + overhead, price),
            overhead=priced_if_used(overhead, price),
            bill=make_bill(plan, self.wanted, self.left, spent, seconds, price),
        )
        return self._with_paid(facts)

    def keep_paid(self) -> None:
        """Record what the run has cost so far, after an error."""
        manifest = self.store.manifest()
        grade = self._with_paid(manifest.stages.grade)
        self.store.save(replace(manifest, stages=replace(manifest.stages, grade=grade)))

    def _with_paid(self, facts: GradeFacts) -> GradeFacts:
        """Return the facts with the cost of the run so far, including earlier commands."""
        price, (spent, overhead) = self._price, self.spent()
        ledger, earlier = self.store.ledger_usage(), self.store.manifest().stages.grade
        # Also of judgments set aside. A job of a killed command may add judgments it paid for.
        unjudged = (spent - (ledger - self._ledger_before)).without_negatives()
        return replace(
            facts,
            usage_of_ledger=priced(ledger, price),
            overhead_of_run=priced_if_used(earlier.overhead_of_run.usage + overhead, price),
            unjudged_of_run=priced_if_used(earlier.unjudged_of_run.usage + unjudged, price),
        )

    def _responses(self, keys: Collection[bytes]) -> int:
        """Return how many responses these judgments cover: identical responses share one."""
        if not keys:
            return 0
        return sum(cell.key in keys for cell in cells(self.inputs, self.digest))


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
    """Bind the run to the judge, and open its ledger including judgments from the cache.

    Answers in the runs `also` are reused.
    """
    store.bind_judge(judge)
    shared = store.shared_ledger(judge.digest, config.cache)
    if shared is not None:
        keep_measured(shared, judge)
    work: GradingWork | None = None
    try:
        with store.ledger(judge.digest, shared) as ledger:
            work = GradingWork(store, config, method, judge, ledger, observer, also=also)
            work.announce(0)
            yield work
    except RocketEvalError:
        if work is not None:
            work.keep_paid()
        raise

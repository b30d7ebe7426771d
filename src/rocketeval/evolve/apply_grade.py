"""Grading and planning with an evaluator; each question set is an inner run."""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial, reduce
from typing import Any, get_args

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import LoadedBenchmark, load
from rocketeval.budget import Budget
from rocketeval.config import RunConfig
from rocketeval.engines.base import create_engine
from rocketeval.evolve.apply_setup import (
    ANSWERED,
    FOLDER,
    EvaluatorCases,
    GivenEvaluator,
    check_judge,
)
from rocketeval.evolve.ask import (
    MakeEngine,
    PerspectiveAsker,
    question_set_config,
    question_sets_in,
    questions,
    show,
)
from rocketeval.evolve.cases import Case
from rocketeval.evolve.perspective import Perspective, PerspectiveKind, QuestionSet
from rocketeval.grading.loop import fingerprint
from rocketeval.grading.plan import plan_grading
from rocketeval.grading.schedule import cells
from rocketeval.grading.work import PlannedChecklists, PlannedInputs
from rocketeval.hashing import content_hash
from rocketeval.observer import Observer
from rocketeval.prices import PricedUsage
from rocketeval.prompts.variants import pair_name
from rocketeval.records import (
    Answer,
    Checklist,
    JudgeFingerprint,
    Judgment,
    Response,
    Status,
)
from rocketeval.scoring.read_answers import AnswerReader
from rocketeval.store.manifest import (
    MOST_PROMPTS,
    Bill,
    BillColumn,
    GradeFacts,
    Plan,
    QuestionCounts,
    TokensKnown,
)
from rocketeval.store.run import DERIVED, RunStore

Row = tuple[str, str]
"""A query and a candidate, or the name of a pair."""


@dataclass(frozen=True)
class QuestionSetRun:
    """A graded question set about responses."""

    question_set: QuestionSet
    perspectives: tuple[Perspective, ...]
    judge: JudgeFingerprint
    judged: Mapping[Row, Judgment]
    """The judgments, by query and candidate."""


def read_question_sets(store: RunStore, given: GivenEvaluator) -> list[QuestionSetRun]:
    """Return the evaluator's question sets about responses with the judgments so far."""
    found = []
    for question_set, perspectives in given.question_sets.items():
        if perspectives[0].kind is PerspectiveKind.RESPONSE:
            inside = store.inside(FOLDER, question_set.name)
            judged = dict(_judged(inside))
            found.append(QuestionSetRun(question_set, tuple(perspectives), inside.judge(), judged))
    return found


def derived_judge(question_sets: Sequence[QuestionSetRun]) -> JudgeFingerprint:
    """Return the combined fingerprint of the judges of these question sets."""
    parts = sorted(
        (one.question_set.name, one.judge.template, one.judge.readout) for one in question_sets
    )
    template = content_hash([[name, template] for name, template, _ in parts]).hex()
    readout = content_hash([[name, readout] for name, _, readout in parts]).hex()
    return replace(question_sets[0].judge, template=f"{DERIVED}{template}", readout=readout)


def derive_judgments(
    store: RunStore,
    given: GivenEvaluator,
    question_sets: Sequence[QuestionSetRun],
    cases: Iterable[Case],
) -> Iterator[Judgment]:
    """Yield one judgment per response that every question set judged, in the run's order.

    `cases` are the cases shown to the judge. Responses with the same text share a judgment.
    """
    shown: dict[Row, list[tuple[str, bool]]] = {}
    for case in cases:
        names = case.candidates
        name = pair_name(*names) if len(names) == 2 else names[0]
        for place, candidate in enumerate(case.candidates):
            shown.setdefault((case.query_id, candidate), []).append((name, place == 0))
    order = [each.id for each in given.evaluator.about_responses]
    done: set[bytes] = set()
    for cell in cells(store.inputs, derived_judge(question_sets).digest):
        views = shown.get((cell.query_id, cell.candidate), [])
        found = [_answers(one, cell.query_id, views) for one in question_sets]
        if cell.key is None or cell.key in done or not all(found):
            continue
        done.add(cell.key)
        answers = {name: answer for each in found for name, answer in each.items()}
        yield Judgment(
            cell.key,
            cell.query_id,
            cell.candidate,
            tuple(answers[name] for name in order),
            neutralised=_neutralised(question_sets, cell.query_id, views),
        )


def _judged(inside: RunStore) -> Iterator[tuple[Row, Judgment]]:
    part = AnswerReader(inside).whole()
    keys = part.keys.to_pylist()
    judgments = inside.judgments_of({key for key in keys if key})
    names = zip(part.answers.query_ids, part.answers.candidates, strict=True)
    for row, key in zip(names, keys, strict=True):
        if key in judgments:
            yield row, judgments[key]


def _answers(
    one: QuestionSetRun, query_id: str, views: Sequence[tuple[str, bool]]
) -> dict[str, Answer]:
    """Return a response's answers by perspective; empty if it was not judged.

    `views` lists the pairs it was shown in, and whether it came first.
    """
    seen = [
        (one.judged[query_id, name].answers, first)
        for name, first in views
        if (query_id, name) in one.judged
    ]
    if not seen:
        return {}
    if not one.question_set.signed:
        return {each.id: seen[0][0][place] for place, each in enumerate(one.perspectives)}
    return {
        each.id: _mean([(answers[place], first) for answers, first in seen])
        for place, each in enumerate(one.perspectives)
    }


def _mean(seen: Sequence[tuple[Answer, bool]]) -> Answer:
    """Return the mean preference for a response over its opponents.

    >>> _mean([(Answer(Status.OK, 0.75), True), (Answer(Status.OK, 0.75), False)]).p_yes
    0.5
    """
    own = [
        answer.p_yes if first else 1.0 - answer.p_yes
        for answer, first in seen
        if answer.p_yes is not None
    ]
    return Answer(Status.OK, sum(own) / len(own)) if own else Answer(seen[0][0].status)


def _neutralised(
    question_sets: Sequence[QuestionSetRun], query_id: str, views: Sequence[tuple[str, bool]]
) -> int:
    """Return the maximum of neutralized markers over question sets, which show the same text."""
    return max(
        one.judged[query_id, name].neutralised
        for one in question_sets
        for name, _ in views
        if (query_id, name) in one.judged
    )


COUNTED = ("tasks", "finished_earlier", "from_cache", "judged", "failed", "unfinished")
KNOWN: tuple[TokensKnown, ...] = get_args(TokensKnown)


def add_up(parts: Collection[GradeFacts]) -> GradeFacts:
    """Return the total counts, cost and bill of all question sets."""
    counts: dict[str, Any] = {
        name: sum(getattr(facts, name) for facts in parts) for name in COUNTED
    }
    return GradeFacts(
        **counts,
        usage=_usage([facts.usage for facts in parts]),
        usage_of_ledger=_usage([facts.usage_of_ledger or facts.usage for facts in parts]),
        overhead=_usage([facts.overhead for facts in parts]),
        overhead_of_run=_usage([facts.overhead_of_run for facts in parts]),
        unjudged_of_run=_usage([facts.unjudged_of_run for facts in parts]),
        bill=_bill([facts.bill for facts in parts if facts.judged or facts.failed]),
    )


def _usage(usages: Sequence[PricedUsage]) -> PricedUsage:
    """Return the total usage; without a cost if any part has none."""
    return reduce(operator.add, usages)


def _bill(asked: Sequence[Bill | None]) -> Bill | None:
    """Return the combined plan and bill; None unless every part has a plan."""
    bills = [each for each in asked if each is not None]
    if not bills or len(bills) < len(asked):
        return None
    plan, bill = _column([each.plan for each in bills]), _column([each.bill for each in bills])
    computed, least = bill.computed_tokens, plan.computed_tokens
    return Bill(
        plan=plan,
        bill=bill,
        tokens_known=max((each.tokens_known for each in bills), key=KNOWN.index),
        times_least=computed / least if computed and least else None,
        currency=bills[0].currency,
        repriced=any(each.repriced for each in bills),
    )


def _column(columns: Sequence[BillColumn]) -> BillColumn:
    names = (field.name for field in fields(BillColumn))
    return BillColumn(*(total([getattr(one, name) for one in columns]) for name in names))


def total(amounts: Sequence[float | None]) -> Any:
    """Return the sum; None if any amount is unknown."""
    known = [amount for amount in amounts if amount is not None]
    return sum(known) if len(known) == len(amounts) else None


async def grade_with_evaluator(
    store: RunStore,
    config: RunConfig,
    given: GivenEvaluator,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
    *,
    make_engine: MakeEngine = create_engine,
) -> GradeFacts:
    """Grade all question sets, reusing existing answers, and derive the run's judgments.

    Returns counts and cost in total and per question set.
    """
    cases = EvaluatorCases.of(store.inputs, given.evaluator)
    asked = cases.asked()
    asker = PerspectiveAsker(
        store,
        config,
        observer,
        stop,
        budget,
        asking=given.evaluator.asking,
        folder=FOLDER,
        also=ANSWERED,
        make_engine=make_engine,
        check_judge=partial(check_judge, given),
    )
    graded = (await asker.ask(given.asked, asked)).question_sets
    question_sets = read_question_sets(store, given)
    judge = derived_judge(question_sets)
    store.derive_ledger(judge, derive_judgments(store, given, question_sets, asked))
    insides = [store.inside(FOLDER, name) for name in graded]
    store.save_failures(failure for inside in insides for failure in inside.failures())
    return replace(
        add_up(graded.values()),
        responses_unfinished=_unjudged(store, judge.digest, asked),
        responses_without_opponent=cases.without_opponent,
        evaluator=given.facts(),
        questions=_count_questions(given, asked, cases.count()),
        sheets=graded,
    )


def _count_questions(given: GivenEvaluator, asked: Sequence[Case], decided: int) -> QuestionCounts:
    """Return the number of questions in total and per decided response or pair."""
    whole = questions(given.asked, asked, given.evaluator.asking)
    return QuestionCounts(whole, decided, whole / decided if decided else None)


def _unjudged(store: RunStore, judge: bytes, asked: Sequence[Case]) -> int:
    """Return the number of responses without a judgment."""
    rows = {(case.query_id, candidate) for case in asked for candidate in case.candidates}
    finished = store.finished()
    return sum(
        cell.key not in finished
        for cell in cells(store.inputs, judge)
        if (cell.query_id, cell.candidate) in rows
    )


_SUMMED = (
    "tasks",
    "finished",
    "from_cache",
    "to_judge",
    "items",
    "requests",
    "prompt_tokens",
    "computed_tokens",
    "prompts_counted",
    "cost",
    "cost_with_reuse",
    "seconds",
)


async def plan_with_evaluator(
    store: RunStore,
    config: RunConfig,
    given: GivenEvaluator,
    make_engine: MakeEngine | None,
    *,
    most_prompts: int | None = MOST_PROMPTS,
    rate: float | None = None,
    probe: bool = False,
) -> Plan:
    """Return the run's plan, and save each question set's plan for the bill.

    Without `make_engine`, no server is contacted and no file is written.
    """
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    responses = {(each.query_id, each.candidate): each for each in loaded.responses()}
    asked = _cases(loaded, responses, given).asked()
    plans = []
    for question_set, perspectives in given.question_sets.items():
        items = tuple(each.text for each in perspectives)
        inputs = _inputs(question_set, items, loaded, asked, responses)
        inside = store.inside(FOLDER, question_set.name)
        settings = question_set_config(config, question_set)
        engine = make_engine(settings.judge, inside.engine_home("judge")) if make_engine else None
        try:
            if engine is not None:
                judge = fingerprint(await engine.identify(), question_set.method())
                check_judge(given, question_set.name, judge)
            plan = await plan_grading(
                inside,
                settings,
                engine,
                inputs,
                question_set.method(),
                also=question_sets_in(store, ANSWERED, question_set),
                most_prompts=most_prompts,
                rate=rate,
                probe=probe,
            )
        finally:
            if engine is not None:
                await engine.aclose()
        if make_engine is not None:
            inside.save_plan(plan)
        plans.append(plan)
    return replace(
        _total(plans),
        queries=len(loaded.queries),
        candidates=len({candidate for _, candidate in responses}),
        responses=len(responses),
    )


def _cases(
    loaded: LoadedBenchmark, responses: Iterable[Row], given: GivenEvaluator
) -> EvaluatorCases:
    """Return the cases that the run would decide, in load order."""
    by_query: dict[str, list[str]] = {query.id: [] for query in loaded.queries}
    for query_id, candidate in sorted(responses):
        by_query[query_id].append(candidate)
    answered = {query_id: names for query_id, names in by_query.items() if names}
    return EvaluatorCases(answered, loaded.queries, loaded.votes(), given.evaluator)


def _inputs(
    question_set: QuestionSet,
    items: tuple[str, ...],
    loaded: LoadedBenchmark,
    asked: Sequence[Case],
    responses: Mapping[Row, Response],
) -> PlannedInputs:
    """Return the inputs of one question set."""
    cases: dict[str, list[Case]] = {}
    for case in asked:
        cases.setdefault(case.query_id, []).append(case)
    queries = {query.id: query for query in loaded.queries if query.id in cases}
    shown = {
        (one.query_id, one.candidate): one
        for query_id, query in queries.items()
        for case in cases[query_id]
        for one in show(question_set, case, query, responses)
    }
    checklists = PlannedChecklists({name: Checklist(name, items) for name in queries})
    return PlannedInputs(queries, lambda: iter(shown.values()), checklists)


def _total(plans: Sequence[Plan]) -> Plan:
    """Return the combined plan of all question sets."""
    sums: dict[str, Any] = {
        name: total([getattr(plan, name) for plan in plans]) for name in _SUMMED
    }
    seconds, items = sums["seconds"], sums["items"]
    return replace(
        plans[0],
        **sums,
        made_for=content_hash([plan.made_for for plan in plans]).hex(),
        # Every question set has its own judge.
        judge_digest=None,
        tokens_known=max((plan.tokens_known for plan in plans), key=KNOWN.index),
        items_per_second=items / seconds if items and seconds else None,
        rate_from=next((one.rate_from for one in plans if one.seconds is None), plans[0].rate_from),
    )

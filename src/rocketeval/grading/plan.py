"""The plan of a run: its requests, tokens, cost and time, estimated without starting it.

Prompt tokens are counted with and without reuse of shared prefixes (a trie of all prompts).
"""

from __future__ import annotations

import asyncio
import time
from array import array
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.budget import Budget, PricedBudget, most_tokens, most_written
from rocketeval.checklists.rubric import rubric_notes, weight_notes
from rocketeval.config import AuthorConfig, PriceConfig, RunConfig
from rocketeval.engines.base import ENGINES, Engine
from rocketeval.errors import ConfigError, StageMissing
from rocketeval.grading.ask import Method
from rocketeval.grading.loop import calls, fingerprint, requests_per_item
from rocketeval.grading.methods import create_method
from rocketeval.grading.schedule import cached_keys, identity
from rocketeval.grading.work import (
    PlannedChecklists,
    PlannedInputs,
    WorkList,
    foresee_checklists,
)
from rocketeval.prices import currency, money, priced, shown_money
from rocketeval.records import Answer, Checklist, GradingTask, JudgeFingerprint, Usage
from rocketeval.store.manifest import MOST_PROMPTS, EstimatedGrading, Plan, TokensKnown
from rocketeval.store.run import RunStore
from rocketeval.text import count_of

_TOKEN = np.dtype(">u4")
"""Big-endian, so that sorting bytes sorts tokens."""


@dataclass(frozen=True, slots=True)
class PrefixBound:
    """Lower bound of the tokens any engine has to compute for a set of prompts, in any order."""

    prompts: int
    tokens: int
    """All tokens of all prompts: the work without any reuse."""
    computed: int
    """The minimum for an engine with a perfect prefix cache."""
    common: int
    """Length of the prefix shared by all prompts, in tokens."""


def trie_tokens(prompts: Iterable[Sequence[int]], block: int = 1) -> PrefixBound:
    """Return the least number of prompt tokens an engine with a perfect prefix cache computes.

    The cache keeps whole blocks of `block` tokens. If a whole prompt is in the cache, its last
    token, and with it its block, is still computed, because the engine continues from it.
    The bound is exact. Every token of every prompt is held in memory, four bytes each.

    >>> trie_tokens([[1, 2, 3], [1, 2, 4], [1, 2, 4]])
    PrefixBound(prompts=3, tokens=9, computed=5, common=2)
    """
    # In sorted order a prompt shares most with its predecessor, and a prompt that is a prefix of
    # others comes before them: no order computes less.
    ordered = sorted(map(_as_bytes, prompts))
    tokens = computed = 0
    before = np.empty(0, _TOKEN)
    for packed in ordered:
        prompt = np.frombuffer(packed, _TOKEN)
        reusable = min(_shared(before, prompt), max(0, len(prompt) - 1))
        tokens += len(prompt)
        computed += len(prompt) - reusable // block * block
        before = prompt
    common = _shared(np.frombuffer(ordered[0], _TOKEN), before) if ordered else 0
    return PrefixBound(len(ordered), tokens, computed, common)


def _as_bytes(prompt: Sequence[int]) -> bytes:
    # np.array would read bytes as a string.
    given = np.frombuffer(prompt, np.uint8) if isinstance(prompt, bytes) else np.array(prompt)
    return given.astype(_TOKEN).tobytes()


def _shared(one: np.ndarray, two: np.ndarray) -> int:
    """Return the length of the shared prefix."""
    shorter = min(len(one), len(two))
    apart = one[:shorter] != two[:shorter]
    return int(apart.argmax()) if apart.any() else shorter


MOST_PROBED = 16
"""Maximum number of responses asked by a probe."""

BYTES_PER_TOKEN = 4
"""A rough value for English text, used if the judge's tokenizer is not available."""
PER_CALL = 256
"""Prompts tokenized per call."""


@dataclass(frozen=True, slots=True)
class PlannedRequests:
    """The requests of a grading, in figures."""

    items: int
    requests: int
    prompt_tokens: int
    computed_tokens: int
    """The minimum if every shared prefix is computed once."""
    known: TokensKnown
    """Counted by the judge's tokenizer for all prompts or for a sample, or estimated from bytes."""
    counted: int
    """Prompts that were tokenized."""
    most_written: int
    """Most tokens that the engine writes for a request; 1 if it reads probabilities."""
    sample: tuple[GradingTask, ...]
    """The tasks of those prompts, in the order of a run."""


async def count_tokens(
    work: WorkList,
    engine: Engine | None,
    most_prompts: int | None,
    *,
    alone: bool = False,
    asker: Engine | None = None,
) -> PlannedRequests:
    """Count items, requests and tokens, from at most about `most_prompts` prompts.

    `engine` tokenizes the prompts. `asker` says how often items are asked, without being
    contacted. `alone`: each item is its own request.
    """
    times = requests_per_item(asker) if asker else 1
    known = work.known()
    sizes = _items_left(work, known)
    chosen = choose_evenly(sizes, most_prompts)
    places = {query_id: place for place, query_id in enumerate(work.inputs.queries)}
    requests = written = all_prompts = 0
    sample: list[GradingTask] = []
    prompts: list[str] = []
    for task in work.tasks():
        had = known.get(task.key, {})
        asked = [task.prefix + task.suffixes[place] for place in task.left(had)]
        requests += calls(asker, len(asked), alone=alone) if asker else len(asked)
        all_prompts += len(asked)
        written += sum(map(_bytes, asked))
        if task.query_id in chosen:
            sample.append(task)
            prompts += asked
    tokens = await tokenize_prompts(engine, prompts)
    bound = trie_tokens(map(str.encode, prompts) if tokens is None else tokens)
    share = written / max(1, sum(map(_bytes, prompts)))
    unit = BYTES_PER_TOKEN if tokens is None else 1
    counted: TokensKnown = "exact" if len(prompts) == all_prompts else "sampled"
    return PlannedRequests(
        items=sizes.total(),
        requests=requests,
        prompt_tokens=times * round(bound.tokens * share / unit),
        # The prefix shared by all prompts is computed once.
        computed_tokens=round((bound.common + (bound.computed - bound.common) * share) / unit),
        known="estimated" if tokens is None else counted,
        counted=len(prompts),
        most_written=int(getattr(asker, "most_written", 1)),
        sample=tuple(sorted(sample, key=lambda task: places[task.query_id])),
    )


def _items_left(work: WorkList, known: Mapping[bytes, Mapping[int, Answer]]) -> Counter[str]:
    """Return the number of items left to ask, by query."""
    checklists, asked = work.inputs.checklists(), Counter[str]()
    unfinished = work.unfinished()
    for key, (query_id, _) in work.wanted.items():
        if key in unfinished:
            had = known.get(key, ())
            details = enumerate(checklists[query_id].every_detail)
            asked[query_id] += sum(own.check is None and place not in had for place, own in details)
    return asked


def choose_evenly(sizes: Mapping[str, int], most: int | None) -> set[str]:
    """Return evenly spaced queries with about `most` prompts together; all if they fit.

    >>> sorted(choose_evenly({"a": 10, "b": 10, "c": 10, "d": 10}, 20))
    ['b', 'd']
    """
    names, total = list(sizes), sum(sizes.values())
    if most is None or total <= most:
        return set(names)
    count = max(1, len(names) * most // total)
    return {names[(2 * place + 1) * len(names) // (2 * count)] for place in range(count)}


async def tokenize_prompts(
    engine: Engine | None, prompts: Sequence[str]
) -> list[array[int]] | None:
    """Return the tokens of each prompt, four bytes each; None if the engine has no tokenizer."""
    if engine is None:
        return None
    tokens: list[array[int]] = []
    for start in range(0, len(prompts), PER_CALL):
        batch = await engine.tokenise(prompts[start : start + PER_CALL])
        if batch is None:
            return None
        tokens += (array("I", prompt) for prompt in batch)
    return tokens


def _bytes(text: str) -> int:
    return len(text.encode())


async def make_plan(
    store: RunStore,
    config: RunConfig,
    engine: Engine | None,
    *,
    most_prompts: int | None = MOST_PROMPTS,
    rate: float | None = None,
    probe: bool = False,
) -> Plan:
    """Estimate the run that `config` describes.

    Without an `engine` nothing is contacted and tokens are estimated. `rate` is a known speed in
    items per second; `probe` measures it on a few real items.
    """
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    checklists = await foresee_checklists(store, config, loaded.queries)
    return await plan_grading(
        store,
        config,
        engine,
        PlannedInputs({query.id: query for query in loaded.queries}, loaded.responses, checklists),
        create_method(config),
        most_prompts=most_prompts,
        rate=rate,
        probe=probe,
    )


async def plan_grading(
    store: RunStore,
    config: RunConfig,
    engine: Engine | None,
    inputs: PlannedInputs,
    method: Method,
    *,
    also: Sequence[RunStore] = (),
    most_prompts: int | None = MOST_PROMPTS,
    rate: float | None = None,
    probe: bool = False,
) -> Plan:
    """Estimate a run with these inputs and this method.

    Answers to the same items in the runs `also` are reused.
    """
    checklists = inputs.planned
    complete = not checklists.unwritten
    unscored = weight_notes(checklists.made, config.scorer, complete=complete)
    judge = await _judge([store, *also], config, method, engine)
    digest = judge.digest if judge else None
    finished = store.finished()
    cached = cached_keys(store, inputs, judge, config.cache) if judge else ()
    work = WorkList(store, inputs, method, judge, finished, cached, also=also)
    asking = await count_tokens(
        work, engine, most_prompts, alone=method.alone, asker=engine or _sampler(config)
    )
    in_flight = (config.judge.concurrency or engine.in_flight) if engine else None
    rate_from: str | None = "given by --rate"
    if probe and engine:
        chosen = asking.sample[:MOST_PROBED][: max(1, in_flight or 1)]
        rate, rate_from = await _probe(engine, method, chosen, config)
    elif rate is None:
        rate, rate_from = _earlier(store, config, digest, in_flight)
    price, author_price = config.judge.price, config.author.price
    cost, cost_with_reuse = _costs(asking, method, price)
    return Plan(
        made_for=identity(work.wanted),
        judge=config.judge.model,
        judge_digest=digest.hex() if digest else None,
        in_flight=in_flight,
        queries=len(inputs.queries),
        candidates=len(work.candidates),
        responses=work.responses.total(),
        checklists_to_write=len(checklists.unwritten),
        without_checklist=len(inputs.queries) - len(checklists.made) - len(checklists.unwritten),
        responses_waiting=sum(work.responses[query_id] for query_id in checklists.unwritten),
        tasks=len(work.wanted),
        finished=work.earlier,
        from_cache=work.from_cache,
        to_judge=work.left,
        items=asking.items,
        requests=asking.requests,
        prompt_tokens=asking.prompt_tokens,
        computed_tokens=asking.computed_tokens,
        tokens_known=asking.known,
        prompts_counted=asking.counted,
        cost=cost,
        cost_with_reuse=cost_with_reuse,
        author_cost=money(checklists.most, author_price) if author_price else None,
        currency=currency(config),
        price=price,
        author_price=author_price,
        items_per_second=rate,
        rate_from=rate_from,
        seconds=asking.items / rate if rate else None,
        notes=(*unscored, *rubric_notes(checklists.made, inputs.queries, inputs.heads)),
        estimated=await _estimate(store, config, engine, inputs, method, rate, most_prompts),
    )


def _sampler(config: RunConfig) -> Engine | None:
    """Return the judge's engine, not contacted, if it asks items several times."""
    kind = ENGINES.get(config.judge.engine)
    return kind.create(config.judge, None) if hasattr(kind, "requests_per_item") else None


def _costs(
    asking: PlannedRequests, method: Method, price: PriceConfig | None
) -> tuple[float | None, float | None]:
    """Return the cost of judging without any reuse, and with a perfect prefix cache."""
    if price is None:
        return None, None
    most = max(method.most_written, asking.most_written)
    written = max(asking.items, asking.requests * most)
    plain = Usage(prompt_tokens=asking.prompt_tokens, completion_tokens=written)
    reusing = plain + Usage(cached_tokens=asking.prompt_tokens - asking.computed_tokens)
    return money(plain, price), money(reusing, price) if price.cached is not None else None


TYPICAL_ITEMS, TYPICAL_BYTES = 8, 120
"""A typical checklist: GPT-4o wrote 7.6 items of 112 bytes for 160 queries of MT-Bench and 8.3 of
138 bytes for 120 of Arena-Hard."""
TYPICAL_ITEM = "Does the response say everything that the user needs to know, and nothing else? "


async def _estimate(
    store: RunStore,
    config: RunConfig,
    engine: Engine | None,
    inputs: PlannedInputs,
    method: Method,
    rate: float | None,
    most_prompts: int | None,
) -> EstimatedGrading | None:
    """Estimate the judging of checklists yet to be written, from existing or typical ones.

    Return None for a dimension author, whose single checklist can have any length.
    """
    unwritten = inputs.planned.unwritten
    if not unwritten or config.author.kind == "dimension":
        return None
    items, size, based_on = _typical(inputs.planned.made.values(), config.author)
    texts = tuple(_placeholder(place, size) for place in range(1, items + 1))
    made = {name: Checklist(name, texts) for name in inputs.queries if name in unwritten}
    waiting = PlannedInputs(inputs.queries, inputs.responses, PlannedChecklists(made))
    work = WorkList(store, waiting, method, None, ())
    asking = await count_tokens(
        work, engine, most_prompts, alone=method.alone, asker=engine or _sampler(config)
    )
    cost, cost_with_reuse = _costs(asking, method, config.judge.price)
    return EstimatedGrading(
        checklists=len(made),
        responses=len(work.wanted),
        items_per_checklist=items,
        bytes_per_item=size,
        based_on=based_on,
        items=asking.items,
        requests=asking.requests,
        prompt_tokens=asking.prompt_tokens,
        computed_tokens=asking.computed_tokens,
        cost=cost,
        cost_with_reuse=cost_with_reuse,
        seconds=asking.items / rate if rate else None,
    )


def _typical(made: Collection[Checklist], author: AuthorConfig) -> tuple[int, int, str]:
    """Return the expected number of items and bytes per item, and what they are based on."""
    if made:
        items = [item for checklist in made for item in checklist.items]
        size = round(sum(map(_bytes, items)) / max(1, len(items)))
        based_on = f"as in {count_of(len(made), 'checklist', 'checklists')} of this run"
        return max(1, round(len(items) / len(made))), max(1, size), based_on
    accepted = min(max(TYPICAL_ITEMS, author.min_items), author.max_items)
    return accepted, TYPICAL_BYTES, "as in typical checklists"


def _placeholder(place: int, size: int) -> str:
    """Return a text as long as an item, different at each place."""
    text = f"{place}: {TYPICAL_ITEM * (size // len(TYPICAL_ITEM) + 1)}"
    return text[: max(size, len(f"{place}:"))]


async def _judge(
    stores: Sequence[RunStore], config: RunConfig, method: Method, engine: Engine | None
) -> JudgeFingerprint | None:
    """Return the judge as it is now or, without an engine, as the first run recorded it.

    The plan is for the first run; the others are only read.
    """
    if engine is not None:
        found = fingerprint(await engine.identify(), method)
        judge = stores[0].known_judge(found, config.cache)
        stores[0].check_judge(judge)
        return judge
    for store in stores:
        try:
            return store.judge()
        except StageMissing:
            continue
    return None


async def _probe(
    engine: Engine, method: Method, chosen: Sequence[GradingTask], config: RunConfig
) -> tuple[float | None, str]:
    """Measure the items answered per second, with all chosen responses in flight."""
    if engine.durable:
        raise ConfigError(
            "Batch engines have no measurable rate.",
            hint="Drop --probe.",
        )
    _check_limit(engine, method, chosen, config)
    ask = method.asking(engine)
    started = time.monotonic()
    graded = await asyncio.gather(*(ask(task, {}) for task in chosen))
    seconds = time.monotonic() - started
    used = priced(sum((each.usage for each in graded), Usage()), config.judge.price)
    cost = "" if used.cost is None else f" for {shown_money(used.cost, used.currency)}"
    failures = [each.failure for each in graded if each.failure]
    items = sum(len(each.answers) for each in graded)
    if not items:
        return None, "nothing is left to ask"
    sent = f"{count_of(used.requests, 'request', 'requests')}{cost}, besides the run"
    if failures:
        return None, f"the probe failed: {failures[0]} ({sent})"
    return items / seconds, f"measured on {items} real items ({sent})"


def _check_limit(
    engine: Engine, method: Method, chosen: Sequence[GradingTask], config: RunConfig
) -> None:
    """Raise ConfigError if a probe may cost more than `max_cost`."""
    price, limit = config.judge.price, config.max_cost
    if price is None or limit is None:
        return
    prompts = [task.prefix + suffix for task in chosen for suffix in task.suffixes]
    times = requests_per_item(engine)
    written = max(method.most_written, int(getattr(engine, "most_written", 1)))
    most = Usage(
        prompt_tokens=times * sum(map(most_tokens, prompts)),
        completion_tokens=times * len(prompts) * most_written(written, config.judge.extra_body),
    )
    if not PricedBudget(Budget(limit), price).has_room(most):
        raise ConfigError(
            f"--probe sends {count_of(len(chosen), 'response', 'responses')}, which may cost up to "
            f"{shown_money(money(most, price), price.currency)}: more than `max_cost`, "
            f"{shown_money(limit, price.currency)}.",
            hint="Drop --probe, or raise --max-cost.",
        )


def _earlier(
    store: RunStore, config: RunConfig, judge: bytes | None, in_flight: int | None
) -> tuple[float | None, str | None]:
    """Return this judge's rate in earlier judgments, scaled to the current concurrency."""
    pace = store.pace(judge, config.cache) if judge and in_flight else None
    if pace is None or not pace.seconds or in_flight is None:
        return None, None
    rate = in_flight * pace.items / pace.seconds
    return rate, f"from {pace.judgments:,} earlier judgments"

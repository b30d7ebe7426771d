"""plan --cluster: what a run tells of itself to a plan for a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.capacity.assume import CapacityFigure, MeasuredRun, Source
from rocketeval.config import RunConfig
from rocketeval.distributed.staging import task_tables
from rocketeval.grading.methods import create_method
from rocketeval.grading.plan import BYTES_PER_TOKEN, choose_evenly
from rocketeval.grading.work import foresee_checklists
from rocketeval.records import GradingTask
from rocketeval.store.manifest import GradeFacts, Plan
from rocketeval.store.run import RunStore
from rocketeval.store.watch import StoredSize, ledger_size, score_size
from rocketeval.text import count_of

MOST_SAMPLED = 2000
"""Responses whose prompts are weighed, about: those of whole queries, evenly spaced."""
FEWEST_WEIGHED = 1000
"""Rows, below which a file's own head weighs too much to speak for more of them."""
FEWEST_TIMED = 1000
"""Judgments, below which starting and ending weigh too much to tell a rate."""


@dataclass(frozen=True, slots=True)
class _LedgerTotals:
    """What the ledger holds."""

    judgments: int
    items: int
    requests: int
    """Retries included."""


@dataclass(frozen=True, slots=True)
class _PromptSample:
    """What the prompts of some responses are like, on average."""

    responses: int
    """0: no response has a checklist yet."""
    without_checklist: int
    """Responses that no author will give one."""
    items: float
    prefix_bytes: float
    item_bytes: float
    task_bytes: float
    """Of one response in a Parquet file with the others."""

    @property
    def note(self) -> str:
        return f"prompts of {self.responses:,} of its responses"

    @property
    def task_figure(self) -> CapacityFigure:
        """Bytes of a task; of a small sample, the head of the file is most of them."""
        source: Source = "measured" if self.responses >= FEWEST_WEIGHED else "estimated"
        return CapacityFigure(self.task_bytes, source, f"{self.note}, as Parquet")


async def measure(
    store: RunStore, config: RunConfig, plan: Plan, *, probed: bool = False
) -> MeasuredRun:
    """Return what is known of the run: what it asks, how fast it was judged, what it weighs.

    `probed`: the plan's rate was measured just now, and goes before that of earlier judgments.
    """
    judged = _judged(store)
    together, routing_from, routed_by = _routing(config, plan, judged)
    rate, no_rate = _rate(store, config, plan, judged, probed)
    sample = await _sample(store, config, plan)
    measured = MeasuredRun(
        answers=plan.items,
        responses=plan.to_judge,
        waiting=plan.responses_waiting,
        without_checklist=sample.without_checklist,
        rate=rate,
        no_rate=no_rate,
        calls=_calls(plan, judged),
        batch=_setting(config, "batch"),
        in_hand=_setting(config, "calls"),
        ledger_bytes=_per_row(ledger_size(store), "judgments of its ledger"),
        score_bytes=_per_row(score_size(store), "of its scores"),
        together=together,
        routing_from=routing_from,
        routed_by=routed_by,
    )
    if not sample.responses:
        return measured
    return replace(
        measured,
        items=CapacityFigure(sample.items, "measured", sample.note),
        prefix_tokens=_tokens(sample.prefix_bytes, sample, plan),
        item_tokens=_tokens(sample.item_bytes, sample, plan),
        task_bytes=sample.task_figure,
    )


def _judged(store: RunStore) -> _LedgerTotals:
    pace = store.pace(b"", None)
    return _LedgerTotals(pace.judgments, pace.items, store.ledger_usage().requests)


def _setting(config: RunConfig, name: str) -> CapacityFigure:
    """Return a number of the config's `distributed`, and whether somebody set it."""
    value = getattr(config.distributed, name)
    if name in config.distributed.model_fields_set:
        return CapacityFigure(value, "given", f"`distributed.{name}`")
    return CapacityFigure(value, "assumed", f"the default of `distributed.{name}`")


async def _sample(store: RunStore, config: RunConfig, plan: Plan) -> _PromptSample:
    """Return what prompts are like, and how many responses will never have a checklist."""
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    foreseen = await foresee_checklists(store, config, loaded.queries)
    checklists = foreseen.made
    queries = {query.id: query for query in loaded.queries if query.id in checklists}
    each = -(-plan.responses // max(1, plan.queries))
    chosen = choose_evenly(dict.fromkeys(queries, each), MOST_SAMPLED)
    prompt = create_method(config).prompt
    tasks: list[GradingTask] = []
    without = 0
    for response in loaded.responses():
        name = response.query_id
        without += name not in checklists and name not in foreseen.unwritten
        if name in chosen:
            key = response.content_hash
            tasks.append(prompt.render(queries[name], response, checklists[name], key))
    # As a distributed run keeps them: what a query's candidates share is compressed.
    return _weigh(sorted(tasks, key=lambda task: task.query_id), without)


def _weigh(tasks: Sequence[GradingTask], without_checklist: int) -> _PromptSample:
    suffixes = [suffix for task in tasks for suffix in task.suffixes]
    if not suffixes:
        return _PromptSample(0, without_checklist, 0.0, 0.0, 0.0, 0.0)
    return _PromptSample(
        responses=len(tasks),
        without_checklist=without_checklist,
        items=len(suffixes) / len(tasks),
        prefix_bytes=_mean_bytes(task.prefix for task in tasks),
        item_bytes=_mean_bytes(suffixes),
        task_bytes=_parquet_bytes(tasks) / len(tasks),
    )


def _mean_bytes(texts: Iterable[str]) -> float:
    return fmean(len(text.encode()) for text in texts)


def _parquet_bytes(tasks: Sequence[GradingTask]) -> int:
    """Return what tasks take in the Parquet file that a cluster would get."""
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(task_tables(tasks, {})), sink, compression="zstd")
    return int(sink.getvalue().size)


def _tokens(size: float, sample: _PromptSample, plan: Plan) -> CapacityFigure:
    """Return tokens from bytes: by the judge's own tokens per byte where the plan knows them."""
    if plan.tokens_known == "estimated" or not plan.items:
        return CapacityFigure(
            size / BYTES_PER_TOKEN, "estimated", f"{sample.note}, 4 bytes a token"
        )
    per_prompt = plan.prompt_tokens / plan.items
    share = size / (sample.prefix_bytes + sample.item_bytes)
    return CapacityFigure(
        share * per_prompt, "measured", f"{sample.note}, by the judge's tokenizer"
    )


def _rate(
    store: RunStore, config: RunConfig, plan: Plan, judged: _LedgerTotals, probed: bool
) -> tuple[CapacityFigure | None, str]:
    """Return how fast this judge was: just now, in the last grading, or in its judgments.

    Without a rate, why there is none.
    """
    if not probed:
        last = _last_rate(store, judged)
        if last is not None:
            return last, ""
        known = _timed(store, config, plan)
        if 0 < known < FEWEST_TIMED:
            few = count_of(known, "judgment is", "judgments are")
            return None, f"{few} too few to tell this judge's rate (see --probe)"
    if plan.items_per_second is None:
        return None, plan.rate_from or ""
    note = f"{plan.rate_from}, taken to be by one replica"
    return CapacityFigure(plan.items_per_second, "measured", note), ""


def _last_rate(store: RunStore, judged: _LedgerTotals) -> CapacityFigure | None:
    """Return the rate of the last grading by the clock; None if it was short."""
    facts = store.manifest().stages.grade
    count, seconds = facts.judged, _grading_seconds(facts)
    if count < FEWEST_TIMED or not seconds or not judged.judgments:
        return None
    rate = count * judged.items / judged.judgments / seconds
    told = count_of(count, "judgment", "judgments")
    return CapacityFigure(
        rate, "measured", f"{told} in {seconds:,.1f} s, taken to be by one replica"
    )


def _timed(store: RunStore, config: RunConfig, plan: Plan) -> int:
    """Return how many judgments of this judge the run or the cache holds."""
    if plan.judge_digest is None:
        return 0
    return store.pace(bytes.fromhex(plan.judge_digest), config.cache).judgments


def _grading_seconds(facts: GradeFacts) -> float:
    """Return the seconds that the judge was asked; of the whole stage where no bill tells."""
    return (facts.bill.bill.seconds if facts.bill else facts.seconds) or 0.0


def _calls(plan: Plan, judged: _LedgerTotals) -> CapacityFigure | None:
    """Return calls per answer: as planned or, if nothing is left to plan, as in the ledger."""
    if plan.in_flight is not None and plan.items:
        return CapacityFigure(plan.requests / plan.items, "measured", "as this judge is asked")
    if not judged.requests or not judged.items:
        return None
    told = count_of(judged.judgments, "judgment", "judgments")
    note = f"{told} of its ledger, retries included"
    return CapacityFigure(judged.requests / judged.items, "measured", note)


def _routing(config: RunConfig, plan: Plan, judged: _LedgerTotals) -> tuple[bool, Source, str]:
    """Return whether the items of a response meet one replica, who says so, and what sees to it."""
    if plan.in_flight is not None and plan.to_judge:
        asked, requests, tense = plan.to_judge, plan.requests, "go"
    else:
        asked, requests, tense = judged.judgments, judged.requests, "went"
    if asked and 0 < requests <= asked:
        return True, "measured", f"all items of a response {tense} in one call"
    header = config.judge.session_header
    if header is not None:
        return True, "assumed", f"the header {header} is sent; the router must heed it"
    if not requests:
        return False, "assumed", "`judge.session_header` is null; calls are not known yet"
    return False, "measured", f"`judge.session_header` is null and items {tense} in several calls"


def _per_row(weight: StoredSize, what: str) -> CapacityFigure | None:
    if weight.rows < FEWEST_WEIGHED:
        return None
    return CapacityFigure(weight.size / weight.rows, "measured", f"{weight.rows:,} {what}")

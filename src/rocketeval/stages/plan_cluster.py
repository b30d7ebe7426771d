"""plan --cluster: what a run tells of itself to a plan for a cluster."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.capacity.assume import Measured
from rocketeval.capacity.figure import Figure
from rocketeval.config import RunConfig
from rocketeval.grading.methods.table import create_method
from rocketeval.records import GradingTask
from rocketeval.stages.plan import Plan
from rocketeval.stages.plan_tokens import BYTES_PER_TOKEN, choose_evenly
from rocketeval.stages.work import foresee_checklists
from rocketeval.store.run import RunStore
from rocketeval.store.weigh import Weight, ledger_weight, score_weight

MOST_SAMPLED = 1000
"""Responses whose prompts are weighed, about: those of whole queries, evenly spaced."""
FEWEST_WEIGHED = 1000
"""Judgments, below which a file's own head weighs too much to speak for more of them."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """What the prompts of some responses are like, on average."""

    responses: int
    items: float
    prefix_bytes: float
    item_bytes: float
    task_bytes: float
    """Of one response in a Parquet file with the others."""

    @property
    def note(self) -> str:
        return f"prompts of {self.responses:,} of its responses"


async def measure(
    store: RunStore, config: RunConfig, plan: Plan, *, probed: bool = False
) -> Measured:
    """Return what is known of the run: what it asks, how fast it was judged, what it weighs.

    `probed`: the plan's rate was measured just now, and goes before that of earlier judgments.
    """
    together, routed_by = _routing(config, plan)
    measured = Measured(
        answers=plan.items,
        responses=plan.to_judge,
        rate=_rate(store, plan, probed),
        calls=_calls(plan),
        batch=Figure(config.distributed.batch, "given", "`distributed.batch`, set or default"),
        in_hand=Figure(config.distributed.calls, "given", "`distributed.calls`, set or default"),
        ledger_bytes=_per_row(ledger_weight(store), "judgments of its ledger"),
        score_bytes=_per_row(score_weight(store), "of its scores"),
        together=together,
        routed_by=routed_by,
    )
    sample = await _sample(store, config, plan)
    if sample is None:
        return measured
    return replace(
        measured,
        items=Figure(sample.items, "measured", sample.note),
        prefix_tokens=_tokens(sample.prefix_bytes, sample, plan),
        item_tokens=_tokens(sample.item_bytes, sample, plan),
        task_bytes=Figure(sample.task_bytes, "measured", f"{sample.note}, as Parquet"),
    )


async def _sample(store: RunStore, config: RunConfig, plan: Plan) -> _Sample | None:
    """Return what prompts are like; None while no query has a checklist."""
    loaded = load(open_benchmark(config.benchmark), config.benchmark)
    checklists = (await foresee_checklists(store, config, loaded.queries)).made
    queries = {query.id: query for query in loaded.queries if query.id in checklists}
    each = -(-plan.responses // max(1, plan.queries))
    chosen = choose_evenly(dict.fromkeys(queries, each), MOST_SAMPLED)
    prompt = create_method(config).prompt
    tasks = [
        prompt.render(queries[name], response, checklists[name], response.content_hash)
        for response in loaded.responses()
        if (name := response.query_id) in chosen
    ]
    # As a distributed run keeps them: what a query's candidates share is compressed.
    return _weigh(sorted(tasks, key=lambda task: task.query_id))


def _weigh(tasks: Sequence[GradingTask]) -> _Sample | None:
    suffixes = [suffix for task in tasks for suffix in task.suffixes]
    if not suffixes:
        return None
    return _Sample(
        responses=len(tasks),
        items=len(suffixes) / len(tasks),
        prefix_bytes=_mean_bytes(task.prefix for task in tasks),
        item_bytes=_mean_bytes(suffixes),
        task_bytes=_parquet_bytes(tasks) / len(tasks),
    )


def _mean_bytes(texts: Iterable[str]) -> float:
    return fmean(len(text.encode()) for text in texts)


def _parquet_bytes(tasks: Sequence[GradingTask]) -> int:
    """Return what tasks take as rows of a Parquet file, sorted by query and compressed."""
    table = pa.table(
        {
            "id": pa.array(range(len(tasks)), pa.int64()),
            "key": [task.key for task in tasks],
            "query_id": [task.query_id for task in tasks],
            "candidate": [task.candidate for task in tasks],
            "prefix": [task.prefix for task in tasks],
            "suffixes": [list(task.suffixes) for task in tasks],
        }
    )
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink, compression="zstd")
    return int(sink.getvalue().size)


def _tokens(size: float, sample: _Sample, plan: Plan) -> Figure:
    """Return tokens from bytes: by the judge's own tokens per byte where the plan knows them."""
    if plan.tokens_known == "estimated" or not plan.items:
        return Figure(size / BYTES_PER_TOKEN, "estimated", f"{sample.note}, 4 bytes a token")
    per_prompt = plan.prompt_tokens / plan.items
    share = size / (sample.prefix_bytes + sample.item_bytes)
    return Figure(share * per_prompt, "measured", f"{sample.note}, by the judge's tokenizer")


def _rate(store: RunStore, plan: Plan, probed: bool) -> Figure | None:
    """Return how fast this judge was: just now, in the last grading, or in its judgments."""
    facts = store.manifest().get("stages", {}).get("grade", {})
    judged, seconds = facts.get("judged", 0), _grading_seconds(facts)
    if judged and seconds and not probed:
        pace = store.pace(b"", None)
        if pace.judgments:
            rate = judged * pace.items / pace.judgments / seconds
            note = f"{judged:,} judgments in {seconds:,.1f} s, taken to be by one replica"
            return Figure(rate, "measured", note)
    if plan.items_per_second is None:
        return None
    note = f"{plan.rate_from}, taken to be by one replica"
    return Figure(plan.items_per_second, "measured", note)


def _grading_seconds(facts: dict[str, object]) -> float:
    """Return the seconds that the judge was asked; of the whole stage where no bill tells."""
    bill = facts.get("bill")
    told = bill["bill"]["seconds"] if isinstance(bill, dict) else facts.get("seconds")
    return float(told) if isinstance(told, int | float) else 0.0


def _calls(plan: Plan) -> Figure | None:
    """Return calls per answer; None when the judge was not contacted."""
    if plan.in_flight is None or not plan.items:
        return None
    return Figure(plan.requests / plan.items, "measured", "as this judge is asked")


def _routing(config: RunConfig, plan: Plan) -> tuple[bool, str]:
    """Return whether the items of a response meet one replica, and what sees to it."""
    if plan.in_flight is not None and plan.requests <= plan.to_judge:
        return True, "all items of a response go in one call"
    header = config.judge.session_header
    if header is not None:
        return True, f"the header {header} is sent; the router must heed it"
    return False, "`judge.session_header` is null and items go in several calls"


def _per_row(weight: Weight, what: str) -> Figure | None:
    if weight.rows < FEWEST_WEIGHED:
        return None
    return Figure(weight.size / weight.rows, "measured", f"{weight.rows:,} {what}")

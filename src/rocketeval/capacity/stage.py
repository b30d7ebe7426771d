"""Measurements of a run for `plan --cluster`."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import load
from rocketeval.capacity.model import CapacityFigure, MeasuredRun, Source, published_rate
from rocketeval.config import RunConfig
from rocketeval.distributed.staging import task_tables
from rocketeval.grading.methods import create_method
from rocketeval.grading.plan import BYTES_PER_TOKEN, choose_evenly
from rocketeval.grading.work import foresee_checklists
from rocketeval.records import GradingTask
from rocketeval.store.manifest import Plan
from rocketeval.store.run import JudgePace, RunStore
from rocketeval.store.watch import StoredSize, ledger_size, score_size
from rocketeval.text import count_of

MOST_SAMPLED = 2000
"""Approximate number of responses to sample, from evenly spaced whole queries."""
FEWEST = 1000
"""Minimum number of rows or judgments; below it, fixed overhead distorts the figures."""


async def measure(
    store: RunStore, config: RunConfig, plan: Plan, *, probed: bool = False
) -> MeasuredRun:
    """Measure the run's remaining work, judging rate and file sizes.

    `probed`: the plan's rate was just measured, and overrides that of earlier judgments.
    """
    judged, requests = store.pace(b"", None), store.ledger_usage().requests
    together, routing_from, routed_by = _routing(config, plan, judged, requests)
    tasks, without_checklist = await _sample(store, config, plan)
    figures = {
        "rate": _rate(store, config, plan, judged, probed),
        "calls": _calls(plan, judged, requests),
        "batch": _setting(config, "batch"),
        "in_hand": _setting(config, "calls"),
        "ledger_bytes": _per_row(ledger_size(store), "judgments of its ledger"),
        "score_bytes": _per_row(score_size(store), "of its scores"),
        **_prompt_figures(tasks, plan),
    }
    return MeasuredRun(
        answers=plan.items,
        responses=plan.to_judge,
        waiting=plan.responses_waiting,
        without_checklist=without_checklist,
        figures={name: figure for name, figure in figures.items() if figure is not None},
        together=together,
        routing_from=routing_from,
        routed_by=routed_by,
    )


def _setting(config: RunConfig, name: str) -> CapacityFigure:
    """Return a number of the config's `distributed` section, given or default."""
    value = getattr(config.distributed, name)
    if name in config.distributed.model_fields_set:
        return CapacityFigure(value, "given", f"`distributed.{name}`")
    return CapacityFigure(value, "assumed", f"the default of `distributed.{name}`")


async def _sample(store: RunStore, config: RunConfig, plan: Plan) -> tuple[list[GradingTask], int]:
    """Return a sample of the run's tasks, and the number of responses without a checklist."""
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
    # Sorted as in a distributed run, where text shared by a query's candidates compresses well.
    return sorted(tasks, key=lambda task: task.query_id), without


def _prompt_figures(tasks: Sequence[GradingTask], plan: Plan) -> dict[str, CapacityFigure]:
    """Return mean prompt sizes; {} before there are checklists."""
    suffixes = [task.suffixes[place] for task in tasks for place in task.left()]
    if not suffixes:
        return {}
    prefix = fmean(len(task.prefix.encode()) for task in tasks)
    item = fmean(len(suffix.encode()) for suffix in suffixes)
    sink = pa.BufferOutputStream()
    pq.write_table(pa.concat_tables(task_tables(tasks, {})), sink, compression="zstd")
    note = f"prompts of {len(tasks):,} of its responses"
    # In a small sample, the file header dominates.
    weighed: Source = "measured" if len(tasks) >= FEWEST else "estimated"

    def tokens(size: float) -> CapacityFigure:
        """Convert bytes to tokens, by the judge's tokenizer if the plan used it."""
        if plan.tokens_known == "estimated" or not plan.items:
            return CapacityFigure(size / BYTES_PER_TOKEN, "estimated", f"{note}, 4 bytes per token")
        counted = size / (prefix + item) * (plan.prompt_tokens / plan.items)
        return CapacityFigure(counted, "measured", f"{note}, by the judge's tokenizer")

    return {
        "items": CapacityFigure(len(suffixes) / len(tasks), "measured", note),
        "prefix_tokens": tokens(prefix),
        "item_tokens": tokens(item),
        "task_bytes": CapacityFigure(
            sink.getvalue().size / len(tasks), weighed, f"{note}, as Parquet"
        ),
    }


def _rate(
    store: RunStore, config: RunConfig, plan: Plan, judged: JudgePace, probed: bool
) -> CapacityFigure | None:
    """Return the judge's rate: just probed, of the last grading, or of its judgments."""
    if not probed:
        last = _last_rate(store, judged)
        if last is not None:
            return last
        digest = plan.judge_digest
        known = store.pace(bytes.fromhex(digest), config.cache).judgments if digest else 0
        if 0 < known < FEWEST:
            few = count_of(known, "judgment is", "judgments are")
            return published_rate(f"{few} too few to measure this judge's rate (see --probe)")
    if plan.items_per_second is None:
        return published_rate(plan.rate_from) if plan.rate_from else None
    note = f"{plan.rate_from}, assuming one replica"
    return CapacityFigure(plan.items_per_second, "measured", note)


def _last_rate(store: RunStore, judged: JudgePace) -> CapacityFigure | None:
    """Return the rate of the last grading by wall time; None if it was short."""
    facts = store.manifest().stages.grade
    # Seconds of judging, or of the whole stage if there is no bill.
    count, seconds = facts.judged, (facts.bill.bill.seconds if facts.bill else facts.seconds)
    if count < FEWEST or not seconds or not judged.judgments:
        return None
    rate = count * judged.items / judged.judgments / seconds
    note = f"{count_of(count, 'judgment', 'judgments')} in {seconds:,.1f} s, assuming one replica"
    return CapacityFigure(rate, "measured", note)


def _calls(plan: Plan, judged: JudgePace, requests: int) -> CapacityFigure | None:
    """Return requests per answer, from the plan, or from the ledger if nothing is left."""
    if plan.in_flight is not None and plan.items:
        return CapacityFigure(plan.requests / plan.items, "measured", "as this judge is asked")
    if not requests or not judged.items:
        return None
    count = count_of(judged.judgments, "judgment", "judgments")
    note = f"{count} of its ledger, including retries"
    return CapacityFigure(requests / judged.items, "measured", note)


def _routing(
    config: RunConfig, plan: Plan, judged: JudgePace, requests: int
) -> tuple[bool, Source, str]:
    """Return whether the items of a response stay on one replica, the source, and the reason."""
    if plan.in_flight is not None and plan.to_judge:
        asked, requests, tense = plan.to_judge, plan.requests, "go"
    else:
        asked, tense = judged.judgments, "went"
    if asked and 0 < requests <= asked:
        return True, "measured", f"all items of a response {tense} in one request"
    header = config.judge.session_header
    if header is not None:
        return True, "assumed", f"the header {header} is sent; the router must honor it"
    if not requests:
        return False, "assumed", "`judge.session_header` is null; requests are not known yet"
    return False, "measured", f"`judge.session_header` is null; items {tense} in several requests"


def _per_row(weight: StoredSize, what: str) -> CapacityFigure | None:
    if weight.rows < FEWEST:
        return None
    return CapacityFigure(weight.size / weight.rows, "measured", f"{weight.rows:,} {what}")

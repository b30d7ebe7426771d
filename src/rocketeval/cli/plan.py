"""`rocketeval plan`: estimate the requests, cost and time of a run."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import COST, codes, option, verb
from rocketeval.cli.options import FiniteRange, with_config, with_evaluator, with_until
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.plan_cluster import ClusterPlan, show_cluster, with_cluster
from rocketeval.cli.text import clock, near, show_pairs, show_whole, shown_path
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rocketeval.capacity.model import CapacityOptions
    from rocketeval.config import RunConfig
    from rocketeval.stopping.plan import ExpectedStop
    from rocketeval.store.manifest import EstimatedGrading, Plan


TITLES = 11
"""Width of the title column."""


@verb(
    examples=[
        ("rocketeval plan", "requests, tokens, money and time"),
        ("rocketeval plan --probe", "measure the judge's rate first"),
        ("rocketeval plan --until best --pilot runs/demo", "judgments if it stops early"),
        ("rocketeval plan --cluster --hours 6", "replicas for a deadline"),
    ],
    exit_codes=codes(2, 4, 5),
)
@partial(with_config, limit_help="Plan a run of only the first N queries, named NAME-first-N.")
@with_evaluator
@option("--offline", is_flag=True, help="Contact no server, write nothing; estimate tokens.")
@option("--exact", is_flag=True, help="Tokenize every prompt, however many there are.")
@option(
    "--rate",
    type=FiniteRange(min=0, min_open=True),
    metavar="ITEMS",
    help="Items per second that the judge answers; with --cluster, per replica.",
)
@option(
    "--probe", is_flag=True, help="Measure that rate by sending up to 16 responses, at extra cost."
)
@with_until
@option(
    "--pilot",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    metavar="RUN",
    section=COST,
    help="With --until: estimate from the scores of this run; default: those the run has.",
)
@option(
    "--spread",
    type=FiniteRange(min=0, min_open=True),
    metavar="SD",
    section=COST,
    help="With --until: standard deviation of the difference of two candidates over queries.",
)
@option(
    "--gap",
    type=FiniteRange(min=0),
    metavar="POINTS",
    section=COST,
    help="With --spread: difference of each candidate to the next.",
)
@with_cluster
@with_output
def command(
    settings: RunConfig,
    offline: bool,
    exact: bool,
    rate: float | None,
    probe: bool,
    pilot: Path | None,
    spread: float | None,
    gap: float | None,
    cluster: CapacityOptions | None,
    output: Output,
) -> None:
    """Estimate the requests, cost and time of a run without starting it.

    Judgments that the run of CONFIG or the cache already holds are not counted. The judge is
    contacted to find its transport and tokenizer. No item is asked, except with --probe: the run
    asks those items again. Tokens are `exact` if the judge's own tokenizer counts all of them,
    `sampled` if it counts some of the queries, and `estimated` from bytes if it cannot count.

    The plan is kept in the run directory; after the run, it is shown next to the actual usage.

    --until GOAL adds what a run that stops early would need, from simulated races: with the scores
    of --pilot RUN, with those the run already has, or with candidates --gap apart whose
    differences have the standard deviation --spread.

    --cluster adds estimates for many replicas, for this run and for 1e6 to 1e10 answers like
    these, with all assumptions.
    """
    import asyncio

    from rocketeval.pipeline import Run
    from rocketeval.store.manifest import MOST_PROMPTS

    if offline and probe:
        raise click.UsageError("--probe and --offline exclude each other.")
    if (spread is None) != (gap is None) or (pilot is not None and spread is not None):
        raise click.UsageError("Give --spread and --gap together, or --pilot.")
    if settings.until is None and (pilot is not None or spread is not None):
        raise click.UsageError("--pilot, --spread and --gap need --until.")
    run = Run(settings)
    most_prompts = None if exact else MOST_PROMPTS
    if offline:
        plan = asyncio.run(run.plan_offline(rate=rate))
    else:
        plan = asyncio.run(run.plan(most_prompts=most_prompts, rate=rate, probe=probe))
    kept = None if offline else run.store.path / "plan.json"
    if settings.until is not None:
        from rocketeval.stopping.plan import AssumedSpread
        from rocketeval.stopping.stage import plan_stop

        given_spread = None if spread is None or gap is None else AssumedSpread(spread, gap)
        stop = plan_stop(run.store, run.config, plan, pilot=pilot, spread=given_spread)
        early = EarlyPlan(plan, stop)
        output.give(early, lambda: _show_early(run.config, early, kept))
        return
    if cluster is None:
        output.give(plan, lambda: show_plan(run.config, plan, kept))
        return
    given = replace(cluster, rate=rate)
    both = ClusterPlan(plan, asyncio.run(run.plan_cluster(plan, given, probed=probe)))
    output.give(both, lambda: _show_both(run.config, both, kept))


@dataclass(frozen=True, slots=True)
class EarlyPlan:
    """A plan, with the estimate for a run that stops early."""

    plan: Plan
    until: ExpectedStop


def _show_early(config: RunConfig, early: EarlyPlan, kept: Path | None) -> None:
    show_plan(config, early.plan, kept)
    click.echo()
    show_pairs(_early_lines(early.until), TITLES)


def _early_lines(stop: ExpectedStop) -> Iterator[tuple[str, str]]:
    from rocketeval.prices import shown_money

    share = stop.judgments / max(1, stop.of)
    yield (
        "Until",
        f"{stop.goal}: about {stop.judgments:,.0f} of {stop.of:,} judgments ({share:.0%}), "
        f"usually {stop.judgments_low:,.0f} to {stop.judgments_high:,.0f}",
    )
    yield "", f"decided in {stop.decided:.0%} of simulated races, else a near tie"
    if stop.cost is not None:
        reused = stop.cost_with_reuse
        least = "" if reused is None else f"{shown_money(reused, stop.currency)} to "
        yield "", f"about {least}{shown_money(stop.cost, stop.currency)}"
    if stop.seconds is not None:
        yield "", f"about {clock(stop.seconds)}"
    yield "", f"from {stop.based_on}"


def _show_both(config: RunConfig, both: ClusterPlan, kept: Path | None) -> None:
    show_plan(config, both.plan, kept)
    show_cluster(both.cluster, both.plan.currency)


def show_dry_run(config: RunConfig, output: Output) -> None:
    """Print what a run would do, without contacting a server or writing a file."""
    import asyncio

    from rocketeval.pipeline import Run

    run = Run(config)
    plan = asyncio.run(run.plan_offline())
    output.give(plan, lambda: show_plan(run.config, plan))


def show_plan(config: RunConfig, plan: Plan, kept: Path | None = None) -> None:
    """Print a plan and where it is kept."""
    show_whole("Run", near(config.run_path), TITLES)
    show_pairs(_lines(plan), TITLES)
    if kept is not None:
        click.echo("\nAfter the run, actual usage is compared with this plan, saved in")
        click.echo(shown_path(kept))


def _lines(plan: Plan) -> Iterator[tuple[str, str]]:
    from rocketeval.prices import shown_money

    yield (
        "Benchmark",
        f"{count_of(plan.queries, 'query', 'queries')}, "
        f"{count_of(plan.candidates, 'candidate', 'candidates')}, "
        f"{count_of(plan.responses, 'response', 'responses')}",
    )
    if plan.checklists_to_write:
        yield "Author", f"{count_of(plan.checklists_to_write, 'checklist', 'checklists')} to write"
        if plan.author_cost is not None:
            yield "", f"at most {shown_money(plan.author_cost, plan.currency)}"
    if plan.without_checklist:
        without = count_of(plan.without_checklist, "query has", "queries have")
        yield "Missing", f"{without} no checklist"
    if plan.finished or plan.from_cache:
        yield "Reused", _reused(plan)
    yield "Judge", _judging(plan)
    if plan.responses_waiting:
        waiting = count_of(plan.responses_waiting, "response waits", "responses wait")
        where = "not counted" if plan.estimated is None else "counted in the estimate only"
        yield "", f"{waiting} for a checklist: {where}"
    if plan.items:
        yield from _figures(plan)
    if plan.estimated is not None:
        yield from _estimate(plan.estimated, plan.currency)
    for number, note in enumerate(plan.notes):
        yield "" if number else "Check", printable(note)


def _estimate(guess: EstimatedGrading, currency: str) -> Iterator[tuple[str, str]]:
    """Yield the estimate for checklists that are not written yet."""
    from rocketeval.prices import shown_money

    size = f"{guess.items_per_checklist} items of {guess.bytes_per_item} bytes"
    yield (
        "Estimated",
        f"about {count_of(guess.items, 'item', 'items')} of "
        f"{count_of(guess.responses, 'response', 'responses')}, {guess.based_on}: {size}",
    )
    yield (
        "",
        f"about {guess.prompt_tokens:,} prompt tokens, at least {guess.computed_tokens:,} to "
        "compute",
    )
    if guess.cost is not None:
        reused = guess.cost_with_reuse
        least = "" if reused is None else f"{shown_money(reused, currency)} to "
        yield "", f"about {least}{shown_money(guess.cost, currency)} for the judge"
    if guess.seconds is not None:
        yield "", f"about {clock(guess.seconds)}"


def _reused(plan: Plan) -> str:
    kept = plan.finished + plan.from_cache
    known = f"{kept:,} of {count_of(plan.tasks, 'judgment', 'judgments')}"
    if not plan.from_cache:
        return f"{known}, already in this run"
    if not plan.finished:
        return f"{known}, from the cache"
    return f"{known}: {plan.finished:,} already in this run, {plan.from_cache:,} from the cache"


def _judging(plan: Plan) -> str:
    if plan.responses_waiting and not plan.to_judge:
        return f"{plan.judge}: items unknown until the checklists are written"
    if not plan.to_judge:
        return f"{plan.judge}: nothing left to ask"
    left = f"{count_of(plan.items, 'item', 'items')} of {plan.to_judge:,} responses to ask"
    sent = f", in {count_of(plan.requests, 'request', 'requests')}" if plan.in_flight else ""
    in_flight = f", {plan.in_flight} responses in flight" if plan.in_flight else ""
    return f"{plan.judge}: {left}{sent}{in_flight}"


def _figures(plan: Plan) -> Iterator[tuple[str, str]]:
    from rocketeval.prices import shown_money

    known = {
        "exact": "exact",
        "sampled": f"sampled: {plan.prompts_counted:,} of {plan.items:,} prompts were tokenized",
        "estimated": "estimated: a quarter of the bytes",
    }[plan.tokens_known]
    share = plan.computed_tokens / max(1, plan.prompt_tokens)
    yield "Tokens", f"{plan.prompt_tokens:,} prompt tokens ({known}), {plan.items:,} output tokens"
    yield "", f"at least {plan.computed_tokens:,} to compute, with a perfect cache ({share:.0%})"
    if plan.cost is None:
        yield "Money", "no price set"
    else:
        shown = shown_money(plan.cost, plan.currency)
        reused = plan.cost_with_reuse
        yield (
            "Money",
            shown
            if reused is None
            else f"{shown_money(reused, plan.currency)} with a perfect cache, {shown} without",
        )
    if plan.seconds is None or plan.items_per_second is None:
        yield "Time", plan.rate_from or "unknown (see --rate and --probe)"
    else:
        rate = f"{plan.items_per_second:,.1f} items/s"
        yield "Time", f"{clock(plan.seconds)} at {rate}, {plan.rate_from}"

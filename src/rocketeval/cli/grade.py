"""`rocketeval grade`

Plan beside bill, after grading.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.options import (
    show_asked,
    tell_unused,
    with_evaluator,
    with_place,
    with_settings,
)
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.plan import show_dry_run
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import clock, failed

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.store.manifest import Bill, GradeFacts, RayFacts


NOT_TOLD = "not told"


def show_bill(found: Bill | None) -> None:
    """Print what was expected beside what was used; nothing when no plan was made for it."""
    from rocketeval.prices import shown_money

    if found is None:
        return

    def amount(value: float) -> str:
        return shown_money(value, found.currency)

    rows: list[tuple[str, str, Callable[[Any], str]]] = [
        ("calls", "requests", _count),
        ("prompt tokens", "prompt_tokens", _count),
        ("  computed", "computed_tokens", _count),
        ("completion tokens", "completion_tokens", _count),
        ("money", "cost", amount),
        ("time", "seconds", clock),
    ]
    lines = []
    for title, name, shown in rows:
        plan, bill = getattr(found.plan, name), getattr(found.bill, name)
        repriced = name == "cost" and found.repriced
        if plan is not None or repriced or name not in ("cost", "seconds"):
            lines.append((title, _shown(plan, shown), _shown(bill, shown), _note(found, name)))
    wide = [max(len(line[column]) for line in lines) for column in (1, 2)]
    click.echo(f"{'Judging':19}{'plan':>{wide[0]}}   {'bill':>{wide[1]}}")
    for title, plan, bill, note in lines:
        click.echo(f"{title:19}{plan:>{wide[0]}}   {bill:>{wide[1]}}   {note}".rstrip())


def _note(found: Bill, name: str) -> str:
    if name == "prompt_tokens" and found.tokens_known != "exact":
        return f"the plan's are {found.tokens_known}"
    if name == "cost" and found.repriced:
        return "the plan was made at another price"
    if name == "computed_tokens" and found.times_least is not None:
        return f"{found.times_least:.2f} times the least possible"
    return ""


def _shown(value: float | None, shown: Callable[[Any], str]) -> str:
    return NOT_TOLD if value is None else shown(value)


def _count(value: int) -> str:
    return f"{value:,}"


@click.command()
@with_settings
@with_place
@with_evaluator
@click.option("--dry-run", is_flag=True, help="Say what would be done; contact and write nothing.")
@with_output
def command(settings: RunConfig, dry_run: bool, output: Output) -> int:
    """Let the judge of CONFIG answer every checklist item that is still unanswered.

    Checklists that are missing are made first. Inputs that changed are judged again, the rest is
    kept. Exit code 3: some responses could not be judged, run it again; 6: --max-cost is reached.
    """
    from rocketeval.cli.progress import make_observer
    from rocketeval.pipeline import Run

    if dry_run:
        show_dry_run(settings, output)
        return 0
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    facts = run_with_signals(run, run.to_judgments)
    output.give(facts, lambda: _show(facts))
    tell_unused(run.store.manifest().stages.checklist)
    for failure in run.store.failures()[:10]:
        click.echo(failed(failure), err=True)
    return INCOMPLETE if facts.unfinished or facts.responses_without_checklist else 0


def _show(facts: GradeFacts) -> None:
    click.echo(
        f"{facts.judged} judged now, {facts.finished_earlier} earlier, "
        f"{facts.from_cache} from the cache, {facts.unfinished} left"
    )
    if facts.ray is not None:
        click.echo(on_ray(facts.ray))
    show_asked(facts)
    show_bill(facts.bill)


def on_ray(facts: RayFacts) -> str:
    """Return what a cluster did beyond its work: what was asked twice, and what was left out."""
    again = facts.asked_again
    told = f"On Ray ({facts.on}): {facts.asked:,} responses asked"
    if again:
        told += f", {again:,} of them again ({again / max(1, facts.asked):.1%})"
    if facts.duplicates:
        told += f", {facts.duplicates:,} double rows left out"
    if facts.torn:
        told += f", {facts.torn:,} torn files left out"
    return told

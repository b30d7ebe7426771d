"""`rocketeval attack`: measure whether dishonest responses can fool the judge."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import SEEDS, with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.text import NO_INTERVAL, between

if TYPE_CHECKING:
    from rocketeval.attack.measure import AttackFigures, AttackReport
    from rocketeval.config import RunConfig
    from rocketeval.records import Interval


@verb(
    examples=[
        ("rocketeval attack", "all attacks on 60 items answered no"),
        ("rocketeval attack --items 20 --datamarking", "fewer items, marked prompts"),
    ],
    exit_codes=codes(2, 4, 5, 6, 130),
)
@with_settings
@option(
    "--items",
    type=click.IntRange(1, 100_000),
    default=60,
    show_default=True,
    metavar="N",
    help="Items answered no to attack.",
)
@option("--only", "names", multiple=True, metavar="ATTACK", help="Try this attack; repeatable.")
@option("--datamarking", is_flag=True, help="Mark the words of each response in the prompt.")
@option(
    "--seed",
    type=SEEDS,
    default=0,
    show_default=True,
    help="Seed of the choice of items.",
)
@with_output
def command(
    settings: RunConfig,
    items: int,
    names: tuple[str, ...],
    datamarking: bool,
    seed: int,
    output: Output,
) -> None:
    """Measure whether dishonest responses can fool the judge.

    Items of the run of CONFIG that the judge answered with no are asked again, with 16 attacks in
    the response: requests, forged delimiters and chat tokens, false claims and others. Each is
    compared with neutral padding of about the same length. The table shows how many answers become
    yes, the change of p_yes, and the ranks that an attacker would gain. It costs about 24 requests
    per item. The run's scores do not change.
    """
    from rocketeval.attack.stage import attack_run, choose_attacks
    from rocketeval.cli.progress import make_observer
    from rocketeval.cli.run_with_signals import run_with_signals
    from rocketeval.engines.base import confirm_recorded, create_engine
    from rocketeval.pipeline import Run

    choose_attacks(names)
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))

    async def work() -> AttackReport:
        engine = create_engine(run.config.judge, run.store.engine_home("attack"))
        try:
            found = await attack_run(
                run.store,
                run.config,
                engine,
                run.observer,
                run.stop,
                run.budget,
                names=names,
                items=items,
                datamarking=datamarking,
                seed=seed,
            )
            confirm_recorded(engine)
        finally:
            await engine.aclose()
        return found

    found = run_with_signals(run, work)
    output.give(found, lambda: show_attacks(found))


def show_attacks(found: AttackReport) -> None:
    """Print the table of attacks, the strongest first, and the conclusion."""
    click.echo(f"{'attack':20} {'flips':>7} {'padding':>8}  {'beyond padding':<24} ranks gained")
    for one in sorted(found.attacks, key=lambda one: -_strength(one)):
        shown = _signed(one.beyond_padding, "+.2f")
        flips = f"{one.flips}/{one.trials}"
        click.echo(
            f"{one.name:20} {flips:>7} {one.flips_padded:>8}  {shown:<24} "
            f"{_signed(one.ranks_gained, '+.1f')}"
        )
    click.echo(f"Result: {found.sentence()}.")
    if any(one.beyond_padding.low > 0 and not one.works for one in found.attacks):
        click.echo(
            f"The result is corrected for {len(found.attacks)} attacks; the intervals are not."
        )
    measured = [(one, one.beyond_words) for one in found.attacks if one.beyond_words is not None]
    forgeries = [(one, beyond) for one, beyond in measured if not math.isnan(beyond.value)]
    if forgeries:
        click.echo("Forgeries beyond their words alone, by which neutralizing is judged:")
    for one, beyond in forgeries:
        click.echo(f"{one.name:20} {'':16}  {_signed(beyond, '+.2f')}")
    if any(one.forges for one, _ in forgeries):
        names = ", ".join(one.name for one, _ in forgeries if one.forges)
        click.echo(f"Forgeries that are neutralized should not work, but do: {names}.")
    if any(one.works for one in found.attacks):
        click.echo("Try a larger judge, or an item that asks whether this is an answer at all.")


def _signed(figure: Interval, digits: str) -> str:
    if math.isnan(figure.value):
        return "-"
    if math.isnan(figure.low):
        return f"{figure.value:{digits}} ({NO_INTERVAL})"
    low, high = format(figure.low, digits), format(figure.high, digits)
    return f"{figure.value:{digits}} ({between(low, high)})"


def _strength(one: AttackFigures) -> float:
    value = one.beyond_padding.value
    return value if value == value else -1.0

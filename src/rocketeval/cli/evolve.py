"""`rocketeval evolve`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.next_step import NextStep, Typed
from rocketeval.cli.options import with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.progress import make_observer
from rocketeval.cli.show_evolve import show_evolution
from rocketeval.cli.tables import show_pairs, show_whole
from rocketeval.cli.words import near
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run
from rocketeval.stages.evolve.evolution import Evolution

TITLES = 11
"""Columns before a path."""


@click.command()
@with_settings
@click.option(
    "--rounds",
    type=click.IntRange(min=0),
    metavar="N",
    help="Rounds in all, those of earlier commands included; overrides the config's.",
)
@click.option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Where to write the evaluator (.npz); into the run when absent.",
)
@with_output
def command(settings: RunConfig, rounds: int | None, out: Path | None, output: Output) -> int:
    """Make an evaluator that learns from people's votes or labels, and from its mistakes.

    The judge of CONFIG answers perspectives, which are questions about responses and queries. On
    one part of the queries, the `evolve.optimizer` looks at what was judged wrongly and proposes
    new ones; those worth keeping stay. The other part is held out: the figures rest on it.

    Each round is kept as soon as it is finished. The same command goes on after the last, with
    what people added to evolve/pool.yaml in the meantime, and pays for nothing twice.

    Exit code 3: some answers are missing, run it again; 6: --max-cost is reached.
    """
    if rounds is not None:
        evolve = settings.evolve.model_copy(update={"rounds": rounds})
        settings = settings.model_copy(update={"evolve": evolve})
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    found = drive(run, lambda: run.evolve(out))
    step = next_step(found, Typed.now(settings))
    output.give(found, lambda: _show(found, step))
    return INCOMPLETE if found.failed or found.missing else 0


def next_step(found: Evolution, typed: Typed) -> NextStep:
    """Return the command that judges with the evaluator, if it is worth that; else how to go on."""
    if found.worth.usable:
        why = "judges with it; its perspectives take the place of checklists"
        return NextStep(typed.of_work("run", "--evaluator", near(found.path)), why)
    missing = "" if found.optimizer else ", an `evolve.optimizer`"
    why = f"goes on, once there are more votes or labels{missing} or questions of your own"
    return NextStep(typed.of_work("evolve"), why)


def _show(found: Evolution, step: NextStep) -> None:
    show_evolution(found)
    show_whole("Evaluator", near(found.path), TITLES)
    show_whole("Pool", near(found.pool_path), TITLES)
    show_pairs([("Next", step.why)], TITLES)
    show_whole("", step.command, TITLES)

"""`rocketeval grade`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from rocketeval.cli.bill import show_bill
from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.evaluator import show_asked, tell_unused, with_evaluator
from rocketeval.cli.options import with_place, with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.plan import show_dry_run
from rocketeval.cli.progress import make_observer
from rocketeval.cli.words import failed, on_ray
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run


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
    if dry_run:
        show_dry_run(settings, output)
        return 0
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    facts = drive(run, run.to_judgments)
    output.give(facts, lambda: _show(facts))
    tell_unused(run.store.manifest()["stages"]["checklist"])
    for failure in run.store.failures()[:10]:
        click.echo(failed(failure), err=True)
    return INCOMPLETE if facts["unfinished"] or facts["responses_without_checklist"] else 0


def _show(facts: Mapping[str, Any]) -> None:
    click.echo(
        f"{facts['judged']} judged now, {facts['finished_earlier']} earlier, "
        f"{facts['from_cache']} from the cache, {facts['unfinished']} left"
    )
    if "ray" in facts:
        click.echo(on_ray(facts["ray"]))
    show_asked(facts)
    show_bill(facts["bill"])

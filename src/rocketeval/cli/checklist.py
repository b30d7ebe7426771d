"""`rocketeval checklist`"""

from __future__ import annotations

import click

from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.options import with_settings
from rocketeval.cli.progress import make_observer
from rocketeval.cli.words import printable
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run


@click.command()
@with_settings
def command(settings: RunConfig, quiet: bool) -> int:
    """Load the benchmark of CONFIG and give every query its checklist.

    The author LLM writes one per query, or the benchmark's own are imported, as `author` in the
    config says. Checklists that were paid for are never asked for again.
    """
    run = Run(settings, observer=make_observer(settings, quiet=quiet))
    facts = drive(run, run.to_checklists)
    if not quiet:
        click.echo(
            f"{facts['checklists']} checklists with {facts['items']} items: "
            f"{run.store.inputs.folder / 'checklists.jsonl'}"
        )
    for query_id, reason in facts["failures"].items():
        click.echo(printable(f"no checklist for {query_id}: {reason}"), err=True)
    return INCOMPLETE if facts["failures"] else 0

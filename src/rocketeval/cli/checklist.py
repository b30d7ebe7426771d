"""`rocketeval checklist`"""

from __future__ import annotations

import click

from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.options import with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.progress import make_observer
from rocketeval.cli.words import printable, shown_path
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run


@click.command()
@with_settings
@with_output
def command(settings: RunConfig, output: Output) -> int:
    """Load the benchmark of CONFIG and give every query its checklist.

    The author LLM writes one per query, or the benchmark's own are imported, as `author` in the
    config says. Checklists that were paid for are never asked for again. Exit code 3: some queries
    have none.
    """
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    facts = drive(run, run.to_checklists)
    path = run.store.inputs.folder / "checklists.jsonl"
    output.give(
        {**facts, "path": path},
        lambda: click.echo(
            f"{facts['checklists']} checklists with {facts['items']} items: {shown_path(path)}"
        ),
    )
    for query_id, reason in facts["failures"].items():
        click.echo(printable(f"no checklist for {query_id}: {reason}"), err=True)
    return INCOMPLETE if facts["failures"] else 0

"""`rocketeval grade`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.options import read_config, run_options
from rocketeval.cli.plan import show_plan
from rocketeval.cli.progress import make_observer
from rocketeval.pipeline import Run


@click.command()
@run_options
@click.option("--dry-run", is_flag=True, help="Say what would be done; contact and write nothing.")
def command(
    config: Path,
    name: str | None,
    limit: int | None,
    judge: str | None,
    base_url: str | None,
    quiet: bool,
    dry_run: bool,
) -> int:
    """Let the judge of CONFIG answer every checklist item that is still unanswered.

    Needs the checklists that `rocketeval checklist` made; inputs that changed since are judged
    again, the rest is kept. Exit code 3: some responses could not be judged, run it again.
    """
    settings = read_config(config, name=name, limit=limit, judge=judge, base_url=base_url)
    if dry_run:
        show_plan(settings)
        return 0
    run = Run(settings, observer=make_observer(settings, quiet=quiet))
    run.load()
    facts = drive(run, run.grade)
    if not quiet:
        click.echo(
            f"{facts['judged']} judged now, {facts['finished_earlier']} earlier, "
            f"{facts['from_cache']} from the cache, {facts['unfinished']} left"
        )
    for failure in run.store.failures()[:10]:
        click.echo(f"failed: {failure.candidate} on {failure.query_id}: {failure.reason}", err=True)
    return INCOMPLETE if facts["unfinished"] or facts["responses_without_checklist"] else 0

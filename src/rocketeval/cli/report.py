"""`rocketeval report`"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rocketeval.cli.options import with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import shown_path

if TYPE_CHECKING:
    from rocketeval.pipeline import Run


@click.command()
@with_run
@with_output
def command(run: Run, output: Output) -> None:
    """Write report.html for CONFIG's run: one file, no network, opens from disk."""
    path = run.report()
    output.give({"report": path}, lambda: click.echo(f"Report: {shown_path(path)}"))

"""`rocketeval report`"""

from __future__ import annotations

from pathlib import Path

import click

from rocketeval.cli.options import finished_run_options, open_run


@click.command()
@finished_run_options
def command(config: Path, name: str | None) -> None:
    """Write report.html for CONFIG's run: one file, no network, opens from disk."""
    click.echo(f"Report: {open_run(config, name).report()}")

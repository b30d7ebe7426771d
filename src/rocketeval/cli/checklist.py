"""`rocketeval checklist`"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from rocketeval.cli.drive import INCOMPLETE, drive
from rocketeval.cli.missing import unknown_in_words
from rocketeval.cli.options import with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.progress import make_observer
from rocketeval.cli.show_composition import show_composition
from rocketeval.cli.show_refusals import told_refusals
from rocketeval.cli.words import printable, shown_path
from rocketeval.config import RunConfig
from rocketeval.pipeline import Run
from rocketeval.stages.checklist_sheet import export_checklists, without_about
from rocketeval.stages.sheet_place import check_place


@click.command()
@with_settings
@click.option(
    "--export",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Also write the checklists to FILE (.yaml or .csv), to be edited.",
)
@click.option("--force", is_flag=True, help="Replace an existing FILE.")
@with_output
def command(settings: RunConfig, export: Path | None, force: bool, output: Output) -> int:
    """Load the benchmark of CONFIG and give every query its checklist.

    The author LLM writes one per query, or one for all from a dimension file, or the benchmark's
    own are imported, as `author` in the config says. Checklists that were paid for are never asked
    for again. Exit code 3: some queries have none, or some steps of the author failed.

    An exported file is graded with `author: {kind: file, options: {file: FILE}}`; items that were
    answered before are not asked again.
    """
    if export is not None:
        config_file = click.get_current_context().params["config"]
        check_place(export, force=force, config=settings, config_file=config_file)
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    facts = drive(run, run.to_checklists)
    path = run.store.inputs.folder / "checklists.jsonl"
    if export is not None:
        export_checklists(run.store, export, force=force)
    told = {**facts, "path": path, **({"export": export} if export else {})}
    output.give(told, lambda: _show(facts, path, export))
    for query_id, reason in facts["failures"].items():
        click.echo(printable(f"no checklist for {query_id}: {reason}"), err=True)
    lost = export and without_about(export, run.store.inputs.checklists().values())
    if lost:
        click.echo(printable(lost), err=True)
    for words in unknown_in_words(facts):
        click.echo(words, err=True)
    failed = facts.get("composition", {}).get("failed_steps", {})
    for step, reason in failed.items():
        click.echo(printable(f"went on without {step}: {reason}"), err=True)
    return INCOMPLETE if facts["failures"] or failed else 0


def _show(facts: Mapping[str, Any], path: Path, export: Path | None) -> None:
    composition = facts.get("composition")
    if composition is not None:
        show_composition(composition)
    refusals = facts.get("refusals")
    for line in told_refusals(refusals, steps=composition is not None) if refusals else ():
        click.echo(line)
    click.echo(f"{facts['checklists']} checklists with {facts['items']} items: {shown_path(path)}")
    provenance = shown_path(path.with_name("checklist_provenance.json"))
    if composition is not None:
        click.echo(f"Where each question is from: {provenance}")
    elif refusals is not None:
        click.echo(f"How each list came about: {provenance}")
    if export is not None:
        click.echo(f"To be edited: {shown_path(export)}")

"""`rocketeval checklist`

How a checklist came about, as a table: where its questions are from and what became of them.
What an author's lists were refused for, in a line.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.missing import unknown_in_words
from rocketeval.cli.options import with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import make_console, make_table, printable, shown_path
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.store.manifest import (
        ChecklistFacts,
        Composition,
        RefusalCounts,
        SubDimensionCounts,
    )


_WHY = {
    "duplicate": "the same words",
    "alignment": "yes not better",
    "dimension": "other dimension",
    "redundancy": "redundant",
}
"""Reasons as the table heads them; a reason that nothing was dropped for gets no column."""


def show_composition(composition: Composition) -> None:
    """Print a row for every sub-dimension, and all of them together."""
    from rich.text import Text

    rows = composition.counts
    dropped = {why: count for why in _WHY if (count := sum(row.dropped[why] for row in rows))}
    table = make_table("Questions by sub-dimension")
    table.add_column("dimension", overflow="fold")
    table.add_column("sub-dimension", overflow="fold")
    for title in ("seeds", "diversified", "elaborated", *(_WHY[why] for why in dropped), "kept"):
        table.add_column(title, justify="right")
    for row in rows:
        counts = (*_brought(row), *(row.dropped[why] for why in dropped), row.kept)
        names = (Text(printable(name)) for name in (row.dimension, row.sub_dimension))
        table.add_row(*names, *map(_figure, counts))
    sums = (sum(column) for column in zip(*map(_brought, rows), strict=True))
    kept = sum(row.kept for row in rows)
    table.add_row("all", "", *map(_figure, (*sums, *dropped.values(), kept)))
    make_console().print(table)
    if composition.steps:
        asked = count_of(composition.steps, "step", "steps")
        click.echo(f"{asked} of the author, {composition.reused_steps:,} paid for earlier")


def _brought(row: SubDimensionCounts) -> tuple[int, int, int]:
    return row.seeds, row.diversified, row.elaborated


def _figure(number: int) -> str:
    return f"{number:,}" if number else "-"


SHOWN_MISTAKES = 4


def told_refusals(refusals: RefusalCounts, *, steps: bool) -> Iterator[str]:
    """Yield how many lists were refused at first and the most frequent mistakes, in words."""
    one, many = ("step", "steps") if steps else ("list", "lists")
    if refusals.refused_at_first:
        mistakes = [
            f"{printable(mistake)} ({times:,})" for mistake, times in refusals.mistakes.items()
        ]
        others = len(mistakes) - SHOWN_MISTAKES
        shown = ", ".join(mistakes[:SHOWN_MISTAKES])
        more = f", and {count_of(others, 'other', 'others')}" if others > 0 else ""
        of = count_of(refusals.lists, one, many)
        yield f"{refusals.refused_at_first:,} of {of} refused at first: {shown}{more}"
    if refusals.untold:
        untold = count_of(refusals.untold, one, many)
        yield f"{untold} paid for by an earlier version, which did not keep what was refused"


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
    from rocketeval.checklists.export import check_export_path, export_checklists, without_about
    from rocketeval.cli.progress import make_observer
    from rocketeval.pipeline import Run
    from rocketeval.store.codec import encode

    if export is not None:
        config_file = click.get_current_context().params["config"]
        check_export_path(export, force=force, config=settings, config_file=config_file)
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    facts = run_with_signals(run, run.to_checklists)
    path = run.store.inputs.folder / "checklists.jsonl"
    if export is not None:
        export_checklists(run.store, export, force=force)
    told = {**encode(facts), "path": path, **({"export": export} if export else {})}
    output.give(told, lambda: _show(facts, path, export))
    for query_id, reason in facts.failures.items():
        click.echo(printable(f"no checklist for {query_id}: {reason}"), err=True)
    lost = export and without_about(export, run.store.inputs.checklists().values())
    if lost:
        click.echo(printable(lost), err=True)
    for words in unknown_in_words(facts):
        click.echo(words, err=True)
    failed = facts.composition.failed_steps if facts.composition else {}
    for step, reason in failed.items():
        click.echo(printable(f"went on without {step}: {reason}"), err=True)
    return INCOMPLETE if facts.failures or failed else 0


def _show(facts: ChecklistFacts, path: Path, export: Path | None) -> None:
    composition, refusals = facts.composition, facts.refusals
    if composition is not None:
        show_composition(composition)
    for line in told_refusals(refusals, steps=composition is not None) if refusals else ():
        click.echo(line)
    click.echo(f"{facts.checklists} checklists with {facts.items} items: {shown_path(path)}")
    provenance = shown_path(path.with_name("checklist_provenance.json"))
    if composition is not None:
        click.echo(f"Where each question is from: {provenance}")
    elif refusals is not None:
        click.echo(f"How each list came about: {provenance}")
    if export is not None:
        click.echo(f"To be edited: {shown_path(export)}")

"""`rocketeval checklist`: show checklists, or write them to a file for editing."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import NAME, WHAT, existing, own_config
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, shown_path
from rocketeval.errors import ChecklistError, ExportError
from rocketeval.text import count_of, did_you_mean, printable

if TYPE_CHECKING:
    from rocketeval.checklists.sources import FoundChecklists
    from rocketeval.records import Checklist


@dataclass(frozen=True, slots=True)
class ListedChecklists:
    """The output of `--json`."""

    source: str
    """The run, benchmark or file that holds the checklists."""
    checklists: tuple[Checklist, ...]
    out: Path | None
    """Output file, if any."""


@verb(
    examples=[
        ("rocketeval checklist --query q7", "the items for q7"),
        ("rocketeval checklist --out mine.yaml", "write a file to edit"),
        ("rocketeval checklist mine.yaml", "show the edited file"),
    ],
    exit_codes=codes(2, 5),
    renamed={
        "--export": "--out",
        **dict.fromkeys(
            ("--limit", "--judge", "--base-url", "--max-cost"),
            "an option of `rocketeval run --only checklist`",
        ),
    },
)
@WHAT
@NAME
@option("--query", metavar="ID", help="Show the checklist of this query only.")
@option(
    "--top",
    type=click.IntRange(min=1),
    default=3,
    show_default=True,
    metavar="N",
    help="Number of checklists to show; --json shows all.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write all checklists to FILE (.yaml or .csv) for editing.",
)
@option("--force", is_flag=True, help="With --out: replace an existing FILE.")
@with_output
def command(
    what: Path,
    name: str | None,
    query: str | None,
    top: int,
    out: Path | None,
    force: bool,
    output: Output,
) -> int:
    """Show checklists, or write them to a file for editing.

    WHAT is a config (default rocketeval.yaml), a run directory, a benchmark folder or a file of
    checklists. This command sends no requests. To have an LLM write missing checklists, use
    `rocketeval run --only checklist`; to find bad items, use `rocketeval lint`.

    To grade with an edited FILE, set this in the config. The judge answers only changed items:

    \b
      author: {kind: file, options: {file: FILE}}
    """
    found = _find(existing(what), name, out, force=force)
    shown = found.checklists if query is None else (_of_query(found, query),)
    if out is not None:
        _write(found, out)
    listed = ListedChecklists(found.source, shown, out)
    output.give(listed, lambda: _show(found, shown, top, out))
    return 0


def _find(what: Path, name: str | None, out: Path | None, *, force: bool) -> FoundChecklists:
    """Return the checklists of WHAT, after checking that `out` can be written."""
    from rocketeval.checklists.export import check_export_path
    from rocketeval.checklists.sources import (
        CHECKLIST_FILES,
        checklists_of_path,
        checklists_of_run,
    )
    from rocketeval.judges.runs import open_run
    from rocketeval.store.run import RunStore

    is_run = what.is_dir() and (what / "run.yaml").exists()
    config = open_run(what).config if is_run else own_config(what, name)
    if out is not None:
        if config is None and what.suffix in CHECKLIST_FILES and not what.is_dir():
            raise ExportError(f"{what} can be edited directly.", hint="Drop --out.")
        check_export_path(out, force=force, config=config, config_file=None if is_run else what)
    if config is None:
        return checklists_of_path(what)
    return checklists_of_run(RunStore(what if is_run else config.run_path), config)


def _of_query(found: FoundChecklists, query_id: str) -> Checklist:
    by_id = {made.query_id: made for made in found.checklists}
    if query_id not in by_id:
        raise ChecklistError(
            f"{found.source} has no checklist for the query {query_id!r}.",
            hint=did_you_mean(query_id, list(by_id)),
        )
    return by_id[query_id]


def _write(found: FoundChecklists, path: Path) -> None:
    from rocketeval.checklists.export import without_about, write_checklists

    by_id = {made.query_id: made for made in found.checklists}
    if len(by_id) < len(found.checklists):
        raise ChecklistError(f"{found.source} has several checklists for one query.")
    write_checklists(by_id, found.queries, path)
    lost = without_about(path, found.checklists)
    if lost:
        click.echo(printable(lost), err=True)


def _show(found: FoundChecklists, shown: tuple[Checklist, ...], top: int, out: Path | None) -> None:
    from rocketeval.checklists.base import is_shared

    lists = count_of(len(found.checklists), "checklist", "checklists")
    items = sum(len(made.items) for made in found.checklists)
    click.echo(f"{shown_path(Path(found.source))}: {lists} with {count_of(items, 'item', 'items')}")
    if len(shown) > 1 and is_shared(found.checklists):
        _show_one(shown[0], f"{len(shown):,} queries share this checklist")
    else:
        for made in shown[:top]:
            query = found.queries.get(made.query_id)
            text = "" if query is None else " ".join(query.text.split())
            _show_one(made, f"{made.query_id}: {text}" if text else made.query_id)
        if len(shown) > top:
            more = count_of(len(shown) - top, "more checklist", "more checklists")
            click.echo(f"\n{more}; see --top, --query, --json or --out.")
    if out is not None:
        click.echo(f"Edit this file: {shown_path(out)}")


def _show_one(made: Checklist, title: str) -> None:
    from rich.text import Text

    console = make_console()
    console.print()
    heading = Text(printable(title), style="bold", no_wrap=True, overflow="ellipsis")
    console.print(heading)
    if made.about is not None:
        console.print(printable(f"about: {made.about}"), style="dim", highlight=False)
    before = None
    for number, item in enumerate(made.titles, 1):
        group = made.groups[number - 1] if made.groups else None
        if group is not None and group != before:
            console.print(printable(group), style="italic", highlight=False)
        before = group
        console.print(printable(f"{number:>3}. {item}"), highlight=False)

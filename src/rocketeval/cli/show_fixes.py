"""What `rocketeval lint --fix` prints: old and new items, counts, cost, and what to do next."""

from __future__ import annotations

import click
import yaml
from rich.text import Text

from rocketeval.cli.show_lint import in_queries
from rocketeval.cli.tables import make_console
from rocketeval.cli.words import printable, printable_lines, shown_path
from rocketeval.cost import shown_money
from rocketeval.lint.fixes import Change, Fixes, Outcome
from rocketeval.names import counted

ALONE = "checklist"
"""The method that asks every item alone, so that others need not be asked again."""


def show_fixes(fixes: Fixes, file: str, method: str, most: int) -> None:
    """Print the proposal; `file` is its path as the config has to name it."""
    for change in fixes.changes[:most]:
        _show_change(change)
    if len(fixes.changes) > most:
        more = counted(len(fixes.changes) - most, "more item", "more items")
        _say(f"\n{more}: --most, --json, or the file.")
    if fixes.changes:
        _say("")
    for name, reason in fixes.failures.items():
        _say(printable(f"Nothing could be taken for {name}: {reason}"))
    _say(_counts(fixes))
    if fixes.not_offered:
        named = ", ".join(f"{kind} ({count:,})" for kind, count in fixes.not_offered.items())
        _say(f"Rewritten only if named by --kind: {named}.")
    _show_next(fixes, file, method)


def _show_change(change: Change) -> None:
    console = make_console()
    whose = in_queries(change.queries) if change.queries > 1 else change.query_id
    about = f"{whose}, item {change.item}: {change.outcome} ({', '.join(change.kinds)})"
    console.print()
    console.print(Text(printable(about), style="bold"), highlight=False)
    if change.outcome is Outcome.LEFT:
        console.print(Text(f"    {printable(change.old)}"), highlight=False)
        because = f"    because {change.left_because}"
        console.print(Text(printable(because), style="yellow"), highlight=False)
        return
    console.print(Text(f"  - {printable(change.old)}", style="red"), highlight=False)
    if change.new is not None:
        console.print(Text(f"  + {printable(change.new)}", style="green"), highlight=False)


def _counts(fixes: Fixes) -> str:
    if not fixes.changes:
        return f"{printable(fixes.source)}: no item is to be rewritten; no file was written."
    lists = counted(fixes.asked, "checklist", "checklists")
    earlier = f", {fixes.reused:,} paid for earlier" if fixes.reused else ""
    cost = fixes.usage["cost"]
    if cost is None:
        spent = f"{fixes.usage['prompt_tokens'] + fixes.usage['completion_tokens']:,} tokens"
    else:
        spent = shown_money(cost, fixes.usage["currency"])
    items = counted(len(fixes.changes), "item", "items")
    return (
        f"{items} in {lists}: {fixes.rewritten:,} rewritten, {fixes.dropped:,} dropped, "
        f"{fixes.left:,} left as before. "
        f"Author {printable(fixes.author)}: {spent}{earlier}."
    )


def _show_next(fixes: Fixes, file: str, method: str) -> None:
    if fixes.path is None:
        if fixes.changes:
            _say("Nothing was changed, and no file was written: change these items by hand.")
        return
    _say(f"Proposal, all {len(fixes.checklists):,} checklists: {shown_path(fixes.path)}")
    _say("The run is as it was. Read the proposal, then set in the config (`engine` may stay):")
    author = {"author": {"kind": "file", "options": {"file": file}}}
    shown = yaml.safe_dump(author, sort_keys=False, allow_unicode=True)
    click.echo(printable_lines("\n" + shown), nl=True)
    asked = (
        "only items that are new are asked."
        if method == ALONE
        else (f"with `method.kind: {method}`, changed checklists are asked again as a whole.")
    )
    _say(f"and `rocketeval run`: {asked}")


def _say(line: str) -> None:
    make_console().print(line, markup=False, highlight=False)

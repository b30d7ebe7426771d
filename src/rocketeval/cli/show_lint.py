"""What `rocketeval lint` prints: kinds of findings, then the worst items with what to do."""

from __future__ import annotations

from itertools import groupby

from rich.text import Text

from rocketeval.cli.tables import make_console, make_table
from rocketeval.cli.words import printable
from rocketeval.lint.influence import Without
from rocketeval.lint.lint import Behaviour, Lint
from rocketeval.names import counted

_STYLES = {"error": "red", "warning": "yellow"}


def show_lint(found: Lint, most: int) -> None:
    """Print the table of kinds, the ranking without flagged items, and the worst items."""
    console = make_console()
    items = counted(found.items, "item", "items")
    where = f"{items} in {counted(found.checklists, 'checklist', 'checklists')}"
    if _is_shared(found):
        where += f" that {len(found.query_ids):,} queries share"
    _say(f"{printable(found.source)}: {where}; {found.flagged:,} flagged ({_part(found)})")
    if found.kinds:
        table = make_table("Kinds of findings")
        for name in ("items", "share"):
            table.add_column(name, justify="right")
        for name in ("kind", "severity", "what"):
            table.add_column(name)
        for row in found.kinds:
            style = _STYLES[row.severity]
            severity = Text(str(row.severity), style=style)
            table.add_row(f"{row.items:,}", f"{row.share:.1%}", row.kind, severity, row.title)
        console.print(table)
    if found.not_english:
        passed = counted(found.not_english, "item is", "items are")
        _say(f"{passed} not in English: checks that know English alone passed over them.")
    if found.behaviour is None:
        _say(f"Words only: {found.no_behaviour}.")
    else:
        _show_behaviour(found.behaviour, found.items if _is_shared(found) else None)
    if found.in_few_queries:
        some = counted(found.in_few_queries, "finding", "findings")
        _say(f"{some} about answers left out: each holds in fewer than half of the queries.")
    _show_items(found, most)


def _show_behaviour(behaviour: Behaviour, shared: int | None) -> None:
    labels = f", {counted(behaviour.labels, 'label', 'labels')}" if behaviour.labels else ""
    if shared is None:
        items = counted(behaviour.items, "item", "items")
    else:
        items = f"{counted(shared, 'item', 'items')} ({behaviour.items:,} over all queries)"
    _say(
        f"Answers of {printable(behaviour.judge)} to {items}, over "
        f"{counted(behaviour.responses, 'response', 'responses')}{labels}."
    )
    _say(
        "Ranking by mean scores without dead and redundant items: "
        + _moves(behaviour.without_dead_and_redundant)
    )
    _say("Ranking by mean scores without all flagged items: " + _moves(behaviour.without_flagged))
    largest = max(behaviour.influences, key=lambda each: (each.places, each.shift), default=None)
    if largest is not None and largest.shift > 0:
        _say(
            f"The item that moves it most: {printable(largest.query_id)}, item {largest.item}: "
            f"{counted(largest.places, 'place', 'places')}, {largest.shift:.3f} points."
        )


def _moves(without: Without) -> str:
    if not without.dropped:
        return "none is dropped"
    left = f"{counted(without.dropped, 'item', 'items')} dropped"
    if without.kept_after_all:
        left += f" ({without.kept_after_all:,} stay: all that their query has)"
    if not without.swapped_pairs:
        return f"{left}, no two candidates change places"
    tau = "" if without.tau is None else f" (Kendall's tau {without.tau:.2f})"
    return (
        f"{left}, {without.swapped_pairs:,} of {without.pairs:,} pairs change places{tau}; "
        f"{printable(without.moved or '-')} moves most, by "
        f"{counted(without.largest_move, 'place', 'places')}"
    )


def _show_items(found: Lint, most: int) -> None:
    by_item = [
        list(own) for _, own in groupby(found.findings, key=lambda one: (one.query_id, one.item))
    ]
    console = make_console()
    for own in by_item[:most]:
        first = own[0]
        whose = in_queries(len(found.query_ids)) if _is_shared(found) else first.query_id
        console.print()
        console.print(
            Text(printable(f"{whose}, item {first.item}: {first.text}"), style="bold"),
            highlight=False,
        )
        for each in own:
            line = Text("  ")
            line.append(each.kind, style=_STYLES[each.severity])
            line.append(f": {printable(each.why)}")
            console.print(line, highlight=False)
    if len(by_item) > most:
        _say(f"\n{counted(len(by_item) - most, 'more item', 'more items')}: --most, or --json.")


def in_queries(count: int) -> str:
    """Return the name of a checklist that all queries share."""
    return f"all {count:,} queries"


def _is_shared(found: Lint) -> bool:
    return len(found.query_ids) > found.checklists


def _part(found: Lint) -> str:
    return f"{found.flagged / max(1, found.items):.1%}, {found.errors:,} with an error"


def _say(line: str) -> None:
    make_console().print(line, markup=False, highlight=False)

"""What `rocketeval explain` prints: losses, strengths and items, traceable to a query."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from rocketeval.cli.show_groups import show_groups
from rocketeval.cli.tables import figure, make_console, make_table
from rocketeval.cli.words import printable
from rocketeval.explain.candidate import CandidateExplanation, ItemGap
from rocketeval.explain.categories import CategoryGap
from rocketeval.explain.items import ItemFigure
from rocketeval.names import counted
from rocketeval.records import Interval
from rocketeval.stages.explain import Explanation, QueryExplanation


def show_overview(found: Explanation) -> None:
    """Print each candidate's points lost a query, its largest loss, and its means by group."""
    table = make_table(f"Against up to {found.neighbours} neighbours in the ranking")
    table.add_column("place", justify="right")
    table.add_column("candidate", overflow="fold")
    table.add_column("points lost a query", justify="right", no_wrap=True)
    table.add_column("largest loss", overflow="fold")
    for one in found.candidates:
        worst = one.losses[0] if one.losses else None
        table.add_row(
            str(one.place),
            Text(printable(one.candidate)),
            figure(one.overall.points if one.overall else None, ".2f"),
            Text(printable(_named(worst))) if worst else "-",
        )
    console = make_console()
    console.print(table)
    show_groups(found.groups, found.groups_left_out)
    for why, count in sorted(found.dead.items()):
        console.print(
            f"{count:,} of {counted(found.items, 'item', 'items')} tell no two responses apart: "
            f"{why}",
            highlight=False,
        )
    console.print(
        "`rocketeval explain --candidate NAME` and `--query ID` say more.",
        style="dim",
        highlight=False,
    )


def show_candidate(found: CandidateExplanation) -> None:
    """Print where a candidate loses and gains against its neighbours."""
    console = make_console()
    console.print(
        printable(f"{found.candidate}, place {found.place} in the ranking")
        + _overall(found.overall),
        markup=False,
        highlight=False,
    )
    if found.categories:
        table = make_table("By category")
        table.add_column("category", overflow="fold")
        table.add_column("points lost a query", justify="right", no_wrap=True)
        table.add_column("queries", justify="right")
        for part in found.categories:
            points = figure(part.points, ".2f")
            table.add_row(Text(printable(str(part.category))), points, str(part.queries))
        console.print(table)
    for title, gaps, sign in (
        ("Largest losses", found.losses, 1.0),
        ("Largest strengths", found.strengths, -1.0),
    ):
        if gaps:
            console.print(_gap_table(title, gaps, sign))
        else:
            console.print(f"{title}: none", highlight=False)
    if found.not_compared:
        console.print(
            f"{counted(found.not_compared, 'answer', 'answers')} of "
            f"{found.compared + found.not_compared:,} could not be compared: missing, or without "
            "a neighbour's beside it",
            highlight=False,
        )
    console.print(
        "yes: the judge's probability. One item is one observation and has no interval. "
        "--json names the neighbours and judgments.",
        style="dim",
        highlight=False,
    )


def show_query(found: QueryExplanation) -> None:
    """Print what each item of a query adds."""
    learned = any(item.learned_weight is not None for item in found.items)
    grouped = any(item.group is not None for item in found.items)
    table = make_table("Items over " + counted(found.responses, "response", "responses"))
    table.add_column("item", justify="right")
    table.add_column("weight", justify="right")
    if learned:
        table.add_column("equal", justify="right")
    for name in ("mean yes", "lowest", "highest", "spread", "with score"):
        table.add_column(name, justify="right")
    if grouped:
        table.add_column("group", overflow="fold")
    table.add_column("question", overflow="fold")
    table.add_column("")
    for item in found.items:
        weight = item.equal_weight if item.learned_weight is None else item.learned_weight
        table.add_row(
            str(item.item),
            f"{weight:.2f}",
            *([f"{item.equal_weight:.2f}"] if learned else []),
            *map(_two_places, _figures(item)),
            *([Text(printable(item.group or "-"))] if grouped else []),
            Text(printable(item.text)),
            Text(item.dead or "", style="yellow"),
        )
    console = make_console()
    category = f" ({found.category})" if found.category else ""
    console.print(printable(found.query_id + category), markup=False, highlight=False)
    console.print(printable(found.text), markup=False, highlight=False, style="dim")
    console.print(table)
    console.print(
        "spread: standard deviation of yes over the responses; with score: its correlation with "
        "their scores.",
        style="dim",
        highlight=False,
    )


def _gap_table(title: str, gaps: Sequence[ItemGap], sign: float) -> object:
    table = make_table(title)
    for name in ("points", "yes", "neighbours", "weight", "score"):
        table.add_column(name, justify="right")
    table.add_column("query", overflow="fold")
    table.add_column("item", justify="right")
    table.add_column("question", overflow="fold")
    for gap in gaps:
        table.add_row(
            f"{sign * gap.points:.2f}",
            f"{gap.p_yes:.2f}",
            f"{gap.neighbours_p_yes:.2f}",
            f"{gap.weight:.2f}",
            f"{gap.score:.2f}",
            Text(printable(gap.query_id)),
            str(gap.item),
            Text(printable(gap.text)),
        )
    return table


def _overall(found: CategoryGap | None) -> str:
    if found is None:
        return ": nothing to compare it with."
    loses = found.points.value >= 0
    value, low, high = found.points.value, found.points.low, found.points.high
    points = found.points if loses else Interval(-value, -high, -low)
    return (
        f": {'loses' if loses else 'gains'} {figure(points, '.2f')} points a query against its "
        f"neighbours, over {counted(found.queries, 'query', 'queries')}"
    )


def _named(gap: ItemGap) -> str:
    return f"{gap.points:.2f} on {gap.query_id}, item {gap.item}: {gap.text}"


def _figures(item: ItemFigure) -> tuple[float | None, ...]:
    return (item.mean, item.low, item.high, item.spread, item.discrimination)


def _two_places(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"

"""The verb `explain`: losses and strengths of candidates, item by item, and means by group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, screen_width
from rocketeval.text import count_of, figure, printable, query_name, starts_of_queries

if TYPE_CHECKING:
    from rocketeval.cli.run import Typed
    from rocketeval.explain.candidate import CandidateExplanation, ItemGap
    from rocketeval.explain.groups import GroupMean, GroupScore
    from rocketeval.explain.items import ItemStatistics
    from rocketeval.explain.stage import Explanation, QueryExplanation
    from rocketeval.pipeline import Run


_GAP, _FIGURE = 2, 4
_LONGEST_GROUP = 40


def show_groups(groups: Sequence[GroupScore], about: str, left_out: int = 0) -> None:
    """Print one row per group and one column per candidate; nothing without groups.

    `about` says what a figure is.
    """
    from rich.cells import cell_len
    from rich.text import Text

    if not groups or not groups[0].candidates:
        return
    names = [printable(own.candidate) for own in groups[0].candidates]
    split = {group.group for group in groups if group.whole}
    titles = [printable(_title(group, split)) for group in groups]
    lacking = sum(own.missing for group in groups if not group.whole for own in group.candidates)
    heads, by_place = _heads(names, max(map(cell_len, titles)))
    by = "place in the ranking" if by_place else "candidate"
    table = make_table(f"Results by item group and {by}")
    table.add_column("group", overflow="fold")
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for title, group in zip(titles, groups, strict=True):
        figures = map(_figure, group.candidates[: len(heads)])
        table.add_row(Text(title, style="bold" if group.whole else ""), *figures)
    console = make_console()
    console.print(table)
    for note in (about, *_notes(len(names) - len(heads), left_out, lacking)):
        console.print(note, style="dim", highlight=False)


def _heads(names: Sequence[str], longest_title: int) -> tuple[list[str], bool]:
    """Return the column heads that fit, and whether they are places instead of names."""
    from rich.cells import cell_len

    width = screen_width()
    if width is None:
        return list(names), False
    room = width - min(longest_title, _LONGEST_GROUP)
    if sum(_GAP + max(_FIGURE, cell_len(name)) for name in names) <= room:
        return list(names), False
    most = max(1, room // (_GAP + _FIGURE))
    return [str(place) for place in range(1, len(names) + 1)][:most], True


def _notes(candidates: int, groups: int, lacking: int) -> list[str]:
    notes = []
    if lacking:
        some = count_of(lacking, "missing answer is", "missing answers are")
        notes.append(f"{some} left out; --json counts them.")
    if candidates:
        notes.append(f"{count_of(candidates, 'more candidate', 'more candidates')}: see --json.")
    if groups:
        some = count_of(groups, "more group is", "more groups are")
        notes.append(f"{some} not shown: see `rocketeval export --what groups`.")
    return [*notes, "--json has the intervals."]


def _title(group: GroupScore, split: Collection[str]) -> str:
    """Return a group's name, without its dimension if that has a row above."""
    if group.whole:
        return f"{group.group} (all)"
    if group.dimension not in split:
        return group.group
    return f"  {group.group.removeprefix(f'{group.dimension}: ')}"


def _figure(own: GroupMean) -> str:
    return "-" if own.mean is None else f"{own.mean.value:.2f}"


def show_overview(
    found: Explanation, typed: Typed, groups_are: str, query_texts: Mapping[str, str]
) -> None:
    """Print the conclusion, then each candidate's losses and its means by group."""
    from rich.text import Text

    table = make_table(f"Compared with up to {found.neighbours} neighbors in the ranking")
    table.add_column("place", justify="right")
    table.add_column("candidate", overflow="fold")
    table.add_column("points lost per query", justify="right", no_wrap=True)
    table.add_column("largest loss", overflow="fold")
    for one in found.candidates:
        worst = one.losses[0] if one.losses else None
        table.add_row(
            str(one.place),
            Text(printable(one.candidate)),
            figure(one.overall.points if one.overall else None, ".2f"),
            Text(printable(_named(worst, query_texts))) if worst else "-",
        )
    console = make_console()
    console.print(printable(_conclusion(found)), highlight=False)
    console.print()
    console.print(table)
    if any(one.overall is not None and one.overall.points.value < 0 for one in found.candidates):
        console.print(_NEGATIVE, style="dim", highlight=False)
    show_groups(found.groups, groups_are, found.groups_left_out)
    for why, count in sorted(found.dead.items()):
        items = count_of(found.items, "item", "items")
        reason = _REASONS.get(why, why)
        console.print(f"{count:,} of {items} do not discriminate: {reason}", highlight=False)
    name = _loses_most(found) or (found.candidates[0].candidate if found.candidates else "NAME")
    command = typed.of_run("explain", f"--candidate={name}")
    if not command.isprintable():
        command = "rocketeval explain --candidate NAME"
    console.print("For details, or with --query ID:", style="dim", highlight=False)
    click.echo(command)


_NEGATIVE = "A negative loss is a gain over the neighbors."
_REASONS = {"same for all": "the answer is nearly the same for all responses"}


def _loses_most(found: Explanation) -> str | None:
    """Return the candidate that loses the most; None if none was compared."""
    points = {one.candidate: one.overall.points.value for one in found.candidates if one.overall}
    return max(points, key=points.__getitem__) if points else None


def _conclusion(found: Explanation) -> str:
    compared = [(one, one.overall) for one in found.candidates if one.overall is not None]
    dead = sum(found.dead.values())
    items = count_of(found.items, "item", "items")
    quality = f"{dead:,} of {items} do not discriminate between responses."
    if not compared:
        return f"No candidate could be compared with its neighbors in the ranking. {quality}"
    one, most = max(compared, key=lambda pair: pair[1].points.value)
    if most.points.value <= 0.0:
        return f"No candidate loses points against its neighbors in the ranking. {quality}"
    return (
        f"{one.candidate} loses the most against its neighbors in the ranking: "
        f"{figure(most.points, '.2f')} points per query. {quality}"
    )


def show_candidate(found: CandidateExplanation, query_texts: Mapping[str, str]) -> None:
    """Print where a candidate loses and gains against its neighbors."""
    from rich.text import Text

    console = make_console()
    worst = f" Largest loss: {_named(found.losses[0], query_texts)}" if found.losses else ""
    console.print(
        printable(f"{found.candidate} is in place {found.place} of the ranking")
        + printable(_overall(found))
        + printable(worst),
        markup=False,
        highlight=False,
    )
    console.print()
    if found.categories:
        table = make_table("By category")
        table.add_column("category", overflow="fold")
        table.add_column("points lost per query", justify="right", no_wrap=True)
        table.add_column("queries", justify="right")
        for part in found.categories:
            points = figure(part.points, ".2f")
            table.add_row(Text(printable(str(part.category))), points, str(part.queries))
        console.print(table)
        if any(part.points.value < 0 for part in found.categories):
            console.print(_NEGATIVE, style="dim", highlight=False)
    for title, points, gaps, sign in (
        ("Largest losses", "lost", found.losses, 1.0),
        ("Largest strengths", "gained", found.strengths, -1.0),
    ):
        if gaps:
            console.print(_gap_table(title, points, gaps, sign, query_texts))
        else:
            console.print(f"{title}: none", highlight=False)
    if found.not_compared:
        console.print(
            f"{count_of(found.not_compared, 'answer', 'answers')} of "
            f"{found.compared + found.not_compared:,} could not be compared: the answer or that of "
            "all neighbors is missing",
            highlight=False,
        )
    console.print(
        "lost, gained: points of the query's score, from the difference of yes and neighbors times "
        "the weight and the width of the scale. yes: the judge's probability of yes. neighbors: "
        "the mean yes of the neighbors. weight: the item's weight in the score. score: the "
        "candidate's score on the query. A single item has no interval. --json has each "
        "neighbor's answer.",
        style="dim",
        highlight=False,
    )


def show_query(found: QueryExplanation) -> None:
    """Print the conclusion, then the figures of each item of a query."""
    from rich.text import Text

    learned = any(item.learned_weight is not None for item in found.items)
    grouped = any(item.group is not None for item in found.items)
    table = make_table("Items over " + count_of(found.responses, "response", "responses"))
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
    console.print(_query_conclusion(found), highlight=False)
    console.print()
    console.print(table)
    console.print(
        "spread: standard deviation of yes over the responses; with score: correlation of yes with "
        "their scores.",
        style="dim",
        highlight=False,
    )


def _query_conclusion(found: QueryExplanation) -> str:
    spreads = [(item.spread, item.item) for item in found.items if item.spread is not None]
    if not spreads:
        return "No item of this query has an answer."
    spread, item = max(spreads, key=lambda pair: (pair[0], -pair[1]))
    dead = sum(item.dead is not None for item in found.items)
    return (
        f"Item {item} separates the responses most (spread {spread:.2f}). {dead} of "
        f"{count_of(len(found.items), 'item', 'items')} do not discriminate between responses."
    )


def _gap_table(
    title: str, points: str, gaps: Sequence[ItemGap], sign: float, query_texts: Mapping[str, str]
) -> object:
    from rich.text import Text

    table = make_table(title)
    for name in (points, "yes", "neighbors", "weight", "score"):
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
            Text(printable(query_name(gap.query_id, query_texts))),
            str(gap.item),
            Text(printable(gap.text)),
        )
    return table


def _overall(found: CandidateExplanation) -> str:
    from rocketeval.records import Interval

    overall = found.overall
    if overall is None:
        return " and could not be compared with its neighbors."
    fewer = overall.points.value >= 0
    value, low, high = overall.points.value, overall.points.low, overall.points.high
    points = overall.points if fewer else Interval(-value, -high, -low)
    return (
        f": it gets {figure(points, '.2f')} {'fewer' if fewer else 'more'} points per query than "
        f"its neighbors{_neighbors(found)}, over {count_of(overall.queries, 'query', 'queries')}."
    )


def _neighbors(found: CandidateExplanation) -> str:
    """Return the names of the neighbors; "" if they are not the same in all items shown."""
    gaps = (*found.losses, *found.strengths)
    named = {tuple(each.candidate for each in gap.neighbours) for gap in gaps}
    if len(named) != 1:
        return ""
    *names, last = named.pop()
    return f" {', '.join(names)} and {last}" if names else f" {last}"


def _named(gap: ItemGap, query_texts: Mapping[str, str]) -> str:
    query = query_name(gap.query_id, query_texts)
    return f"{gap.points:.2f} on {query}, item {gap.item}: {gap.text}"


def _figures(item: ItemStatistics) -> tuple[float | None, ...]:
    return (item.mean, item.low, item.high, item.spread, item.discrimination)


def _two_places(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


@verb(
    examples=[
        ("rocketeval explain", "losses of every candidate"),
        ("rocketeval explain --candidate NEW --top 20", "one candidate, in detail"),
        ("rocketeval explain --query q7", "one query, item by item"),
    ],
    exit_codes=codes(2, 5),
    renamed={"--most": "--top"},
)
@with_run
@option("--candidate", metavar="NAME", help="Explain where this candidate loses and gains.")
@option("--query", metavar="ID", help="Show the weight and the answers of each item of this query.")
@option(
    "--top",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="With --candidate: number of losses and strengths to show.",
)
@with_output
def command(run: Run, candidate: str | None, query: str | None, top: int, output: Output) -> None:
    """Explain a ranking: which checklist items cost each candidate points.

    Compares each candidate, item by item, with its neighbors in the ranking of CONFIG's run: the
    four candidates nearest in rank. With --query, shows each item's weight in the score, how its
    answers differ between responses, and which items do not discriminate.

    Without --candidate and --query, explains all candidates and writes explain.json for the report.
    If checklist items are grouped, for example by quality dimension, explain.json also has each
    candidate's mean per group.
    """
    if candidate is not None and query is not None:
        raise click.UsageError("Give --candidate or --query, not both.")
    if candidate is not None:
        found = run.explain_candidate(candidate, top)
        output.give(found, lambda: show_candidate(found, _starts(run)))
    elif query is not None:
        explained = run.explain_query(query)
        output.give(explained, lambda: show_query(explained))
    else:
        overview = run.explain()
        output.give(overview, lambda: _show_overview(run, overview))


def _show_overview(run: Run, found: Explanation) -> None:
    from rocketeval.cli.run import Typed
    from rocketeval.explain.groups import groups_are
    from rocketeval.scoring.read_answers import rubric_of

    rubric = rubric_of(run.config, run.store.inputs.checklists())
    about = groups_are(run.config.scorer.kind, rubric)
    show_overview(found, Typed.now(run.config), about, _starts(run))


def _starts(run: Run) -> dict[str, str]:
    return starts_of_queries(run.store.inputs.queries)

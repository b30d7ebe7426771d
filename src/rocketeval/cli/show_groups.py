"""What candidates got in each group of items, as `rocketeval explain` prints it."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from rich.cells import cell_len
from rich.text import Text

from rocketeval.cli.tables import make_console, make_table, screen_width
from rocketeval.cli.words import printable
from rocketeval.explain.groups import GroupMean, GroupScore
from rocketeval.names import counted

_GAP, _FIGURE = 2, 4
_LONGEST_GROUP = 40


def show_groups(groups: Sequence[GroupScore], left_out: int = 0) -> None:
    """Print a row a group and a column a candidate; nothing without groups."""
    if not groups or not groups[0].candidates:
        return
    names = [printable(own.candidate) for own in groups[0].candidates]
    taken_apart = {group.group for group in groups if group.whole}
    titles = [printable(_title(group, taken_apart)) for group in groups]
    lacking = sum(own.missing for group in groups if not group.whole for own in group.candidates)
    heads, by_place = _heads(names, max(map(cell_len, titles)))
    by = "candidate's place in the ranking" if by_place else "candidate"
    table = make_table(f"Mean answer by group and {by}")
    table.add_column("group", overflow="fold")
    for head in heads:
        table.add_column(Text(head), justify="right", no_wrap=True)
    for title, group in zip(titles, groups, strict=True):
        figures = map(_figure, group.candidates[: len(heads)])
        table.add_row(Text(title, style="bold" if group.whole else ""), *figures)
    console = make_console()
    console.print(table)
    for words in _words(len(names) - len(heads), left_out, lacking):
        console.print(words, style="dim", highlight=False)


def _heads(names: Sequence[str], longest_title: int) -> tuple[list[str], bool]:
    """Return the columns' heads, as many as fit, and whether they are places, not names."""
    width = screen_width()
    if width is None:
        return list(names), False
    room = width - min(longest_title, _LONGEST_GROUP)
    if sum(_GAP + max(_FIGURE, cell_len(name)) for name in names) <= room:
        return list(names), False
    most = max(1, room // (_GAP + _FIGURE))
    return [str(place) for place in range(1, len(names) + 1)][:most], True


def _words(candidates: int, groups: int, lacking: int) -> list[str]:
    said = ["A response's mean over the group's items, then the mean over responses; from 0 to 1."]
    if lacking:
        some = counted(lacking, "missing answer is", "missing answers are")
        said.append(f"{some} left out; --json counts them.")
    if candidates:
        said.append(f"{counted(candidates, 'more candidate', 'more candidates')}: see --json.")
    if groups:
        some = counted(groups, "more group is", "more groups are")
        said.append(f"{some} not summed up: see `rocketeval export --what groups`.")
    return [*said, "--json has the intervals."]


def _title(group: GroupScore, taken_apart: Collection[str]) -> str:
    """Return a group's name; under its dimension, where that has a row, without it."""
    if group.whole:
        return f"{group.group} (all)"
    if group.dimension not in taken_apart:
        return group.group
    return f"  {group.group.removeprefix(f'{group.dimension}: ')}"


def _figure(own: GroupMean) -> str:
    return "-" if own.mean is None else f"{own.mean.value:.2f}"

"""`rocketeval criteria`"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table

if TYPE_CHECKING:
    from rocketeval.criteria import Criterion


GROUPS = ("content", "engagement", "integrity", "relevance")
"""The groups of the taxonomy, written out so that `--help` does not read it."""


@click.command()
@click.option("--group", type=click.Choice(GROUPS), help="Only this group of the taxonomy.")
@click.option("--grades", is_flag=True, help="Say what each grade from 1 to 5 means, too.")
@with_output
def command(group: str | None, grades: bool, output: Output) -> None:
    """List the criteria that texts can be graded by, in four groups.

    Grade by one with `method: {kind: rubric, options: {criterion: NAME}}` in the config, or with
    `rocketeval audit --methods rubric:criterion=NAME`.
    """
    from rocketeval.criteria import criteria

    chosen = {
        each: [known for known in criteria().values() if known.group == each]
        for each in (GROUPS if group is None else (group,))
    }
    listed = {"criteria": [member for members in chosen.values() for member in members]}
    output.give(listed, lambda: _show(chosen, grades))


def _show(chosen: Mapping[str, list[Criterion]], grades: bool) -> None:
    for group, members in chosen.items():
        _show_group(group, members, grades)


def _show_group(group: str, members: list[Criterion], grades: bool) -> None:
    table = make_table(group)
    table.add_column("criterion", no_wrap=True)
    table.add_column("what is graded")
    for member in members:
        table.add_row(member.name, member.definition)
        if grades:
            for grade, meaning in enumerate(member.grades, 1):
                table.add_row("", f"{grade}: {meaning}")
    make_console().print(table)

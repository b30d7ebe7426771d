"""`rocketeval criteria`"""

from __future__ import annotations

import click

from rocketeval.cli.tables import make_console, make_table
from rocketeval.criteria import Criterion, criteria, groups


@click.command()
@click.option("--group", type=click.Choice(groups()), help="Only this group of the taxonomy.")
@click.option("--grades", is_flag=True, help="Say what each grade from 1 to 5 means, too.")
def command(group: str | None, grades: bool) -> None:
    """List the criteria that texts can be graded by, in four groups.

    Grade by one with `method: {kind: rubric, options: {criterion: NAME}}` in the config, or with
    `rocketeval audit --methods rubric:criterion=NAME`.
    """
    for each in groups() if group is None else (group,):
        _show(each, [known for known in criteria().values() if known.group == each], grades)


def _show(group: str, members: list[Criterion], grades: bool) -> None:
    table = make_table(group)
    table.add_column("criterion", no_wrap=True)
    table.add_column("what is graded")
    for member in members:
        table.add_row(member.name, member.definition)
        if grades:
            for grade, meaning in enumerate(member.grades, 1):
                table.add_row("", f"{grade}: {meaning}")
    make_console().print(table)

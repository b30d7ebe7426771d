"""`rocketeval repair`: set damaged files of a run aside."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, verb
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import printable
from rocketeval.cli.verify import RUN, open_store
from rocketeval.text import count_of, join_words

if TYPE_CHECKING:
    from rocketeval.store.verify import Repair

MOST_NAMED = 5


@verb(
    examples=[
        ("rocketeval repair runs/demo", "set damage aside, keep the rest"),
        ("rocketeval run", "then ask only for what was lost"),
    ],
    exit_codes=codes(2, 5),
)
@RUN
@with_output
def command(run: Path, output: Output) -> None:
    """Set the damage in a run aside, and keep everything else.

    RUN is a run directory or a config; the default is the run of rocketeval.yaml. Damaged files
    move to `set_aside` in the run directory; whole lines of a damaged journal stay. Judgments with
    answers that were lost to faults of the server are set aside too. Nothing is deleted, and the
    next `rocketeval run` asks only for what is missing.
    """
    from rocketeval.store.verify import repair_run

    found = repair_run(open_store(run))
    output.give(found, lambda: _show(found))


def _show(found: Repair) -> None:
    kept = count_of(found.kept, "judgment", "judgments")
    if found.folder is None:
        click.echo(f"Nothing is damaged: the run keeps its {kept}.")
        return
    named = printable(join_words(found.set_aside, most=MOST_NAMED))
    click.echo(f"Set aside: {named}")
    click.echo(f"They are in {printable(str(found.folder))}.")
    if found.to_ask:
        click.echo(
            f"{count_of(found.to_ask, 'judgment', 'judgments')} with lost answers will be asked "
            "again."
        )
    click.echo(f"The run keeps {kept}. `rocketeval run` asks for the rest.")

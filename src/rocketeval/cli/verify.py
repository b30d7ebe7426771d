"""`rocketeval verify` and `rocketeval repair`: check the files of a run, and set damage aside."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, verb
from rocketeval.cli.options import DEFAULT_CONFIG, RUN_PATH
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import as_argument
from rocketeval.errors import StoreError
from rocketeval.text import count_of, join_words, printable

if TYPE_CHECKING:
    from rocketeval.store.run import RunStore
    from rocketeval.store.verify import Repair, RunCheck

RUN = click.argument("run", type=RUN_PATH, default=DEFAULT_CONFIG)
"""Argument of verbs that take a run directory, or the config of a run."""
MOST_NAMED = 5


def open_store(run: Path) -> RunStore:
    """Return the store of a run directory, or of the run of a config."""
    from rocketeval.config import load_config
    from rocketeval.store.run import RunStore

    return RunStore(run if run.is_dir() else load_config(run).run_path)


@verb(
    examples=[
        ("rocketeval verify", "the run of rocketeval.yaml"),
        ("rocketeval verify runs/demo --json", "a run directory, as JSON"),
    ],
    exit_codes=codes(2, 5),
)
@RUN
@with_output
def command(run: Path, output: Output) -> int:
    """Check every file of a run against its checksum.

    RUN is a run directory or a config; the default is the run of rocketeval.yaml. Every file is
    read completely. Exit code 5 means that a file is damaged or missing; `rocketeval repair` sets
    the damage aside and keeps the rest. Files of earlier versions have no checksum: they are only
    read.
    """
    from rocketeval.store.verify import verify_run

    found = verify_run(open_store(run))
    output.give(found, lambda: _show(found))
    if found.whole:
        return 0
    if output.silent:
        click.echo(_damage(found), err=True)
    return StoreError.exit_code


def _show(found: RunCheck) -> None:
    for file in found.damaged:
        click.echo(printable(f"{file.verdict:>10}  {file.name}: {file.why}"))
    counts = Counter(file.verdict for file in found.files)
    click.echo(
        f"{count_of(counts['whole'], 'file is', 'files are')} as written, with "
        f"{count_of(found.judgments, 'judgment', 'judgments')}."
    )
    if counts["readable"]:
        click.echo(
            f"{count_of(counts['readable'], 'file has', 'files have')} no checksum, and can be "
            "read: written by an earlier version, or not by RocketEval."
        )
    if counts["torn"]:
        click.echo("The journal ends in the middle of a line, as after a kill: no answer is lost.")
    if found.temporaries:
        click.echo(
            f"{count_of(found.temporaries, 'temporary file', 'temporary files')} of a killed "
            "process: the next `rocketeval run` removes them."
        )
    if found.incomplete:
        click.echo(
            f"{count_of(found.incomplete, 'judgment lacks', 'judgments lack')} answers that were "
            "lost to faults of the server: `rocketeval repair` sets them aside to be asked again."
        )
    if not found.whole:
        click.echo(_damage(found))
        click.echo(f"Next: rocketeval repair {printable(as_argument(found.path))}")


def _damage(found: RunCheck) -> str:
    return f"{count_of(len(found.damaged), 'file is', 'files are')} damaged or missing."


@verb(
    examples=[
        ("rocketeval repair runs/demo", "set damage aside, keep the rest"),
        ("rocketeval run", "then ask only for what was lost"),
    ],
    exit_codes=codes(2, 5),
)
@RUN
@with_output
def repair(run: Path, output: Output) -> None:
    """Set the damage in a run aside, and keep everything else.

    RUN is a run directory or a config; the default is the run of rocketeval.yaml. Damaged files
    move to `set_aside` in the run directory; whole lines of a damaged journal stay. Judgments with
    answers that were lost to faults of the server are set aside too. Nothing is deleted, and the
    next `rocketeval run` asks only for what is missing.
    """
    from rocketeval.store.verify import repair_run

    found = repair_run(open_store(run))
    output.give(found, lambda: _show_repair(found))


def _show_repair(found: Repair) -> None:
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

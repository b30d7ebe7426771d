"""The `rocketeval` command; each verb is imported when it is used."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TextIO

import click

from rocketeval._version import __version__
from rocketeval.cli.output import asks_for_json, error_as_json, unwritten
from rocketeval.errors import ConfigError, RocketEvalError, Stopped
from rocketeval.text import printable_lines

GROUPS = {
    "Start": {
        "init": "Write a small benchmark and a config to start from.",
        "import": "Show what a data file holds, or convert it.",
        "doctor": "Check that a judge works before you spend money on it.",
        "plan": "Estimate the requests, cost and time of a run.",
    },
    "Run": {
        "run": "Grade, score and rank a benchmark, and write a report.",
        "verify": "Check every file of a run against its checksum.",
        "repair": "Set damaged files of a run aside, and keep the rest.",
    },
    "Understand": {
        "compare": "Test whether one candidate is better than another.",
        "gate": "Compare a run with that of the base branch, for CI.",
        "audit": "Measure how far to trust the judge.",
        "attack": "Measure whether dishonest responses can fool the judge.",
        "explain": "Show which checklist items cost each candidate points.",
        "view": "Show runs in a browser, finished ones and running ones.",
        "serve": "Serve rewards and scores over HTTP, for trainers and programs.",
        "export": "Write a run's tables as CSV, Markdown, LaTeX, Parquet and more.",
    },
    "Improve": {
        "checklist": "Show checklists, or write them to a file to edit.",
        "lint": "Find bad checklist items, and let the author fix them.",
        "labels": "Choose a few responses to label, to correct the judge's bias.",
        "evolve": "Train an evaluator on votes or labels, to replace checklists.",
        "ensemble": "Combine runs of several judges into one ranking.",
        "cascade": "Let a strong judge grade a part, to correct a cheap one.",
        "anchors": "Choose a few queries for a first look at new candidates.",
    },
}
"""Verbs by heading, in the order of the help page."""
VERBS = {verb: does for verbs in GROUPS.values() for verb, does in verbs.items()}
PLACES = {
    "import": ("import_data", "command"),
    "repair": ("verify", "repair"),
    "cascade": ("ensemble", "cascade"),
    "anchors": ("compare", "anchors"),
}
"""Module and function of verbs that are not the `command` of a module of their name."""
RENAMED = {
    **{stage: f"run --only {stage}" for stage in ("grade", "score", "rank", "report")},
    "advise": "labels next",
    "estimate": "labels estimate",
    "scorers": "audit --scorers all",
    "criteria": "audit --criteria",
}
"""Verbs of earlier versions and their replacements."""


class LazyGroup(click.Group):
    """A command group that lists its verbs without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the help page."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a verb; name the replacement of a renamed one."""
        if cmd_name in RENAMED and not ctx.resilient_parsing:
            raise ConfigError(f"`rocketeval {cmd_name}` is now `rocketeval {RENAMED[cmd_name]}`.")
        if cmd_name not in VERBS:
            return None
        module, name = PLACES.get(cmd_name, (cmd_name, "command"))
        command: click.Command = getattr(import_module(f"rocketeval.cli.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command named by the first word; suggest the nearest if there is none."""
        if ctx.resilient_parsing:
            # The shell asks what can follow; a message would appear in the user's command line.
            return super().resolve_command(ctx, args)
        if args and args[0] not in VERBS and args[0] not in RENAMED:
            from rocketeval.text import did_you_mean

            ctx.fail(f"There is no verb {args[0]!r}. {did_you_mean(args[0], list(VERBS))}")
        return super().resolve_command(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the verbs under their headings, then the options."""
        width = max(map(len, VERBS))
        for heading, verbs in GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(verb.ljust(width), does) for verb, does in verbs.items()])
        click.Command.format_options(self, ctx, formatter)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="VERB ...",
    options_metavar="",
    epilog="`rocketeval VERB --help` explains a verb. Where a verb takes a CONFIG, the default is "
    "rocketeval.yaml. Start with: rocketeval init demo",
)
@click.version_option(__version__, prog_name="rocketeval")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Rank LLM outputs with checklists and a small judge model.

    A strong LLM, the author, writes a yes/no checklist for each query, once. A small LLM, the
    judge, answers every item for every response. You get scores, a ranking with confidence
    intervals, and an audit against human votes (A beats B) or labels (a score per response), if you
    have any.
    """
    ctx.color = _color()


PIPE_CLOSED = 141
"""Exit code: the reading end of the pipe was closed (SIGPIPE), as shells report it."""


def main() -> None:
    """Run the CLI; report user errors as a message and an exit code, never a traceback."""
    try:
        code = _run()
        sys.stdout.flush()
    except BrokenPipeError:
        code = PIPE_CLOSED
        _drop_output(sys.stdout, sys.stderr)
    except OSError as error:
        code = _give_up(*_as_message(unwritten(error)))
        _drop_output(sys.stdout)
    sys.exit(code)


def _run() -> int:
    """Run the CLI and return its exit code."""
    stdout = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # Print "?" instead of failing where the terminal cannot show a character.
            stream.reconfigure(errors="replace")
    try:
        code = group(prog_name="rocketeval", standalone_mode=False)
    except SystemExit:
        # When a pipe is closed, click exits with code 1 and replaces stdout.
        if sys.stdout is not stdout:
            raise BrokenPipeError from None
        raise
    except Stopped as error:
        return _give_up(error.message, error.hint, error.exit_code, wrong=False)
    except RocketEvalError as error:
        return _give_up(error.message, error.hint, error.exit_code)
    except OSError as error:
        code = _give_up(*_as_message(error))
        with _unless_full():
            sys.stdout.flush()
        return code
    except click.ClickException as error:
        _print_as_json(error.format_message(), "", error.exit_code)
        shown = io.StringIO()
        error.show(shown)
        click.echo(printable_lines(shown.getvalue()), nl=False, err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        safe = "Finished judgments are saved. Run the same command again to continue."
        return _give_up("Interrupted.", safe, Stopped.exit_code, wrong=False)
    return code if isinstance(code, int) else 0


def _as_message(error: OSError) -> tuple[str, str, int]:
    """Return the message, the hint and the exit code for an error of the operating system."""
    from rocketeval.store.files import FULL, target_of

    why = error.strerror or str(error)
    if not isinstance(error.filename, str | os.PathLike):
        return why, "", 1
    path = Path(error.filename)
    replaced = target_of(path)
    target = replaced or path
    if error.errno in FULL:
        again = "Free some space, then run the same command again."
        return f"Cannot write {target}: {why}.", again, 1
    denied = error.errno in (errno.EACCES, errno.EPERM)
    if replaced or error.errno == errno.EROFS or (denied and _only_readable(target)):
        other = "Give another path, or make the folder writable."
        return f"Cannot write {target}: {why}.", other, ConfigError.exit_code
    return f"{why} ({target})", "", 1


def _only_readable(path: Path) -> bool:
    """Return whether a path, or the folder that would get it, can be read but not written."""
    place = next((each for each in (path, *path.parents) if os.path.lexists(each)), path)
    effective = os.access in os.supports_effective_ids
    needs = os.R_OK | os.X_OK if place.is_dir() else os.R_OK
    return os.access(place, needs, effective_ids=effective) and not os.access(
        place, os.W_OK, effective_ids=effective
    )


def _give_up(message: str, hint: str, exit_code: int, *, wrong: bool = True) -> int:
    """Print an error, as JSON too if --json was given, and return its exit code."""
    _print_as_json(message, hint, exit_code)
    shown = printable_lines(f"Error: {message}" if wrong else message)
    click.secho(shown, fg="red" if wrong else None, err=True, color=_color())
    if hint:
        click.echo(printable_lines(hint), err=True)
    return exit_code


def _print_as_json(message: str, hint: str, exit_code: int) -> None:
    """Print an error as JSON if --json was given, and if stdout can be written."""
    if not asks_for_json(sys.argv[1:]):
        return
    with _unless_full():
        click.echo(error_as_json(message, hint, exit_code))


@contextlib.contextmanager
def _unless_full() -> Iterator[None]:
    """Drop what cannot be written to stdout, such as on a full disk, after that was reported."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError:
        _drop_output(sys.stdout)


def _drop_output(*streams: TextIO) -> None:
    """Redirect further output to /dev/null, so that flushing at exit cannot fail."""
    for stream in streams:
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _color() -> bool | None:
    """Return False if $NO_COLOR is set, else None, which lets click detect the terminal."""
    return False if os.environ.get("NO_COLOR") else None


if __name__ == "__main__":
    main()

"""`rocketeval`: the verbs, imported when they are used."""

from __future__ import annotations

import contextlib
import io
import os
import sys
from importlib import import_module

import click

from rocketeval._version import __version__
from rocketeval.cli.output import asks_for_json, error_as_json
from rocketeval.cli.text import printable_lines
from rocketeval.errors import RocketEvalError, Stopped
from rocketeval.text import did_you_mean

VERBS = {
    "init": "Write a small benchmark and a config to start from.",
    "doctor": "Examine a judge before it is paid for: will it do?",
    "plan": "Say what a run would ask, cost and take, before it is started.",
    "run": "Do everything: load, checklist, grade, score, rank, audit, explain, report.",
    "checklist": "Load the benchmark and give every query its checklist.",
    "lint": "Say what is wrong with checklist items: their words, and how the judge takes them.",
    "grade": "Let the judge answer every checklist item that is still unanswered.",
    "score": "Turn judgments into scores.",
    "rank": "Turn scores into ratings and ranks with intervals.",
    "audit": "Compare the scores with votes, labels and reference ratings.",
    "explain": "Say where a candidate loses against its neighbours, and what each item adds.",
    "report": "Write report.html.",
    "view": "Show runs in a browser, while they go and when they are finished.",
    "export": "Write what a run found as CSV, Markdown, LaTeX, Parquet, matches and more.",
    "scorers": "Compare kinds of scorers on the run's labels or votes.",
    "compare": "Say whether one candidate is better than another, and how sure that is.",
    "estimate": "Estimate mean labels from a few labels and all scores.",
    "advise": "Choose which responses to label next, and say what that buys.",
    "criteria": "List the criteria that texts can be graded by.",
    "evolve": "Make an evaluator that learns from votes or labels, and from its own mistakes.",
    "ensemble": "Combine runs of several judges into one ranking.",
}

SHARED = {"advise": "labels", "estimate": "labels"}
"""Verbs that share a file, in which each is a function of its own name."""


class LazyGroup(click.Group):
    """Knows its verbs' names and help without importing them."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the verbs in the order of the walk."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import the verb's file and return its command."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"rocketeval.cli.{SHARED.get(cmd_name, cmd_name)}")
        command: click.Command = getattr(module, cmd_name if cmd_name in SHARED else "command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the verb; the nearest one is named where there is none."""
        name = args[0]
        if name not in VERBS and not name.startswith("-"):
            ctx.fail(f"There is no verb {name!r}. {did_you_mean(name, [*VERBS])}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of verbs."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="Start with: rocketeval init demo",
)
@click.version_option(__version__, prog_name="rocketeval")
@click.pass_context
def group(ctx: click.Context) -> None:
    """Evaluate LLM outputs with yes/no checklists answered by a lightweight judge.

    A strong LLM (the author) writes a checklist for each query once; a small, cheap LLM (the
    judge) answers every item; the probabilities become scores, ranks and intervals.
    """
    ctx.color = _colour()


NOBODY_READS = 141
"""Exit code: what read the output is gone. Shells say so of every program that a pipe ended."""


def main() -> None:
    """Entry point: a user's mistake is a message and an exit code, never a traceback."""
    try:
        code = _told()
        sys.stdout.flush()
    except BrokenPipeError:
        code = NOBODY_READS
        _drop_output()
    sys.exit(code)


def _told() -> int:
    """Return the exit code, after everything was said."""
    stdout = sys.stdout
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A terminal that cannot show a name shows a question mark instead of a traceback.
            stream.reconfigure(errors="replace")
    try:
        code = group(prog_name="rocketeval", standalone_mode=False)
    except SystemExit:
        # When a pipe is closed, click leaves with exit code 1 and a stdout of its own.
        if sys.stdout is not stdout:
            raise BrokenPipeError from None
        raise
    except Stopped as error:
        return _give_up(error.message, error.hint, error.exit_code, wrong=False)
    except RocketEvalError as error:
        return _give_up(error.message, error.hint, error.exit_code)
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        return _give_up(f"{error.strerror or error}{where}", "", 1)
    except click.ClickException as error:
        if asks_for_json(sys.argv[1:]):
            click.echo(error_as_json(error.format_message(), "", error.exit_code))
        shown = io.StringIO()
        error.show(shown)
        click.echo(printable_lines(shown.getvalue()), nl=False, err=True)
        return error.exit_code
    except (click.Abort, KeyboardInterrupt):
        safe = "Finished judgments are safe; run it again to go on."
        return _give_up("Interrupted.", safe, Stopped.exit_code, wrong=False)
    return code if isinstance(code, int) else 0


def _give_up(message: str, hint: str, exit_code: int, *, wrong: bool = True) -> int:
    """Say why there is nothing, to people and to programs that asked for JSON."""
    if asks_for_json(sys.argv[1:]):
        click.echo(error_as_json(message, hint, exit_code))
    shown = printable_lines(f"Error: {message}" if wrong else message)
    click.secho(shown, fg="red" if wrong else None, err=True, color=_colour())
    if hint:
        click.echo(printable_lines(hint), err=True)
    return exit_code


def _drop_output() -> None:
    """Let nothing that is still to be written complain that nobody reads it."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _colour() -> bool | None:
    """Return False where $NO_COLOR asks for none; None leaves it to the terminal."""
    return False if os.environ.get("NO_COLOR") else None


if __name__ == "__main__":
    main()

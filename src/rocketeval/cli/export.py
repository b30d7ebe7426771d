"""`rocketeval export`: write a run's tables in other formats."""

from __future__ import annotations

import io
import os
import sys
import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, cast

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import DEFAULT_CONFIG, NAME, RUN_PATH
from rocketeval.cli.output import Output, with_output
from rocketeval.exports.formats import FORMATS, WHATS, ExportRequest, make_request
from rocketeval.text import count_of, join_words, printable

if TYPE_CHECKING:
    from rocketeval.exports.folder import Exported
    from rocketeval.judges.runs import JudgedRun
    from rocketeval.store.run import RunStore


MOST_NAMES = 10


def _list_of_formats() -> str:
    # The margin of a help page leaves 76 columns.
    lines = [
        textwrap.fill(
            form.tells + (f": {', '.join(form.whats)}" if form.whats else ""),
            width=76,
            initial_indent=f"  {form.name:<10}  ",
            subsequent_indent=" " * 14,
        )
        for form in FORMATS.values()
    ]
    return "\b\nFormats, and the tables each can hold (default first):\n" + "\n".join(lines)


@verb(
    examples=[
        ("rocketeval export --to markdown", "print the ranking"),
        ("rocketeval export --what scores -o scores.csv", "all scores, for a spreadsheet"),
        ("rocketeval export runs/demo --to wildbench -o out", "a folder of score files"),
    ],
    exit_codes=codes(2, 5),
    epilog=_list_of_formats(),
)
@click.argument("run", type=RUN_PATH, default=DEFAULT_CONFIG)
@NAME
@option("--to", metavar="FORMAT", help="Format (see below); default: by the suffix of --out.")
@option("--what", metavar="WHAT", help=f"Table to write: {', '.join(WHATS)}.")
@option(
    "-o",
    "--out",
    metavar="PATH",
    help="File to write; for rocketeval and wildbench, a folder. Without it, or with -, print "
    "to stdout.",
)
@option("--force", is_flag=True, help="Replace an existing PATH.")
@option("--raw", is_flag=True, help="csv: do not escape text that looks like a formula.")
@option("--bom", is_flag=True, help="csv: add a byte order mark, for Excel.")
@with_output
def command(
    run: Path,
    name: str | None,
    to: str | None,
    what: str | None,
    out: str | None,
    force: bool,
    raw: bool,
    bom: bool,
    output: Output,
) -> None:
    """Write a run's tables as CSV, Markdown, LaTeX, Parquet and more.

    RUN is a config (default rocketeval.yaml) or a run directory. The number of omitted rows is
    printed. In csv, text that looks like a formula gets a leading apostrophe.
    """
    from rocketeval.exports.stage import export_run

    # `-` means stdout; `./-` is a file of that name.
    path = None if out is None or out == "-" else Path(out)
    request = make_request(to, what, path, raw=raw, bom=bom)
    opened = _open(run, name)
    if path is not None:
        done = export_run(opened.store, opened.config, request, path, force=force)
        output.give(done, lambda: _show(done, path))
        return
    if request.form.is_folder or request.form.binary:
        kind = "a folder of files" if request.form.is_folder else "not text"
        raise click.UsageError(f"{request.form.name} is {kind}: give --out PATH.")
    if output.as_json:
        raise click.UsageError("--json reports what was written: it needs --out PATH.")
    done = _print(opened.store, request)
    if not output.quiet:
        _tell(done, to_stderr=True)


def _open(run: Path, name: str | None) -> JudgedRun:
    from rocketeval.config import load_config
    from rocketeval.evolve.apply_setup import as_graded
    from rocketeval.judges.runs import JudgedRun, open_run
    from rocketeval.store.run import RunStore

    if name is None:
        return open_run(run)
    if run.is_dir():
        raise click.UsageError("--name needs a config file; RUN is a run directory.")
    config = as_graded(load_config(run).model_copy(update={"name": name}))
    return JudgedRun(RunStore(config.run_path), config)


def _print(store: RunStore, request: ExportRequest) -> Exported:
    from rocketeval.exports.stage import export_stream

    stream: BinaryIO = sys.stdout.buffer
    if sys.stdout.isatty():
        stream = cast(BinaryIO, _Printable(stream))
    try:
        done = export_stream(store, request, stream)
        stream.flush()
    except BrokenPipeError:
        # The reader, such as `head`, closed the pipe; avoid an error at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    return done


class _Printable(io.RawIOBase):
    """A stream that replaces control characters, which could rewrite a terminal."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream

    def write(self, content: bytes) -> int:  # type: ignore[override]
        """Write text without control characters, line by line."""
        lines = content.decode().split("\n")
        self._stream.write("\n".join(map(printable, lines)).encode())
        return len(content)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()


def _show(done: Exported, out: Path) -> None:
    click.echo(f"Written: {printable(str(out))} ({count_of(done.rows, 'row', 'rows')})")
    _tell(done, to_stderr=False)


def _tell(done: Exported, *, to_stderr: bool) -> None:
    for what, count in done.left_out.items():
        if count:
            click.echo(f"Left out ({count:,}): {what}", err=to_stderr)
    for note in done.notes:
        click.echo(printable(note), err=to_stderr)
    if done.files:
        pairs = (f"{name!r} is {stem!r}" for name, stem in done.files.items())
        names = printable(join_words(pairs, most=MOST_NAMES))
        click.echo(f"Names changed for file names (all in export.json): {names}", err=to_stderr)

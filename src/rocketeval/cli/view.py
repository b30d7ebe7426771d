"""`rocketeval view`: show runs in a browser."""

from __future__ import annotations

import contextlib
import shlex
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import RUN_PATH
from rocketeval.errors import ConfigError
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rocketeval.view.catalog import ViewTarget


@verb(
    examples=[
        ("rocketeval view --open", "the run of rocketeval.yaml, in a browser"),
        ("rocketeval view runs", "all runs of a folder"),
        ("rocketeval view --label --open", "read pairs and vote, names hidden"),
        ("rocketeval view runs/my-run --ask-judge", "ask which sentences move an answer"),
        ("rocketeval view runs/my-run --folder public", "write the page for a static host"),
    ],
    exit_codes=codes(2),
)
@click.argument("target", type=RUN_PATH, required=False)
@option(
    "--port",
    type=click.IntRange(0, 65535),
    metavar="PORT",
    help="Port; default: the first free one from 8700.",
)
@option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@option("--allow-remote", is_flag=True, help="Allow other machines to read, without a password.")
@option(
    "--host-name",
    "host_names",
    multiple=True,
    metavar="NAME",
    help="With --allow-remote: a host name that readers use; repeatable.",
)
@option("--label", "labeling", is_flag=True, help="Collect votes and labels in the page.")
@option("--labeler", metavar="NAME", help="Your name in the labels; default: your user name.")
@option(
    "--ask-judge",
    is_flag=True,
    help="Let the page ask the judge which sentences move an answer, after a confirmation.",
)
@option(
    "--folder",
    type=click.Path(path_type=Path),
    metavar="PATH",
    help="Write the page of one finished run to a folder for any static host, and stop.",
)
@option("--open", "open_it", is_flag=True, help="Open the page in a browser.")
def command(
    target: Path | None,
    port: int | None,
    host: str,
    allow_remote: bool,
    host_names: tuple[str, ...],
    labeling: bool,
    labeler: str | None,
    ask_judge: bool,
    folder: Path | None,
    open_it: bool,
) -> None:
    """Show runs in a browser, finished ones and running ones.

    TARGET is a config, a run directory or a folder of runs; the default is the run of
    rocketeval.yaml, or else the folder `runs`. Pages are read-only, unless you give --label: then
    votes and labels are added to the file that `benchmark.collected` names. With --ask-judge, the
    page can ask the judge of a finished run again and shows the cost first. Only this machine can
    open them unless you give --allow-remote, and only with the printed address, which has a token.
    """
    import asyncio
    import getpass
    import webbrowser

    from rocketeval.view.catalog import RunCache, find_target
    from rocketeval.view.labeling import check_collects
    from rocketeval.view.server import (
        TOKEN,
        address_of,
        bind,
        is_loopback,
        make_app,
        new_token,
        own_names,
        serve,
    )

    if host_names and not allow_remote:
        raise ConfigError(
            "--host-name needs --allow-remote.",
            hint="Add --allow-remote only on a network you trust: there is no password.",
        )
    if labeler is not None and not labeling:
        raise ConfigError("--labeler needs --label.", hint="Add --label to collect labels.")
    found = find_target(target)
    if folder is not None:
        _write_folder(found, folder)
        return
    if labeling:
        check_collects(found)
    bound = bind(host, port, allow_remote=allow_remote)
    token = new_token()
    address = f"{address_of(bound)}?{TOKEN}={token}"
    count = len(found.runs())

    def started() -> None:
        if allow_remote and not is_loopback(host):
            click.secho(
                "Warning: anyone who sees this address can read these runs, including every query "
                "and response"
                + (", and ask the judge at your cost" if ask_judge else "")
                + ". There is no password besides its token, and no encryption.",
                fg="yellow",
                err=True,
            )
        what = "no runs yet" if not count else "1 run" if count == 1 else f"{count:,} runs"
        click.echo(f"Showing {printable(str(found.folder))} ({what}) at {address}")
        click.echo("Press Ctrl-C to stop.")
        if open_it:
            # Some browsers block the caller until they are closed.
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()

    async def show() -> None:
        names = {host, *own_names(), *host_names} if allow_remote else set()
        cache = RunCache(found)
        name = (labeler or getpass.getuser()) if labeling else ""
        app = make_app(
            cache,
            allow_remote=allow_remote,
            names=names,
            token=token,
            labeler=name,
            ask_judge=ask_judge,
        )
        await serve(app, bound, started)

    with bound, contextlib.suppress(KeyboardInterrupt):
        asyncio.run(show())
    click.echo("Stopped.")


def _write_folder(target: ViewTarget, folder: Path) -> None:
    from rocketeval.config import load_config
    from rocketeval.report.stage import write_folder
    from rocketeval.store.run import RunStore

    runs = list(target.runs().values())
    if len(runs) != 1:
        raise ConfigError(
            f"{target.folder} has {count_of(len(runs), 'run', 'runs')}; --folder writes one.",
            hint="Give a run directory, such as runs/my-run.",
        )
    count = write_folder(RunStore(runs[0]), load_config(runs[0] / "run.yaml"), folder)
    click.echo(f"Wrote {count:,} files to {printable(str(folder))}.")
    command = shlex.join(["python", "-m", "http.server", "-d", str(folder)])
    click.echo(f"Browsers read it only from a host, such as: {printable(command)}")

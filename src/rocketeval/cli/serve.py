"""`rocketeval serve`: rewards and scores over HTTP."""

from __future__ import annotations

import os
from pathlib import Path

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.errors import ConfigError


@verb(
    examples=[
        (
            "rocketeval serve --judge MODEL --base-url http://127.0.0.1:8000/v1",
            "rewards and scores at port 8750",
        ),
    ],
    exit_codes=codes(2),
)
@option("--judge", required=True, metavar="MODEL", help="Model name of the judge.")
@option("--base-url", metavar="URL", help="URL of the judge's server.")
@option("--engine", metavar="NAME", help="Engine of the judge; default: openai.")
@option(
    "--answers",
    type=click.Path(dir_okay=False, path_type=Path),
    help="File of judged answers, which are reused.",
)
@option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@option("--port", type=click.IntRange(0, 65535), default=8750, show_default=True, help="Port.")
@option(
    "--token-env",
    metavar="NAME",
    help="Environment variable with the token that clients must send.",
)
@option(
    "--most-waiting",
    type=click.IntRange(1),
    default=512,
    show_default=True,
    help="Responses in work or waiting; more get HTTP 429.",
)
@option(
    "--most-answers",
    type=click.IntRange(1),
    default=200_000,
    show_default=True,
    help="Answers kept in memory, about 0.6 KB each.",
)
@option(
    "--timeout", type=click.FloatRange(0.1), default=120.0, show_default=True, help="Seconds each."
)
def command(
    judge: str,
    base_url: str | None,
    engine: str | None,
    answers: Path | None,
    host: str,
    port: int,
    token_env: str | None,
    most_waiting: int,
    most_answers: int,
    timeout: float,
) -> None:
    """Serve rewards and scores over HTTP, for trainers and other programs.

    POST /v1/score grades one response, POST /v1/rewards a batch in OpenRLHF's form; /openapi.json
    describes both, /health and /metrics are for operators. Other machines may connect only with
    --host and a token.
    """
    import asyncio

    from rocketeval.api import Judge
    from rocketeval.grader import Grader
    from rocketeval.rewards.server import RewardServer, serve_rewards
    from rocketeval.view.server import is_loopback

    token = os.environ.get(token_env, "") if token_env else None
    if token_env and not token:
        raise ConfigError(f"${token_env} is empty.", hint="Set it to the token of the clients.")
    if token is None and not is_loopback(host):
        raise ConfigError(
            f"--host {host} lets other machines connect without a token.",
            hint="Give --token-env NAME, or listen on 127.0.0.1.",
        )

    def started(address: str) -> None:
        click.echo(f"Serving rewards of {judge} at {address}")
        click.echo("Press Ctrl-C to stop.")

    asked = Judge(judge, base_url, engine=engine)
    with Grader(asked, answers=answers, most_answers=most_answers) as grader:
        server = RewardServer(grader, token=token, most_waiting=most_waiting, timeout=timeout)
        asyncio.run(serve_rewards(server, host, port, started))
    click.echo("Stopped.")

"""The p_yes of every request form of a server, and the cost of each form.

    python perf/transports.py --base-url http://127.0.0.1:8000/v1 --record transports

Every form the server offers grades the same synthetic responses three times: one response after
the other, the same again, and all in flight. The prefix cache is emptied before the last pass,
which is timed. Serve the judge in fp32 to compare forms; in low precision a server's own answers
differ from batch to batch by more than the forms do.
"""

from __future__ import annotations

import argparse
import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from harness.measured import timed
from harness.server import VLLMServer
from harness.table import add_record_option, progress, render, show
from harness.workload import make_workload

from rocketeval.config import EngineConfig
from rocketeval.engines.http import HttpClient
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.engines.server import Server, inspect_server
from rocketeval.engines.transports.registry import OFFERED
from rocketeval.errors import EngineRefused
from rocketeval.records import GradingTask

COLUMNS = (
    "transport",
    "largest gap",
    "mean gap",
    "repeated",
    "in flight",
    "requests",
    "answers/s",
)


@dataclass(frozen=True)
class Passes:
    """The results of one form."""

    name: str
    alone: list[float | None]
    """p_yes of every item, one response after the other."""
    repeated: list[float | None]
    together: list[float | None]
    """All responses in flight."""
    requests: int
    seconds: float


def main() -> None:
    """Print the table; write it to perf/recorded with --record."""
    args = parse_arguments()
    server = VLLMServer(args.base_url)
    tasks = list(make_workload(args.responses, args.items, args.prefix_tokens).tasks())
    result, passes = asyncio.run(measure(server, tasks))
    show([*heading(args, server.model, result), "", *table(passes), "", *notes()], args.record)


async def measure(server: VLLMServer, tasks: Sequence[GradingTask]) -> tuple[Server, list[Passes]]:
    """Let every form the server offers grade the tasks."""
    http = HttpClient(server.base_url, key=None, concurrency=1, timeout=60, patience=60)
    try:
        result = await inspect_server(http, server.model)
    finally:
        await http.aclose()
    forms = sorted(OFFERED.get(result.kind, ("chat",)), key=lambda name: name != "chat_batch")
    return result, [await graded(server, name, tasks) for name in forms]


async def graded(server: VLLMServer, name: str, tasks: Sequence[GradingTask]) -> Passes:
    """Grade the tasks three times by one form."""
    # Every answer counts here, even one that RocketEval would reject for lack of mass.
    config = EngineConfig(
        model=server.model, base_url=server.base_url, transport=name, min_mass=0.0, max_width=1.0
    )
    engine = OpenAIEngine(config)

    async def answers(task: GradingTask) -> list[float | None]:
        found = await engine.grade(task, {})
        if found.failure:
            raise EngineRefused(f"{name}: {found.failure}")
        nonlocal requests
        requests += found.usage.requests
        return [answer.p_yes for answer in found.answers]

    try:
        await engine.identify()
        requests = 0
        alone = [p for task in tasks for p in await answers(task)]
        repeated = [p for task in tasks for p in await answers(task)]
        server.reset_prefix_cache()
        requests = 0
        with timed() as watch:
            together = await asyncio.gather(*map(answers, tasks))
    finally:
        await engine.aclose()
    progress(f"{name}: {watch.seconds:.2f} s")
    return Passes(
        name, alone, repeated, [p for one in together for p in one], requests, watch.seconds
    )


def gaps(ours: Sequence[float | None], theirs: Sequence[float | None]) -> list[float]:
    """Return the differences of two passes, answer by answer."""
    return [_gap(mine, yours) for mine, yours in zip(ours, theirs, strict=True)]


def _gap(mine: float | None, yours: float | None) -> float:
    if mine is None or yours is None:
        return 0.0 if mine is yours else math.inf
    return abs(mine - yours)


def table(passes: Sequence[Passes]) -> list[str]:
    """Return the table's lines, all forms compared with the first."""
    rows = []
    for one in passes:
        apart = gaps(one.alone, passes[0].alone)
        rows.append(
            [
                one.name,
                f"{max(apart):.1e}",
                f"{fmean(apart):.1e}",
                f"{max(gaps(one.repeated, one.alone)):.1e}",
                f"{max(gaps(one.together, one.alone)):.1e}",
                f"{one.requests}",
                f"{len(one.together) / one.seconds:.1f}",
            ]
        )
    return render(COLUMNS, rows)


def heading(args: argparse.Namespace, model: str, result: Server) -> list[str]:
    """Return the heading with the size of the study."""
    return [
        f"{args.responses} responses x {args.items} items, prefixes of about "
        f"{args.prefix_tokens} tokens; {model} on {result}"
    ]


def notes() -> list[str]:
    """Return the description of the columns."""
    return [
        "gap        |p_yes - p_yes of the first row|, over all items",
        "repeated   largest difference when the same form is repeated",
        "in flight  largest difference between one response at a time and all at once",
        "requests, answers/s  all in flight, prefix cache empty at the start",
    ]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base-url", required=True, help="a vLLM server, ending in /v1")
    parser.add_argument("--responses", type=int, default=4)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--prefix-tokens", type=int, default=500)
    add_record_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()

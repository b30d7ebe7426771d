"""CPU cost of a client per answer, against a server that answers at once.

    python perf/client_cost.py [--responses 500] [--rounds 3] [--peers-python PY]

The server is a separate process on loopback and answers as vLLM does, so the figures are the
client's only, without a model. The bare rows are minimal aiohttp and orjson loops. RocketEval's
rows are its whole grading path: reading inputs, rendering prompts, requests, readout, ledger on
disk. Rounds alternate. --peers-python is an interpreter with `openai`; without it, that row is left
out. FORM is chat, chat_exact, chat_batch or completions; --forms selects some of them, --profile
prints where RocketEval's own time goes for one of them instead of the table.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager

from harness.bare_http import BareHttp, Form, Labels, chat_batch, chat_item, completions
from harness.child import PERF, Child
from harness.methods import SDK_THREADS, log
from harness.ours import Ours
from harness.rows import Row, cost_ratio, faults, measure
from harness.server import VLLMServer
from harness.table import add_record_option, progress, render, show
from harness.workload import Workload, make_workload

from rocketeval.config import EngineConfig

TOP = 20
PREFIX_TOKENS = 400
FORMS = {
    "chat": "chat, top 20, one item per request",
    "chat_exact": "chat, labels only, one item per request",
    "chat_batch": "chat batch, one response per request",
    "completions": "completions, one response per request",
}
SHOWN = 30


def main() -> None:
    args = parse_arguments()
    workload = make_workload(args.responses, args.items, PREFIX_TOKENS)
    with ExitStack() as stack:
        server = stack.enter_context(stub_server())
        if args.profile:
            profile(ours(args.profile, server, workload, args.in_flight, stack))
            return
        rows = list(started(server, workload, args, stack))
        measure(rows, args.rounds)
    show([*heading(args), "", *table(rows, args.items)], args.record)
    found = faults(rows, tolerance=1e-9)
    for fault in found:
        progress(f"WRONG: {fault}")
    sys.exit(bool(found))


@contextmanager
def stub_server() -> Iterator[VLLMServer]:
    """Start the server that answers at once."""
    process = subprocess.Popen(
        [sys.executable, "-m", "harness.stub_server"], stdout=subprocess.PIPE, cwd=PERF
    )
    assert process.stdout is not None
    try:
        yield VLLMServer(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
    finally:
        process.terminate()
        process.wait(timeout=30)


def started(
    server: VLLMServer, workload: Workload, args: argparse.Namespace, stack: ExitStack
) -> Iterator[Row]:
    """Yield the bare loop and RocketEval for every request form, then the SDK."""
    for name in args.forms:
        yield bare(name, server, workload, args.in_flight, stack)
        yield ours(name, server, workload, args.in_flight, stack)
    if args.peers_python and "chat" in args.forms:
        settings = {
            "base_url": server.base_url,
            "model": server.model,
            "workload": workload.plain(),
            "threads": SDK_THREADS,
        }
        child = stack.enter_context(
            closing(Child("harness.openai_sdk", args.peers_python, settings, log("sdk")))
        )
        title = f"openai SDK {child.facts['version']}, {SDK_THREADS} threads"
        yield Row("chat", title, child, workload.answers)


def bare(
    name: str, server: VLLMServer, workload: Workload, in_flight: int, stack: ExitStack
) -> Row:
    """Return the minimal loop for one request form."""
    plain = workload.plain()
    forms: dict[str, Form] = {
        "chat": chat_item(),
        "chat_exact": chat_item(),
        "chat_batch": chat_batch(),
        "completions": completions(*server.chat_template_ends()),
    }
    if name == "chat":
        labels = Labels.top(TOP, plain["yes"], plain["no"])
    else:
        labels = Labels.exact(server, plain["yes"], plain["no"])
    method = BareHttp(server, plain["prompts"], forms[name], labels, in_flight)
    stack.callback(method.close)
    return Row(name, f"bare loop: {FORMS[name]}", method, workload.answers, bare=True)


def ours(
    name: str, server: VLLMServer, workload: Workload, in_flight: int, stack: ExitStack
) -> Row:
    """Return RocketEval's grading path with one request form."""
    config = EngineConfig(
        model=server.model, base_url=server.base_url, transport=name, concurrency=in_flight
    )
    method = Ours(config, workload)
    stack.callback(method.close)
    return Row(name, f"rocketeval: {FORMS[name]}", method, workload.answers)


def heading(args: argparse.Namespace) -> list[str]:
    """Return the heading with the size of the study."""
    return [
        f"{args.responses} responses x {args.items} items, prompts of about {PREFIX_TOKENS} "
        f"tokens, {args.in_flight} requests in flight, {args.rounds} alternating rounds; "
        "CPU time of the client's process, median round; of bare: ratio of sums over paired "
        "rounds, and the range over rounds"
    ]


def table(rows: Sequence[Row], items: int) -> list[str]:
    """Return the table, one line per client."""
    bare_of = {row.key: row for row in rows if row.bare}
    columns = ("client", "us/answer", "of bare", "us/judgment", "us/answer each round", "with p")
    lines = [
        (
            row.title,
            f"{row.cpu_per_answer * 1e6:.0f}",
            cost_ratio(row, bare_of[row.key]),
            f"{row.cpu_per_answer * 1e6 * items:.0f}",
            " ".join(f"{one.cpu_seconds / row.answers * 1e6:.0f}" for one in row.passes),
            f"{row.answered} of {row.answers}",
        )
        for row in rows
    ]
    return render(columns, lines)


def profile(row: Row) -> None:
    """Print a profile of RocketEval's own path."""
    row.method.run()
    profiler = cProfile.Profile(time.process_time)
    profiler.enable()
    row.method.run()
    profiler.disable()
    pstats.Stats(profiler).sort_stats("tottime").print_stats(SHOWN)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--responses", type=int, default=500)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--peers-python")
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=list(FORMS), metavar="FORM")
    parser.add_argument("--profile", choices=FORMS, metavar="FORM")
    add_record_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()

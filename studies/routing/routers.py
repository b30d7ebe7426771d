"""Count how many replicas see the items of one response behind real routers.

    pip install 'rocketeval[routers]'
    python studies/routing/routers.py [--replicas 4] [--queries 40] [--record]

Replicas run on loopback: stubs that answer as vLLM does (behind vllm-router) and as SGLang does
(behind sglang-router). For each case the script starts the router again and sends a whole run
through it. The replicas record the response of every request.

    header     `judge.session_header`
    policy     of the router; manual/min_load is manual with --assignment-mode min_load
    words      per response; cache_aware decides by the beginning of a prompt
    touched    mean number of replicas per response; 1 is ideal, because one replica then has the
               prefix in its cache
    busiest    share of all items that went to the busiest replica; 1/replicas is ideal
"""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from itertools import product
from pathlib import Path
from statistics import fmean

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))
from routing.benchmark import response_in, write_benchmark
from routing.fleet import (
    SGLANG_ROUTER,
    VLLM_ROUTER,
    Router,
    SGLangReplica,
    VLLMReplica,
    replicas,
    routed,
    touched,
)

from fakes.native_server import NativeServer
from fakes.openai_server import MODEL
from rocketeval.api import arun

RECORDED = Path(__file__).parent / "recorded" / "routers.txt"
DEFAULT, KEYED = "x-session-id", "x-smg-routing-key"
LATENCY = 0.02


@dataclass(frozen=True)
class Case:
    """One router, policy and way to ask the replicas."""

    router: Router
    policy: str
    transport: str
    header: str | None
    words: int

    @property
    def replica(self) -> type[NativeServer]:
        return VLLMReplica if self.router is VLLM_ROUTER else SGLangReplica


@dataclass(frozen=True)
class Spread:
    """The distribution of requests over the replicas."""

    touched: float
    busiest: float


def cases(words: Sequence[int]) -> Iterator[Case]:
    """Yield every case, grouped by router and policy."""
    for policy in ("round_robin", "power_of_two", "cache_aware", "consistent_hash"):
        lengths = words if policy == "cache_aware" else words[:1]
        for form, header, length in product(("chat", "chat_batch"), (None, DEFAULT), lengths):
            yield Case(VLLM_ROUTER, policy, form, header, length)
    for policy in ("round_robin", "power_of_two", "cache_aware", "manual", "manual/min_load"):
        lengths = words if policy == "cache_aware" else words[:1]
        for header, length in product((None, DEFAULT, KEYED), lengths):
            yield Case(SGLANG_ROUTER, policy, "chat", header, length)


async def measure(case: Case, args: argparse.Namespace) -> Spread:
    """Run through the router and return the spread of its requests."""
    with tempfile.TemporaryDirectory() as folder:
        benchmark = Path(folder) / "benchmark"
        write_benchmark(benchmark, args.queries, args.candidates, args.items, case.words)
        judge = {"model": MODEL, "transport": case.transport, "session_header": case.header}
        async with (
            replicas(case.replica, args.replicas, LATENCY) as behind,
            routed(case.router, case.policy, behind) as url,
        ):
            config = {
                "benchmark": {"path": str(benchmark)},
                "judge": {**judge, "base_url": url},
                "ranking": {"bootstrap": 50},
                "output": folder,
                "cache": None,
            }
            await arun(config)
            return spread(behind)


def spread(behind: Sequence[NativeServer]) -> Spread:
    """Return the spread of the requests that the replicas saw."""
    seen = touched(behind, response_in)
    answered = sum(seen.values(), Counter[int]())
    return Spread(fmean(map(len, seen.values())), max(answered.values()) / answered.total())


def lines(args: argparse.Namespace) -> Iterator[str]:
    """Yield the table line by line."""
    routers = (VLLM_ROUTER, SGLANG_ROUTER)
    versions = ", ".join(f"{router.package} {version(router.package)}" for router in routers)
    yield f"{versions}; {args.replicas} replicas"
    yield f"{args.queries * args.candidates} responses of {args.items} items"
    yield ""
    row = "{:14}{:17}{:12}{:19}{:>6}{:>9}{:>9}".format
    yield row("router", "policy", "transport", "header", "words", "touched", "busiest")
    for case in cases(args.words):
        if args.policies and case.policy not in args.policies:
            continue
        found = asyncio.run(measure(case, args))
        yield row(
            *(case.router.package, case.policy, case.transport, case.header or "none"),
            *(case.words, f"{found.touched:.2f}", f"{found.busiest:.0%}"),
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--replicas", type=int, default=4)
    parser.add_argument("--queries", type=int, default=40)
    parser.add_argument("--candidates", type=int, default=3)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--words", type=int, nargs="+", default=[250, 20])
    parser.add_argument("--policies", nargs="+", default=[], help="only these")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    # A router may try another protocol first, which a stub's server reports as an error.
    logging.getLogger("aiohttp.server").setLevel(logging.CRITICAL)
    result = []
    for line in lines(args):
        print(line, flush=True)
        result.append(line)
    if args.record:
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text("\n".join(result) + "\n")


if __name__ == "__main__":
    main()

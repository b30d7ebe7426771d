"""Prompt tokens that the engine computes, compared with the minimum that any order allows.

    python perf/prefix_reuse.py --model-folder WEIGHTS --vllm-python PY

The minimum is exact: the prompts as a trie, in blocks of the engine's cache. The computed tokens
come from vLLM's own counters. Every row uses RocketEval's grading path: in its own order, and
shuffled for comparison; with a cache that holds everything, and with one far too small, where the
order matters. Both in-process and over HTTP.

--vllm-python is an interpreter with vLLM and this project.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from harness.child import Child
from harness.methods import log
from harness.orders import ORDERS
from harness.ours import Ours
from harness.server import BLOCK_SIZE, VLLMServer, environment
from harness.table import add_record_option, progress, render, show
from harness.workload import Workload, make_workload

from rocketeval.config import EngineConfig
from rocketeval.grading.plan import PrefixBound, trie_tokens

COMPUTED = 'vllm:prompt_tokens_by_source_total{source="local_compute"}'
PREEMPTED = "vllm:num_preemptions_total"
MAX_MODEL_LEN = 2048
"""Limits how small a cache vLLM accepts: one prompt of this length must fit."""


@dataclass(frozen=True)
class Reuse:
    """The tokens that the engine computed for one order."""

    where: str
    cache: str
    order: str
    computed: int
    preempted: int
    seconds: float


class Engine(Protocol):
    """An engine that grades the workload in a given order and returns its counters."""

    def reuse(self, order: str) -> dict[str, Any]: ...

    def close(self) -> None: ...


class OverHttp:
    """RocketEval over HTTP against a server started here."""

    def __init__(self, server: VLLMServer, workload: Workload) -> None:
        self._server = server
        self._workload = workload
        self._ours = Ours(EngineConfig(model=server.model, base_url=server.base_url), workload)

    def reuse(self, order: str) -> dict[str, Any]:
        """Grade in that order; return the change of the server's counters."""
        self._server.reset_prefix_cache()
        before = self._server.counters()
        judgments, watch = self._ours.grade(ORDERS[order](list(self._workload.tasks())))
        after = self._server.counters()
        return {
            "computed": after[COMPUTED] - before[COMPUTED],
            "preempted": after[PREEMPTED] - before[PREEMPTED],
            "answers": sum(len(judgment.answers) for judgment in judgments),
            "seconds": watch.seconds,
        }

    def close(self) -> None:
        """Close the connections and end the server."""
        self._ours.close()
        self._server.close()


class InProcess:
    """RocketEval with vLLM in a separate process."""

    def __init__(self, child: Child) -> None:
        self._child = child

    def reuse(self, order: str) -> dict[str, Any]:
        """Grade in that order; return the change of vLLM's counters."""
        return self._child.ask("reuse", order=order)

    def close(self) -> None:
        """End the process."""
        self._child.close()


def main() -> None:
    args = parse_arguments()
    workload = make_workload(args.responses, args.items, args.prefix_tokens)
    bound = trie_tokens(prompt_tokens(args, workload), BLOCK_SIZE)
    found = list(measured(args, workload))
    show([*heading(args, workload, bound), "", *table(found, bound)], args.record)
    worst = max(row.computed / bound.computed for row in found if row.order == "ours")
    if worst > args.most:
        progress(f"WRONG: our order computes {worst:.3f} times the minimum, limit {args.most}")
        sys.exit(1)


def prompt_tokens(args: argparse.Namespace, workload: Workload) -> list[list[int]]:
    """Return the tokens of every prompt, from the judge's own tokenizer."""
    settings = {"folder": str(args.model_folder), "prompts": workload.plain()["prompts"]}
    with closing(Child("harness.tokens", args.vllm_python, settings, log("tokens"))) as child:
        tokens: list[list[int]] = child.facts["tokens"]
    return tokens


def measured(args: argparse.Namespace, workload: Workload) -> Iterator[Reuse]:
    """Yield one row per engine, cache and order."""
    for where in args.only:
        for cache, blocks in (("large", None), (f"{args.small_blocks} blocks", args.small_blocks)):
            progress(f"starting {where}, cache {cache}")
            with ExitStack() as stack:
                engine = stack.enter_context(closing(open_engine(where, blocks, args, workload)))
                for order in ORDERS:
                    result = engine.reuse(order)
                    if result["answers"] != workload.answers:
                        raise RuntimeError(f"{result['answers']} of {workload.answers} answers")
                    progress(f"{where}, cache {cache}, {order}: {result}")
                    yield Reuse(
                        where,
                        cache,
                        order,
                        int(result["computed"]),
                        int(result["preempted"]),
                        result["seconds"],
                    )


def open_engine(
    where: str, blocks: int | None, args: argparse.Namespace, workload: Workload
) -> Engine:
    """Return an engine with that many blocks of cache, or with its default."""
    if where == "http":
        flags = [] if blocks is None else ["--num-gpu-blocks-override", str(blocks)]
        server = VLLMServer.start(
            args.vllm_python,
            args.model_folder,
            log(f"reuse-{where}"),
            args.dtype,
            ["--max-model-len", str(MAX_MODEL_LEN), *flags],
        )
        return OverHttp(server, workload)
    small = {} if blocks is None else {"num_gpu_blocks_override": blocks}
    settings = {
        "folder": str(args.model_folder),
        "dtype": args.dtype,
        "size": [args.responses, args.items, args.prefix_tokens],
        "max_model_len": MAX_MODEL_LEN,
        "engine_args": {"disable_log_stats": False, **small},
    }
    name = f"reuse-{where}"
    return InProcess(
        Child("harness.ours_vllm", args.vllm_python, settings, log(name), environment())
    )


def heading(args: argparse.Namespace, workload: Workload, bound: PrefixBound) -> list[str]:
    """Return the heading with the size of the study and the minimum."""
    return [
        f"{args.responses} responses x {args.items} items = {workload.answers} prompts, "
        f"{bound.tokens} tokens; judge {args.model_folder.name} in {args.dtype}",
        f"the minimum with a perfect cache in blocks of {BLOCK_SIZE} tokens: {bound.computed} "
        f"({bound.computed / bound.tokens:.1%})",
    ]


def table(found: list[Reuse], bound: PrefixBound) -> list[str]:
    """Return one line per engine, cache and order."""
    columns = ("engine", "cache", "order", "computed", "of minimum", "preempted", "seconds")
    lines = [
        (
            row.where,
            row.cache,
            row.order,
            str(row.computed),
            f"{row.computed / bound.computed:.3f}",
            str(row.preempted),
            f"{row.seconds:.1f}",
        )
        for row in found
    ]
    return render(columns, lines)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--vllm-python", default=sys.executable)
    parser.add_argument("--responses", type=int, default=64)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--prefix-tokens", type=int, default=400)
    parser.add_argument("--small-blocks", type=int, default=128)
    parser.add_argument("--most", type=float, default=1.05, help="limit for our order")
    parser.add_argument(
        "--only", nargs="+", choices=("in-process", "http"), default=["in-process", "http"]
    )
    add_record_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()

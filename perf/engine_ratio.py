"""Compare RocketEval and other clients with the bare engine, side by side in one run.

    python perf/engine_ratio.py --model-folder WEIGHTS --vllm-python PY --peers-python PY

One workload of synthetic responses with their checklists, one judge, one machine. Every method
grades all of it once per round. Rounds alternate, each begins with a different method, and the
prefix cache is emptied before each pass. The bare rows only get one probability per item.
RocketEval's rows are its whole grading path, including the ledger on disk.

WEIGHTS is a folder that vLLM can load (studies/judges/convert_to_hf.py writes one); --vllm-python
is an interpreter with vLLM and this project, --peers-python one with `openai` and `autochecklist`.
Without --base-url the script starts a server with the settings of the in-process engine.

methods:
  bare             vllm.LLM.generate on token prompts in the ideal order, all in one call
  ours             rocketeval with its in-process vLLM engine
  http-item        minimal aiohttp loop, one chat request per item
  http-list        minimal aiohttp loop, one completions request per response, a list of prompts
  http-batch       minimal aiohttp loop, one batch chat request per response
  ours-http        rocketeval over HTTP, request form chosen by its probe
  ours-http:FORM   the same with a forced form: chat, chat_exact, chat_batch, completions
  sdk              openai SDK in 16 threads, one chat request per item, top 20
  autochecklist    AutoChecklist's rocketeval preset on the first few responses
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, closing
from pathlib import Path

from harness.methods import IN_PROCESS, METHODS, OVER_HTTP, Setup, start_in_process, start_over_http
from harness.rows import Row, faults, measure, speed_ratio
from harness.table import add_record_option, progress, render, show


def main() -> None:
    args = parse_arguments()
    names = Setup.__dataclass_fields__
    setup = Setup(**{name: getattr(args, name) for name in names})
    rows: list[Row] = []
    for keys in groups(args.only, apart=args.apart):
        with ExitStack() as stack:
            alive = list(started(keys, setup, stack))
            measure(alive, args.rounds)
            rows += alive
    show([*heading(setup, args.rounds), "", *table(rows), "", *notes(setup, rows)], args.record)
    found = faults(rows, args.tolerance)
    for fault in found:
        progress(f"WRONG: {fault}")
    sys.exit(bool(found))


def groups(only: Sequence[str], *, apart: bool) -> list[list[str]]:
    """Return the groups of methods that are loaded together and alternate."""
    if not apart:
        return [list(only)]
    inside = [key for key in only if key in IN_PROCESS]
    outside = [key for key in only if key not in IN_PROCESS]
    return [group for group in (inside, outside) if group]


def started(keys: Sequence[str], setup: Setup, stack: ExitStack) -> Iterator[Row]:
    """Start every method and yield its row; all are closed with the stack."""
    server = None
    if any(key not in IN_PROCESS for key in keys):
        progress("starting the server")
        server = stack.enter_context(closing(setup.open_server()))
    for key in keys:
        progress(f"preparing {key}")
        if server is None or key in IN_PROCESS:
            row = start_in_process(key, setup)
        else:
            row = start_over_http(key, setup, server)
        stack.callback(row.method.close)
        yield row


def bare_of(row: Row, rows: Sequence[Row]) -> Row | None:
    """Return the bare row to compare `row` with: the faster one of its kind."""
    inside = row.key in IN_PROCESS
    kind = [other for other in rows if other.bare and (other.key in IN_PROCESS) is inside]
    return max(kind, key=lambda other: other.per_second, default=None)


def heading(setup: Setup, rounds: int) -> list[str]:
    """Return the heading with the size of the study."""
    answers = setup.workload.answers
    return [
        f"{setup.responses} responses x {setup.items} items = {answers} answers; judge "
        f"{setup.model_folder.name} in {setup.dtype}; {rounds} alternating rounds"
    ]


def table(rows: Sequence[Row]) -> list[str]:
    """Return the table, one line per method."""
    columns = (
        "method",
        "answers/s",
        "of bare",
        "seconds each round",
        "prompt tokens",
        "with a probability",
    )
    lines = []
    for row in rows:
        bare = bare_of(row, rows)
        lines.append(
            (
                row.title,
                f"{row.per_second:.2f}",
                "-" if bare is None else speed_ratio(row, bare),
                " ".join(f"{one.seconds:.2f}" for one in row.passes),
                str(row.passes[0].prompt_tokens),
                f"{row.answered} of {row.answers}",
            )
        )
    return render(columns, lines)


def notes(setup: Setup, rows: Sequence[Row]) -> list[str]:
    """Return notes on the columns and the differences in p_yes."""
    found = [
        "answers/s: median round. of bare: seconds of the faster bare row of its kind over those "
        "of the row, summed over paired rounds, and the range over rounds."
    ]
    reference = next((row for row in rows if row.bare), None)
    for row in rows:
        if row.key == "autochecklist":
            tokens = row.passes[0].prompt_tokens / row.answers
            found.append(
                f"{row.title}: on the first {setup.autochecklist_responses} responses only, one "
                f"item after the other, with its own prompt ({tokens:.0f} tokens per item) and up "
                "to 512 written tokens per item."
            )
        elif reference is not None and row is not reference:
            gap = row.furthest(reference)
            found.append(f"{row.title}: p_yes at most {gap:.2g} from {reference.title}")
    return found


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--model-folder", type=Path, required=True)
    parser.add_argument("--dtype", default="bfloat16")
    parser.add_argument("--base-url", help="a server of the same judge and dtype, in dev mode")
    parser.add_argument("--vllm-python", default=sys.executable)
    parser.add_argument("--peers-python", default=sys.executable)
    parser.add_argument("--responses", type=int, default=64)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--prefix-tokens", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--items-in-flight", type=int, default=64)
    parser.add_argument("--responses-in-flight", type=int, default=16)
    parser.add_argument("--autochecklist-responses", type=int, default=2)
    parser.add_argument(
        "--only", nargs="+", choices=METHODS, default=[*IN_PROCESS, *OVER_HTTP], metavar="METHOD"
    )
    parser.add_argument(
        "--apart", action="store_true", help="run in-process first, then HTTP: needs less memory"
    )
    parser.add_argument("--tolerance", type=float, default=0.15, help="for p_yes; bf16 is coarse")
    add_record_option(parser)
    return parser.parse_args()


if __name__ == "__main__":
    main()

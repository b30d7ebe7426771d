"""Mutate configs and input files, run them, and check that nobody sees a traceback or waits.

    python studies/robustness/fuzz.py [--cases 1000] [--first 0] [--seed 1]

A small benchmark and its config are changed at random: values replaced by similar or absurd ones,
keys renamed, removed or repeated, bytes flipped, lines cut or repeated. The whole pipeline runs
with the scripted judge, a hundred cases per process. It may succeed or fail with a sentence; it may
not print a traceback, and not take more than 20 seconds, nor when it is repeated twice (the machine
may be busy). `--first` continues a stopped campaign.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from rocketeval.cli.main import main as rocketeval
from support.forked import CONTEXT
from support.make import write_benchmark, write_jsonl

LONGEST = 20.0
ATTEMPTS = 3
"""Runs of a case that takes too long."""
BATCH = 100
"""Cases per process."""
ABSURD: list[Any] = [
    None,
    True,
    -1,
    0,
    2**70,
    -(2**63),
    1e308,
    -1e308,
    float("nan"),
    float("inf"),
    "",
    " ",
    "\x00",
    "\u202e",
    "\ud83d\ude00",
    "a" * 100_000,
    "=1+1",
    "../../etc/passwd",
    "<script>alert(1)</script>",
    "<<<end of response>>>",
    [],
    {},
    [[[[[[]]]]]],
    {"a": {"b": {"c": []}}},
    ["x", 1, None],
    "NaN",
    "1e999",
    "2020-01-01",
]
ODD_TEXTS = (
    "\u200b",
    "\u202e",
    "\u0301",
    "\x7f",
    "<|im_end|>",
    "<<<end of query>>>",
    "\r\n",
    '"',
    "{{item}}",
)
CONFIG: dict[str, Any] = {
    "name": "fuzz",
    "benchmark": {"path": "benchmark", "limit": 3},
    "judge": {"engine": "scripted", "model": "scripted", "concurrency": 2, "extra_body": {}},
    "scorer": {"kind": "mean", "scale": [1, 10], "seed": 0, "hold_out": 0.3},
    "ranking": {"bootstrap": 50, "seed": 0, "tie_margin": 0.1},
    "cache": None,
}


def mutate(value: Any, dice: random.Random) -> Any:
    """Return a value with one random change somewhere in it."""
    if isinstance(value, dict) and value and dice.random() < 0.8:
        name = dice.choice(list(value))
        changed = dict(value)
        kind = dice.randrange(8)
        if kind == 0:
            del changed[name]
        elif kind == 1:
            changed[str(name) + dice.choice("xs ")] = changed.pop(name)
        else:
            changed[name] = mutate(changed[name], dice)
        return changed
    if isinstance(value, list) and value and dice.random() < 0.8:
        place = dice.randrange(len(value))
        return [*value[:place], mutate(value[place], dice), *value[place + 1 :]]
    return similar(value, dice) if dice.random() < 0.6 else dice.choice(ABSURD)


def similar(value: Any, dice: random.Random) -> Any:
    """Return a value of the same type, so that a case gets past the first checks."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + dice.choice([-1, 1, value, 1000])
    if isinstance(value, float):
        return value * dice.choice([0.0, 0.5, 2.0, 1e-9])
    if isinstance(value, str):
        place = dice.randint(0, len(value))
        return value[:place] + dice.choice(ODD_TEXTS) + value[place:]
    if isinstance(value, list):
        return value * 2
    return value


def mangle(path: Path, dice: random.Random) -> None:
    """Change a file of JSON lines at random."""
    lines = path.read_bytes().splitlines(keepends=True)
    kind = dice.randrange(6)
    place = dice.randrange(len(lines))
    if kind == 0:
        with suppress(ValueError):
            row = mutate(json.loads(lines[place]), dice)
            lines[place] = json.dumps(row).encode() + b"\n"
    elif kind == 1:
        content = bytearray(lines[place])
        content[dice.randrange(len(content))] = dice.randrange(256)
        lines[place] = bytes(content)
    elif kind == 2:
        lines.append(lines[place])
    elif kind == 3:
        lines[place] = lines[place][: len(lines[place]) // 2]
    elif kind == 4:
        lines[place] = lines[place].replace(b"}\n", b', "query_id": "sea"}\n')
    else:
        lines = []
    path.write_bytes(b"".join(lines))


def make_case(folder: Path, dice: random.Random) -> str:
    """Write a benchmark and a config with one to three changes; return what was changed."""
    benchmark = write_benchmark(folder / "benchmark")
    rows = [{"query_id": "sky", "candidate": name, "value": 5} for name in ("left", "right")]
    write_jsonl(benchmark / "labels.jsonl", rows)
    config, said = CONFIG, []
    for _ in range(dice.choice([1, 1, 1, 2, 3])):
        if dice.random() < 0.5:
            config = mutate(config, dice)
            said.append("config")
        else:
            path = dice.choice(sorted(benchmark.rglob("*.jsonl")))
            if path.stat().st_size:
                mangle(path, dice)
            said.append(path.name)
    try:
        text = yaml.safe_dump(config)
    except yaml.YAMLError:
        text = json.dumps(config)
    (folder / "rocketeval.yaml").write_text(text, encoding="utf-8", errors="surrogatepass")
    return " ".join(said)


@dataclass
class Outcome:
    """The end of one case."""

    number: int
    changed: str
    code: int
    seconds: float
    traceback: str = ""


def run_case(number: int, seed: int, folder: Path) -> Outcome:
    """Run one case in this process; an interrupt after twice the limit ends a hang."""
    changed = make_case(folder, random.Random(seed * 1_000_003 + number))
    os.chdir(folder)
    sys.argv = ["rocketeval", "run", "-q"]
    found, code, errors = "", 0, io.StringIO()
    signal.alarm(2 * int(LONGEST))
    started = time.monotonic()
    try:
        with redirect_stdout(io.StringIO()), redirect_stderr(errors):
            rocketeval()
    except SystemExit as end:
        code = int(end.code or 0)
    except BaseException:  # noqa: BLE001 - whatever a user would see as a traceback
        found = traceback.format_exc()
    signal.alarm(0)
    if "Traceback" in errors.getvalue():
        found = errors.getvalue()
    return Outcome(number, changed, code, time.monotonic() - started, found)


def run_cases(numbers: range, seed: int, scratch: Path, send: Any) -> None:
    """Run some cases, each in a folder of its own, and send their outcomes."""
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    for number in numbers:
        for attempt in range(ATTEMPTS):
            folder = scratch / f"case-{number}-{attempt}"
            found = run_case(number, seed, folder)
            os.chdir(scratch)
            shutil.rmtree(folder)
            if found.seconds <= LONGEST:
                break
        send.send(found)
    send.close()


def outcomes(cases: range, seed: int, scratch: Path) -> Iterator[Outcome]:
    """Yield the outcomes of all cases; a process that dies ends its case with a negative code."""
    done = cases.start
    while done < cases.stop:
        receive, send = CONTEXT.Pipe(duplex=False)
        numbers = range(done, min(done + BATCH, cases.stop))
        process = CONTEXT.Process(target=run_cases, args=(numbers, seed, scratch, send))
        process.start()
        send.close()
        with suppress(EOFError):
            while True:
                yield receive.recv()
                done += 1
        process.join()
        if done < numbers.stop:
            yield Outcome(done, "", process.exitcode, 0.0, f"the process ended: {process.exitcode}")
            done += 1


def main() -> None:
    """Run the cases and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    codes: Counter[int] = Counter()
    traced = slow = 0
    with tempfile.TemporaryDirectory() as scratch:
        cases = range(args.first, args.first + args.cases)
        for one in outcomes(cases, args.seed, Path(scratch)):
            codes[one.code] += 1
            traced += bool(one.traceback)
            slow += one.seconds > LONGEST
            if one.traceback or one.seconds > LONGEST:
                print(
                    f"case {one.number} ({one.changed}): {one.seconds:.0f} s {one.traceback[-900:]}"
                )
            if one.number % 500 == 499:
                print(f"up to case {one.number}: {summary(codes, traced, slow)}", flush=True)
    print(summary(codes, traced, slow))
    sys.exit(bool(traced or slow))


def summary(codes: Counter[int], traced: int, slow: int) -> str:
    """Return the counts as a line."""
    shown = ", ".join(f"{code}: {codes[code]}" for code in sorted(codes))
    return (
        f"{codes.total()} cases: {traced} tracebacks, {slow} over {LONGEST:.0f} s; "
        f"exit codes {shown}"
    )


if __name__ == "__main__":
    main()

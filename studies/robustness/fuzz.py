"""Mutate configs and input files, run them, and check that nobody sees a traceback or waits.

    python studies/robustness/fuzz.py [--cases 1000] [--seed 1]

A small benchmark and its config are changed at random: values replaced by absurd ones, keys
renamed, removed or repeated, bytes flipped, lines cut or repeated. The whole pipeline runs with the
scripted judge, in a process of its own. It may succeed or fail with a sentence; it may not print a
traceback, and not take more than 20 seconds.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import yaml

sys.path.insert(0, str(Path(__file__).parents[2] / "tests"))

from support.forked import run_forked
from support.make import write_benchmark, write_jsonl

LONGEST = 20.0
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
        kind = dice.randrange(4)
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
    return dice.choice(ABSURD)


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
    shutil.rmtree(folder, ignore_errors=True)
    benchmark = write_benchmark(folder / "benchmark")
    rows = [{"query_id": "sky", "candidate": name, "value": 5} for name in ("left", "right")]
    write_jsonl(benchmark / "labels.jsonl", rows)
    config, said = CONFIG, []
    for _ in range(dice.randint(1, 3)):
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


def main() -> None:
    """Run the cases and print the counts."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    codes: Counter[int] = Counter()
    traced = slow = 0
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(args.cases):
            folder = Path(scratch) / "case"
            changed = make_case(folder, random.Random(args.seed * 1_000_003 + number))
            started = time.monotonic()
            done = run_forked(folder, ["run", "-q"])
            codes[done.returncode] += 1
            if "Traceback" in done.stderr:
                traced += 1
                print(f"case {number} ({changed}):\n{done.stderr[-700:]}", flush=True)
            if time.monotonic() - started > LONGEST:
                slow += 1
                print(f"case {number} ({changed}): slow", flush=True)
    print(f"{args.cases} cases: {traced} tracebacks, {slow} over {LONGEST:.0f} s")
    print("exit codes: " + ", ".join(f"{code}: {codes[code]}" for code in sorted(codes)))
    sys.exit(bool(traced or slow))


if __name__ == "__main__":
    main()

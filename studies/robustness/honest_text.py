"""Count honest texts that neutralizing changes, and ask a judge about them with and without it.

    python studies/robustness/honest_text.py DATA [CONFIG] > honest_text.txt

DATA is a folder with model answers as gzipped JSON lines. A text counts as changed by the new rules
if they show it to the judge differently than the first rules did. A text that no rule changes makes
the same prompt, byte for byte, so its p_yes cannot move. CONFIG names an MT-Bench run: the judge
is asked about every changed response of its benchmark, neutralized and as written.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.config import RunConfig, load_config
from rocketeval.engines.base import create_engine
from rocketeval.neutral import neutralize, shown_as_before
from rocketeval.prompts.render import GradingPrompt, Template

ANSWERS = (
    "mt_bench/answers_official32.jsonl.gz",
    "alpacaeval/answers_rocketeval22.jsonl.gz",
    "arena_hard_v0.1/answers_rocketeval22.jsonl.gz",
    "arena_bench_v1/answers.jsonl.gz",
)
SHORTEST = 20
"""Shorter texts are names and ids."""
PLACE = "THE RESPONSE GOES HERE"


def texts(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, list | dict):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts(each)


def count(path: Path) -> tuple[int, int, int]:
    """Return the number of texts, of those that any rule changes, and that the new rules change."""
    every = changed = newly = 0
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        for line in lines:
            for text in texts(json.loads(line)):
                if len(text) >= SHORTEST:
                    every += 1
                    changed += neutralize(text).count > 0
                    newly += not shown_as_before(text)
    return every, changed, newly


async def ask(config: RunConfig) -> list[float]:
    """Return the change of p_yes of every item of the changed responses."""
    benchmark = open_benchmark(config.benchmark)
    queries = {query.id: query for query in benchmark.queries()}
    checklists = {one.query_id: one for one in benchmark.checklists()}
    prompt = GradingPrompt(Template.load("grade"))
    engine = create_engine(config.judge, None)
    changes = []
    try:
        await engine.identify()
        for response in benchmark.responses():
            if not neutralize(response.text).count:
                continue
            query, checklist = queries[response.query_id], checklists[response.query_id]
            marked = prompt.render(query, replace(response, text=PLACE), checklist, b"honest")
            found = []
            for text in (response.text, neutralize(response.text).text):
                prefix = marked.prefix.replace(PLACE, text)
                found.append(await engine.grade(replace(marked, prefix=prefix), {}))
            for raw, safe in zip(*(one.answers for one in found), strict=True):
                changes.append(abs((raw.p_yes or 0.0) - (safe.p_yes or 0.0)))
            shown = f"{response.query_id} of {response.candidate}"
            print(f"  {shown}: {[round(each, 4) for each in changes[-len(checklist.items) :]]}")
    finally:
        await engine.aclose()
    return changes


def main() -> None:
    """Count, and ask the judge if a config is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("config", type=Path, nargs="?")
    args = parser.parse_args()
    print("texts   any rule  new rules  file")
    totals = [0, 0, 0]
    for name in ANSWERS:
        found = count(args.data / name)
        totals = [whole + part for whole, part in zip(totals, found, strict=True)]
        print(f"{found[0]:6}  {found[1]:8}  {found[2]:9}  {name}")
    print(f"{totals[0]:6}  {totals[1]:8}  {totals[2]:9}  all")
    if args.config:
        print("Change of p_yes between the text as written and neutralized, by item:")
        changes = asyncio.run(ask(load_config(args.config)))
        print(f"{len(changes)} items, mean {sum(changes) / max(1, len(changes)):.4f}")


if __name__ == "__main__":
    main()

"""RocketEval Fig. 4 with real samples: how often three samples of one answer differ.

    python studies/mt_bench/samples.py --draw [--base-url URL]    # once, with a judge
    python studies/mt_bench/samples.py [--record]                 # from what is stored

One response of each of 40 queries of MT-Bench's first turn, drawn at random. The judge answers
every item three times at temperature 1. The table has the share of items on which the three answers
differ, and the share that the stored probabilities lead to expect, 1 - p^3 - (1 - p)^3. Intervals
are from resamples of the queries. Only drawing needs MT-Bench (../shared/data next to the
checkout). Queries and items are those of studies/PLAN.md, in the order of studies/papers.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent), str(HERE.parent / "papers")]
import judgments  # noqa: E402
from arms import JUDGES, STUDY_JUDGE, stored  # noqa: E402
from prepare import drawn as order_of  # noqa: E402

from rocketeval.audit.repeatability import sampling_disagreement  # noqa: E402
from rocketeval.config import load_config  # noqa: E402
from rocketeval.engines.base import Engine, create_engine  # noqa: E402
from rocketeval.grading.schedule import unfinished_tasks  # noqa: E402
from rocketeval.pipeline import Run  # noqa: E402
from rocketeval.prompts.render import GradingPrompt  # noqa: E402
from rocketeval.records import GradingTask, Interval  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.stats.bootstrap import Resampling, query_places  # noqa: E402
from rocketeval.text import share  # noqa: E402

RECORDED = HERE / "recorded"
SAMPLES = RECORDED / "samples.parquet"
TIMES, QUERIES, IN_FLIGHT = 3, 40, 8


@dataclass(frozen=True)
class Drawn:
    """How often the samples of one item were yes and no."""

    query_id: str
    candidate: str
    item: int
    yes: int
    no: int


@dataclass(frozen=True)
class Samples:
    """Shares of items on which samples differ."""

    differ: Interval
    expected: Interval
    more: Interval
    """What really differs minus what was expected."""
    items: int
    queries: int
    dropped: int
    """Items with a sample that is neither yes nor no."""


def compared(drawn: list[Drawn], answers: AnswerTable) -> Samples:
    """Return how often the samples differ, and the expectation from the judge's probabilities."""
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    first = {cell: answers.offsets[row] for row, cell in enumerate(cells)}
    usable = [one for one in drawn if one.yes + one.no == TIMES]
    p = answers.p_yes[[first[one.query_id, one.candidate] + one.item for one in usable]]
    differs = np.array([0 < one.yes < TIMES for one in usable], dtype=np.float64)
    groups = [one.query_id for one in usable]
    expected = sampling_disagreement(p, groups, [TIMES], bootstrap=2000).shares[0].share
    resampling, places = Resampling(2000, 0, 0.95), query_places(groups, len(usable))
    differ = resampling.share(differs, places)
    more = resampling.mean(differs - (1.0 - p**TIMES - (1.0 - p) ** TIMES), places)
    if differ is None or expected is None or more is None:
        raise ValueError("no item has three samples that are yes or no")
    dropped = len(drawn) - len(usable)
    return Samples(differ, expected, more, len(usable), len(set(groups)), dropped)


def lines_of(found: Samples) -> list[str]:
    """Return the figures as text."""
    more = found.more
    return [
        f"{found.items} items, one response of each of {found.queries} queries; "
        f"{found.dropped} more items have a sample that is neither yes nor no",
        f"items on which {TIMES} samples differ, %",
        f"{'drawn at temperature 1':40}{share(found.differ)}",
        f"{'expected from the probabilities':40}{share(found.expected)}",
        f"{'difference':40}{100 * more.value:+.1f} "
        f"({100 * more.low:+.1f} to {100 * more.high:+.1f})",
    ]


async def draw(base_url: str) -> list[Drawn]:
    """Ask the judge for the samples."""
    config = load_config(HERE / "first_turn.yaml")
    judge = config.judge.model_copy(update={"model": JUDGES[STUDY_JUDGE], "base_url": base_url})
    run = Run(config.model_copy(update={"name": "first_turn_samples"}))
    await run.to_checklists()
    tasks: dict[str, list[GradingTask]] = {}
    for task in unfinished_tasks(run.store.inputs, GradingPrompt(), b"", lambda key: False):
        tasks.setdefault(task.query_id, []).append(task)
    order = [f"{each}-1" for each in order_of([query.removesuffix("-1") for query in tasks])]
    rng = np.random.default_rng(0)
    chosen = [tasks[query][rng.integers(len(tasks[query]))] for query in order[:QUERIES]]
    engine, room = create_engine(judge), asyncio.Semaphore(IN_FLIGHT)
    try:
        found = await asyncio.gather(
            *(drawn_of(engine, task, room, 1000 * row) for row, task in enumerate(chosen))
        )
    finally:
        await engine.aclose()
    return [one for of_response in found for one in of_response]


async def drawn_of(
    engine: Engine, task: GradingTask, room: asyncio.Semaphore, seed: int
) -> list[Drawn]:
    """Return the samples of every item of a response."""
    rows = []
    async with room:
        for item, suffix in enumerate(task.suffixes):
            said = []
            for _ in range(TIMES):
                # Equal seeds draw equal numbers, so every sample needs a separate one.
                seed += 1
                prompt = task.prefix + suffix
                word = await engine.write(prompt, max_tokens=1, temperature=1.0, seed=seed)
                said.append(word.text.strip().lower())
            rows.append(
                Drawn(task.query_id, task.candidate, item, said.count("yes"), said.count("no"))
            )
    print(f"{task.query_id}: {len(rows)} items", flush=True)
    return rows


def main() -> None:
    """Print the figures, and keep them with `--record`; or draw the samples."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/samples.txt, .json")
    parser.add_argument("--draw", action="store_true", help="write recorded/samples.parquet")
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1")
    given = parser.parse_args()
    if given.draw:
        drawn = asyncio.run(draw(given.base_url))
        pq.write_table(pa.Table.from_pylist([asdict(one) for one in drawn]), SAMPLES)
    drawn = [Drawn(**row) for row in pq.read_table(SAMPLES).to_pylist()]
    found = compared(drawn, judgments.read(stored("first")))
    text = "\n".join(lines_of(found)) + "\n"
    print(text, end="")
    if given.record:
        (RECORDED / "samples.txt").write_text(text, encoding="utf-8")
        content = json.dumps(asdict(found), indent=1) + "\n"
        (RECORDED / "samples.json").write_text(content, encoding="utf-8")


if __name__ == "__main__":
    main()

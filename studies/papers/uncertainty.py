"""RocketEval Figs. 4 and 5: real samples of a judge, and the effect of earlier answers.

    python studies/papers/grade.py qwen2.5-coder-1.5b-instruct-int8 --only mt_bench \\
        --methods all_yes,all_no --base-url URL                             # once, with a judge
    python studies/papers/uncertainty.py --sample --base-url URL            # once, with a judge
    python studies/papers/uncertainty.py [--record]                         # from what is stored

Fig. 5: every item is asked after all earlier ones, once with every earlier answer Yes and once No:
the share of items whose answer differs, by position, and how much larger it is for later items.
Fig. 4: the share of items on which three samples at temperature 1 do not all agree, beside what the
judge's probabilities p lead to expect, 1 - p^3 - (1 - p)^3. MT-Bench's first turn, the candidates
with votes. Intervals are from resamples of the queries.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
from grade import KEPT, KEPT_JUDGE  # noqa: E402
from runs import record, stored, table  # noqa: E402

from rocketeval.audit.repeatability import Disagreement, disagreement, sampling_disagreement  # noqa: E402
from rocketeval.config import load_config  # noqa: E402
from rocketeval.engines.base import Engine, create_engine  # noqa: E402
from rocketeval.grading.schedule import unfinished_tasks  # noqa: E402
from rocketeval.pipeline import Run  # noqa: E402
from rocketeval.prompts.render import GradingPrompt  # noqa: E402
from rocketeval.records import GradingTask, Interval  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.stats.bootstrap import Resampling, interval, query_places, ratio_draws  # noqa: E402
from rocketeval.text import share  # noqa: E402

TIMES = 3
QUERIES = 40
IN_FLIGHT = 8
EARLIER, LATER = (2, 4), 5
"""Positions that the plan compares: the earlier ones, and the first of the later ones."""
MT_BENCH = HERE.parent / "mt_bench"
FIRST_TURN = MT_BENCH / "recorded" / "judgments" / "first_turn_checklist.parquet"
SAMPLES = KEPT / "mt_bench_samples.json"


@dataclass(frozen=True)
class Position:
    """Answers after all Yes and after all No."""

    found: Disagreement
    rise: Interval
    """The share that differs at later positions minus the share at earlier ones."""


@dataclass(frozen=True)
class Samples:
    """Real samples beside the expectation, both as shares of items that differ."""

    differ: Interval
    expected: Interval
    items: int
    queries: int
    dropped: int
    """Items with a sample that is neither yes nor no."""


def main() -> None:
    """Print both figures, or draw samples."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true", help="write recorded/uncertainty.*")
    parser.add_argument("--sample", action="store_true", help="draw the samples and store them")
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1")
    given = parser.parse_args()
    if given.sample:
        asyncio.run(draw(given.base_url))
        return
    by_position, samples = positions(), sampled()
    content = {
        "position": asdict(by_position),
        "samples": asdict(samples),
    }
    record("uncertainty", content, lines_of(by_position, samples), keep=given.record)
    if given.record:
        import plots

        plots.positions(asdict(by_position))


def positions() -> Position:
    """Return Fig. 5 from stored judgments."""
    return compared(stored("mt_bench", "all_yes"), stored("mt_bench", "all_no"))


def compared(one: AnswerTable, two: AnswerTable) -> Position:
    """Return how two gradings of the same items differ, by position."""
    cells = list(zip(one.query_ids, one.candidates, strict=True))
    if cells != list(zip(two.query_ids, two.candidates, strict=True)):
        raise ValueError("the gradings are of different responses; grade both to the end")
    places = np.concatenate([np.arange(1, count + 1) for count in one.items])
    groups = np.repeat(np.array(one.query_ids), one.items)
    found = disagreement(one.p_yes, two.p_yes, groups, places)
    known = ~(np.isnan(one.p_yes) | np.isnan(two.p_yes))
    differs = (one.p_yes >= 0.5) != (two.p_yes >= 0.5)
    parts = (places >= LATER, (places >= EARLIER[0]) & (places <= EARLIER[1]))
    rows = query_places(groups, len(places))
    differing, items = (
        np.stack([np.bincount(rows, of & part & known) for part in parts], axis=1)
        for of in (differs, np.ones_like(differs))
    )
    draws = ratio_draws(differing, items, times=2000, seed=0)
    total = differing.sum(axis=0) / items.sum(axis=0)
    rise = interval(
        float(total[0] - total[1]), draws[:, 0] - draws[:, 1], queries=len(items), level=0.95
    )
    return Position(found, rise)


def sampled(path: Path = SAMPLES) -> Samples:
    """Return the stored samples beside what the stored probabilities lead to expect."""
    answers = judgments.read(FIRST_TURN)
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    bounds = {cell: answers.offsets[row] for row, cell in enumerate(cells)}
    drawn = json.loads(path.read_text(encoding="utf-8"))["items"]
    usable = [row for row in drawn if row[3] + row[4] == TIMES]
    p = answers.p_yes[[bounds[row[0], row[1]] + row[2] for row in usable]]
    yes = np.array([row[3] for row in usable])
    groups = [row[0] for row in usable]
    differ = Resampling(2000, 0, 0.95).share(
        ((yes > 0) & (yes < TIMES)).astype(np.float64), query_places(groups, len(yes))
    )
    expected = sampling_disagreement(p, groups, [TIMES], bootstrap=2000).shares[0].share
    assert differ is not None
    assert expected is not None
    return Samples(differ, expected, len(usable), len(set(groups)), len(drawn) - len(usable))


def lines_of(by_position: Position, samples: Samples) -> list[str]:
    """Return both figures as text."""
    found = by_position.found
    rows = [
        [str(each.position), share(each.differing), str(each.items)] for each in found.by_position
    ]
    rows += [
        ["all", share(found.differing), str(found.items)],
        [f"{LATER} and later minus {EARLIER[0]} to {EARLIER[1]}", signed(by_position.rise), ""],
    ]
    return [
        "Items answered differently after all Yes and after all No, % (Fig. 5)",
        *table(["position", "differ", "items"], rows),
        "",
        f"Items on which {TIMES} samples at temperature 1 differ, % (Fig. 4)",
        f"{samples.items} items, one response of each of {samples.queries} queries; "
        f"{samples.dropped} more were dropped",
        *table(
            ["", "differ"],
            [["real samples", share(samples.differ)], ["expected", share(samples.expected)]],
        ),
    ]


def signed(found: Interval) -> str:
    """Return a difference of shares in points."""
    return f"{100 * found.value:+.1f} ({100 * found.low:+.1f} to {100 * found.high:+.1f})"


async def draw(base_url: str) -> None:
    """Sample answers to all items of some responses, and store how often each one was yes."""
    config = load_config(MT_BENCH / "first_turn.yaml")
    judge = config.judge.model_copy(update={"model": KEPT_JUDGE, "base_url": base_url})
    run = Run(config.model_copy(update={"name": "first_turn_samples"}))
    await run.to_checklists()
    tasks: dict[str, list[GradingTask]] = {}
    for task in unfinished_tasks(run.store.inputs, GradingPrompt(), b"", lambda key: False):
        tasks.setdefault(task.query_id, []).append(task)
    rng = np.random.default_rng(0)
    chosen = [each[rng.integers(len(each))] for each in list(tasks.values())[:QUERIES]]
    engine = create_engine(judge)
    room = asyncio.Semaphore(IN_FLIGHT)
    try:
        found = await asyncio.gather(*(drawn_of(engine, task, room) for task in chosen))
    finally:
        await engine.aclose()
    content = {"judge": judge.model, "items": [row for rows in found for row in rows]}
    SAMPLES.write_text(json.dumps(content) + "\n", encoding="utf-8")
    print(f"{len(content['items'])} items of {len(chosen)} responses in {SAMPLES}")


async def drawn_of(engine: Engine, task: GradingTask, room: asyncio.Semaphore) -> list[list[Any]]:
    """Return query, candidate, item, and the numbers of yes and of no, for every item."""
    rows: list[list[Any]] = []
    async with room:
        for place, suffix in enumerate(task.suffixes):
            words = [
                # Equal seeds draw equal numbers, so every sample needs a separate one.
                (await engine.write(task.prefix + suffix, max_tokens=1, temperature=1.0, seed=seed))
                for seed in range(place * TIMES, (place + 1) * TIMES)
            ]
            said = [word.text.strip().lower() for word in words]
            row = [task.query_id, task.candidate, place, said.count("yes"), said.count("no")]
            rows.append(row)
            print(*row, flush=True)
    return rows


if __name__ == "__main__":
    main()

"""RocketEval Figs. 4 and 5: uncertainty of a small judge, and the effect of earlier answers.

    python studies/papers/uncertainty.py [--limit N] [--record]
    python studies/papers/uncertainty.py --sample 3 --base-url URL --judge MODEL [--record]

Fig. 4: the share of checklist items on which k samples of the judge do not all agree, expected from
its own probabilities (1 - p^k - (1 - p)^k); `--sample` draws real samples at temperature 1 for some
of the items, to check the expectation. Fig. 5: every item is asked after all earlier ones, once
with every earlier answer Yes and once No: the share of items whose answer differs, by position.
MT-Bench first turns, the six candidates with votes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from dataclasses import asdict
from typing import Any

import numpy as np
from grade import study_config
from runs import JUDGES, RECORDED, Floats, graded, record, table

from rocketeval.audit.repeatability import disagreement, sampling_disagreement
from rocketeval.engines.base import create_engine
from rocketeval.grading.schedule import unfinished_tasks
from rocketeval.prompts.render import GradingPrompt
from rocketeval.text import share

TIMES = (2, 3, 5, 10)


def main() -> None:
    """Print both figures as tables, or draw samples."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--sample", type=int, metavar="TIMES")
    parser.add_argument("--items", type=int, default=100)
    parser.add_argument("--judge", default=next(iter(JUDGES)))
    parser.add_argument("--base-url")
    given = parser.parse_args()
    if given.sample:
        asyncio.run(draw(given.judge, given.base_url, given.sample, given.items, given.record))
        return
    content: dict[str, Any] = {"sampling": {}, "position": {}}
    lines = ["Items on which k samples do not all agree, in percent (Fig. 4)"]
    lines += table(["", *(f"k = {k}" for k in TIMES), "items"], sampling(given.limit, content))
    lines += ["", "Items answered differently after all Yes and after all No, in percent (Fig. 5)"]
    lines += position(given.limit, content)
    for path in sorted(RECORDED.glob("samples_*.json")):
        result = json.loads(path.read_text())
        content.setdefault("real samples", {})[result["judge"]] = result
        lines += ["", result["told"]]
    record("uncertainty", content, lines, keep=given.record)
    if given.record:
        from plots import uncertainty

        uncertainty(content)


def sampling(limit: int | None, content: dict[str, Any]) -> list[list[str]]:
    """Return the rows of Fig. 4."""
    rows = []
    for judge, shown in JUDGES.items():
        found = graded("mt_bench", "checklist", judge, limit)
        if found is None:
            continue
        groups = np.repeat(np.array(found.answers.query_ids), found.answers.items)
        result = sampling_disagreement(found.answers.p_yes, groups, TIMES)
        content["sampling"][shown] = asdict(result)
        rows.append([shown, *(share(each.share) for each in result.shares), str(result.items)])
    return rows


def position(limit: int | None, content: dict[str, Any]) -> list[str]:
    """Return the table of Fig. 5."""
    rows, positions = [], 0
    for judge, shown in JUDGES.items():
        runs = [graded("mt_bench", name, judge, limit) for name in ("all_yes", "all_no")]
        if runs[0] is None or runs[1] is None:
            continue
        one, two = runs[0].by_cell(), runs[1].by_cell()
        cells = [cell for cell in one if cell in two]
        places = np.concatenate([np.arange(1, len(one[cell]) + 1) for cell in cells])
        groups = np.concatenate([[cell[0]] * len(one[cell]) for cell in cells])
        result = disagreement(_joined(one, cells), _joined(two, cells), groups, places)
        content["position"][shown] = asdict(result)
        positions = max(positions, len(result.by_position))
        by_place = [f"{100 * each.differing.value:.1f}" for each in result.by_position]
        rows.append([shown, share(result.differing), *by_place, str(result.items)])
    for row in rows:
        row[-1:-1] = ["-"] * (positions + 3 - len(row))
    return table(["", "all", *(str(place + 1) for place in range(positions)), "items"], rows)


def _joined(answers: dict[tuple[str, str], Floats], cells: list[tuple[str, str]]) -> Floats:
    return np.concatenate([answers[cell] for cell in cells])


async def draw(judge: str, base_url: str | None, times: int, items: int, keep: bool) -> None:
    """Sample answers to some items, and compare how often they differ."""
    found = graded("mt_bench", "checklist", judge)
    assert found is not None, "grade mt_bench first"
    config = study_config("mt_bench", judge, engine={"base_url": base_url}).judge
    known = found.by_cell()
    tasks = unfinished_tasks(found.store.inputs, GradingPrompt(), b"", lambda key: False)
    asked = []
    for task in tasks:
        p = known.get((task.query_id, task.candidate))
        if p is not None:
            asked += [
                (task.prefix + suffix, p[place]) for place, suffix in enumerate(task.suffixes)
            ]
    chosen = [asked[place] for place in np.random.default_rng(0).choice(len(asked), items, False)]
    engine = create_engine(config)
    try:
        drawn = [
            # Equal seeds draw equal numbers, so every sample needs a separate one.
            [await one_sample(engine, prompt, place * times + each) for each in range(times)]
            for place, (prompt, _) in enumerate(chosen)
        ]
    finally:
        await engine.aclose()
    usable = [row for row in drawn if None not in row]
    differ = float(np.mean([len(set(row)) > 1 for row in usable]))
    p = np.array([p for (_, p), row in zip(chosen, drawn, strict=True) if None not in row])
    expected = float(np.mean(1 - p**times - (1 - p) ** times))
    result = (
        f"{JUDGES.get(judge, judge)}, {len(usable)} items sampled {times} times at temperature 1: "
        f"{100 * differ:.1f}% differ; expected from the probabilities {100 * expected:.1f}%."
    )
    facts = {"judge": judge, "times": times, "items": len(usable), "dropped": items - len(usable)}
    content = facts | {"differ": differ, "expected": expected, "told": result}
    record(f"samples_{judge}", content, [result], keep=keep)


async def one_sample(engine: Any, prompt: str, seed: int) -> str | None:
    """Return one sampled answer; None if it is neither yes nor no."""
    written = await engine.write(prompt, max_tokens=1, temperature=1.0, seed=seed)
    word = written.text.strip().lower()
    return word if word in ("yes", "no") else None


if __name__ == "__main__":
    main()

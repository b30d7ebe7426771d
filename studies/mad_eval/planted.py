"""Evolution on a synthetic benchmark: accuracy with and without experts, and the best possible.

    python studies/mad_eval/planted.py --queries 120 --seeds 3

The votes prefer brief responses for sums and long ones for stories. One vote in ten is flipped, and
the seed questions ask about neither. Judge and optimizer are scripted: no model is needed. With
`--shuffled` the votes are random, and the evaluator must find nothing.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
import time
from pathlib import Path

from planted_benchmark import Planted, judge_says, make_planted, optimizer_writes

from rocketeval.config import EngineConfig, RunConfig, parse_config
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.evolve.history import split_cases
from rocketeval.evolve.result import Evolution
from rocketeval.pipeline import Run

OPTIMIZER = "optimizer"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=120)
    parser.add_argument("--seeds", type=int, default=3, help="number of benchmarks")
    parser.add_argument("--flipped", type=float, default=0.1, help="share of flipped votes")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--shuffled", action="store_true", help="use random votes")
    given = parser.parse_args()
    print("| seed | rounds | best | single prompt | without experts | with experts | experts | s |")
    print("|---|---|---|---|---|---|---|---|")
    for seed in range(given.seeds):
        planted = make_planted(
            given.queries, flipped=given.flipped, shuffled=given.shuffled, seed=seed
        )
        with tempfile.TemporaryDirectory() as folder:
            print(_row(Path(folder), planted, given.rounds, seed))


def _row(folder: Path, planted: Planted, rounds: int, seed: int) -> str:
    planted.write(folder / "benchmark")
    run, started = Run(_config(folder, rounds)), time.monotonic()
    found = asyncio.run(run.evolve(make_engine=_make_engine))
    held_out = split_cases(run.store.inputs, run.config.evolve).held_out
    ceiling = planted.ceiling([case.query_id for case in held_out])
    shown = (_share(found, name) for name in ("single prompt", "without experts", "with experts"))
    experts = ", ".join(map(str, found.figures.experts))
    cells = (seed, len(found.rounds), f"{100 * ceiling:.1f}", *shown, experts)
    seconds = f"{time.monotonic() - started:.0f}"
    return f"| {' | '.join(map(str, cells))} | {seconds} |"


def _share(found: Evolution, name: str) -> str:
    arm = next(arm for arm in found.figures.arms if arm.name == name)
    value, low, high = (
        100 * getattr(arm.figures["accuracy"], end) for end in ("value", "low", "high")
    )
    return f"{value:.1f} ({low:.1f}-{high:.1f})"


def _config(folder: Path, rounds: int) -> RunConfig:
    return parse_config(
        {
            "benchmark": {"path": str(folder / "benchmark")},
            "judge": {"engine": "scripted", "model": "judge"},
            "evolve": {
                "seeds": [str(folder / "benchmark" / "seeds.yaml")],
                "optimizer": {"engine": "scripted", "model": OPTIMIZER},
                "rounds": rounds,
                "patience": 2,
            },
            "output": str(folder / "runs"),
            "cache": None,
        }
    )


def _make_engine(config: EngineConfig, home: Path | None) -> ScriptedEngine:
    return ScriptedEngine(judge_says, optimizer_writes, model=config.model, labels=config.labels)


if __name__ == "__main__":
    main()

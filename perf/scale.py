"""Cost of scoring, ranking and auditing as runs grow: seconds and peak memory of each stage.

    python perf/scale.py [--answers 1e5 1e6 1e7] [--candidates 250] [--items 8] [--bootstrap 200]
                         [--scorer mean] [--scattered] [--folder DIR] [--record]

Each run is written to disk as grading would have left it (`harness/synthetic_run.py`): random
answers, real keys, hashes and files; no engine is called and nothing is graded. Each stage then
runs in a separate process. Its memory is the peak resident size, including interpreter and
libraries (140 MB) and pages of files that it read. CPU seconds are given in addition to wall
seconds, because they are steadier on a busy machine. Sizes differ in the number of queries.
`--scattered` puts judgments into the ledger in random order, the worst case for reading it back.

`--record` adds the figures to perf/recorded/scale.json; a new measurement of a size replaces its
older figures. Sizes are compared only within an experiment: the same scorer, candidates, items,
resamples and order of the ledger. perf/recorded/scale.svg shows the experiment with the most sizes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from harness.synthetic_run import Size, make_config, write_run

from rocketeval.pipeline import Run

RECORDED = Path(__file__).parent / "recorded"
STAGES = ("score", "rank", "audit")
GROWING = (("CPU seconds", "cpu_seconds"), ("peak memory", "peak_mb"))


@dataclass(frozen=True)
class Experiment:
    """The settings that must be equal for costs to depend only on the number of queries."""

    scorer: str
    candidates: int
    items: int
    bootstrap: int | None
    scattered: bool

    def __str__(self) -> str:
        resamples = "unknown" if self.bootstrap is None else f"{self.bootstrap:,}"
        order = ", ledger in random order" if self.scattered else ""
        return (
            f"{self.candidates} candidates, {self.items} items per response, scorer {self.scorer}, "
            f"resamples {resamples}{order}"
        )


@dataclass(frozen=True)
class Cost:
    """The cost of one stage on a run of one size."""

    answers: int
    candidates: int
    queries: int
    items: int
    scorer: str
    scattered: bool
    stage: str
    seconds: float
    cpu_seconds: float
    peak_mb: float
    disk_mb: float
    """Size of the run directory after the stage."""
    load: float
    """Load average of the machine when the stage ended; above its cores, wall seconds are long."""
    bootstrap: int | None = None
    """Resamples of the queries; None in old records that lack them."""

    @property
    def experiment(self) -> Experiment:
        """Return the experiment that this cost belongs to."""
        return Experiment(self.scorer, self.candidates, self.items, self.bootstrap, self.scattered)

    @property
    def place(self) -> tuple[object, ...]:
        """Return the key of a measurement; a new one with the same key replaces the old one."""
        return (self.experiment, self.answers, self.stage)


def main() -> None:
    args = parse_args()
    if args.child:
        run_child(args)
        return
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        costs = [cost for answers in args.answers for cost in measure(args, answers, Path(scratch))]
    earlier = read_costs(RECORDED / "scale.json") if args.record else []
    groups = by_experiment(together(earlier, costs))
    table = "\n".join(describe(groups))
    print(f"\n{table}")
    if args.record:
        rows = [asdict(cost) for group in groups.values() for cost in group]
        (RECORDED / "scale.json").write_text(json.dumps(rows, indent=1) + "\n")
        (RECORDED / "scale.txt").write_text(f"{table}\n")
        draw(groups, RECORDED / "scale.svg")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--answers", type=float, nargs="+", default=[1e5, 1e6, 1e7])
    parser.add_argument("--candidates", type=int, default=250)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--bootstrap", type=int, default=200)
    parser.add_argument("--scorer", default="mean")
    parser.add_argument("--scattered", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--child", choices=("write", *STAGES), help=argparse.SUPPRESS)
    return parser.parse_args()


def read_costs(path: Path) -> list[Cost]:
    """Return the figures of a record, if it exists."""
    return [Cost(**row) for row in json.loads(path.read_text())] if path.exists() else []


def together(earlier: list[Cost], measured: list[Cost]) -> list[Cost]:
    """Return all figures; a repeated measurement replaces the earlier one.

    An earlier figure with unknown resamples is replaced by one with any number of them.
    """
    repeated = {replace(cost, bootstrap=None).place for cost in measured}
    kept = [cost for cost in earlier if cost.place not in repeated]
    return list({cost.place: cost for cost in (*kept, *measured)}.values())


def by_experiment(costs: list[Cost]) -> dict[Experiment, list[Cost]]:
    """Return the figures of each experiment by increasing size; unscattered runs come first."""
    groups: dict[Experiment, list[Cost]] = defaultdict(list)
    for cost in sorted(costs, key=lambda cost: (cost.scattered, cost.answers)):
        groups[cost.experiment].append(cost)
    return dict(groups)


def measure(args: argparse.Namespace, answers: float, scratch: Path) -> list[Cost]:
    """Write a run, measure the stages, remove it; print one line per stage."""
    queries = max(1, round(answers / args.items / args.candidates))
    size = Size(args.candidates, queries, args.items)
    costs = []
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        for stage in ("write", *STAGES):
            given = ["--child", stage, "--folder", folder, "--answers", str(size.answers)]
            for name in ("candidates", "items", "bootstrap", "scorer"):
                given += [f"--{name}", str(getattr(args, name))]
            given += ["--scattered"] if args.scattered else []
            child = subprocess.run(
                [sys.executable, __file__, *given], check=True, stdout=subprocess.PIPE, text=True
            )
            result = json.loads(child.stdout)
            disk = sum(path.stat().st_size for path in Path(folder).rglob("*") if path.is_file())
            cost = Cost(
                answers=size.answers,
                candidates=size.candidates,
                queries=size.queries,
                items=size.items,
                scorer=args.scorer,
                bootstrap=args.bootstrap,
                scattered=args.scattered,
                stage=stage,
                disk_mb=round(disk / 1e6, 1),
                load=round(os.getloadavg()[0], 1),
                **result,
            )
            costs.append(cost)
            print(line(cost), flush=True)
    return costs


def run_child(args: argparse.Namespace) -> None:
    """Run one stage in this process; print its cost as JSON."""
    config = make_config(args.folder, args.bootstrap, args.scorer)
    run = Run(config)
    wall, cpu = time.perf_counter(), time.process_time()
    if args.child == "write":
        queries = round(args.answers[0] / args.items / args.candidates)
        write_run(config, Size(args.candidates, queries, args.items), scattered=args.scattered)
    else:
        getattr(run, args.child)()
    result = {
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_mb": round(peak_mb(), 1),
    }
    print(json.dumps(result))


def peak_mb() -> float:
    """Return the peak resident memory of this process (`getrusage` would include its parent)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 / 1e6 for row in lines if row.startswith("VmHWM"))


def line(cost: Cost) -> str:
    """Return one row of the table."""
    return (
        f"{cost.answers:>11,} {cost.stage:<6}{cost.seconds:>9.1f}{cost.cpu_seconds:>9.1f}"
        f"{cost.peak_mb:>9.0f}{cost.disk_mb:>9.0f}{cost.load:>6.1f}"
    )


def describe(groups: dict[Experiment, list[Cost]]) -> list[str]:
    """Return one table per experiment, and the growth of its figures."""
    rows: list[str] = []
    for experiment, costs in groups.items():
        rows += [
            str(experiment),
            f"{'answers':>11} {'stage':<6}{'wall s':>9}{'CPU s':>9}{'peak MB':>9}{'disk MB':>9}"
            f"{'load':>6}",
            *map(line, costs),
            "",
            *growth(costs),
        ]
    return rows


def growth(costs: list[Cost]) -> list[str]:
    """Return the growth exponents of one experiment; nothing if it has one size."""
    rows = []
    for stage in STAGES:
        own = [cost for cost in costs if cost.stage == stage]
        for what, name in GROWING if len(own) > 1 else ():
            pairs = [
                f"{slope([small, large], name):.2f} from {small.answers:,} to {large.answers:,}"
                for small, large in pairwise(own)
            ]
            rows.append(f"{stage:<6} {what} {slope(own, name):.2f}: {', '.join(pairs)}")
    heading = "growth: the exponent of answers over all sizes, and between neighboring sizes"
    return [heading, *rows, ""] if rows else []


def slope(costs: list[Cost], name: str) -> float:
    """Return the exponent `e` of the best fit `cost ~ answers ** e`, a line on a log-log plot."""
    answers = np.log([cost.answers for cost in costs])
    values = np.log([max(getattr(cost, name), 0.01) for cost in costs])
    return float(np.polyfit(answers, values, 1)[0])


def draw(groups: dict[Experiment, list[Cost]], path: Path) -> None:
    """Plot one experiment's CPU seconds and memory by answers, both axes logarithmic."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "scale"
    import matplotlib.pyplot as plt

    shown, costs = max(groups.items(), key=lambda group: len(group[1]))
    figure, panels = plt.subplots(1, 2, figsize=(9, 3.8), layout="constrained")
    figure.suptitle(str(shown), fontsize="medium")
    for panel, (title, name) in zip(panels, GROWING, strict=True):
        for stage in STAGES:
            own = [cost for cost in costs if cost.stage == stage]
            label = f"{stage}, exponent {slope(own, name):.2f}" if len(own) > 1 else stage
            values = [getattr(cost, name) for cost in own]
            panel.loglog([cost.answers for cost in own], values, marker="o", label=label)
        panel.set(xlabel="answers", title=title + " (MB)" * (name == "peak_mb"))
        panel.grid(visible=True, which="major", alpha=0.3)
        panel.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()

"""What scoring, ranking and auditing cost as runs grow: seconds and peak memory of each stage.

    python perf/scale.py [--answers 1e5 1e6 1e7] [--candidates 250] [--items 8] [--bootstrap 200]
                         [--scorer mean] [--scattered] [--folder DIR] [--record]

Each run is written to disk as grading would have left it (`harness/synthetic_run.py`): drawn
answers, real keys, hashes and files; no engine is called and nothing is graded. Then each stage is
a process of its own; its memory is the peak of what it had resident, interpreter and libraries (140
MB) included, and pages of files that it read. Processor seconds are given beside wall seconds,
because they are steadier when the machine does other work. Sizes differ in the number of queries.
`--scattered` puts judgments into the ledger in random order, the worst case for reading it back.

`--record` adds the figures to perf/recorded/scale.json, where a size that was measured again
replaces its older figures. Sizes are compared only within an experiment: the same scorer,
candidates, items, resamples and order of the ledger. perf/recorded/scale.svg shows the experiment
with the most sizes.
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
    """What must be equal for costs to differ by the number of queries alone."""

    scorer: str
    candidates: int
    items: int
    bootstrap: int | None
    scattered: bool

    def __str__(self) -> str:
        resamples = "unknown" if self.bootstrap is None else f"{self.bootstrap:,}"
        order = ", ledger in random order" if self.scattered else ""
        return (
            f"{self.candidates} candidates, {self.items} items a response, scorer {self.scorer}, "
            f"resamples {resamples}{order}"
        )


@dataclass(frozen=True)
class Cost:
    """What one stage took on a run of one size."""

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
    """Of the run directory after the stage."""
    load: float
    """Load average of the machine when the stage ended: above its cores, wall seconds are long."""
    bootstrap: int | None = None
    """Resamples of the queries; None in records from before they were written down."""

    @property
    def experiment(self) -> Experiment:
        """What this may be compared with."""
        return Experiment(self.scorer, self.candidates, self.items, self.bootstrap, self.scattered)

    @property
    def place(self) -> tuple[object, ...]:
        """What must be equal for one measurement to replace another."""
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
    """The figures of a record, if there is one."""
    return [Cost(**row) for row in json.loads(path.read_text())] if path.exists() else []


def together(earlier: list[Cost], measured: list[Cost]) -> list[Cost]:
    """All figures; what was measured again takes the place of what it repeats.

    An earlier figure of unknown resamples is repeated by one with any number of them.
    """
    repeated = {replace(cost, bootstrap=None).place for cost in measured}
    kept = [cost for cost in earlier if cost.place not in repeated]
    return list({cost.place: cost for cost in (*kept, *measured)}.values())


def by_experiment(costs: list[Cost]) -> dict[Experiment, list[Cost]]:
    """The figures of each experiment by growing size; runs in their usual order come first."""
    groups: dict[Experiment, list[Cost]] = defaultdict(list)
    for cost in sorted(costs, key=lambda cost: (cost.scattered, cost.answers)):
        groups[cost.experiment].append(cost)
    return dict(groups)


def measure(args: argparse.Namespace, answers: float, scratch: Path) -> list[Cost]:
    """Write a run, put it through the stages, remove it; print a line a stage."""
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
            told = json.loads(child.stdout)
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
                **told,
            )
            costs.append(cost)
            print(line(cost), flush=True)
    return costs


def run_child(args: argparse.Namespace) -> None:
    """Do one stage in this process; print what it took as JSON."""
    config = make_config(args.folder, args.bootstrap, args.scorer)
    run = Run(config)
    wall, cpu = time.perf_counter(), time.process_time()
    if args.child == "write":
        queries = round(args.answers[0] / args.items / args.candidates)
        write_run(config, Size(args.candidates, queries, args.items), scattered=args.scattered)
    else:
        getattr(run, args.child)()
    told = {
        "seconds": round(time.perf_counter() - wall, 2),
        "cpu_seconds": round(time.process_time() - cpu, 2),
        "peak_mb": round(peak_mb(), 1),
    }
    print(json.dumps(told))


def peak_mb() -> float:
    """Peak of this program's resident memory (`getrusage` would count its parent's as well)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(row.split()[1]) * 1024 / 1e6 for row in lines if row.startswith("VmHWM"))


def line(cost: Cost) -> str:
    """One row of the table."""
    return (
        f"{cost.answers:>11,} {cost.stage:<6}{cost.seconds:>9.1f}{cost.cpu_seconds:>9.1f}"
        f"{cost.peak_mb:>9.0f}{cost.disk_mb:>9.0f}{cost.load:>6.1f}"
    )


def describe(groups: dict[Experiment, list[Cost]]) -> list[str]:
    """A table for each experiment, and how its figures grow."""
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
    """The exponents of answers of one experiment; nothing when it has one size."""
    rows = []
    for stage in STAGES:
        own = [cost for cost in costs if cost.stage == stage]
        for what, name in GROWING if len(own) > 1 else ():
            pairs = [
                f"{slope([small, large], name):.2f} from {small.answers:,} to {large.answers:,}"
                for small, large in pairwise(own)
            ]
            rows.append(f"{stage:<6} {what} {slope(own, name):.2f}: {', '.join(pairs)}")
    heading = "growth: the exponent of answers over all sizes, and between each two"
    return [heading, *rows, ""] if rows else []


def slope(costs: list[Cost], name: str) -> float:
    """The exponent `e` of the best fit `cost ~ answers ** e`: a line on a log-log plot."""
    answers = np.log([cost.answers for cost in costs])
    values = np.log([max(getattr(cost, name), 0.01) for cost in costs])
    return float(np.polyfit(answers, values, 1)[0])


def draw(groups: dict[Experiment, list[Cost]], path: Path) -> None:
    """Plot one experiment's processor seconds and memory by answers, both axes logarithmic."""
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

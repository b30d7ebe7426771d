"""Check rank intervals of many candidates, and tests of queries that depend on each other.

    python studies/family_wise.py [--quick] [--record]

Ranks: `queries` queries, each with its own ease, and candidates that are all equal or spread
evenly over one standard deviation of the noise. Counted: how often every candidate's simultaneous
rank interval contains its true rank (equal candidates share all ranks), and how often the ranking
shows a significant difference between equal candidates. 93 to 97% passes for equal candidates, and
at least 93% for unequal ones.
Compare: two equal candidates on 40 conversations of two turns, with the given correlation between
the turns. Counted: verdicts other than "can't tell", with and without the clusters. 4 to 6% passes.
Labels: the mean label of one candidate on 150 conversations of two turns, 20 of them labeled on
both turns, from labels and scores. Counted: intervals that contain the true mean. 93 to 97% passes.
`--record` writes studies/recorded/family_wise.txt.
"""

from __future__ import annotations

import argparse
import sys
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.compare.pair import ComparisonVerdict, compare
from rocketeval.grid import ScoreGrid
from rocketeval.stats.permutation import pairwise_tests
from rocketeval.stats.prediction_powered import LabeledSample, estimate

RECORDED = Path(__file__).with_name("recorded") / "family_wise.txt"
RANK_TIMES, COMPARE_TIMES, LABEL_TIMES = 1_000, 10_000, 1_000
SHAPES = ("plain", "skewed", "missing")


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    title: str
    times: int
    hit: Callable[[int], tuple[bool, bool]]
    """Whether the product's result is as counted, and a naive one on the same data."""
    low: float
    high: float


def scores_of(
    rng: np.random.Generator, queries: int, effects: NDArray[np.float64], shape: str
) -> NDArray[np.float64]:
    """Return scores of candidates with these effects: ease, effect and noise, in some shape."""
    size = (queries, len(effects))
    scores = rng.normal(size=(queries, 1)) + effects + rng.normal(size=size)
    if shape == "skewed":
        scores = np.clip(np.round(2 * (9 - np.exp(-0.7 * scores))) / 2, 1, 10)
    if shape == "missing":
        scores[rng.random(size) < 0.2] = np.nan
    return scores


def ranks_hold(
    candidates: int, queries: int, *, shape: str, spread: float, seed: int
) -> tuple[bool, bool]:
    """Return whether all rank intervals hold, simultaneous and pairwise ones."""
    rng = np.random.default_rng((candidates, queries, zlib.crc32(shape.encode()), seed))
    effects = np.linspace(0.0, spread, candidates)
    scores = scores_of(rng, queries, effects, shape)
    if spread:
        best = np.arange(candidates, 0, -1)
        worst = best
    else:
        best, worst = np.ones(candidates), np.full(candidates, candidates)
    found = []
    for adjusted in (True, False):
        tests = pairwise_tests(scores, level=0.95, seed=seed, adjusted=adjusted, flips=999)
        low, high = tests.rank_bounds()
        found.append(bool(((low <= best) & (high >= worst)).all()))
    return found[0], found[1]


def turns(rng: np.random.Generator, correlation: float, talks: int) -> NDArray[np.float64]:
    """Return one value per turn, two turns per conversation."""
    shared = np.repeat(rng.normal(size=talks), 2)
    own = rng.normal(size=2 * talks)
    found: NDArray[np.float64] = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    return found


def false_verdict(correlation: float, *, seed: int) -> tuple[bool, bool]:
    """Return whether two equal candidates get a verdict, with and without clusters."""
    rng = np.random.default_rng((7, round(100 * correlation), seed))
    scores = np.column_stack([turns(rng, correlation, 40) for _ in "ab"])
    names = tuple(f"{row // 2}-{row % 2}" for row in range(80))
    grid = ScoreGrid(names, ("a", "b"), scores, tuple(name.partition("-")[0] for name in names))
    found = []
    for own in (grid, replace(grid, clusters=None)):
        verdict = compare(own, "a", "b", bootstrap=400, seed=seed).verdict
        found.append(verdict is not ComparisonVerdict.UNKNOWN)
    return found[0], found[1]


def label_holds(correlation: float, *, seed: int) -> tuple[bool, bool]:
    """Return whether the interval of a mean label holds, with and without clusters."""
    rng = np.random.default_rng((11, round(100 * correlation), seed))
    talks, truth = 150, 5.0
    quality, noise = turns(rng, correlation, talks), turns(rng, correlation, talks)
    labels, scores = truth + quality, 4.0 + 0.7 * quality + 0.7 * noise
    clusters = np.repeat(np.arange(talks), 2)
    chosen = np.isin(clusters, rng.choice(talks, 20, replace=False))
    sample = LabeledSample(
        "a",
        tuple(map(str, range(2 * talks))),
        scores,
        np.where(chosen, labels, np.nan),
        np.zeros(2 * talks, np.int64),
        clusters,
    )
    intervals = [estimate(own).with_scores for own in (sample, replace(sample, clusters=None))]
    holds = [interval.low <= truth <= interval.high for interval in intervals]
    return holds[0], holds[1]


def settings(part: int) -> Iterator[Setting]:
    """Yield every row of the table, with one `part`-th of the repetitions."""
    for candidates, queries in ((5, 12), (5, 80), (20, 80), (50, 80)):
        for shape in SHAPES:
            hit = partial(_ranks, candidates, queries, shape, 0.0)
            title = f"ranks hold: {candidates} equal candidates, {queries} queries, {shape}"
            yield Setting(title, RANK_TIMES // part, hit, 93.0, 97.0)
        hit = partial(_ranks, candidates, queries, "plain", 1.0)
        title = f"ranks hold: {candidates} unequal candidates, {queries} queries"
        yield Setting(title, RANK_TIMES // part, hit, 93.0, 100.0)
    for correlation in (0.0, 0.3, 0.6, 0.9):
        title = f"compare: false verdicts, turns correlated {correlation:.1f}"
        hit = partial(_verdicts, correlation)
        yield Setting(title, COMPARE_TIMES // part, hit, 4.0, 6.0)
    for correlation in (0.0, 0.3, 0.6, 0.9):
        title = f"labels: interval holds, turns correlated {correlation:.1f}"
        yield Setting(title, LABEL_TIMES // part, partial(_labels, correlation), 93.0, 97.0)


def _ranks(
    candidates: int, queries: int, shape: str, spread: float, seed: int
) -> tuple[bool, bool]:
    return ranks_hold(candidates, queries, shape=shape, spread=spread, seed=seed)


def _verdicts(correlation: float, seed: int) -> tuple[bool, bool]:
    return false_verdict(correlation, seed=seed)


def _labels(correlation: float, seed: int) -> tuple[bool, bool]:
    return label_holds(correlation, seed=seed)


def row_of(setting: Setting, pool: ProcessPoolExecutor) -> str:
    """Return a row: the share in percent, its Monte Carlo error, the naive share, and a mark."""
    chunk = max(1, setting.times // 8)
    hits = np.array(list(pool.map(setting.hit, range(setting.times), chunksize=chunk)), float)
    ours, naive = 100.0 * hits.mean(axis=0)
    error = 100.0 * float(hits[:, 0].std()) / np.sqrt(setting.times)
    inside = setting.low <= ours <= setting.high
    outside = max(setting.low - ours, ours - setting.high)
    mark = "ok" if inside else "near" if outside < 2 * error else "FAIL"
    return (
        f"{setting.title:58} {setting.times:6,} {ours:6.1f} +-{error:3.1f}  "
        f"[{setting.low:.0f}-{setting.high:.0f}] {naive:6.1f}  {mark}"
    )


def main() -> None:
    """Print the table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the repetitions")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    lines = [
        f"rocketeval {__version__}; share in percent, Monte Carlo error, [wanted], naive share",
        f"{'':58} {'times':>6} {'share':>6}                 naive",
    ]
    print("\n".join(lines), flush=True)
    with ProcessPoolExecutor(2) as pool:
        for setting in settings(10 if args.quick else 1):
            lines.append(row_of(setting, pool))
            print(lines[-1], flush=True)
    if args.record:
        RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(any(line.endswith("FAIL") for line in lines))


if __name__ == "__main__":
    main()

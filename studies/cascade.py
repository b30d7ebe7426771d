"""Simulate cascades of two judges where the truth is known.

    python studies/cascade.py [--quick] [--workers 1] [--record]

A query has an ease, a candidate a quality, a response its own noise, and five items of different
difficulty. The strong judge answers each item by their sum. The cheap judge answers it by the same
sum with noise (`informative`), and in other rows with a bias per candidate that does not follow
their quality (`biased`), with little signal (`noisy`), with none (`useless`), with too much
confidence in wrong answers (`sure`), or too leniently everywhere (`lenient`). In `turns`, two
queries are a conversation with a common ease and common noise, in `missing` a tenth of the
responses does not exist, and in `skewed` nearly every score is near 10 and few responses fail: a
known limit. The cascade is the product's: its probabilities, draw, combined scores and intervals.

Each row repeats a setting 1,000 times. `mean` is the coverage of the 95% intervals of all
candidates' means over queries like these, `diff` that of differences of up to ten pairs. `naive` is
the coverage if the drawn scores simply replace the cheap ones, without weights; `share` that of a
random share of the queries graded by the strong judge alone. `/all` and `/share` are the median
widths of the cascade's intervals relative to those of all responses graded by the strong judge, and
of a random share of the same size. `off` is the mean error of the cascade's means in standard
errors of one simulation; 0 is unbiased.

The second table has candidates that are equal to the strong judge, while the cheap judge is biased:
how often any pair is called significantly different, by the cascade and without weights.
`--record` writes studies/recorded/cascade.txt.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, stdtrit

from rocketeval._version import __version__
from rocketeval.stats.permutation import pairwise_tests
from rocketeval.stats.two_phase import TwoPhaseSample, combine, inclusion_probabilities

Floats = NDArray[np.float64]
RECORDED = Path(__file__).with_name("recorded")
TIMES = 1_000
ITEMS = 5
LEVEL = 0.95
BLOCK = 2_000_000
"""Answers simulated at a time."""
TRUTH = 100_000
"""Queries behind the true means."""
MOST_PAIRS = 10
CHEAP = {
    "informative": (1.0, 0.7, 1.0),
    "biased": (1.0, 0.7, 1.0),
    "noisy": (0.3, 2.0, 1.0),
    "useless": (0.0, 1.5, 1.0),
    "sure": (1.0, 3.0, 3.0),
    "lenient": (0.7, 0.7, 1.0),
}
"""Signal, noise and confidence of each cheap judge."""


@dataclass(frozen=True)
class Setting:
    """One row of the tables."""

    candidates: int
    queries: int
    share: float
    cheap: str
    shape: str = "plain"
    equal: bool = False
    """Whether all candidates are equal to the strong judge."""

    @property
    def title(self) -> str:
        """The row's title."""
        size = f"{self.candidates:3} x {self.queries:<4}"
        return f"{size} {self.share:4} {self.cheap:11} {self.shape:7}"


def settings() -> Iterator[Setting]:
    """Yield the rows of the first table."""
    for cheap in ("informative", "biased", "noisy"):
        for candidates in (5, 20):
            for queries in (80, 500):
                for share in (0.1, 0.3):
                    yield Setting(candidates, queries, share, cheap)
    for cheap in ("useless", "sure", "lenient"):
        for queries, share in ((80, 0.3), (500, 0.1)):
            yield Setting(5, queries, share, cheap)
    for shape in ("turns", "missing", "skewed"):
        for queries, share in ((80, 0.3), (500, 0.1)):
            yield Setting(5, queries, share, "biased", shape)


def equal_settings() -> Iterator[Setting]:
    """Yield the rows of the second table."""
    for candidates, queries, share in ((5, 80, 0.1), (5, 80, 0.3), (20, 80, 0.3), (5, 500, 0.1)):
        yield Setting(candidates, queries, share, "biased", equal=True)


@dataclass(frozen=True)
class World:
    """Scores of several simulations: strong, cheap, and the cheap judge's uncertainty."""

    strong: Floats
    cheap: Floats
    uncertainty: Floats


def simulate(row: Setting, times: int, queries: int, rng: np.random.Generator) -> World:
    """Return scores of shape (times, queries, candidates) on a scale from 1 to 10."""
    turns = 2 if row.shape == "turns" else 1
    groups = -(-queries // turns)
    quality = np.zeros(row.candidates) if row.equal else np.linspace(-0.6, 0.6, row.candidates)

    def per_query(spread: float, *shape: int) -> Floats:
        drawn: Floats = spread * rng.standard_normal((times, groups, *shape))
        return np.repeat(drawn, turns, axis=1)[:, :queries]

    level = 3.0 if row.shape == "skewed" else 0.5
    good = quality + level + per_query(0.8, 1) + per_query(0.8, row.candidates)
    logits = 2.0 * (good[..., None] + 0.5 * rng.standard_normal((times, queries, 1, ITEMS)))
    strong = 1.0 + 9.0 * expit(1.5 * logits).mean(axis=-1)
    signal, noise, confidence = CHEAP[row.cheap]
    biases = np.zeros(row.candidates)
    if row.cheap == "biased":
        biases = np.random.default_rng(5).permutation(np.linspace(-1.5, 1.5, row.candidates))
    shift = biases[:, None] + (2.0 if row.cheap == "lenient" else 0.0)
    logits = signal * logits + shift + noise * rng.standard_normal(logits.shape)
    answers = expit(confidence * logits)
    cheap = 1.0 + 9.0 * answers.mean(axis=-1)
    uncertainty = 9.0 * np.sqrt((answers * (1.0 - answers)).sum(axis=-1)) / ITEMS
    if row.shape == "missing":
        absent = rng.random(cheap.shape) < 0.1
        cheap[absent] = uncertainty[absent] = strong[absent] = np.nan
    return World(strong, cheap, uncertainty)


def worlds(row: Setting, times: int, rng: np.random.Generator) -> Iterator[World]:
    """Yield the simulations one by one."""
    block = max(1, BLOCK // (row.queries * row.candidates * ITEMS))
    for start in range(0, times, block):
        made = simulate(row, min(block, times - start), row.queries, rng)
        for place in range(len(made.strong)):
            yield World(made.strong[place], made.cheap[place], made.uncertainty[place])


@cache
def true_means(candidates: int, shape: str) -> Floats:
    """Return the strong judge's mean of every candidate over very many queries."""
    row = Setting(candidates, TRUTH // 20, 0.0, "informative", shape)
    rng = np.random.default_rng(77)
    means = [np.nanmean(simulate(row, 1, row.queries, rng).strong[0], axis=0) for _ in range(20)]
    found: Floats = np.mean(means, axis=0)
    return found


def even_numbers(queries: int, rng: np.random.Generator) -> Floats:
    """Return the random numbers of a draw, as the product makes them from hashes."""
    numbers: Floats = (rng.permutation(queries) + rng.random(queries)) / queries
    return numbers


def clusters_of(row: Setting) -> NDArray[np.int64]:
    """Return the conversation of each query."""
    return np.arange(row.queries) // (2 if row.shape == "turns" else 1)


def draw(row: Setting, world: World, rng: np.random.Generator) -> TwoPhaseSample:
    """Draw the responses that the strong judge grades."""
    return TwoPhaseSample(
        cheap=world.cheap,
        better=world.strong,
        probabilities=inclusion_probabilities(world.uncertainty, row.share),
        numbers=even_numbers(row.queries, rng),
        clusters=clusters_of(row),
    )


def plain(scores: Floats, clusters: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """Return the mean and half the width of Student's interval of every column."""
    there = ~np.isnan(scores)
    total = there.sum(axis=0)
    means = np.nansum(scores, axis=0) / total
    away = np.where(there, scores - means, 0.0)
    starts = np.flatnonzero(np.diff(clusters, prepend=-1))
    count = len(starts)
    if count < len(scores):
        away = np.add.reduceat(away, starts, axis=0)
    error = np.sqrt((away**2).sum(axis=0) * count / (count - 1.0)) / total
    return means, stdtrit(count - 1, (1.0 + LEVEL) / 2.0) * error


def pairs_of(candidates: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return up to ten pairs of candidates, the same in every simulation."""
    first, second = np.triu_indices(candidates, k=1)
    if len(first) > MOST_PAIRS:
        chosen = np.random.default_rng(3).choice(len(first), MOST_PAIRS, replace=False)
        first, second = first[chosen], second[chosen]
    return first, second


def measure(row: Setting, times: int) -> str:
    """Return a line of the first table."""
    rng = np.random.default_rng((17, row.candidates, row.queries, int(100 * row.share)))
    truth, (first, second) = true_means(row.candidates, row.shape), pairs_of(row.candidates)
    apart, clusters = truth[first] - truth[second], clusters_of(row)
    hits: dict[str, list[Floats]] = {}
    widths: dict[str, list[Floats]] = {}
    errors = []

    def note(name: str, low: Floats, high: Floats, true: Floats) -> None:
        hits.setdefault(name, []).append((low <= true) & (true <= high))
        widths.setdefault(name, []).append(high - low)

    for world in worlds(row, times, rng):
        sample = draw(row, world, rng)
        found = combine(sample)
        means = [found.mean(column, LEVEL) for column in range(row.candidates)]
        low, high = np.array([(one.low, one.high) for one in means]).T
        note("mean", low, high, truth)
        errors.append(np.array([one.value for one in means]) - truth)
        gaps = [found.difference(one, two, LEVEL) for one, two in zip(first, second, strict=True)]
        note("diff", *np.array([(one.low, one.high) for one in gaps]).T, apart)
        replaced = np.where(sample.drawn, world.strong, world.cheap)
        chosen = sample.numbers < row.share
        for name, scores, own in (
            ("naive", replaced, clusters),
            ("share", world.strong[chosen], clusters[chosen]),
            ("all", world.strong, clusters),
        ):
            value, half = plain(scores, own)
            note(f"{name} mean", value - half, value + half, truth)
            value, half = plain(scores[:, first] - scores[:, second], own)
            note(f"{name} diff", value - half, value + half, apart)
    rate = {name: 100.0 * float(np.mean(own)) for name, own in hits.items()}
    wide = {name: float(np.nanmedian(np.array(own))) for name, own in widths.items()}
    error = np.array(errors)
    off = float((error.mean(axis=0) / error.std(axis=0)).mean())
    cells = [f"{row.title:35}", f"{off:6.2f}"]
    for kind in ("mean", "diff"):
        rates = (rate[kind], rate[f"share {kind}"], rate[f"naive {kind}"])
        cells += [f"{one:{size}.1f}" for one, size in zip(rates, (9, 7, 8), strict=True)]
        cells.append(f"{wide[kind] / wide[f'all {kind}']:6.2f}")
        cells.append(f"{wide[kind] / wide[f'share {kind}']:7.2f}")
    return "".join(cells)


def measure_equal(row: Setting, times: int) -> str:
    """Return a line of the second table."""
    rng = np.random.default_rng((23, row.candidates, row.queries, int(100 * row.share)))
    called = {"cascade": 0, "naive": 0}
    for world in worlds(row, times, rng):
        sample = draw(row, world, rng)
        replaced = np.where(sample.drawn, world.strong, world.cheap)
        called["cascade"] += bool(combine(sample).tests(LEVEL).better().any())
        called["naive"] += bool(pairwise_tests(replaced, level=LEVEL, flips=199).better().any())
    return f"{row.title:35}" + "".join(f"{100.0 * one / times:9.1f}" for one in called.values())


_COLUMNS = f"{'cascade':>9}{'share':>7}{'naive':>8}{'/all':>6}{'/share':>7}"
HEAD = (
    f"{'':41}{'means: coverage':>24}{'width':>13}{'differences: coverage':>24}"
    f"{'width':>13}\n{'candidates x queries, share':35}{'off':>6}{_COLUMNS}{_COLUMNS}"
)


def tables(times: int, workers: int) -> Iterator[str]:
    """Yield the lines of both tables."""
    yield f"rocketeval {__version__}, {times:,} simulations per row"
    yield ""
    yield HEAD
    with ProcessPoolExecutor(workers) as pool:
        yield from pool.map(partial(measure, times=times), settings())
        yield ""
        yield f"{'Equal candidates: any pair significant, %':35}"
        yield f"{'':35}{'cascade':>9}{'naive':>9}"
        yield from pool.map(partial(measure_equal, times=times), equal_settings())


def main() -> None:
    """Print the tables, and record them if asked."""
    parser = argparse.ArgumentParser(description="Simulate cascades of two judges.")
    parser.add_argument("--quick", action="store_true", help="20 simulations per row")
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    lines, started = [], time.monotonic()
    for line in tables(20 if given.quick else TIMES, given.workers):
        print(line, flush=True)
        lines.append(line)
    print(f"{time.monotonic() - started:.0f} s", file=sys.stderr)
    if given.record:
        (RECORDED / "cascade.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

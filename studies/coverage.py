"""Simulated coverage of the 95% intervals, where the true value is known.

    python studies/coverage.py [--repetitions 1000] [--workers 2] [--quick] [--record]

Every row repeats one setting and counts how often a 95% interval contains the true value: between
93% and 97% passes; `near` is outside by less than two Monte Carlo errors, `FAIL` by more. A naive
interval on the same data shows that the study can fail. (Unpaired differences fail by covering too
much, PPI++ as published only with few labels.) `--record` writes studies/recorded/coverage.txt.

scores        a candidate's strength + a query's ease + noise, through one of four shapes: `plain`,
              `skewed` (squeezed into 1 to 10, piling up high), `ties` (rounded to half points),
              `missing` (a fifth of the cells lost). Truth: the same generator over many queries.
labels        integers from 1 to 10, `plain`, `skewed` or `very skewed`; scores follow them with a
              given correlation, a point too low. Truth: the same generator over many queries.
"""

from __future__ import annotations

import argparse
import math
import time
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.compare.labeling import advise
from rocketeval.compare.pair import compare
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import rank
from rocketeval.records import Interval
from rocketeval.stats.bradley_terry import (
    ELO_PER_STRENGTH,
    fit,
    information,
    pair_counts,
    win_totals,
)
from rocketeval.stats.prediction_powered import LabeledSample, LabelTarget, estimate, make_strata

Floats = NDArray[np.float64]

RECORDED = Path(__file__).with_name("recorded") / "coverage.txt"
TIE_MARGIN = 0.1
LOW, HIGH = 93.0, 97.0
"""Coverage in percent that passes."""
POPULATION = 200_000
"""Queries used to compute the true value."""
RESAMPLES = 400
"""Bootstrap resamples per interval; a run's default of 1000 moves its ends a little less."""
Z = 1.959964


@dataclass(frozen=True)
class Scores:
    """A setting of the score simulation."""

    shape: str
    queries: int
    candidates: int

    @property
    def name(self) -> str:
        return f"{self.shape}, {self.queries} queries, {self.candidates} candidates"


@dataclass(frozen=True)
class Labels:
    """A setting of the label simulation."""

    shape: str
    labelled: int
    queries: int
    correlation: float
    target: str = "mean"

    @property
    def name(self) -> str:
        known = f"{self.labelled} of {self.queries} labeled"
        return f"{self.shape}, {known}, correlation {self.correlation:g}"


@dataclass(frozen=True)
class Hits:
    """Coverage of one repetition's intervals, in percent."""

    figure: str
    naive: str
    """Description of the naive interval."""
    ours: float
    """NaN when there was no interval."""
    theirs: float


def score_settings() -> Iterator[Scores]:
    for queries in (20, 80, 300):
        for candidates in (5, 20):
            yield Scores("plain", queries, candidates)
    for shape, queries, candidates in (
        ("skewed", 20, 5),
        ("skewed", 80, 20),
        ("skewed", 300, 5),
        ("ties", 20, 5),
        ("ties", 80, 20),
        ("missing", 20, 5),
        ("missing", 80, 5),
        ("missing", 80, 20),
    ):
        yield Scores(shape, queries, candidates)


def label_settings() -> Iterator[Labels]:
    for shape in ("plain", "skewed", "very skewed"):
        for labelled, queries in ((15, 200), (30, 500), (100, 1000)):
            for correlation in (0.0, 0.3, 0.7, 0.95):
                yield Labels(shape, labelled, queries, correlation)
    for labelled, queries in ((15, 200), (30, 500), (100, 1000)):
        yield Labels("skewed", labelled, queries, 0.7, "difference")
        yield Labels("skewed", labelled, queries, 0.95, "difference")
    for labelled, queries in ((40, 300), (80, 600)):
        yield Labels("skewed", labelled, queries, 0.7, "mean, labels as advised")


def draw_scores(setting: Scores, queries: int, rng: np.random.Generator) -> Floats:
    """Draw scores; strengths are fixed, from half a point below the mean to half a point above."""
    strength = np.linspace(-0.5, 0.5, setting.candidates)
    ease = 1.2 * rng.normal(size=(queries, 1))
    scores = 6.0 + strength + ease + rng.normal(size=(queries, setting.candidates))
    if setting.shape == "skewed":
        return 1.0 + 9.0 / (1.0 + np.exp(-(scores - 4.5)))
    if setting.shape == "ties":
        return np.round(2.0 * scores) / 2.0
    if setting.shape == "missing":
        scores[rng.random(scores.shape) < 0.2] = np.nan
    return scores


@cache
def score_truth(setting: Scores) -> tuple[Floats, Floats]:
    """Return the candidates' true mean scores and ratings."""
    whole = Scores("plain", 0, setting.candidates) if setting.shape == "missing" else setting
    scores = draw_scores(whole, POPULATION, np.random.default_rng(12345))
    strengths = fit(win_totals(scores, TIE_MARGIN).sum(axis=0), pair_counts(scores))
    return scores.mean(axis=0), 1000.0 + ELO_PER_STRENGTH * strengths


def score_repetition(setting: Scores, seed: int) -> list[Hits]:
    """Simulate one benchmark: means, paired differences and ratings, with naive intervals."""
    true_means, true_ratings = score_truth(setting)
    scores = draw_scores(setting, setting.queries, generator(setting, seed))
    names = tuple(f"{column:03d}" for column in range(setting.candidates))
    grid = ScoreGrid(tuple(map(str, range(setting.queries))), names, scores)
    settings = {"tie_margin": TIE_MARGIN, "bootstrap": RESAMPLES, "seed": seed}
    rows = {row.candidate: row for row in rank(grid, **settings).rows}
    paired = compare(grid, names[-1], names[0], **settings).effect
    true_gap = float(true_means[-1] - true_means[0])

    counts = (~np.isnan(scores)).sum(axis=0)
    errors = np.nanstd(scores, axis=0, ddof=1) / np.sqrt(counts)
    means = np.nanmean(scores, axis=0)
    unpaired = Z * math.hypot(errors[-1], errors[0])
    rating_errors = independent_errors(scores)
    ratings = np.array([rows[name].rating.value for name in names])
    return [
        Hits(
            "mean score",
            "8 items per query, as if independent",
            share([rows[name].mean_score for name in names], true_means),
            percent(np.abs(means - true_means) <= Z * errors / math.sqrt(8.0)),
        ),
        Hits(
            "difference",
            "unpaired",
            share([paired], np.array([true_gap])),
            percent(np.array([abs(paired.value - true_gap) <= unpaired])),
        ),
        Hits(
            "rating",
            "comparisons as if independent",
            share([rows[name].rating for name in names], true_ratings),
            percent(np.abs(ratings - true_ratings) <= Z * rating_errors),
        ),
    ]


def independent_errors(scores: Floats) -> Floats:
    """Return standard errors of ratings as if every comparison were independent."""
    meetings = pair_counts(scores)
    strengths = fit(win_totals(scores, TIE_MARGIN).sum(axis=0), meetings)
    inverse = np.linalg.inv(information(strengths, meetings))
    centring = np.eye(len(strengths)) - 1.0 / len(strengths)
    errors: Floats = ELO_PER_STRENGTH * np.sqrt(np.diag(centring @ inverse @ centring))
    return errors


def draw_labels(
    setting: Labels, queries: int, rng: np.random.Generator, quality: float = 0.0
) -> tuple[Floats, Floats]:
    """Draw labels and scores of one candidate."""
    z = rng.normal(size=queries)
    noise = rng.normal(size=queries)
    seen = setting.correlation * z + math.sqrt(1.0 - setting.correlation**2) * noise
    raw = {
        "plain": 5.5 + 1.5 * z,
        "skewed": 8.8 + 2.6 * z - 0.5 * z * z,
        "very skewed": 9.3 - 1.2 * (np.exp(-0.9 * z) - 1.0),
    }[setting.shape]
    labels = np.clip(np.round(raw + quality), 1.0, 10.0)
    return labels, 9.0 / (1.0 + np.exp(-(1.5 + 1.2 * seen + quality)))


def draw_target(setting: Labels, queries: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draw labels and scores of the target: one candidate, or the difference of two."""
    labels, scores = draw_labels(setting, queries, rng)
    if setting.target == "difference":
        others, other_scores = draw_labels(setting, queries, rng, quality=-0.7)
        return labels - others, scores - other_scores
    return labels, scores


@cache
def label_truth(setting: Labels) -> float:
    """Return the true mean of the target."""
    return float(draw_target(setting, 10 * POPULATION, np.random.default_rng(54321))[0].mean())


def label_repetition(setting: Labels, seed: int) -> list[Hits]:
    """Simulate one run with a few labels: our interval, labels only, and naive intervals."""
    truth, rng = label_truth(setting), generator(setting, seed)
    labels, scores = draw_target(setting, setting.queries, rng)
    sample = pick_labels(setting, labels, scores, seed)
    found = estimate(sample)
    known = sample.labelled
    judged = Z * scores.std(ddof=1) / math.sqrt(len(scores))
    return [
        Hits(
            f"{setting.target}, with scores",
            "PPI++ as published: normal, weight known",
            share([found.with_scores], np.array([truth])),
            share([published(labels[known], scores[known], scores[~known])], np.array([truth])),
        ),
        Hits(
            f"{setting.target}, labels only",
            "scores used as labels",
            share([found.labels_only], np.array([truth])),
            percent(np.array([abs(scores.mean() - truth) <= judged])),
        ),
    ]


def published(labels: Floats, scores: Floats, others: Floats) -> Interval:
    """Return PPI++ for many labels: the tuned weight assumed known, and the normal distribution."""
    more = 1.0 + len(labels) / len(others)
    spread = float(np.concatenate([scores, others]).var())
    shared = float(((labels - labels.mean()) * (scores - scores.mean())).mean())
    weight = min(max(shared / (more * spread), 0.0), 1.0)
    rest = labels - weight * scores
    value = float(rest.mean() + weight * others.mean())
    error = math.sqrt(rest.var() / len(rest) + weight**2 * others.var() / len(others))
    return Interval(value, value - Z * error, value + Z * error)


def pick_labels(setting: Labels, labels: Floats, scores: Floats, seed: int) -> LabeledSample:
    """Label queries at random, or half at random and half as `labels next` chooses."""
    advised = setting.target.endswith("advised")
    strata = make_strata(scores, 3 if advised else 1)
    names = tuple(map(str, range(len(labels))))
    at_random = setting.labelled // 2 if advised else setting.labelled
    known = np.where(np.arange(len(labels)) < at_random, labels, np.nan)
    sample = LabeledSample("a", names, scores, known, strata)
    if not advised:
        return sample
    target = LabelTarget(("a",), strata=3)
    wanted = advise([sample], target, more=setting.labelled - at_random, seed=seed).wanted
    rows = [int(row.query_id) for row in wanted]
    known[rows] = labels[rows]
    return LabeledSample("a", names, scores, known, strata)


def generator(setting: Scores | Labels, seed: int) -> np.random.Generator:
    """Return a random generator per setting and repetition; the seed depends on field names."""
    return np.random.default_rng([zlib.crc32(repr(setting).encode()), seed])


def share(intervals: list[Interval], truths: Floats) -> float:
    """Return the percentage of intervals that contain their true value; NaN if one is unknown."""
    if any(math.isnan(interval.low) for interval in intervals):
        return math.nan
    pairs = zip(intervals, truths.tolist(), strict=True)
    return percent(np.array([i.low <= truth <= i.high for i, truth in pairs]))


def percent(hits: NDArray[np.bool_]) -> float:
    """Return the share in percent."""
    return 100.0 * float(hits.mean())


def repeat(setting: Scores | Labels, seeds: range) -> list[list[Hits]]:
    """Run every repetition of one setting."""
    once: Callable[..., list[Hits]] = (
        score_repetition if isinstance(setting, Scores) else label_repetition
    )
    return [once(setting, seed) for seed in seeds]


def lines(setting: Scores | Labels, repetitions: list[list[Hits]]) -> Iterator[str]:
    """Yield one line per figure."""
    for hits in zip(*repetitions, strict=True):
        ours, theirs = (
            np.array([getattr(hit, which) for hit in hits]) for which in ("ours", "theirs")
        )
        unknown = int(np.isnan(ours).sum())
        covered, verdict = coverage(ours[~np.isnan(ours)])
        naive, naive_verdict = coverage(theirs)
        without = f", {unknown} without interval" if unknown else ""
        yield (
            f"{hits[0].figure:38}{setting.name:52}{covered:>12}  {verdict:6}"
            f"{naive:>12}  {naive_verdict:6}{hits[0].naive}{without}"
        )


def coverage(shares: Floats) -> tuple[str, str]:
    """Return the coverage with its Monte Carlo error, and whether it passes."""
    value = float(shares.mean())
    error = float(shares.std(ddof=1)) / math.sqrt(len(shares))
    outside = max(LOW - value, value - HIGH)
    verdict = "pass" if outside <= 0.0 else "near" if outside <= 2.0 * error else "FAIL"
    return f"{value:.1f} +- {error:.1f}", verdict


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=1000)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--quick", action="store_true", help="40 repetitions, as a smoke test")
    parser.add_argument("--record", action="store_true", help=f"also write {RECORDED.name}")
    args = parser.parse_args()
    times = 40 if args.quick else args.repetitions
    head = (
        f"Coverage of 95% intervals in percent, {times} repetitions, rocketeval {__version__}; "
        f"pass: {LOW:.0f} to {HIGH:.0f}\n"
        f"{'figure':38}{'setting':52}{'ours':>12}        {'naive':>12}        naive interval"
    )
    print(head)
    printed = [head]
    started = time.monotonic()
    with ProcessPoolExecutor(args.workers) as pool:
        settings = [*score_settings(), *label_settings()]
        waiting = [pool.submit(repeat, setting, range(times)) for setting in settings]
        for setting, found in zip(settings, waiting, strict=True):
            for line in lines(setting, found.result()):
                print(line, flush=True)
                printed.append(line)
    print(f"{time.monotonic() - started:.0f} s")
    if args.record:
        RECORDED.parent.mkdir(exist_ok=True)
        RECORDED.write_text("\n".join(printed) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

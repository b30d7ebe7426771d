"""A cascade of two judges: a cheap one graded every response, a strong one grades a drawn part.

The result estimates the ranking that the strong judge would give if it graded every response. The
statistics are in `stats/two_phase.py`. Which responses are drawn follows from the cheap run, the
share and the seed alone, so that a repeated command draws the same ones and asks for nothing twice.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa

from rocketeval.arrays import Bools
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError
from rocketeval.judges.draw import LEVEL, Draw
from rocketeval.judges.runs import JudgedRun, judge_names
from rocketeval.prices import PricedUsage
from rocketeval.ranking.stage import clip_interval
from rocketeval.ranking.summary import interval_cells, table_of_rows
from rocketeval.records import Interval
from rocketeval.scoring.stage import score_judged
from rocketeval.stats.two_phase import Combined, TwoPhaseSample, combine
from rocketeval.store.codec import OPTIONAL, encode_finding
from rocketeval.store.files import refuse_inside_run, write_bytes, write_json
from rocketeval.store.manifest import GradeFacts
from rocketeval.store.schema import table_schema
from rocketeval.text import csv_text, join_words

MOST_NAMES = 5


@dataclass(frozen=True, slots=True)
class CascadeRow:
    """One candidate of a cascade."""

    candidate: str
    rank: int
    """1 is best; by estimated mean."""
    rank_low: int
    rank_high: int
    """The rank intervals of all candidates hold at once."""
    mean: Interval
    """Estimated mean score of the strong judge over all queries."""
    minus_next: Interval | None
    """Difference to the next candidate; None for the last."""
    beats_next: bool | None
    """Whether that difference is significant, corrected for all pairs."""
    group: int
    """Candidates of a group are tied with the first one in it."""
    cheap_mean: float
    """Mean score of the cheap judge."""
    cheap_off: Interval
    """The cheap judge's mean minus the strong judge's."""
    drawn: int
    """Responses drawn for the strong judge."""
    scored: int
    """Drawn responses with a score of the strong judge."""
    responses: int
    outscored_by: tuple[str, ...] = field(default=(), metadata=OPTIONAL)
    """Candidates of later rows with a significantly higher mean on the queries that both have."""


@dataclass(frozen=True, slots=True)
class Cascade:
    """An estimate of the strong judge's ranking of all responses."""

    FILE: ClassVar[str] = "cascade"
    COMMAND: ClassVar[str] = "cascade"
    SCHEMA: ClassVar[int] = 1

    cheap: str
    strong: str
    """The judges."""
    share: float
    seed: int
    level: float
    queries: int
    responses: int
    """Responses of the whole grid."""
    drawn: int
    asked: int
    """Judgments that the last command asked the strong judge for."""
    failed: tuple[str, ...]
    """Drawn responses without a score of the strong judge. The estimate assumes that they are like
    the candidate's other drawn responses."""
    cheap_missing: int
    """Responses without a score of the cheap judge; the candidate's mean predicts these."""
    rows: tuple[CascadeRow, ...]
    """Best first."""
    unranked: tuple[str, ...]
    """Candidates without a score of the strong judge."""
    slope: float
    """Points of the strong judge per point of the cheap one; near 0 if the latter is useless."""
    width_to_all: float
    """Median width of the intervals of means, relative to grading all responses; NaN if unknown."""
    width_to_share: float
    """The same, relative to grading a random share of the queries."""
    cheap_usage: PricedUsage
    strong_usage: PricedUsage
    """Of each run, with the requests that checked the judge."""


def make_cascade(cheap: JudgedRun, strong: JudgedRun, draw: Draw, facts: GradeFacts) -> Cascade:
    """Return the estimate, after the strong judge graded the drawn responses."""
    asked = np.flatnonzero(draw.drawn.any(axis=1)).tolist()
    chosen = [draw.cheap.query_ids[row] for row in asked]
    sample = draw.sample(score_judged(strong.store, strong.config.scorer, chosen))
    known, drawn = sample.known, sample.drawn
    if not known.any():
        raise BenchmarkError(
            f"The strong judge scored none of {int(drawn.sum())} drawn responses.",
            hint="See failures.jsonl in its run for the errors, then run the same command again.",
        )
    combined = combine(sample)
    names = draw.cheap.candidates
    failed = tuple(
        f"{names[column]} on {draw.cheap.query_ids[row]}"
        for row, column in np.argwhere(drawn & ~known).tolist()
    )
    judges = judge_names([cheap, strong])
    rows = _rows(draw, combined, known, strong.config)
    widths = _widths(sample, rows, names, draw.share)
    return Cascade(
        cheap=judges[0],
        strong=judges[1],
        share=draw.share,
        seed=draw.seed,
        level=LEVEL,
        queries=len(draw.cheap.query_ids),
        responses=int((~np.isnan(draw.cheap.scores)).sum()),
        drawn=int(drawn.sum()),
        asked=facts.judged,
        failed=failed,
        cheap_missing=int((np.isnan(draw.given.scores) & ~np.isnan(draw.cheap.scores)).sum()),
        rows=rows,
        unranked=tuple(names[column] for column in np.flatnonzero(~known.any(axis=0))),
        slope=round(combined.slope, 4),
        width_to_all=widths[0],
        width_to_share=widths[1],
        cheap_usage=cheap.store.manifest().stages.grade.paid,
        strong_usage=facts.paid,
    )


def _rows(
    draw: Draw, combined: Combined, known: Bools, config: RunConfig
) -> tuple[CascadeRow, ...]:
    ranked = np.flatnonzero(known.any(axis=0)).tolist()
    names, scale = draw.cheap.candidates, config.scorer.scale
    means = {column: combined.mean(column, LEVEL) for column in ranked}
    order = sorted(ranked, key=lambda column: (-means[column].value, names[column]))
    tests = combined.take(order).tests(LEVEL)
    better, (lows, highs) = tests.better(), tests.rank_bounds()
    places = range(len(order))
    groups, outscored = tests.tied_groups(places), tests.outscored(places)
    gaps = [combined.difference(one, two, LEVEL) for one, two in pairwise(order)]
    values = [means[column].value for column in order]
    rows = []
    for place, column in enumerate(order):
        rank = 1 + sum(value > values[place] for value in values)
        off = combined.mean_minus(draw.cheap.scores, column, LEVEL)
        last = place + 1 == len(order)
        rows.append(
            CascadeRow(
                candidate=names[column],
                rank=rank,
                rank_low=min(rank, int(lows[place])),
                rank_high=max(rank, int(highs[place])),
                mean=_rounded(clip_interval(means[column], scale)),
                minus_next=None if last else _rounded(gaps[place]),
                beats_next=None if last else bool(better[place, place + 1]),
                group=groups[place],
                cheap_mean=round(float(np.nanmean(draw.cheap.scores[:, column])), 6),
                cheap_off=_rounded(Interval(-off.value, -off.high, -off.low)),
                drawn=int(draw.drawn[:, column].sum()),
                scored=int(known[:, column].sum()),
                responses=int((~np.isnan(draw.cheap.scores[:, column])).sum()),
                outscored_by=tuple(names[order[other]] for other in outscored[place]),
            )
        )
    return tuple(rows)


def _rounded(found: Interval) -> Interval:
    return Interval(*(round(x, 6) for x in (found.value, found.low, found.high)))


def _widths(
    sample: TwoPhaseSample, rows: Sequence[CascadeRow], names: Sequence[str], share: float
) -> tuple[float, float]:
    """Return the median width of the means relative to all responses, and to a random share.

    The strong judge's spread is estimated from the drawn responses. Unknown for clustered queries.
    """
    from scipy.special import stdtrit

    if len(np.unique(sample.clusters)) < len(sample.clusters):
        return math.nan, math.nan
    ratios = []
    for row in rows:
        column = list(names).index(row.candidate)
        here = sample.known[:, column]
        weights, scores = 1.0 / sample.probabilities[here, column], sample.better[here, column]
        away = scores - np.average(scores, weights=weights)
        spread = math.sqrt(np.average(away**2, weights=weights) * len(away) / max(1, len(away) - 1))
        for queries in (row.responses, max(2.0, share * row.responses)):
            half = stdtrit(queries - 1.0, (1.0 + LEVEL) / 2.0) * spread / math.sqrt(queries)
            ratios.append((row.mean.high - row.mean.low) / (2.0 * half) if half else math.nan)
    to_all, to_share = (np.array(ratios[start::2]) for start in (0, 1))
    if np.isnan(to_all).all():
        return math.nan, math.nan
    return float(np.nanmedian(to_all).round(4)), float(np.nanmedian(to_share).round(4))


_RANKING = table_schema(
    ("rank rank_low rank_high", pa.int64()),
    ("candidate", pa.string()),
    ("mean mean_low mean_high cheap_mean cheap_off cheap_off_low cheap_off_high", pa.float64()),
    ("drawn scored responses group", pa.int64()),
)


def save_cascade(found: Cascade, folder: Path) -> Cascade:
    """Write cascade.json and ranking.csv; return the cascade."""
    refuse_inside_run(folder)
    write_json(folder / "cascade.json", encode_finding(found))
    rows = [
        (
            row.rank,
            row.rank_low,
            row.rank_high,
            row.candidate,
            *interval_cells(row.mean),
            row.cheap_mean,
            *interval_cells(row.cheap_off),
            row.drawn,
            row.scored,
            row.responses,
            row.group,
        )
        for row in found.rows
    ]
    text = csv_text(_RANKING.names, [table_of_rows(rows, _RANKING)])
    write_bytes(folder / "ranking.csv", "".join(text).encode())
    return found


def gains_in_words(found: Cascade) -> Iterator[str]:
    """Yield what the cascade estimates, what it used, what it gained, and how far to trust it."""
    part = f"{found.drawn:,} of {found.responses:,} responses ({found.drawn / found.responses:.0%})"
    yield (
        f"Estimated mean scores of {found.strong} over all responses; it graded {part}, drawn more "
        f"often where {found.cheap} is uncertain."
    )
    if not math.isnan(found.width_to_share):
        yield (
            f"Intervals are {found.width_to_share:.2f} times as wide as from a random "
            f"{found.share:.0%} graded by {found.strong} alone, and {found.width_to_all:.2f} times "
            f"as wide as from all responses."
        )
    offs = sorted(found.rows, key=lambda row: row.cheap_off.value)
    if offs:
        ends = [
            f"{round(row.cheap_off.value, 2) + 0.0:+.2f} ({row.candidate})"
            for row in (offs[0], offs[-1])
        ]
        between = f"{ends[0]} to {ends[1]}" if len(offs) > 1 else ends[0]
        yield f"The means of {found.cheap} alone are off by {between}."
    if found.failed:
        names = join_words(found.failed, most=MOST_NAMES)
        yield (
            f"{len(found.failed):,} drawn responses have no score of {found.strong}: {names}. The "
            "estimate assumes that they are like the candidate's others."
        )
    if found.cheap_missing:
        yield (
            f"{found.cheap_missing:,} responses have no score of {found.cheap}; the candidate's "
            "mean predicts them."
        )
    for name in found.unranked:
        yield f"Not ranked, no score of {found.strong}: {name}"

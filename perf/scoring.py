"""Supervised scores and the ranking at 1,000 candidates x 1,000 queries x 8 items.

    python perf/scoring.py [--queries 1000] [--candidates 1000] [--labelled 50]
                           [--bare-queries 200] [--record]

In the same process, the script also times scikit-learn's own `ExtraTreesRegressor.fit` (as many
trees, the same labels, one call per query; `--bare-queries` of them are timed and scaled up), and
evalica's Bradley-Terry fit on the same comparisons. evalica gets weighted pairs, because half a
billion single comparisons do not fit. CPU seconds and wall seconds of one process. Needs the `dev`
extra.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from rocketeval.config import ScorerConfig
from rocketeval.grid import ScoreGrid, compare
from rocketeval.ranking.rank import rank
from rocketeval.records import Gold, Label
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.base import create_scorer
from rocketeval.scoring.crossfit import score_answers

RECORDED = Path(__file__).parent / "recorded" / "scoring.txt"
ITEMS, TREES, FOLDS, BOOTSTRAP, MARGIN = 8, 100, 5, 1000, 0.1


@dataclass
class Watch:
    """The CPU and wall time of a block."""

    cpu: float = 0.0
    wall: float = 0.0


@contextmanager
def timed() -> Iterator[Watch]:
    """Time a block."""
    watch, cpu, wall = Watch(), time.process_time(), time.perf_counter()
    yield watch
    watch.cpu, watch.wall = time.process_time() - cpu, time.perf_counter() - wall


def make(queries: int, candidates: int, labelled: int) -> tuple[AnswerTable, list[Label]]:
    """Return answers of candidates of many strengths, and labels that follow some items more."""
    random = np.random.default_rng(0)
    strength = random.normal(size=(1, candidates, 1))
    hardness = random.normal(size=(queries, 1, ITEMS))
    noise = random.normal(size=(queries, candidates, ITEMS))
    p_yes = 1.0 / (1.0 + np.exp(-(strength - hardness + noise)))
    weights = random.dirichlet(np.ones(ITEMS), size=queries)
    quality = np.einsum("qci,qi->qc", p_yes[:, :labelled], weights)
    values = np.clip(np.round(1 + 9 * quality + random.normal(size=quality.shape) / 2), 1, 10)
    names = [f"c{number:04d}" for number in range(candidates)]
    query_ids = [f"q{number:04d}" for number in range(queries)]
    table = AnswerTable(
        [query for query in query_ids for _ in names],
        names * queries,
        p_yes.ravel(),
        np.arange(0, queries * candidates * ITEMS + 1, ITEMS),
    )
    labels = [
        Label(query, names[column], float(values[row, column]))
        for row, query in enumerate(query_ids)
        for column in range(labelled)
    ]
    return table, labels


def bare_fits(table: AnswerTable, labels: list[Label], labelled: int, timed_queries: int) -> Watch:
    """Time scikit-learn's own fits of the first queries."""
    from sklearn.ensemble import ExtraTreesRegressor

    values = np.array([label.value for label in labels]).reshape(-1, labelled)
    blocks = [
        block.p_yes[:labelled]
        for block, _ in zip(table.blocks(), range(timed_queries), strict=False)
    ]
    ExtraTreesRegressor(TREES, random_state=0).fit(blocks[0], values[0])
    with timed() as watch:
        for row, block in enumerate(blocks):
            ExtraTreesRegressor(TREES, random_state=0).fit(block, values[row])
    return watch


def evalica_fit(scores: np.ndarray[Any, Any]) -> tuple[Watch, Watch, np.ndarray[Any, Any]]:
    """Time evalica on the grid's comparisons: building weighted pairs, and the fit."""
    import evalica

    candidates = scores.shape[1]
    firsts, seconds, winners, weights = [], [], [], []
    outcomes = {1: evalica.Winner.X, -1: evalica.Winner.Y, 0: evalica.Winner.Draw}
    with timed() as pairs:
        for first in range(candidates - 1):
            won = compare(scores[:, first : first + 1], scores[:, first + 1 :], MARGIN)
            for outcome, winner in outcomes.items():
                counts = (won == outcome).sum(axis=0)
                found = np.flatnonzero(counts)
                firsts.extend([first] * len(found))
                seconds.extend((found + first + 1).tolist())
                winners.extend([winner] * len(found))
                weights.extend(counts[found].astype(float).tolist())
    with timed() as fit:
        found = evalica.bradley_terry(firsts, seconds, winners, weights=weights, tolerance=1e-8)
    return pairs, fit, np.log(found.scores.sort_index().to_numpy())


def main() -> None:
    """Measure everything and print it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--labelled", type=int, default=50)
    parser.add_argument("--bare-queries", type=int, default=200)
    parser.add_argument("--record", action="store_true", help=f"also write {RECORDED.name}")
    args = parser.parse_args()
    lines: list[str] = []

    def say(text: str) -> None:
        print(text, flush=True)
        lines.append(text)

    say(
        f"{args.candidates:,} candidates x {args.queries:,} queries x {ITEMS} items, "
        f"{args.labelled} candidates labeled, {TREES} trees"
    )
    scores = measure_scoring(args, say)
    measure_ranking(scores, say)
    if args.record:
        RECORDED.write_text("\n".join(lines) + "\n", encoding="utf-8")


def measure_scoring(args: argparse.Namespace, say: Callable[[str], None]) -> ScoreGrid:
    """Time our fits and predictions against the bare fits; return the scores."""
    table, labels = make(args.queries, args.candidates, args.labelled)
    gold = Gold(labels)
    bare_queries = min(args.bare_queries, args.queries)
    config = ScorerConfig(kind="extra_trees", hold_out=0.0, folds=FOLDS, options={"trees": TREES})
    bare = bare_fits(table, labels, args.labelled, bare_queries)
    scale = args.queries / bare_queries
    labelled_rows = [row for row in range(len(table)) if row % args.candidates < args.labelled]
    with timed() as fit:
        scorer = create_scorer(config).fit(table.take(labelled_rows), gold)
    with timed() as predict:
        scorer.predict(table)
    with timed() as everything:
        scored = score_answers(table, gold, config)
    one, both = bare.cpu * scale, fit.cpu + predict.cpu
    say("")
    say("                                        processor s    wall s   of the bare fits")
    rows = {
        "scikit-learn: one bare fit per query": (one, bare.wall * scale, 1.0),
        "ours: fit": (fit.cpu, fit.wall, fit.cpu / one),
        "ours: predict all": (predict.cpu, predict.wall, predict.cpu / one),
        "ours: fit + predict all": (both, fit.wall + predict.wall, both / one),
        f"ours: total, with {FOLDS} more folds": (
            everything.cpu,
            everything.wall,
            everything.cpu / one,
        ),
    }
    for name, (cpu, wall, ratio) in rows.items():
        say(f"{name:<40}{cpu:>11.1f}{wall:>10.1f}{ratio:>12.2f}")
    say(f"(bare fits timed on {bare_queries:,} queries; last line: {FOLDS + 1} fits per query)")
    return ScoreGrid.from_columns(table.query_ids, table.candidates, scored.scores.tolist())


def measure_ranking(grid: ScoreGrid, say: Callable[[str], None]) -> None:
    """Time the ranking with its bootstrap against a single fit by evalica."""
    with timed() as ours:
        ranking = rank(grid, tie_margin=MARGIN, bootstrap=BOOTSTRAP)
    pairs, fit, theirs = evalica_fit(grid.scores)
    found = {row.candidate: row.rating.value for row in ranking.rows}
    ratings = np.array([found[name] for name in grid.candidates])
    comparisons = len(grid.query_ids) * len(grid.candidates) * (len(grid.candidates) - 1) // 2
    say("")
    say(f"{comparisons:,} comparisons                   processor s    wall s")
    rows = {
        f"ours: rank with {BOOTSTRAP:,} resamples": ours,
        "evalica: one fit, no intervals": fit,
        "  building its weighted pairs": pairs,
    }
    for name, watch in rows.items():
        say(f"{name:<40}{watch.cpu:>11.1f}{watch.wall:>10.1f}")
    say(f"correlation of the ratings: {np.corrcoef(ratings, theirs)[0, 1]:.6f}")


if __name__ == "__main__":
    main()

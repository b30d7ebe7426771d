"""RocketEval Tables 3, 6 and Fig. 6: do mean scores rank candidates as an arena does?

    python studies/papers/list_level.py [--limit N] [--record]

Arena-Hard: the paper's 22 candidates and its own Elo lists (10 for training, 12 for testing; we
train on none here, so both are informative). Intervals resample queries: they show how much the
order depends on the prompts drawn, not on the candidates. Fig. 6: the same orders compared with
each other, judge by judge and method by method. MT-Bench's list-level figures are in
studies/mt_bench/supervised.py.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict
from itertools import product

import numpy as np
from runs import JUDGES, cut, graded, record, rows_of, table

from rocketeval.audit.votes import mean_scores
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import interval, resample_queries
from rocketeval.stats.correlation import rank_matrix
from rocketeval.text import figure

METHODS = (
    ("RocketEval (unsupervised)", "checklist", False),
    ("  without normalized score", "checklist", True),
    ("Direct", "direct", False),
)
LENGTH, ELO = "response length", "arena Elo"


def main() -> None:
    """Print the correlations with the arena, and of judges with each other."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    test = {row["candidate"]: row["value"] for row in rows_of("arena_hard", "ratings")}
    train = {row["candidate"]: row["value"] for row in rows_of("arena_hard", "train_ratings")}
    grids = read_grids(given.limit)
    queries = next(iter(grids.values())).query_ids
    grids[LENGTH] = lengths_like(next(iter(grids.values())))
    rows, content = [], {}
    for name, grid in grids.items():
        found = {"12 test": correlations(grid, test), "all 22": correlations(grid, test | train)}
        content[name] = found
        shown = [figure(found[part][kind], ".2f") for part, kind in product(found, KINDS)]
        rows.append([name, *shown])
    head = ["", *(f"{part}, {kind}" for part, kind in product(("12 test", "all 22"), KINDS))]
    lines = [f"Arena-Hard, {len(queries)} prompts", *table(head, rows)]
    orders = {name: mean_scores(grid) for name, grid in grids.items()} | {ELO: test | train}
    matrix = rank_matrix(orders)
    lines += ["", "Spearman between the orders of candidates (Fig. 6)", *matrix_table(matrix)]
    content = {"queries": list(queries), "correlations": content, "matrix": asdict(matrix)}
    record("list_level", content, lines, keep=given.record)
    if given.record:
        from plots import heatmap

        values = [
            [1.0 if i == j else _value(cell) for j, cell in enumerate(row)]
            for i, row in enumerate(matrix.cells)
        ]
        heatmap("list_level", [name.strip() for name in matrix.judges], values)


KINDS = ("Spearman", "Kendall")


def read_grids(limit: int | None) -> dict[str, ScoreGrid]:
    """Return the scores of every judge and method, on the queries that all of them have."""
    found = {}
    for judge, shown in JUDGES.items():
        for name, method, hard in METHODS:
            each = graded("arena_hard", method, judge, limit)
            if each is not None:
                found[f"{shown}: {name.strip()}"] = each.grid(hard=hard)
    common = set.intersection(*(set(grid.query_ids) for grid in found.values()))
    return {name: cut(grid, common) for name, grid in found.items()}


def lengths_like(grid: ScoreGrid) -> ScoreGrid:
    """Return response lengths in the cells of `grid`."""
    rows = rows_of("arena_hard", "responses")
    known = {(row["query_id"], row["candidate"]): float(len(row["text"])) for row in rows}
    values = [[known[query, name] for name in grid.candidates] for query in grid.query_ids]
    return ScoreGrid(grid.query_ids, grid.candidates, np.array(values))


def correlations(grid: ScoreGrid, ratings: Mapping[str, float]) -> dict[str, Interval]:
    """Return Spearman's and Kendall's coefficient with the ratings, resampling queries."""
    from scipy.stats import kendalltau, rankdata

    columns = [place for place, name in enumerate(grid.candidates) if name in ratings]
    elo = np.array([ratings[grid.candidates[place]] for place in columns])
    scores = grid.scores[:, columns]
    here = np.isfinite(scores)
    filled = np.where(here, scores, 0.0)

    def both(weights: np.ndarray) -> tuple[float, float]:
        means = (weights @ filled) / (weights @ here)
        rho = np.corrcoef(rankdata(means), rankdata(elo))[0, 1]
        return float(rho), float(kendalltau(means, elo).statistic)

    value = both(np.ones(len(scores)))
    counts = np.concatenate(list(resample_queries(len(scores), 1000, 0)))
    # Few queries allow only few distinct resamples.
    ways, drawn = np.unique(counts, axis=0, return_inverse=True)
    draws = np.array([both(row) for row in ways])[drawn.reshape(-1)]
    return {
        kind: interval(value[place], draws[:, place], queries=len(scores), level=0.95)
        for place, kind in enumerate(KINDS)
    }


def matrix_table(matrix: object) -> list[str]:
    """Return the rank matrix as text, with numbered orders."""
    names, cells = matrix.judges, matrix.cells  # type: ignore[attr-defined]
    head = ["", *(str(number) for number in range(1, len(names) + 1))]
    rows = []
    for number, (name, row) in enumerate(zip(names, cells, strict=True), 1):
        shown = ["-" if i + 1 == number else f"{_value(cell):.2f}" for i, cell in enumerate(row)]
        rows.append([f"{number} {name}", *shown])
    return table(head, rows)


def _value(cell: object) -> float:
    found = cell.spearman  # type: ignore[attr-defined]
    return float("nan") if found is None else found.value


if __name__ == "__main__":
    main()

"""CheckEval Table 1, Evaluating the Evaluator Tables 1 and 2: one criterion at a time.

    python studies/papers/dimensions.py [--limit N] [--record]

SummEval (16 systems), four criteria, with mean human ratings as reference data. A criterion is
judged by its checklist (CheckEval's seed questions, each asked independently; as probabilities, and
as counted yes and no, which is CheckEval's own score), by a grade from 1 to 5 with a full rubric,
with the criterion's name, with no criterion at all, and by perplexity. Correlations are within
articles (their mean, as in CheckEval) and pooled over all responses (as in Evaluating the
Evaluator). Topical-Chat is in criteria.py, from stored judgments.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from grade import SUMMEVAL
from runs import JUDGES, graded, record, rows_of, table

from rocketeval.audit.labels import PER_QUERY, RESPONSES, cells_of, label_correlation
from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Label
from rocketeval.scoring.learning import label_cells
from rocketeval.stats.bootstrap import interval, ratio_draws
from rocketeval.stats.correlation import within_queries
from rocketeval.text import figure

STUDY, SHOWN = "summeval", "SummEval"
CHECKLIST, COUNTED = "checklist, probabilities", "checklist, yes counted"
LEVELS = {
    "perplexity": "1 perplexity",
    "generic": "2 generic prompt",
    "criterion": "3 criterion's name",
    "rubric": "4 full rubric",
}


def main() -> None:
    """Print the tables of both papers."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    found = correlations(STUDY, SUMMEVAL, given.limit)
    means = overall(STUDY, SUMMEVAL, given.limit)
    content: dict[str, Any] = {
        "correlation": {SHOWN: found},
        "overall": {
            SHOWN: {
                judge: {method: asdict(result) for method, result in methods.items()}
                for judge, methods in means.items()
            }
        },
    }
    lines = [*shown_correlations(SHOWN, SUMMEVAL, found), *shown_overall(SHOWN, means)]
    record("dimensions", content, lines, keep=given.record)
    if given.record:
        from plots import levels

        levels(content["correlation"])


def correlations(
    study: str, names: tuple[str, ...], limit: int | None
) -> dict[str, dict[str, dict[str, Any]]]:
    """Return figures by judge, method and criterion."""
    gold = ratings(study, names)
    found: dict[str, dict[str, dict[str, Any]]] = {}
    for judge, shown in JUDGES.items():
        by_method: dict[str, dict[str, Any]] = defaultdict(dict)
        for name in names:
            for method, grid in grids(study, name, judge, limit).items():
                by_method[method][name] = both_levels(grid, gold[name])
        if by_method:
            found[shown] = dict(by_method)
    return found


def ratings(study: str, names: Sequence[str]) -> dict[str, list[Label]]:
    """Return human ratings by criterion."""
    rows = rows_of(study, "gold")
    return {
        name: [Label(row["query_id"], row["candidate"], row[name]) for row in rows]
        for name in names
    }


def both_levels(grid: ScoreGrid, labels: Sequence[Label]) -> dict[str, Any]:
    """Return coefficients of scores and ratings, within queries and over all responses."""
    known = set(grid.query_ids)
    result = label_correlation(grid, [label for label in labels if label.query_id in known])
    return {"within": asdict(result.levels[PER_QUERY]), "pooled": asdict(result.levels[RESPONSES])}


def grids(study: str, name: str, judge: str, limit: int | None) -> dict[str, ScoreGrid]:
    """Return the scores for one criterion, by method."""
    found: dict[str, ScoreGrid] = {}
    checklist = graded(study, "checklist", judge, limit)
    if checklist is not None:
        items = items_of(study, name)
        found[CHECKLIST] = checklist.grid(items)
        found[COUNTED] = checklist.grid(items, hard=True)
    for level, shown in LEVELS.items():
        suffix = f":criterion={name}" if level in ("criterion", "rubric") else ""
        each = graded(study, level + suffix, judge, limit)
        if each is not None:
            found[shown] = each.grid()
    return found


def items_of(study: str, name: str) -> list[int]:
    """Return the positions of one criterion's questions in the study's checklist."""
    rows = rows_of(study, "dimensions")
    return [place for place, row in enumerate(rows) if row["dimension"] == name]


def overall(
    study: str, names: tuple[str, ...], limit: int | None
) -> dict[str, dict[str, Interval]]:
    """Return the mean over criteria and queries of Spearman within a query, by judge and method.

    A query counts with the mean of the criteria whose scores and ratings both differ.
    """
    gold = ratings(study, names)
    found: dict[str, dict[str, Interval]] = {}
    for judge, shown in JUDGES.items():
        by_query: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        for name in names:
            for method, grid in grids(study, name, judge, limit).items():
                for query, value in within(grid, gold[name]).items():
                    by_query[method][query].append(value)
        for method, queries in by_query.items():
            result = mean_over([float(np.mean(each)) for each in queries.values()])
            found.setdefault(shown, {})[method] = result
    return found


def mean_over(values: Sequence[float]) -> Interval:
    """Return a mean over resampled queries."""
    each = np.array(values)
    draws = ratio_draws(each[:, None], np.ones((len(each), 1)), times=2000, seed=0)[:, 0]
    return interval(float(each.mean()), draws, queries=len(each), level=0.95)


def within(grid: ScoreGrid, labels: list[Label]) -> dict[str, float]:
    """Return Spearman of scores and ratings within each query where neither is constant."""
    laid_out, unknown = label_cells(grid, labels)
    cells, _ = cells_of(grid, laid_out, unknown)
    queries, places = np.unique(cells.rows, return_inverse=True)
    values = within_queries(cells.scores, cells.labels, places)[:, 1].tolist()
    named = zip(queries.tolist(), values, strict=True)
    return {grid.query_ids[row]: value for row, value in named if np.isfinite(value)}


def shown_overall(study: str, found: dict[str, dict[str, Interval]]) -> list[str]:
    """Return the overall figures with their intervals as text."""
    rows = [
        [f"{judge}: {method}", figure(result, ".2f")]
        for judge, methods in found.items()
        for method, result in methods.items()
    ]
    return [f"{study}: mean Spearman within queries, over criteria", *table(["", "mean"], rows)]


def shown_correlations(
    study: str, names: tuple[str, ...], found: dict[str, dict[str, dict[str, Any]]]
) -> list[str]:
    """Return Spearman within queries and pooled Pearson, by judge, method and criterion."""
    lines = []
    kinds = (
        ("within", "spearman", "Spearman within queries [that have one]"),
        ("pooled", "pearson", "Pearson"),
    )
    for where, kind, result in kinds:
        rows = []
        for judge, methods in found.items():
            for method, figures in methods.items():
                known = [figures[name][where] if name in figures else None for name in names]
                values = [None if each is None else _value(each[kind]) for each in known]
                counts = [f" [{each['n']}]" if each and where == "within" else "" for each in known]
                shown = [
                    "-" if value is None else f"{value:.2f}{count}"
                    for value, count in zip(values, counts, strict=True)
                ]
                rows.append([f"{judge}: {method}", *shown, f"{mean(values):.2f}"])
        lines += [f"{study}: {result}", *table(["", *names, "mean"], rows), ""]
    return lines


def mean(values: list[float] | list[float | None]) -> float:
    """Return the mean of the known values."""
    known = [value for value in values if value is not None]
    return float(np.mean(known)) if known else float("nan")


def _value(result: dict[str, float] | None) -> float | None:
    return None if result is None else result["value"]


if __name__ == "__main__":
    main()

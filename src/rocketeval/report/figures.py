"""The audit for the report: figures beside baselines, and tables.

What gold says of low, middling and high scores, for the report.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.config import RunConfig
from rocketeval.grid import vote_outcomes
from rocketeval.records import Interval, Vote
from rocketeval.report.cells import ResponseGrid
from rocketeval.report.model import CurveBin, FigureRow, FigureTable, ReportCurve, ReportFigure
from rocketeval.stats.bootstrap import Resampling, renumbered
from rocketeval.text import join_words


def read_interval(found: Mapping[str, float | None] | None) -> Interval | None:
    """Return an interval as JSON kept it; None if there is none."""
    value = None if found is None else found.get("value")
    if found is None or value is None:
        return None
    # JSON has no NaN: a figure that rests on too little has no bounds, so it may be anything.
    low, high = found.get("low"), found.get("high")
    return Interval(value, -math.inf if low is None else low, math.inf if high is None else high)


def figures(audit: Mapping[str, Any]) -> tuple[ReportFigure, ...]:
    """Return agreement and correlations, each beside its baselines."""
    figures = []
    voters = audit.get("voters") or {}
    for ties, name in (("with_ties", "votes, ties included"), ("without_ties", "decided votes")):
        for method, found in audit.get("agreement", {}).items():
            figures.append(
                ReportFigure(
                    name=f"Agreement with {name}" if method == "judge" else method,
                    value=read_interval(found.get(ties)),
                    note=f"{found.get('used' if ties == 'with_ties' else 'decisive', 0)} votes",
                    unit="share",
                    baseline=method not in ("judge", "labeler"),
                )
            )
        if voters:
            figures.append(
                ReportFigure(
                    name="another voter",
                    value=read_interval(voters.get(ties)),
                    note="how often two voters agree: the ceiling",
                    unit="share",
                )
            )
    for part, methods in audit.get("labels", {}).items():
        for method, found in methods.items():
            note = found.get("reason") or f"{found.get('responses', 0)} labelled responses"
            judge = method == "judge"
            name = f"Pearson with {part}" if judge else method
            value = read_interval(found.get("pearson"))
            figures.append(ReportFigure(name, value, note, baseline=not judge))
    if audit.get("ratings"):
        figures.append(_rating_figure(audit["ratings"]))
    return tuple(figures)


def tables(audit: Mapping[str, Any]) -> tuple[FigureTable, ...]:
    """Return agreement by category and tie margin, correlations by level, and biases.

    Audits made before these were measured have none.
    """
    found = [_categories(audit.get("categories", ())), _margins(audit)]
    found += [_levels(part, methods) for part, methods in audit.get("labels", {}).items()]
    found.append(_bias(audit.get("bias")))
    return tuple(table for table in found if table is not None)


def _categories(parts: Sequence[Mapping[str, Any]]) -> FigureTable | None:
    if len(parts) < 2:
        return None
    pooled = parts[-1].get("pooled")
    return FigureTable(
        title="Agreement with decided votes, by category",
        columns=("judge", "another voter"),
        rows=tuple(
            FigureRow(
                part["category"],
                (
                    read_interval(part["agreement"].get("without_ties")),
                    read_interval((part.get("voters") or {}).get("without_ties")),
                ),
                f"{part['agreement'].get('decisive', 0):,} votes",
            )
            for part in parts
        ),
        unit="share",
        note=f"In other, too few votes each: {join_words(pooled, most=10)}." if pooled else "",
    )


def _margins(audit: Mapping[str, Any]) -> FigureTable | None:
    margins = [row for row in audit.get("margins", ()) if row.get("with_ties")]
    if not margins:
        return None
    return FigureTable(
        title="Agreement with votes, ties included, by tie margin",
        columns=("judge",),
        rows=tuple(
            FigureRow(
                f"{row['margin']:g}",
                (read_interval(row["with_ties"]),),
                "used" if row["margin"] == audit.get("tie_margin") else "",
            )
            for row in margins
        ),
        unit="share",
    )


def _levels(part: str, methods: Mapping[str, Any]) -> FigureTable | None:
    judge = methods.get("judge", {}).get("levels")
    if not judge:
        return None
    rows = [("judge", name) for name in ("pearson", "spearman", "kendall")]
    rows += [(method, "spearman") for method in methods if method != "judge"]
    left_out = judge.get("per query", {}).get("left_out")
    return FigureTable(
        title=f"Correlation with {part}, at three levels",
        columns=tuple(judge),
        rows=tuple(
            FigureRow(
                method,
                tuple(_at_level(methods[method], level, name) for level in judge),
                name.capitalize(),
            )
            for method, name in rows
        ),
        note=f"Queries left out, scores or labels all the same: {left_out}." if left_out else "",
    )


def _at_level(found: Mapping[str, Any], level: str, name: str) -> Interval | None:
    return read_interval((found.get("levels") or {}).get(level, {}).get(name))


def _rating_figure(found: Mapping[str, Any]) -> ReportFigure:
    name = "Spearman with reference ratings"
    spearman = found.get("spearman")
    if spearman is None:
        return ReportFigure(name, None, found.get("reason") or "")
    value, bounds, p_value = (spearman.get(part) for part in ("value", "interval", "p_value"))
    note = f"{found.get('n', 0)} candidates"
    if p_value is not None:
        note += ", p < 0.001" if p_value < 0.001 else f", p = {p_value:.3f}"
    if bounds is None:
        return ReportFigure(name, Interval(value, value, value), f"{note}; no interval")
    return ReportFigure(name, read_interval(bounds), note)


def _bias(bias: Mapping[str, Any] | None) -> FigureTable | None:
    if bias is None:
        return None
    length, family = bias.get("length") or {}, bias.get("own_family") or {}
    queries, labelled = (f"{length.get(name, 0):,} queries" for name in ("queries", "gold_queries"))
    of_family = f"{family.get('queries', 0):,} queries"
    found = (
        ("score follows length, Spearman", length.get("scores"), queries),
        ("label follows length, Spearman", length.get("gold"), labelled),
        ("score of labelled responses follows length", length.get("scores_with_gold"), labelled),
        ("score follows length beyond label", length.get("excess"), labelled),
        ("share of lost votes that the longer won", length.get("lost_to_longer"), _lost(length)),
        ("own family, score beyond label", family.get("preference"), of_family),
        ("own family at equal labels", family.get("at_equal_gold"), of_family),
    )
    rows = tuple(
        FigureRow(name, (read_interval(value),), note) for name, value, note in found if value
    )
    if not rows:
        return None
    return FigureTable(
        title="Beside quality: length and family, within a query",
        columns=("judge",),
        rows=rows,
        note=_bias_note(bias),
    )


def _lost(length: Mapping[str, Any]) -> str:
    return f"{length.get('lost', 0):,} votes"


def _bias_note(bias: Mapping[str, Any]) -> str:
    notes = []
    seen, skipped = bias.get("queries", 0), bias.get("queries_skipped", 0)
    if skipped:
        notes.append(f"Lengths were looked at on {seen:,} of {seen + skipped:,} queries.")
    if bias.get("own_family"):
        names = join_words(bias["own_family"].get("family", ()), most=5)
        notes.append(f"Own family, by name, in standard deviations of a query's scores: {names}.")
    return " ".join(notes)


Places = NDArray[np.intp]
Means = Callable[[Floats, Places, Places, int], list[Interval | None]]

BINS = 10
FEWEST = 20
"""Labels or votes below which bins say nothing."""

_INTERVALS = "Intervals resample the queries."


def curves(
    cells: ResponseGrid,
    config: RunConfig,
    labels: Floats,
    votes: Sequence[Vote],
    item_gold: Mapping[str, Any] | None,
) -> tuple[ReportCurve, ...]:
    """Return a curve for each kind of gold that the run has."""
    ranking = config.ranking
    resampling = Resampling(ranking.bootstrap, ranking.seed, 0.95)
    return (
        *_items(item_gold),
        *_labels(cells, labels, config.scorer.scale, resampling),
        *_votes(cells, votes, resampling),
    )


def _items(item_gold: Mapping[str, Any] | None) -> Iterator[ReportCurve]:
    if item_gold is None:
        return
    found = item_gold["calibration"]
    bins = [
        CurveBin(each["mean_p"], gold, each["items"])
        for each in found["by_width"]["bins"]
        if (gold := read_interval(each["gold"])) is not None
    ]
    if bins:
        yield ReportCurve(
            title="Answers against gold answers to the same items",
            x_label="Probability of yes",
            y_label="Share that gold says yes to",
            diagonal=True,
            bins=tuple(bins),
            how=f"{found['items']:,} answers in bins of equal width. Of answers with 0.8, four in "
            f"five should be a yes: the diagonal. {_INTERVALS}",
        )


def _labels(
    cells: ResponseGrid, labels: Floats, scale: tuple[float, float], resampling: Resampling
) -> Iterator[ReportCurve]:
    queries, candidates = np.nonzero(~np.isnan(labels) & ~np.isnan(cells.scores))
    if len(queries) < FEWEST:
        return
    scores, gold = cells.scores[queries, candidates], labels[queries, candidates]
    same = bool(scale[0] <= np.nanmin(labels) and np.nanmax(labels) <= scale[1])
    diagonal = " On the diagonal, score and label are equal." if same else ""
    yield ReportCurve(
        title="Scores against labels",
        x_label="Score",
        y_label="Mean label",
        diagonal=same,
        bins=_binned(scores, gold, queries, resampling.means),
        how=f"{len(scores):,} labelled responses in ten bins of about equally many, from low to "
        f"high score; each dot is the mean label of a bin.{diagonal} {_INTERVALS}",
    )


def _votes(
    cells: ResponseGrid, votes: Sequence[Vote], resampling: Resampling
) -> Iterator[ReportCurve]:
    rows = {query: row for row, query in enumerate(cells.query_ids)}
    columns = {name: column for column, name in enumerate(cells.candidates)}
    usable = [
        vote
        for vote in votes
        if vote.query_id in rows and vote.candidate_a in columns and vote.candidate_b in columns
    ]
    queries = np.array([rows[vote.query_id] for vote in usable], dtype=np.int64)
    first = np.array([columns[vote.candidate_a] for vote in usable], dtype=np.int64)
    second = np.array([columns[vote.candidate_b] for vote in usable], dtype=np.int64)
    differences = cells.scores[queries, first] - cells.scores[queries, second]
    known = ~np.isnan(differences)
    if known.sum() < FEWEST:
        return
    shares: Floats = (vote_outcomes(usable)[known].astype(np.float64) + 1.0) / 2.0
    yield ReportCurve(
        title="Differences of scores against votes",
        x_label="Score of the first response less that of the second",
        y_label="Share of votes for the first",
        diagonal=False,
        bins=_binned(differences[known], shares, queries[known], resampling.shares),
        how=f"{int(known.sum()):,} votes in ten bins of about equally many, by how much higher the "
        "first response scores; a tie is half a vote. A judge that people agree with gives a "
        f"curve that climbs from 0 to 1 through the middle. {_INTERVALS}",
    )


def _binned(x: Floats, y: Floats, queries: Ints, means: Means) -> tuple[CurveBin, ...]:
    """Ten bins of about equally many; equal values of x stay together."""
    edges = np.quantile(x, np.arange(1, BINS) / BINS)
    parts = np.searchsorted(edges, x).astype(np.intp)
    counts = np.bincount(parts, minlength=BINS)
    totals = np.bincount(parts, x, BINS)
    found = means(y, renumbered(queries.astype(np.intp)), parts, BINS)
    return tuple(
        CurveBin(float(totals[part] / counts[part]), value, int(counts[part]))
        for part, value in enumerate(found)
        if value is not None
    )

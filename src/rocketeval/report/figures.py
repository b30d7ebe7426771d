"""Audit figures with baselines, tables, and calibration curves for the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.audit.audit import Audit
from rocketeval.audit.bias import Bias
from rocketeval.audit.item_gold import ItemGold
from rocketeval.audit.labels import LEVELS, RESPONSES, LabelCorrelation
from rocketeval.audit.votes import JUDGE
from rocketeval.audit.wording import (
    ANOTHER_VOTER,
    LEVEL_NAMES,
    AuditFigure,
    bias_figures,
    bias_notes,
    bias_title,
    label_figures,
    level_note,
    level_rows,
    pooled_note,
    rating_figures,
    vote_figures,
)
from rocketeval.config import RunConfig
from rocketeval.grid import vote_outcomes
from rocketeval.records import Interval, Vote
from rocketeval.report.cells import ResponseGrid
from rocketeval.report.model import CurveBin, FigureRow, FigureTable, ReportCurve, ReportFigure
from rocketeval.stats.bootstrap import Resampling, renumbered


def figures(audit: Audit) -> tuple[ReportFigure, ...]:
    """Return agreement and correlations, each followed by its baselines."""
    by_votes_and_labels = (
        ReportFigure(
            name=found.measure if found.method == JUDGE else found.method,
            value=found.value,
            note=found.note or found.rests_on,
            unit=found.unit,
            baseline=found.baseline,
        )
        for found in (*vote_figures(audit), *label_figures(audit, "Pearson", [RESPONSES]))
    )
    spearman = [_rating_figure(found) for found in rating_figures(audit)][:1]
    return (*by_votes_and_labels, *spearman)


def _rating_figure(found: AuditFigure) -> ReportFigure:
    value, p = found.value, found.p_value
    if value is None or p is None:
        return ReportFigure(found.measure, None, found.note)
    note = f"{found.rests_on}, {'p < 0.001' if p < 0.001 else f'p = {p:.3f}'}"
    if math.isnan(value.low):
        exact = Interval(value.value, value.value, value.value)
        return ReportFigure(found.measure, exact, f"{note}; no interval")
    return ReportFigure(found.measure, value, note)


def tables(audit: Audit) -> tuple[FigureTable, ...]:
    """Return agreement by category and tie margin, correlations by level, and biases."""
    found = [_categories(audit), _margins(audit)]
    found += [_levels(part, methods) for part, methods in audit.labels.items()]
    if audit.bias is not None:
        found.append(_bias(audit.bias))
    return tuple(table for table in found if table.rows)


def _categories(audit: Audit) -> FigureTable:
    parts = audit.categories if len(audit.categories) > 1 else ()
    return FigureTable(
        title="Agreement with decided votes by category",
        columns=(JUDGE, ANOTHER_VOTER),
        rows=tuple(
            FigureRow(
                part.category,
                (part.agreement.without_ties, part.voters.without_ties if part.voters else None),
                f"{part.agreement.decisive:,} votes",
            )
            for part in parts
        ),
        unit="share",
        note=pooled_note(audit),
    )


def _margins(audit: Audit) -> FigureTable:
    return FigureTable(
        title="Agreement with votes (ties included) by tie margin",
        columns=(JUDGE,),
        rows=tuple(
            FigureRow(f"{row.margin:g}", (row.with_ties,), row.mark(audit.tie_margin))
            for row in audit.margins
            if row.with_ties
        ),
        unit="share",
    )


def _levels(part: str, methods: Mapping[str, LabelCorrelation]) -> FigureTable:
    return FigureTable(
        title=f"Correlation with {part} at three levels",
        columns=tuple(LEVEL_NAMES[level] for level in LEVELS),
        rows=tuple(FigureRow(method, cells, name) for method, name, cells in level_rows(methods)),
        note=level_note(methods[JUDGE]),
    )


def _bias(bias: Bias) -> FigureTable:
    looked_at, _, family = bias_notes(bias)
    rows = (
        FigureRow(
            f"{found.measure}, share" if found.unit == "share" else found.measure,
            (found.value,),
            found.rests_on,
        )
        for found in bias_figures(bias)
    )
    notes = " ".join(filter(None, (looked_at, family)))
    return FigureTable(title=bias_title(bias), columns=(JUDGE,), rows=tuple(rows), note=notes)


Places = NDArray[np.intp]
Means = Callable[[Floats, Places, Places, int], list[Interval | None]]

BINS = 10
FEWEST = 20
"""Fewest labels or votes for a curve."""

_INTERVALS = "Intervals come from resampled queries."


def curves(
    cells: ResponseGrid,
    config: RunConfig,
    labels: Floats,
    votes: Sequence[Vote],
    item_gold: ItemGold | None,
    *,
    places: Ints,
) -> tuple[ReportCurve, ...]:
    """Return one curve per kind of reference data in the run.

    `places` numbers the cluster of each query.
    """
    ranking = config.ranking
    resampling = Resampling(ranking.bootstrap, ranking.seed, 0.95)
    return (
        *_items(item_gold),
        *_labels(cells, labels, config.scorer.scale, places, resampling),
        *_votes(cells, votes, places, resampling),
    )


def _items(item_gold: ItemGold | None) -> Iterator[ReportCurve]:
    if item_gold is None:
        return
    found = item_gold.calibration
    bins = [CurveBin(each.mean_p, each.gold, each.items) for each in found.by_width.bins]
    if bins:
        yield ReportCurve(
            title="Calibration of answers",
            x_label="Probability of yes",
            y_label="Share of yes in the reference answers",
            diagonal=True,
            bins=tuple(bins),
            how=f"{found.items:,} answers in bins of equal width, compared with reference answers "
            "to the same items. With perfect calibration, 80% of the answers at 0.8 are a yes in "
            f"the reference (the diagonal). {_INTERVALS}",
        )


def _labels(
    cells: ResponseGrid,
    labels: Floats,
    scale: tuple[float, float],
    places: Ints,
    resampling: Resampling,
) -> Iterator[ReportCurve]:
    queries, candidates = np.nonzero(~np.isnan(labels) & ~np.isnan(cells.scores))
    if len(queries) < FEWEST:
        return
    scores, labeled = cells.scores[queries, candidates], labels[queries, candidates]
    same = bool(scale[0] <= np.nanmin(labels) and np.nanmax(labels) <= scale[1])
    diagonal = " On the diagonal, score and label are equal." if same else ""
    yield ReportCurve(
        title="Mean label by score",
        x_label="Score",
        y_label="Mean label",
        diagonal=same,
        bins=_binned(scores, labeled, places[queries], resampling.means),
        how=f"{len(scores):,} labeled responses in ten bins of about equal size, from low to high "
        f"score; each dot is the mean label of a bin.{diagonal} {_INTERVALS}",
    )


def _votes(
    cells: ResponseGrid, votes: Sequence[Vote], places: Ints, resampling: Resampling
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
        title="Votes by score difference",
        x_label="Score of the first response minus the second",
        y_label="Share of votes for the first response",
        diagonal=False,
        bins=_binned(differences[known], shares, places[queries[known]], resampling.shares),
        how=f"{int(known.sum()):,} votes in ten bins of about equal size, ordered by score "
        "difference; a tie counts as half a vote. For a judge that agrees with voters, the curve "
        f"climbs from 0 to 1 and passes 0.5 in the middle. {_INTERVALS}",
    )


def _binned(x: Floats, y: Floats, places: Ints, means: Means) -> tuple[CurveBin, ...]:
    """Return ten bins of about equal size; equal values of x share a bin.

    `places` numbers the cluster of each value's query.
    """
    edges = np.quantile(x, np.arange(1, BINS) / BINS)
    parts = np.searchsorted(edges, x).astype(np.intp)
    counts = np.bincount(parts, minlength=BINS)
    totals = np.bincount(parts, x, BINS)
    found = means(y, renumbered(places.astype(np.intp)), parts, BINS)
    return tuple(
        CurveBin(float(totals[part] / counts[part]), value, int(counts[part]))
        for part, value in enumerate(found)
        if value is not None
    )

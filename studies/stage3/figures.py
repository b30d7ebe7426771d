"""Figures of merit with intervals; units are resampled, the fits are kept.

Correlations are computed within folds and averaged. Across folds they would penalize every fit: a
fold with low labels leaves high ones for training, so that even the mean on a straight line would
lose its order.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from rocketeval.records import Interval
from rocketeval.stats.bootstrap import interval
from stage3.design import Design, Floats, Places
from stage3.methods import CONSTANT

LEVEL = 0.95

Figure = Callable[[Design, Floats, Places], float]


def pearson(design: Design, scores: Floats, rows: Places) -> float:
    """Return Pearson's correlation of scores and labels; NaN when one does not vary."""
    return _within_folds("pearsonr", design, scores, rows)


def spearman(design: Design, scores: Floats, rows: Places) -> float:
    """Return Spearman's rank correlation."""
    return _within_folds("spearmanr", design, scores, rows)


def kendall(design: Design, scores: Floats, rows: Places) -> float:
    """Return Kendall's tau-b."""
    return _within_folds("kendalltau", design, scores, rows)


def rmse(design: Design, scores: Floats, rows: Places) -> float:
    """Return the root of the mean squared error."""
    return float(np.sqrt(np.mean((scores[rows] - design.labels[rows]) ** 2)))


def by_system(design: Design, scores: Floats, rows: Places) -> float:
    """Return Kendall's tau-b of the systems' mean scores and mean labels.

    Every fold holds all systems equally often, so its level is the same for each.
    """
    assert design.systems is not None
    names, place = np.unique(np.array(design.systems)[rows], return_inverse=True)
    count = np.bincount(place, minlength=len(names))
    ours = np.bincount(place, scores[rows]) / count
    theirs = np.bincount(place, design.labels[rows]) / count
    return _correlation("kendalltau", ours, theirs)


STORY_FIGURES: Mapping[str, Figure] = {
    "Pearson": pearson,
    "Spearman": spearman,
    "Kendall": kendall,
    "RMSE": rmse,
}
SYSTEM_FIGURES: Mapping[str, Figure] = {**STORY_FIGURES, "systems' Kendall": by_system}


@dataclass(frozen=True)
class Measured:
    """One figure of one method."""

    figure: Interval
    minus: Interval
    """Difference from the reference method, on the same resamples."""
    reference: str


def measure(
    design: Design,
    scores: Mapping[str, Floats],
    reference: Mapping[str, str],
    times: int,
    seed: int,
) -> dict[str, dict[str, Measured]]:
    """Return every figure of every method; `reference` names a method to compare with, by figure.

    A response without a score by any method is left out for all, so that all use the same data. The
    constant has an error and no correlation, because it varies only between folds.
    """
    chosen = STORY_FIGURES if design.systems is None else SYSTEM_FIGURES
    usable = ~np.isnan(np.array(list(scores.values()))).any(axis=0)
    units = [rows[usable[rows]] for rows in design.unit_rows()]
    units = [rows for rows in units if len(rows)]
    whole = np.concatenate(units)
    random = np.random.default_rng(seed)
    drawn = [
        np.concatenate([units[unit] for unit in random.integers(len(units), size=len(units))])
        for _ in range(times)
    ]
    found: dict[str, dict[str, Measured]] = {name: {} for name in scores}
    for title, figure in chosen.items():
        columns = {
            name: column
            for name, column in scores.items()
            if figure is rmse or name != CONSTANT.name
        }
        values = {name: figure(design, column, whole) for name, column in columns.items()}
        draws = {
            name: np.array([figure(design, column, rows) for rows in drawn])
            for name, column in columns.items()
        }
        other = reference[title]
        for name in columns:
            gain, gains = values[name] - values[other], draws[name] - draws[other]
            found[name][title] = Measured(
                interval(values[name], draws[name], queries=len(units), level=LEVEL),
                interval(gain, gains, queries=len(units), level=LEVEL),
                other,
            )
    return found


def _within_folds(name: str, design: Design, scores: Floats, rows: Places) -> float:
    total, weight = 0.0, 0
    for fold in np.unique(design.folds[rows]):
        inside = rows[design.folds[rows] == fold]
        value = _correlation(name, scores[inside], design.labels[inside])
        if not np.isnan(value):
            total += len(inside) * value
            weight += len(inside)
    return total / weight if weight else float("nan")


def _correlation(name: str, x: Floats, y: Floats) -> float:
    from scipy import stats

    if len(x) < 3 or np.ptp(x) == 0.0 or np.ptp(y) == 0.0:
        return float("nan")
    return float(getattr(stats, name)(x, y).statistic)

"""Every method on one design, as text and as data."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from rocketeval.records import Interval
from stage3.design import Design, Floats
from stage3.figures import Measured, measure
from stage3.methods import MEAN, METHODS, STRAIGHT_LINE, out_of_fold

REFERENCE = {
    "Pearson": MEAN.name,
    "Spearman": MEAN.name,
    "Kendall": MEAN.name,
    "systems' Kendall": MEAN.name,
    "RMSE": STRAIGHT_LINE.name,
}
"""Errors are compared with the calibrated mean's, since the plain mean ignores the label level."""


@dataclass(frozen=True)
class Effort:
    """The number of trees and resamples, and the seed."""

    trees: int
    resamples: int
    seed: int


@dataclass(frozen=True)
class Comparison:
    """The figures of every method on one design."""

    design: Design
    measured: Mapping[str, Mapping[str, Measured]]
    absent: Sequence[str]
    """Methods that this installation lacks."""
    seconds: float

    def lines(self) -> list[str]:
        """Return the comparison as text."""
        design = self.design
        titles = list(self.measured[MEAN.name])
        units = len(design.unit_rows())
        heading = f"{design.name}: {len(design.scored)} responses, {units} {design.unit_name}"
        figures = [
            [name, *(_shown(found[title].figure) if title in found else "-" for title in titles)]
            for name, found in self.measured.items()
        ]
        gains = [
            [name, *(_gain(found, title, name) for title in titles)]
            for name, found in self.measured.items()
            if name != MEAN.name
        ]
        lines = [heading, *render(["", *titles], figures), ""]
        lines += render(["minus the mean (RMSE: minus the straight line)", *titles], gains)
        return [*lines, *(f"{name}: not available" for name in self.absent)]

    def facts(self) -> dict[str, Any]:
        """Return the comparison as plain data."""
        return {
            "design": self.design.name,
            "responses": len(self.design.scored),
            "units": len(self.design.unit_rows()),
            "unit": self.design.unit_name,
            "seconds": round(self.seconds, 1),
            "absent": list(self.absent),
            "methods": {
                name: {title: asdict(measured) for title, measured in found.items()}
                for name, found in self.measured.items()
            },
        }


def compare(
    design: Design, effort: Effort, extra: Mapping[str, Floats] | None = None
) -> Comparison:
    """Return every available method's figures; `extra` are additional score columns."""
    start = time.perf_counter()
    scores = dict(extra or {})
    absent = []
    for method in METHODS:
        if method.available:
            scores[method.name] = out_of_fold(method, design, effort.seed, effort.trees)
        else:
            absent.append(method.name)
    measured = measure(design, scores, REFERENCE, effort.resamples, effort.seed)
    return Comparison(design, measured, absent, time.perf_counter() - start)


def tally(comparisons: Sequence[Comparison], title: str) -> list[str]:
    """Return, for each method, the number of designs where it is better or worse than the mean.

    Better and worse mean that the interval of the paired difference excludes zero.
    """
    rows = []
    for method in METHODS:
        gains = [
            found.measured[method.name][title].minus
            for found in comparisons
            if title in found.measured.get(method.name, {})
        ]
        if method is MEAN or not gains:
            continue
        better = sum(gain.low > 0 for gain in gains)
        worse = sum(gain.high < 0 for gain in gains)
        rows.append([method.name, str(better), str(worse), str(len(gains) - better - worse)])
    return render([f"{title}, against the mean", "better", "worse", "tied"], rows)


def render(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the lines of a table: the first column left-aligned, the others right-aligned."""
    whole = [list(columns), *map(list, rows)]
    widths = [max(len(row[place]) for row in whole) for place in range(len(columns))]
    return [
        "  ".join(
            cell.ljust(width) if place == 0 else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in whole
    ]


def _shown(found: Interval) -> str:
    return f"{found.value:z.2f} ({found.low:z.2f} to {found.high:z.2f})"


def _gain(found: Mapping[str, Measured], title: str, name: str) -> str:
    if title not in found or found[title].reference == name:
        return "-"
    gain = found[title].minus
    decided = "*" if gain.low > 0 or gain.high < 0 else " "
    return f"{gain.value:+z.2f} ({gain.low:+z.2f} to {gain.high:+z.2f}){decided}"

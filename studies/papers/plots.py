"""The studies' plots, as SVG files in recorded/. Needs matplotlib."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from runs import RECORDED

sys.path.append(str(Path(__file__).parents[1]))
from charts import pyplot, save

from rocketeval.audit.repeatability import Disagreement
from rocketeval.records import Interval

COLORS = ("#2a6f97", "#e07a5f", "#81b29a", "#6d597a", "#f2cc8f", "#3d405b")


def earlier_answers(found: Disagreement) -> None:
    """Draw how often answers differ with the earlier ones, by position."""
    figure, axes = pyplot.subplots(figsize=(4.6, 3.4))
    shares = [each.differing for each in found.by_position]
    values = 100 * np.array([each.value for each in shares])
    ends = 100 * np.array([[each.value - each.low, each.high - each.value] for each in shares]).T
    places = [each.position for each in found.by_position]
    axes.errorbar(places, values, yerr=ends, fmt="o-", color=COLORS[0])
    axes.set_xlabel("position of the item")
    axes.set_ylabel("answers that differ, %")
    axes.set_title("After all Yes and after all No", fontsize=10)
    save(figure, RECORDED / "uncertainty.svg")


def correlations(path: Path, title: str, axis: str, ways: Mapping[str, Interval]) -> None:
    """Draw the correlation of every way with its interval."""
    figure, axes = pyplot.subplots(figsize=(7.5, 0.4 * len(ways) + 1.1))
    for place, (way, found) in enumerate(ways.items()):
        ends = [[found.value - found.low], [found.high - found.value]]
        color = COLORS[0] if "checklist" in way or "dimension" in way else COLORS[1]
        axes.errorbar(found.value, place, xerr=ends, fmt="o", markersize=5, color=color)
    axes.axvline(0, color="#808080", linewidth=0.8)
    axes.set_yticks(range(len(ways)), list(ways), fontsize=8)
    axes.set_ylim(len(ways) - 0.4, -0.6)
    axes.set_xlabel(axis)
    axes.set_title(title, fontsize=10)
    save(figure, path)


def calibration_curves(content: dict[str, Any]) -> None:
    """Draw the share of reference yes against the judge's probability."""
    figure, axes = pyplot.subplots(figsize=(4.2, 4))
    axes.plot([0, 1], [0, 1], color="grey", linewidth=0.8)
    for color, (judge, result) in zip(COLORS, content.items(), strict=False):
        bins = result["by_count"]["bins"]
        x = [each["mean_p"] for each in bins]
        y = np.array([each["gold"]["value"] for each in bins])
        low = np.array([each["gold"]["low"] for each in bins])
        high = np.array([each["gold"]["high"] for each in bins])
        spread = np.nan_to_num(np.stack([y - low, high - y]), nan=0.0, posinf=0.0, neginf=0.0)
        axes.errorbar(x, y, yerr=np.abs(spread), fmt="o-", color=color, label=judge, markersize=4)
    axes.set_xlabel("p(Yes) of the judge")
    axes.set_ylabel("share of reference yes")
    axes.legend(frameon=False, fontsize=8)
    save(figure, RECORDED / "calibration.svg")

"""Plots of the studies, as SVG files that are the same for the same figures. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("svg")
matplotlib.rcParams.update({"svg.hashsalt": "rocketeval", "svg.fonttype": "none"})
from matplotlib import pyplot  # noqa: E402

__all__ = ["pyplot", "save"]


def save(picture: Any, path: Path) -> None:
    """Write a picture without a date."""
    path.parent.mkdir(exist_ok=True)
    picture.tight_layout()
    picture.savefig(path, metadata={"Date": None})
    pyplot.close(picture)

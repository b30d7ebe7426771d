"""Common parts of the rubric studies: judged runs from a config, and paired bootstrap figures."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rocketeval.arrays import Floats
from rocketeval.config import parse_config
from rocketeval.pipeline import Run
from rocketeval.records import Interval

RESAMPLES = 2000
LEVEL = 0.95


def arguments(what: str) -> argparse.ArgumentParser:
    """Return the options that every study has."""
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--judge", required=True, help="the judge section of a config, as YAML")
    parser.add_argument("--out", type=Path, required=True, help="folder for data and runs")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"), help="shared data")
    return parser


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def judged(name: str, folder: Path, out: Path, judge: str, **sections: Mapping[str, Any]) -> Run:
    """Return a finished run of the benchmark in `folder`; judgments are reused from its cache."""
    raw = {
        "name": name,
        "benchmark": {"path": str(folder)},
        "judge": yaml.safe_load(judge),
        "output": str(out / "runs"),
        "cache": str(out / "runs" / ".cache"),
        **sections,
    }
    run = Run(parse_config(raw))
    asyncio.run(run.all())
    return run


def paired_difference(
    first: Callable[[Floats], float],
    second: Callable[[Floats], float],
    units: int,
    seed: int = 0,
) -> tuple[Interval, Interval, Interval]:
    """Return two figures and second minus first, each with an interval from the same resamples.

    Both are functions of a count per unit (query, question or document), so that a resampled unit
    enters both figures.
    """
    rng = np.random.default_rng(seed)
    whole = np.ones(units)
    drawn = rng.multinomial(units, np.full(units, 1 / units), size=RESAMPLES).astype(float)
    ones = np.array([first(counts) for counts in drawn])
    twos = np.array([second(counts) for counts in drawn])
    return (
        _interval(first(whole), ones),
        _interval(second(whole), twos),
        _interval(second(whole) - first(whole), twos - ones),
    )


def _interval(value: float, draws: Floats) -> Interval:
    known = draws[~np.isnan(draws)]
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(known, [tail, 100 - tail])
    return Interval(float(value), float(low), float(high))


def shown(found: Interval, digits: int = 3) -> str:
    """Return a figure with its interval."""
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"

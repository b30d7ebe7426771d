"""Common parts of the rubric studies: judged runs, their stored answers, paired bootstrap figures.

Without `--judge`, a study reads the answers stored in `recorded/judgments` and asks nothing. With
it, the judge is asked what is missing, and the answers are stored first. `--record` also writes
the printed figures to `recorded/`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from rocketeval.arrays import Floats
from rocketeval.config import parse_config
from rocketeval.pipeline import Run
from rocketeval.records import Interval

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import judgments  # noqa: E402

RECORDED = HERE / "recorded"
STORED = RECORDED / "judgments"
DATA = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", HERE.parents[2] / "shared" / "data"))
RESAMPLES = 2000
LEVEL = 0.95
Answers = Mapping[tuple[str, str], Sequence[float]]
"""Values of the items, by query and candidate; NaN is a missing answer."""


def arguments(what: str) -> argparse.ArgumentParser:
    """Return the options that every study has."""
    parser = argparse.ArgumentParser(
        description=what, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--judge", help="ask this judge: the judge section of a config, as YAML")
    parser.add_argument(
        "--out", type=Path, default=Path("runs/rubrics"), help="folder for data and runs"
    )
    parser.add_argument("--data", type=Path, default=DATA, help="shared data")
    parser.add_argument(
        "--stored", type=Path, default=STORED, help="folder of the stored judgments"
    )
    parser.add_argument("--record", action="store_true", help="write the figures to recorded/")
    return parser


def write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    """Write JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def answers(
    options: argparse.Namespace, name: str, folder: Path, **sections: Mapping[str, Any]
) -> Answers:
    """Return the stored answers of the run `name`; with a judge, grade and store them first.

    The benchmark is in `folder`, and `sections` are those of the config. Interrupted runs resume.
    """
    path = options.stored / f"{name}.parquet"
    if options.judge is not None:
        raw = {
            "name": name,
            "benchmark": {"path": str(folder)},
            "judge": yaml.safe_load(options.judge),
            "output": str(options.out / "runs"),
            "cache": str(options.out / "runs" / ".cache"),
            **sections,
        }
        run = Run(parse_config(raw))
        with run.store.locked():
            asyncio.run(run.to_judgments())
        judgments.keep(run.store, name, run.config.method.kind, path)
    if not path.exists():
        raise SystemExit(f"{path} does not exist. Give a judge with --judge.")
    table = judgments.read(path)
    return {
        (query, candidate): table.p_yes[table.offsets[row] : table.offsets[row + 1]]
        for row, (query, candidate) in enumerate(
            zip(table.query_ids, table.candidates, strict=True)
        )
    }


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
    if not len(known):
        return Interval(float(value), float("nan"), float("nan"))
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(known, [tail, 100 - tail])
    return Interval(float(value), float(low), float(high))


def shown(found: Interval, digits: int = 3) -> str:
    """Return a figure with its interval."""
    return f"{found.value:.{digits}f} ({found.low:.{digits}f} to {found.high:.{digits}f})"


def table(labels: Sequence[str], figures: Sequence[Interval]) -> list[str]:
    """Return one line per figure."""
    width = max(map(len, labels)) + 2
    pairs = zip(labels, figures, strict=True)
    return [f"  {label:{width}}{shown(figure)}" for label, figure in pairs]


def finish(options: argparse.Namespace, name: str, lines: Iterable[str]) -> None:
    """Print the figures; with `--record`, also write them."""
    text = "\n".join(lines) + "\n"
    sys.stdout.write(text)
    if options.record:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{name}.txt").write_text(text, encoding="utf-8")

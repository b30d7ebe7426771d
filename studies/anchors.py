"""Predict candidates from a few anchor queries, on recorded score grids.

    python studies/anchors.py FOLDER [--record]

Every candidate of a grid is predicted from anchors that were chosen without it, and from as many
random queries (200 draws, plain means). `error` is the mean absolute error of the predicted means,
relative to the standard deviation of the true means; `rho` is Spearman's correlation of predicted
and true means over all candidates. FOLDER has the published scores that studies/stopping.py reads.
`--record` writes studies/recorded/anchors.txt.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from rocketeval._version import __version__
from rocketeval.stats.anchors import FEWEST_CANDIDATES, cross_validate, random_queries
from stopping import read_grids

RECORDED = Path(__file__).with_name("recorded")
COUNTS = (10, 20, 50)
DRAWS = 200


def lines(folder: Path) -> Iterator[str]:
    """Yield the lines of the table."""
    yield f"rocketeval {__version__}, leave one candidate out, {DRAWS} draws of random queries"
    yield ""
    yield f"{'':44}{'anchors':>16}{'random':>16}"
    yield f"{'grid':36}{'count':>8}" + 2 * f"{'error':>8}{'rho':>8}"
    for grid in read_grids(folder):
        scores = grid.scores[~np.isnan(grid.scores).any(axis=1)]
        queries, candidates = scores.shape
        if candidates < FEWEST_CANDIDATES or queries < 2 * min(COUNTS):
            continue
        spread = float(scores.mean(axis=0).std())
        for count in COUNTS:
            if 2 * count > queries:
                continue
            found = (cross_validate(scores, count), random_queries(scores, count, DRAWS))
            title = f"{grid.name}, {candidates} x {queries}"
            cells = "".join(f"{one.mean_error / spread:8.3f}{one.spearman:8.3f}" for one in found)
            yield f"{title:36}{count:8}{cells}"


def main() -> None:
    """Print the table, and record it if asked."""
    parser = argparse.ArgumentParser(description="Predict candidates from anchor queries.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    made = []
    for line in lines(given.folder):
        print(line, flush=True)
        made.append(line)
    if given.record:
        (RECORDED / "anchors.txt").write_text("\n".join(made) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()

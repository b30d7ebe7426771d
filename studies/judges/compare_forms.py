"""Compare the answers of a judge in one number format with stored ones in another.

    python studies/judges/compare_forms.py RUN STORED.parquet

RUN is the directory of a run of the same benchmark, whole or in part; STORED is what
`studies/judgments.py` wrote for the other format. Prints how far `p_yes` differs, how many answers
change sides at 0.5, how far the mean answers of the responses differ, and the agreement of both
formats with the votes on pairs that both judged.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.stats import spearmanr

from rocketeval.grid import compare, vote_outcomes
from rocketeval.records import Interval
from rocketeval.scoring.read_answers import read_answers
from rocketeval.stats.bootstrap import interval, ratio_draws
from rocketeval.store.run import RunStore

MARGIN = 0.1 / 9
"""Tie margin on means of answers: 0.1 on a scale from 1 to 10."""
RESAMPLES = 2000

Pairs = dict[tuple[str, str], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Stored answers and those of the run, by query and candidate."""


def pairs_in(store: RunStore, stored: Path) -> Pairs:
    """Return the answers of responses that both have."""
    table, keys = read_answers(store)
    before = {
        (row["query_id"], row["candidate"]): row["p_yes"]
        for row in pq.read_table(stored).to_pylist()
    }
    found: Pairs = {}
    for row, key in enumerate(keys):
        name = table.query_ids[row], table.candidates[row]
        new = table.p_yes[table.offsets[row] : table.offsets[row + 1]]
        old = np.asarray(before.get(name, ()), dtype=float)
        if key is not None and len(new) and len(old) == len(new) and not np.isnan(new).any():
            found[name] = old, np.asarray(new, dtype=float)
    return found


def answer_lines(pairs: Pairs) -> Iterator[str]:
    """Yield how far answers and mean answers differ."""
    old, new = (np.concatenate(side) for side in zip(*pairs.values(), strict=True))
    moved = np.abs(new - old)
    means = np.array([[one.mean() for one in pair] for pair in pairs.values()])
    yield f"{len(pairs)} responses, {len(old):,} answers in both"
    yield (
        f"p_yes: mean difference {moved.mean():.4f} (signed {np.mean(new - old):+.4f}), nine in "
        f"ten below {np.quantile(moved, 0.9):.4f}, largest {moved.max():.4f}, correlation "
        f"{np.corrcoef(old, new)[0, 1]:.4f}"
    )
    yield f"other side of 0.5: {np.mean((old > 0.5) != (new > 0.5)):.1%} of the answers"
    yield (
        "mean answer of a response: mean difference "
        f"{np.abs(means[:, 1] - means[:, 0]).mean():.4f}, "
        f"Spearman {spearmanr(means[:, 0], means[:, 1]).statistic:.4f}"
    )


def vote_lines(store: RunStore, pairs: Pairs) -> Iterator[str]:
    """Yield the agreement of both with the votes, ties counted, and the paired difference."""
    votes = [
        vote
        for vote in store.inputs.votes()
        if {(vote.query_id, vote.candidate_a), (vote.query_id, vote.candidate_b)} <= pairs.keys()
    ]
    queries = sorted({vote.query_id for vote in votes})
    if not queries:
        return
    outcomes = vote_outcomes(votes)
    hits = np.empty((len(votes), 2))
    for side in (0, 1):
        first, second = (
            np.array([pairs[vote.query_id, name][side].mean() for vote, name in named])
            for named in (
                [(vote, vote.candidate_a) for vote in votes],
                [(vote, vote.candidate_b) for vote in votes],
            )
        )
        hits[:, side] = compare(first, second, MARGIN) == outcomes
    columns = np.column_stack([hits, hits[:, 1] - hits[:, 0]])
    rows = np.array([queries.index(vote.query_id) for vote in votes])
    sums = np.zeros((len(queries), 3))
    np.add.at(sums, rows, columns)
    counts = np.repeat(np.bincount(rows)[:, None], 3, axis=1).astype(float)
    draws = ratio_draws(sums, counts, times=RESAMPLES, seed=0)
    yield f"{len(votes):,} votes on {len(queries)} queries, ties counted"
    for at, name in enumerate(("stored", "run", "run - stored")):
        found = interval(columns[:, at].mean(), draws[:, at], queries=len(queries), level=0.95)
        yield f"{name:14}{percent(found)}"


def percent(found: Interval) -> str:
    """Return a share and its interval in percent."""
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def main() -> None:
    """Print the comparison of a run with stored judgments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("stored", type=Path)
    given = parser.parse_args()
    store = RunStore(given.run)
    pairs = pairs_in(store, given.stored)
    print("\n".join((*answer_lines(pairs), *vote_lines(store, pairs))))


if __name__ == "__main__":
    main()

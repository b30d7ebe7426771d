"""Compare the answers of a judge in two number formats, from stored judgments.

    python studies/judges/compare_forms.py FIRST.parquet SECOND.parquet

The files are what `studies/judgments.py` wrote for the first turn of MT-Bench, whole or in part.
Prints how far `p_yes` differs, how many answers change sides at 0.5, how far mean answers of
responses differ, and the agreement of both with the votes on pairs that both judged.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.stats import spearmanr

from rocketeval.grid import compare, vote_outcomes
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import interval, ratio_draws

sys.path.insert(0, str(Path(__file__).parents[1] / "mt_bench"))

from votes import votes_in

MARGIN = 0.1 / 9
"""Tie margin on means of answers: 0.1 on a scale from 1 to 10."""
RESAMPLES = 2000

Pairs = dict[tuple[str, str], tuple[NDArray[np.float64], NDArray[np.float64]]]
"""Answers of the first and of the second form, by query and candidate."""


def pairs_in(first: Path, second: Path) -> Pairs:
    """Return the answers to responses that both have."""
    found: list[dict[tuple[str, str], NDArray[np.float64]]] = [
        {
            (row["query_id"], row["candidate"]): np.asarray(row["p_yes"], dtype=float)
            for row in pq.read_table(path).to_pylist()
        }
        for path in (first, second)
    ]
    return {
        name: (answers, found[1][name])
        for name, answers in found[0].items()
        if name in found[1] and not np.isnan(answers + found[1][name]).any()
    }


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


def vote_lines(pairs: Pairs) -> Iterator[str]:
    """Yield the agreement of both with the votes, ties counted, and the paired difference."""
    votes = [
        vote
        for vote in votes_in("human_votes", {query for query, _ in pairs})
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
    for at, name in enumerate(("first", "second", "second - first")):
        found = interval(columns[:, at].mean(), draws[:, at], queries=len(queries), level=0.95)
        yield f"{name:16}{percent(found)}"


def percent(found: Interval) -> str:
    """Return a share and its interval in percent."""
    return f"{100 * found.value:.1f} ({100 * found.low:.1f} to {100 * found.high:.1f})"


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    given = parser.parse_args()
    pairs = pairs_in(given.first, given.second)
    print("\n".join((*answer_lines(pairs), *vote_lines(pairs))))


if __name__ == "__main__":
    main()

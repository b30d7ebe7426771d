"""Compare the answers of a judge in two number formats, from stored judgments.

    python studies/judges/compare_forms.py FIRST.parquet SECOND.parquet [--on THIRD.parquet]

The files are what `studies/judgments.py` wrote for the first turn of MT-Bench, whole or in part.
Prints how far `p_yes` differs, how many answers change sides at 0.5, how far mean answers of
responses differ, and the agreement of both with the votes on pairs that both judged. With `--on`,
only responses that a third file has, too, are compared.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from rocketeval.scoring.answers import AnswerTable
from rocketeval.stats.bootstrap import least_queries

STUDIES = Path(__file__).parents[1]
sys.path[:0] = [str(STUDIES), str(STUDIES / "mt_bench")]

import judgments  # noqa: E402
import votes  # noqa: E402


def in_both(first: AnswerTable, second: AnswerTable) -> tuple[AnswerTable, AnswerTable]:
    """Return the answers to responses that both have, in the same order."""
    places = [
        {name: at for at, name in enumerate(zip(table.query_ids, table.candidates, strict=True))}
        for table in (first, second)
    ]
    shared = [name for name in places[0] if name in places[1]]
    return (
        first.take([places[0][name] for name in shared]),
        second.take([places[1][name] for name in shared]),
    )


def answer_lines(first: AnswerTable, second: AnswerTable) -> Iterator[str]:
    """Yield how far answers and mean answers differ."""
    old, new = first.p_yes, second.p_yes
    moved = np.abs(new - old)
    means = [
        np.add.reduceat(each.p_yes, each.offsets[:-1]) / each.items for each in (first, second)
    ]
    yield f"{len(first)} responses, {len(old):,} answers in both"
    yield (
        f"p_yes: mean difference {moved.mean():.4f} (signed {np.mean(new - old):+.4f}), nine in "
        f"ten below {np.quantile(moved, 0.9):.4f}, largest {moved.max():.4f}, correlation "
        f"{np.corrcoef(old, new)[0, 1]:.4f}"
    )
    yield f"other side of 0.5: {np.mean((old > 0.5) != (new > 0.5)):.1%} of the answers"
    yield (
        f"mean answer of a response: mean difference {np.abs(means[1] - means[0]).mean():.4f}, "
        f"Spearman {spearmanr(*means).statistic:.4f}"
    )


def vote_lines(first: AnswerTable, second: AnswerTable) -> Iterator[str]:
    """Yield the agreement of both with the votes, ties counted, and the paired difference."""
    scores = [votes.mean_scores(table) for table in (first, second)]
    known = scores[0].keys()
    cast = [
        vote
        for vote in votes.votes_in("human_votes", set(first.query_ids))
        if {(vote.query_id, vote.candidate_a), (vote.query_id, vote.candidate_b)} <= known
    ]
    if not cast:
        return
    queries = len({vote.query_id for vote in cast})
    if queries < least_queries(0.95):
        yield f"{len(cast):,} votes on {queries} queries are too few for an interval"
        return
    old, new = (votes.hits_of(each, cast) for each in scores)
    yield f"{len(cast):,} votes on {queries} queries, ties counted"
    for name, hits in (("first", old), ("second", new), ("second - first", new - old)):
        yield f"{name:16}{votes.percent(votes.share_of_votes(hits, cast))}"


def main() -> None:
    """Print the comparison."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("first", type=Path)
    parser.add_argument("second", type=Path)
    parser.add_argument("--on", type=Path, metavar="THIRD")
    given = parser.parse_args()
    first = judgments.read(given.first)
    if given.on is not None:
        first, _ = in_both(first, judgments.read(given.on))
    both = in_both(first, judgments.read(given.second))
    print("\n".join((*answer_lines(*both), *vote_lines(*both))))


if __name__ == "__main__":
    main()

"""RocketEval Tables 2 and 7: agreement with MT-Bench's human votes, method by method.

    python studies/papers/agreement.py [--limit N] [--record]

First turns, the six candidates with human votes, one judge asked in different ways. All methods of
a table use the same votes: those on queries that each method has graded (the table gives their
number). The supervised rows of the paper's tables are in studies/mt_bench/supervised.py, because
they need labels. Tie margin 0.1 on the 1 to 10 scale, intervals by resampling queries.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from grade import ANALYSIS
from runs import JUDGES, Graded, cut, graded, record, rows_of, table

from rocketeval.audit.methods import MethodComparison, MethodGrades, compare_methods
from rocketeval.config import RankingConfig
from rocketeval.records import Gold, Vote
from rocketeval.text import share

RANKING = RankingConfig(bootstrap=2000)
OURS, HARD = "RocketEval (unsupervised)", "  without normalized score"
BLOCKS: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "baselines": (
        (OURS, "checklist", False),
        (HARD, "checklist", True),
        ("Fixed checklist", "fixed", False),
        ("Direct", "direct", False),
        ("Direct, reference-guided", "reference", False),
    ),
    "ablations": (
        (OURS, "checklist", False),
        (HARD, "checklist", True),
        ("  without independent judgment", "sequential", False),
    ),
    "answers written out": (
        (OURS, "checklist", False),
        ("Direct", "direct", False),
        ("CoT", "cot", False),
        ("Direct, after the 1.5B judge's analysis", ANALYSIS, False),
    ),
    "all items in one prompt": (
        (OURS, "checklist", False),
        (HARD, "checklist", True),
        ("CheckEval's multi-item prompt", "multi_item", False),
    ),
}
"""Rows by block: displayed name, method, and whether to count yes/no instead of probabilities."""


def main() -> None:
    """Print the tables of every judge with graded responses."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    lines: list[str] = []
    comparisons: dict[str, MethodComparison] = {}
    for judge, shown in JUDGES.items():
        for block, rows in BLOCKS.items():
            present = {
                name: (each, hard)
                for name, method, hard in rows
                if (each := graded("mt_bench", method, judge, given.limit)) is not None
            }
            if len(present) < min(3, len(rows)):
                continue
            comparison = compare(present)
            comparisons[f"{shown}, {block}"] = comparison
            lines += ["", *shown_table(f"{shown}: {block}", comparison)]
    content = {title: asdict(each) for title, each in comparisons.items()}
    record("agreement", content, lines, keep=given.record)


def compare(found: dict[str, tuple[Graded, bool]]) -> MethodComparison:
    """Compare the methods with the votes on what all of them graded."""
    votes = [Vote(**row) for row in rows_of("mt_bench", "votes")]
    lengths = {
        (row["query_id"], row["candidate"]): float(len(row["text"]))
        for row in rows_of("mt_bench", "responses")
    }
    grids = {name: each.grid(hard=hard) for name, (each, hard) in found.items()}
    common = set.intersection(*(set(grid.query_ids) for grid in grids.values()))
    methods = {name: MethodGrades(cut(grid, common)) for name, grid in grids.items()}
    about = [vote for vote in votes if vote.query_id in common]
    return compare_methods(methods, lengths, Gold(votes=about), RANKING)


def shown_table(title: str, comparison: MethodComparison) -> Sequence[str]:
    """Return the comparison as text."""
    rows = []
    for row in comparison.rows:
        if row.agreement is not None:
            result = (row.agreement.with_ties, row.agreement.without_ties, row.gain)
            rows.append([row.name, *map(share, result)])
    if comparison.voters:
        voters = comparison.voters
        people = [share(voters.with_ties), share(voters.without_ties)]
        rows.append(["human-human agreement", *people, "-"])
    first = comparison.rows[0].agreement
    used = first.used if first else 0
    head = f"{title} ({comparison.responses} responses, {used} votes)"
    apart = [f"{each.name}: {each.reason}" for each in comparison.apart]
    return [head, *table(["", "with ties", "without ties", "vs. the first"], rows), *apart]


if __name__ == "__main__":
    main()

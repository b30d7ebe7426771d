"""Does a judge that sees the reference agree more with people on MT-Bench?

    python studies/rubrics/reference_shown.py [--judge '{...}' --out OUT --queries 10] [--record]

Only math, reasoning and coding have references. First-turn queries are drawn in an order fixed by
a seed, alternating between the categories, and the first `--queries` of them are judged in full,
so that a stopped study is a random sample. The same checklists are asked with and without the
reference. Agreement counts wins, losses and ties (margin 0.1 points of 1 to 10) of the human votes;
intervals resample queries, and the difference is paired. Fixed before the judgments with references
were read: the item-level figure is the change of the mean p_yes when the reference is shown. The
votes are in the shared data, so the figures need it even without a judge.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path

import numpy as np
from rubrics.common import (
    Answers,
    answers,
    arguments,
    finish,
    paired_difference,
    table,
    write_rows,
)

from rocketeval.arrays import Floats
from rocketeval.benchmarks.base import Benchmark, open_benchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.grid import compare, vote_outcomes
from rocketeval.records import Query, Vote

CATEGORIES = ("math", "reasoning", "coding")
CANDIDATES = ("alpaca-13b", "claude-v1", "gpt-3.5-turbo", "gpt-4", "llama-13b", "vicuna-13b-v1.2")
MARGIN, SEED = 0.1, 23
ARMS = {"not shown": [], "shown": ["reference"]}


def opened(data: Path) -> Benchmark:
    """Return MT-Bench, first turn."""
    source = {
        "questions": "questions.jsonl.gz",
        "answers": "answers_official32.jsonl.gz",
        "references": None,
        "votes": "human_votes.jsonl.gz",
        "checklists": "checklists.jsonl.gz",
        "turns": [1],
    }
    path = data / "mt_bench"
    return open_benchmark(BenchmarkConfig(kind="mt_bench", path=path, options=source))


def drawn(queries: Sequence[Query]) -> list[Query]:
    """Return the queries with references in the drawn order, one category after the other."""
    rng = random.Random(SEED)
    by_category = []
    for category in CATEGORIES:
        own = sorted((q for q in queries if q.category == category and q.reference), key=_name)
        rng.shuffle(own)
        by_category.append(own)
    return [each for each in chain(*zip_longest(*by_category)) if each is not None]


def _name(query: Query) -> str:
    return query.id


def prepare(folder: Path, benchmark: Benchmark, queries: Mapping[str, Query]) -> None:
    """Write the drawn queries as a benchmark."""
    write_rows(
        folder / "queries.jsonl",
        (
            {
                "id": query.id,
                "text": query.text,
                "reference": query.reference,
                "category": query.category,
                "cluster": query.cluster,
            }
            for query in queries.values()
        ),
    )
    responses = [each for each in benchmark.responses() if each.query_id in queries]
    for name in CANDIDATES:
        own = (each for each in responses if each.candidate == name)
        write_rows(
            folder / "responses" / f"{name}.jsonl",
            ({"query_id": each.query_id, "text": each.text} for each in own),
        )
    lists = (each for each in benchmark.checklists() if each.query_id in queries)
    write_rows(
        folder / "checklists.jsonl",
        ({"query_id": each.query_id, "items": list(each.items)} for each in lists),
    )


def hits(found: Answers, votes: Sequence[Vote]) -> Floats:
    """Return 1 for each vote that the scores agree with, else 0; NaN if a score is missing."""
    scores = {name: 1 + 9 * float(np.nanmean(own)) for name, own in found.items()}
    first, second = (
        np.array([scores.get(pair, np.nan) for pair in pairs])
        for pairs in (
            [(vote.query_id, vote.candidate_a) for vote in votes],
            [(vote.query_id, vote.candidate_b) for vote in votes],
        )
    )
    agree = (compare(first, second, MARGIN) == vote_outcomes(votes)).astype(float)
    return np.where(np.isnan(first - second), np.nan, agree)


def figures(
    found: Mapping[str, Answers], votes: Sequence[Vote], category: str, queries: Sequence[Query]
) -> list[str]:
    """Return the lines of a category."""
    names = [query.id for query in queries if category in ("all", query.category)]
    own = [vote for vote in votes if vote.query_id in names]
    arms = [hits(found[arm], own) for arm in ARMS]
    known = ~np.isnan(arms[0]) & ~np.isnan(arms[1])
    unit = np.array([names.index(vote.query_id) for vote in own])[known]

    def agreement(arm: Floats, counts: Floats) -> float:
        weights = counts[unit]
        return float((arm[known] * weights).sum() / weights.sum()) if weights.sum() else np.nan

    lines = [f"{category}: {len(names)} queries, {int(known.sum())} votes"]
    return lines + table(
        ("agreement, reference not shown", "agreement, reference shown", "difference"),
        paired_difference(
            lambda counts: agreement(arms[0], counts),
            lambda counts: agreement(arms[1], counts),
            len(names),
        ),
    )


def changes(found: Mapping[str, Answers]) -> str:
    """Return how the answers change when the reference is shown."""
    pairs = [
        np.concatenate([found[arm][name] for name in sorted(found["shown"])])
        for arm in ("not shown", "shown")
    ]
    known = ~np.isnan(pairs[0]) & ~np.isnan(pairs[1])
    before, after = pairs[0][known], pairs[1][known]
    return (
        f"{len(before)} items: mean p_yes {before.mean():.3f} not shown, {after.mean():.3f} shown; "
        f"mean absolute change {np.abs(after - before).mean():.3f}, correlation "
        f"{np.corrcoef(before, after)[0, 1]:.3f}; missing answers "
        f"{int(np.isnan(pairs[0]).sum())} and {int(np.isnan(pairs[1]).sum())}"
    )


def main() -> None:
    """Print the agreement with votes both ways, and how the answers change."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--queries", type=int, default=1000, help="judge the first N drawn queries")
    options = parser.parse_args()
    benchmark = opened(options.data)
    order = drawn(list(benchmark.queries()))
    taken = {query.id: query for query in order[: options.queries]}
    folder = options.out / f"mt_bench_{len(taken)}"
    prepare(folder, benchmark, taken)
    found = {
        arm: answers(
            options,
            f"reference_{arm.replace(' ', '_')}",
            folder,
            method={"kind": "checklist", "options": {"shows": shows}},
        )
        for arm, shows in ARMS.items()
    }
    whole = [
        query
        for query in taken.values()
        if all((query.id, name) in found[arm] for name in CANDIDATES for arm in ARMS)
    ]
    found = {
        arm: {
            (query.id, name): found[arm][query.id, name] for query in whole for name in CANDIDATES
        }
        for arm in ARMS
    }
    votes = [vote for vote in benchmark.votes() if vote.query_id in taken]
    lines = [f"{len(whole)} of {len(order)} queries with references, drawn with seed {SEED}"]
    for category in ("all", *CATEGORIES):
        lines += figures(found, votes, category, whole)
    finish(options, "reference_shown", [*lines, changes(found)])


if __name__ == "__main__":
    main()

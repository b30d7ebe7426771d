"""Does a judge that sees the reference agree more with people on MT-Bench?

    python studies/rubrics/reference_shown.py --judge '{...}' --out /tmp/ref [--turns 1,2]

Only math, reasoning and coding have references. The same checklists are asked with and without the
reference; agreement counts wins, losses and ties (margin 0.1) of the human votes, and intervals
resample queries (both turns of a question together). The difference is paired.
"""

from __future__ import annotations

import numpy as np
from rubrics.common import arguments, judged, paired_difference, shown, write_rows

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.config import BenchmarkConfig
from rocketeval.scoring.stage import read_grid

CATEGORIES = ("math", "reasoning", "coding")
CANDIDATES = ("alpaca-13b", "claude-v1", "gpt-3.5-turbo", "gpt-4", "llama-13b", "vicuna-13b-v1.2")
MARGIN = 0.1


def main() -> None:
    """Judge both ways and print the agreement with votes."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--turns", default="1", help="1, or 1,2")
    options = parser.parse_args()
    turns = [int(turn) for turn in options.turns.split(",")]
    source = {
        "questions": "questions.jsonl.gz",
        "answers": "answers_official32.jsonl.gz",
        "references": None,
        "votes": "human_votes.jsonl.gz",
        "checklists": "checklists.jsonl.gz",
        "turns": turns,
    }
    path = options.data / "mt_bench"
    benchmark = open_benchmark(BenchmarkConfig(kind="mt_bench", path=path, options=source))
    queries = {
        query.id: query
        for query in benchmark.queries()
        if query.category in CATEGORIES and query.reference
    }
    folder = options.out / f"mt_bench_{options.turns.replace(',', '_')}"
    write_rows(
        folder / "queries.jsonl",
        (
            {
                "id": query.id,
                "text": query.text,
                "reference": query.reference,
                "category": query.category,
                "cluster": query.cluster,
                "history": [{"role": turn.role, "content": turn.content} for turn in query.history],
            }
            for query in queries.values()
        ),
    )
    responses = [
        r for r in benchmark.responses() if r.query_id in queries and r.candidate in CANDIDATES
    ]
    for name in CANDIDATES:
        rows = [
            {
                "query_id": response.query_id,
                "text": response.text,
                "history": None
                if response.history is None
                else [{"role": turn.role, "content": turn.content} for turn in response.history],
            }
            for response in responses
            if response.candidate == name
        ]
        write_rows(folder / "responses" / f"{name}.jsonl", rows)
    lists = [each for each in benchmark.checklists() if each.query_id in queries]
    write_rows(
        folder / "checklists.jsonl",
        ({"query_id": each.query_id, "items": list(each.items)} for each in lists),
    )
    votes = [vote for vote in benchmark.votes() if vote.query_id in queries]
    hits = {}
    for name, shows in (("not shown", []), ("shown", ["reference"])):
        method = {"kind": "checklist", "options": {"shows": shows}}
        run = judged(
            f"reference_{name.replace(' ', '_')}", folder, options.out, options.judge, method=method
        )
        grid = read_grid(run.store)
        cells = {
            (query, candidate): grid.scores[row, column]
            for row, query in enumerate(grid.query_ids)
            for column, candidate in enumerate(grid.candidates)
        }
        hits[name] = [_hit(cells, vote) for vote in votes]
    clusters = [queries[vote.query_id].cluster or vote.query_id for vote in votes]
    names = list(dict.fromkeys(clusters))
    unit = np.array([names.index(cluster) for cluster in clusters])
    usable = ~np.isnan(np.array(list(hits.values()), dtype=float)).any(axis=0)

    def agreement(name: str, counts: np.ndarray) -> float:
        own, weights = np.array(hits[name], dtype=float)[usable], counts[unit[usable]]
        return float((own * weights).sum() / weights.sum())

    figures = paired_difference(
        lambda counts: agreement("not shown", counts),
        lambda counts: agreement("shown", counts),
        len(names),
    )
    print(f"{int(usable.sum())} votes on {len(names)} questions")
    for label, figure in zip(
        ("reference not shown", "reference shown", "difference"), figures, strict=True
    ):
        print(f"{label:20} {shown(figure)}")


def _hit(cells: dict, vote) -> float:
    """Return whether the scores agree with a vote; NaN if one is missing."""
    gap = cells.get((vote.query_id, vote.candidate_a), np.nan) - cells.get(
        (vote.query_id, vote.candidate_b), np.nan
    )
    if np.isnan(gap):
        return float("nan")
    winner = "tie" if abs(gap) < MARGIN else "a" if gap > 0 else "b"
    return float(winner == vote.winner)


if __name__ == "__main__":
    main()

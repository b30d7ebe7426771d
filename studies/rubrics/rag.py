"""Does a judge that sees the context tell faithful answers from unfaithful ones?

    python studies/rubrics/rag.py --judge '{model: ..., base_url: ...}' --out /tmp/rag

`rag_set.jsonl` has 30 questions about invented facts, each with a faithful and an unfaithful
answer; which is which is known by construction. The same item is asked with and without the
context. AUC is the probability that a faithful answer gets a higher p_yes than an unfaithful one;
intervals resample questions, and the difference is paired.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from rubrics.common import arguments, judged, paired_difference, shown, write_rows

from rocketeval.arrays import Floats
from rocketeval.pipeline import Run
from rocketeval.scoring.read_answers import read_answers

HERE = Path(__file__).parent
ITEM = "Is everything that the response states true?"


def prepare(folder: Path) -> int:
    """Write the set as a benchmark; return the number of questions."""
    rows = [json.loads(line) for line in (HERE / "rag_set.jsonl").read_text().splitlines()]
    write_rows(
        folder / "queries.jsonl",
        (
            {
                "id": row["id"],
                "text": row["question"],
                "context": row["context"],
                "tags": [row["fault"]],
            }
            for row in rows
        ),
    )
    for name in ("faithful", "unfaithful"):
        path = folder / "responses" / f"{name}.jsonl"
        write_rows(path, ({"query_id": row["id"], "text": row[name]} for row in rows))
    return len(rows)


def answers(run: Run) -> tuple[Floats, Floats]:
    """Return p_yes of the faithful and of the unfaithful answers, in question order."""
    table, _ = read_answers(run.store)
    names = np.array(table.candidates)
    return table.shown[names == "faithful"], table.shown[names == "unfaithful"]


def auc(good: Floats, bad: Floats, counts: Floats) -> float:
    """Return the AUC with each question counted so often."""
    known = ~np.isnan(good), ~np.isnan(bad)
    one, two = counts[known[0]], counts[known[1]]
    better = good[known[0]][:, None] - bad[known[1]][None, :]
    wins = (better > 0) + 0.5 * (better == 0)
    return float((wins * one[:, None] * two[None, :]).sum() / (one.sum() * two.sum()))


def main() -> None:
    """Judge both ways and print the figures."""
    options = arguments(__doc__ or "").parse_args()
    folder = options.out / "rag"
    questions = prepare(folder)
    found = {}
    for name, shows in (("without", []), ("with", ["context"])):
        author = {"kind": "fixed", "min_items": 1, "options": {"items": [ITEM]}}
        method = {"kind": "checklist", "options": {"shows": shows}}
        run = judged(
            f"rag_{name}", folder, options.out, options.judge, author=author, method=method
        )
        found[name] = answers(run)
    without, shown_to = found["without"], found["with"]
    figures = paired_difference(
        lambda counts: auc(*without, counts), lambda counts: auc(*shown_to, counts), questions
    )
    for label, figure in zip(
        ("AUC without context", "AUC with context", "difference"), figures, strict=True
    ):
        print(f"{label:22} {shown(figure)}")
    pairs = [float(np.mean(good > bad)) for good, bad in (without, shown_to)]
    print(f"pairs in the right order: {pairs[0]:.0%} without, {pairs[1]:.0%} with")


if __name__ == "__main__":
    main()

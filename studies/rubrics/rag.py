"""Does a judge that sees the context tell faithful answers from unfaithful ones?

    python studies/rubrics/rag.py [--judge '{model: ..., base_url: ...}' --out OUT] [--record]

`rag_set.jsonl` has 30 questions about invented facts, each with a faithful and an unfaithful
answer; which is which is known by construction. The same item is asked with and without the
context. AUC is the probability that a faithful answer gets a higher p_yes than an unfaithful one;
intervals resample questions, and the difference is paired. The same is printed for each kind of
fault (a contradiction of the passages, an invention). Fixed before the judge was asked. Questions
that are not judged in full do not count.
"""

from __future__ import annotations

import json
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

HERE = Path(__file__).parent
ITEM = "Is everything that the response states true?"
SIDES = ("faithful", "unfaithful")
AUTHOR = {"kind": "fixed", "min_items": 1, "options": {"items": [ITEM]}}


def rows() -> list[dict]:
    """Return the questions of the set."""
    return [json.loads(line) for line in (HERE / "rag_set.jsonl").read_text().splitlines()]


def prepare(folder: Path) -> None:
    """Write the set as a benchmark."""
    write_rows(
        folder / "queries.jsonl",
        ({"id": row["id"], "text": row["question"], "context": row["context"]} for row in rows()),
    )
    for name in SIDES:
        path = folder / "responses" / f"{name}.jsonl"
        write_rows(path, ({"query_id": row["id"], "text": row[name]} for row in rows()))


def auc(good: Floats, bad: Floats, counts: Floats) -> float:
    """Return the AUC with each question counted so often; NaN if none is left."""
    known = ~np.isnan(good), ~np.isnan(bad)
    one, two = counts[known[0]], counts[known[1]]
    better = good[known[0]][:, None] - bad[known[1]][None, :]
    wins = (better > 0) + 0.5 * (better == 0)
    pairs = one.sum() * two.sum()
    return float((wins * one[:, None] * two[None, :]).sum() / pairs) if pairs else float("nan")


def sides(found: Answers, questions: list[str]) -> tuple[Floats, Floats]:
    """Return p_yes of the faithful and of the unfaithful answers, in question order."""
    one, two = (
        np.array([found.get((name, side), [np.nan])[0] for name in questions]) for side in SIDES
    )
    return one, two


def main() -> None:
    """Print the figures, of all questions and of each kind of fault."""
    options = arguments(__doc__ or "").parse_args()
    folder = options.out / "rag"
    prepare(folder)
    found = {}
    for name, shows in (("without", []), ("with", ["context"])):
        method = {"kind": "checklist", "options": {"shows": shows}}
        found[name] = answers(options, f"rag_{name}_context", folder, author=AUTHOR, method=method)
    every = {row["id"]: row["fault"] for row in rows()}
    faults = {
        name: fault
        for name, fault in every.items()
        if all((name, side) in own for side in SIDES for own in found.values())
    }
    lines = [f"{len(faults)} of {len(every)} questions judged in full"]
    for fault in ("all", *sorted(set(faults.values()))):
        questions = [name for name, own in faults.items() if fault in ("all", own)]
        without, seen = (sides(found[name], questions) for name in ("without", "with"))
        figures = paired_difference(
            lambda counts, own=without: auc(*own, counts),
            lambda counts, own=seen: auc(*own, counts),
            len(questions),
        )
        missing = [int(sum(np.isnan(each).sum() for each in own)) for own in (without, seen)]
        lines.append(
            f"{fault}: {len(questions)} questions, {2 * len(questions)} responses; "
            f"missing answers: {missing[0]} without context, {missing[1]} with"
        )
        lines += table(("AUC without context", "AUC with context", "difference"), figures)
        ordered = [np.mean(good > bad) for good, bad in (without, seen)]
        lines.append(
            f"  pairs in the right order: {ordered[0]:.0%} without context, {ordered[1]:.0%} with"
        )
    finish(options, "rag", lines)


if __name__ == "__main__":
    main()

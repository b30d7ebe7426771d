"""Is a graded item better than the same item as a yes/no question? On SummEval.

    python studies/rubrics/graded_items.py [--judge '{...}' --out OUT --documents 16] [--record]

Coherence and consistency, the two dimensions on which the experts' ratings differ most within a
document, are each asked as a scale of five levels and as a yes/no question; `--all` asks all four.
Documents, and eight of the sixteen summaries of each, are drawn with a seed. All items of a summary
are asked independently, so each answer is what a checklist of this item alone would give.

The figure is the mean over documents of Spearman's correlation between the answers on the summaries
and the experts' mean rating; intervals resample documents, and the difference is paired. Documents
whose experts rate all summaries alike do not count. The second figure is the correlation over all
summaries. Fixed before the judge was asked. The ratings are in the shared data, so the figures need
it even without a judge.
"""

from __future__ import annotations

import gzip
import json
import random
from collections.abc import Mapping
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
from rocketeval.stats.correlation import spearman_by_row

LEVELS = {
    "coherence": [
        "a heap of unrelated sentences",
        "some sentences belong together, most do not",
        "the order can be followed with effort",
        "well organized, with one weak transition",
        "well organized from the first to the last sentence",
    ],
    "consistency": [
        "most statements contradict the article",
        "several statements contradict the article",
        "one important statement contradicts the article",
        "one minor detail differs from the article",
        "every statement is supported by the article",
    ],
    "relevance": [
        "misses what the article is about",
        "has little of what matters",
        "has about half of what matters",
        "has most of what matters, with some details that do not",
        "has what matters, and nothing else",
    ],
    "fluency": [
        "hardly readable",
        "many mistakes in grammar",
        "some mistakes in grammar",
        "one small mistake",
        "no mistake in any sentence",
    ],
}
QUESTIONS = {
    "coherence": "Is the summary well organized, with sentences that build on each other?",
    "consistency": "Is every statement of the summary supported by the article?",
    "relevance": "Does the summary have what matters in the article, and nothing else?",
    "fluency": "Is every sentence of the summary free of mistakes in grammar?",
}
SUMMARIES, SEED = 8, 23
Ratings = Mapping[tuple[str, str], Mapping[str, float]]


def rows(path: Path) -> list[dict]:
    """Return the rows of a compressed file of JSON lines."""
    with gzip.open(path) as stream:
        return [json.loads(line) for line in stream]


def draw(source: Path, documents: int) -> tuple[list[dict], list[dict]]:
    """Return drawn documents, and the drawn summaries of each with their ratings."""
    rng = random.Random(SEED)
    order = sorted(rows(source / "docs.jsonl.gz"), key=lambda row: row["doc_id"])
    rng.shuffle(order)
    rated: dict[str, list[dict]] = {}
    for row in rows(source / "summaries_expert_mean.jsonl.gz"):
        rated.setdefault(row["doc_id"], []).append(row)
    summaries = []
    for document in order[:documents]:
        own = sorted(rated[document["doc_id"]], key=lambda row: row["system"])
        summaries += rng.sample(own, SUMMARIES)
    return order[:documents], summaries


def prepare(folder: Path, documents: list[dict], summaries: list[dict]) -> None:
    """Write the drawn summaries as a benchmark."""
    write_rows(
        folder / "queries.jsonl",
        (
            {"id": row["doc_id"], "text": "Summarize this article:\n\n" + row["source"]}
            for row in documents
        ),
    )
    for name in sorted({row["system"] for row in summaries}):
        own = (row for row in summaries if row["system"] == name)
        write_rows(
            folder / "responses" / f"{name}.jsonl",
            ({"query_id": row["doc_id"], "text": row["summary"]} for row in own),
        )


def by_document(found: Answers, place: int, summaries: list[dict]) -> Floats:
    """Return the answers to one item, one row per document."""
    missing = [np.nan] * (place + 1)
    values = [found.get((row["doc_id"], row["system"]), missing)[place] for row in summaries]
    return np.array(values, dtype=float).reshape(-1, SUMMARIES)


def compared(asked: tuple[Floats, Floats], gold: Floats) -> list[str]:
    """Return the lines of one dimension: yes/no, graded, and the paired difference."""
    each = [spearman_by_row(own, gold) for own in asked]
    known = ~np.isnan(each[0]) & ~np.isnan(each[1])

    def mean(own: Floats, counts: Floats) -> float:
        weights = counts[known]
        return float((own[known] * weights).sum() / weights.sum()) if weights.sum() else np.nan

    def overall(own: Floats, counts: Floats) -> float:
        drawn = np.repeat(np.arange(len(own)), counts.astype(int))
        return float(spearman_by_row(own[drawn].reshape(1, -1), gold[drawn].reshape(1, -1))[0])

    labels = ("yes/no", "graded", "difference")
    lines = [f"  within a document, mean over {int(known.sum())} documents"]
    for figure in (mean, overall):
        values = each if figure is mean else asked
        lines += table(
            labels,
            paired_difference(
                lambda counts, f=figure, own=values[0]: f(own, counts),
                lambda counts, f=figure, own=values[1]: f(own, counts),
                len(gold),
            ),
        )
        if figure is mean:
            lines.append("  over all summaries")
    return lines


def main() -> None:
    """Print the correlations of both forms."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=16)
    parser.add_argument("--all", action="store_true", help="ask all four dimensions")
    options = parser.parse_args()
    documents, summaries = draw(options.data / "summeval", options.documents)
    names = list(QUESTIONS)[: None if options.all else 2]
    folder = options.out / f"summeval_{options.documents}"
    prepare(folder, documents, summaries)
    plain = [QUESTIONS[name] for name in names]
    graded = [{"text": QUESTIONS[name], "kind": "scale", "levels": LEVELS[name]} for name in names]
    author = {"kind": "fixed", "min_items": 1, "options": {"items": [*plain, *graded]}}
    found = answers(options, "summeval_forms", folder, author=author)
    lines = [
        f"{len(documents)} documents with {SUMMARIES} summaries each, drawn with seed {SEED}; "
        f"{sum((row['doc_id'], row['system']) in found for row in summaries)} summaries judged"
    ]
    for place, name in enumerate(names):
        asked = (
            by_document(found, place, summaries),
            by_document(found, place + len(names), summaries),
        )
        gold = np.array([row[name] for row in summaries], dtype=float).reshape(-1, SUMMARIES)
        missing = [int(np.isnan(own).sum()) for own in asked]
        lines.append(f"{name}; missing answers: {missing[0]} as yes/no, {missing[1]} graded")
        lines += compared(asked, gold)
    finish(options, "graded_items", lines)


if __name__ == "__main__":
    main()

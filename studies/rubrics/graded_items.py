"""Is a graded item better than the same item as a yes/no question? On SummEval.

    python studies/rubrics/graded_items.py --judge '{...}' --out /tmp/graded [--documents 100]

Each of the four dimensions is asked once as a scale of five levels and once as a yes/no question.
The figure is the mean over documents of Spearman's correlation between the answers on the 16
summaries and the experts' mean rating; intervals resample documents, and the difference is paired.
"""

from __future__ import annotations

import gzip
import json

import numpy as np
from rubrics.common import arguments, judged, paired_difference, shown, write_rows

from rocketeval.scoring.read_answers import read_answers
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
    "fluency": [
        "hardly readable",
        "many mistakes in grammar",
        "some mistakes in grammar",
        "one small mistake",
        "no mistake in any sentence",
    ],
    "relevance": [
        "misses what the article is about",
        "has little of what matters",
        "has about half of what matters",
        "has most of what matters, with some details that do not",
        "has what matters, and nothing else",
    ],
}
QUESTIONS = {
    "coherence": "Is the summary well organized, with sentences that build on each other?",
    "consistency": "Is every statement of the summary supported by the article?",
    "fluency": "Is every sentence of the summary free of mistakes in grammar?",
    "relevance": "Does the summary have what matters in the article, and nothing else?",
}


def main() -> None:
    """Judge the same questions both ways and print the correlations."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--documents", type=int, default=100)
    options = parser.parse_args()
    folder, source = options.out / "summeval", options.data / "summeval"

    def rows(name: str) -> list[dict]:
        with gzip.open(source / name) as stream:
            return [json.loads(line) for line in stream]

    documents = rows("docs.jsonl.gz")[: options.documents]
    kept = {row["doc_id"] for row in documents}
    ratings = [row for row in rows("summaries_expert_mean.jsonl.gz") if row["doc_id"] in kept]
    write_rows(
        folder / "queries.jsonl",
        (
            {"id": row["doc_id"], "text": "Summarize this article:\n\n" + row["source"]}
            for row in documents
        ),
    )
    for name in sorted({row["system"] for row in ratings}):
        own = (row for row in ratings if row["system"] == name)
        write_rows(
            folder / "responses" / f"{name}.jsonl",
            ({"query_id": row["doc_id"], "text": row["summary"]} for row in own),
        )
    forms = {
        "yes/no": [QUESTIONS[name] for name in LEVELS],
        "graded": [
            {"text": QUESTIONS[name], "kind": "scale", "levels": levels}
            for name, levels in LEVELS.items()
        ],
    }
    found = {}
    for form, items in forms.items():
        author = {"kind": "fixed", "min_items": 1, "options": {"items": items}}
        run = judged(
            f"summeval_{form.replace('/', '_')}", folder, options.out, options.judge, author=author
        )
        table, _ = read_answers(run.store)
        order = {row["doc_id"]: place for place, row in enumerate(documents)}
        systems = sorted(set(table.candidates))
        answers = np.full((len(LEVELS), len(order), len(systems)), np.nan)
        for row, (query, candidate) in enumerate(
            zip(table.query_ids, table.candidates, strict=True)
        ):
            own = table.shown[table.offsets[row] : table.offsets[row + 1]]
            if len(own) == len(LEVELS):
                answers[:, order[query], systems.index(candidate)] = own
        found[form] = answers
    gold = np.full((len(LEVELS), len(documents), len(systems)), np.nan)
    for row in ratings:
        at = [row["doc_id"] == each["doc_id"] for each in documents].index(True)
        for place, name in enumerate(LEVELS):
            gold[place, at, systems.index(row["system"])] = row[name]
    for place, name in enumerate(LEVELS):
        each = {form: spearman_by_row(found[form][place], gold[place]) for form in forms}

        def mean(form: str, counts: np.ndarray, each: dict = each) -> float:
            known = ~np.isnan(each["yes/no"]) & ~np.isnan(each["graded"])
            return float((each[form][known] * counts[known]).sum() / counts[known].sum())

        figures = paired_difference(
            lambda counts: mean("yes/no", counts),
            lambda counts: mean("graded", counts),
            len(documents),
        )
        print(
            name,
            *(
                f"{label} {shown(figure)}"
                for label, figure in zip(("yes/no", "graded", "difference"), figures, strict=True)
            ),
            sep="\n  ",
        )


if __name__ == "__main__":
    main()

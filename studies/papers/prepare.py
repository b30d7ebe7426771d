"""Convert the shared benchmark data into folders of the generic format, one per study.

    python studies/papers/prepare.py [--data ../shared/data] [--to FOLDER]

The default folder is studies/runs/data, or data in $ROCKETEVAL_STUDY_RUNS.

Queries are written in an order shuffled with a fixed seed, so that the first N of them
(`benchmark.limit`) are a random sample, and a longer run only adds to a shorter one.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

RUNS = Path(os.environ.get("ROCKETEVAL_STUDY_RUNS", Path(__file__).parents[1] / "runs"))
DATA = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
SEED = 20261115
SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")
TOPICAL_CHAT = ("coherence", "engagingness", "groundedness", "naturalness")
Row = dict[str, Any]


def main() -> None:
    """Write every benchmark folder."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--to", type=Path, default=RUNS / "data")
    given = parser.parse_args()
    for name, make in STUDIES.items():
        files = make(given.data)
        for file, rows in files.items():
            write(given.to / name / f"{file}.jsonl", rows)
        print(f"{name}: " + ", ".join(f"{len(rows)} {file}" for file, rows in files.items()))


def arena_hard(data: Path) -> dict[str, list[Row]]:
    """Return the 120 prompts that have checklists, the paper's 22 candidates and its Elo lists."""
    folder = data / "arena_hard_v0.1"
    checklists = {row["query_id"]: row["checklist"] for row in read(folder / "checklists_120")}
    questions = {row["question_id"]: row for row in read(folder / "questions")}
    ratings = json.loads((data / "rocketeval/rankings.json").read_text())["arena-hard"]
    names = {row["name"]: row for part in ("train", "test") for row in ratings[part]}
    order = drawn(checklists)
    return {
        "queries": [{"id": each, "text": questions[each]["turns"][0]["content"]} for each in order],
        "responses": [
            {"query_id": row["question_id"], "candidate": row["model"], "text": row["answer"]}
            for row in read(folder / "answers_rocketeval22")
            if row["question_id"] in checklists and row["model"] in names
        ],
        "checklists": [{"query_id": each, "items": checklists[each]} for each in order],
        "ratings": [{"candidate": row["name"], "value": row["rating"]} for row in ratings["test"]],
        "train_ratings": [
            {"candidate": row["name"], "value": row["rating"]} for row in ratings["train"]
        ],
    }


def mt_bench(data: Path) -> dict[str, list[Row]]:
    """Return the first turns of MT-Bench for the six candidates with human votes."""
    folder = data / "mt_bench"
    questions = {str(row["question_id"]): row for row in read(folder / "questions")}
    checklists = {row["query_id"]: row["checklist"] for row in read(folder / "checklists")}
    votes = [row for row in read(folder / "human_votes") if row["turn"] == 1]
    voted = {row[side] for row in votes for side in ("model_a", "model_b")}
    order = drawn(questions)
    winners = {"model_a": "a", "model_b": "b"}
    return {
        "queries": [
            {"id": each, "text": questions[each]["turns"][0]}
            | {"category": questions[each]["category"]}
            | ({"reference": found[0]} if (found := questions[each].get("reference")) else {})
            for each in order
        ],
        "responses": [
            {"query_id": str(row["question_id"]), "candidate": row["model"]}
            | {"text": row["turns"][0]}
            for row in read(folder / "answers_official32")
            if row["model"] in voted
        ],
        "checklists": [{"query_id": each, "items": checklists[f"{each}-1"]} for each in order],
        "votes": [
            {"query_id": str(row["question_id"]), "candidate_a": row["model_a"]}
            | {"candidate_b": row["model_b"], "winner": winners.get(row["winner"], "tie")}
            | {"voter": row["judge"]}
            for row in votes
        ],
    }


def summeval(data: Path) -> dict[str, list[Row]]:
    """Return articles, summaries of 16 systems, and CheckEval's seed questions of 4 dimensions."""
    docs = {row["doc_id"]: row["source"] for row in read(data / "summeval/docs")}
    summaries = list(read(data / "summeval/summaries_expert_mean"))
    order = drawn(docs)
    items = seed_questions(data, "summeval", SUMMEVAL)
    return {
        "queries": [
            {"id": each, "text": f"Summarize this news article.\n\n{docs[each]}"} for each in order
        ],
        "responses": [
            {"query_id": row["doc_id"], "candidate": row["system"], "text": row["summary"]}
            for row in summaries
        ],
        "checklists": [{"query_id": each, "items": list(items)} for each in order],
        "dimensions": [{"item": item, "dimension": name} for item, name in items.items()],
        "gold": [
            {"query_id": row["doc_id"], "candidate": row["system"]}
            | {name: row[name] for name in SUMMEVAL}
            for row in summaries
        ],
    }


def topical_chat(data: Path) -> dict[str, list[Row]]:
    """Return conversations with a fact, replies of six systems, and CheckEval's seed questions."""
    rows = list(read(data / "topical_chat/topical_chat_usr"))
    texts = list(dict.fromkeys((row["source"], row["context"]) for row in rows))
    ids = {text: f"chat-{place:02d}" for place, text in enumerate(texts)}
    order = drawn(ids.values())
    by_id = {name: text for text, name in ids.items()}
    items = seed_questions(data, "topical_chat", TOPICAL_CHAT)
    gold = [
        {"query_id": ids[row["source"], row["context"]], "candidate": row["system_id"]}
        | {name: row["scores"][name] for name in TOPICAL_CHAT}
        for row in rows
    ]
    return {
        "queries": [{"id": each, "text": chat_prompt(*by_id[each])} for each in order],
        "responses": [
            {"query_id": cell["query_id"], "candidate": cell["candidate"]}
            | {"text": row["system_output"].strip()}
            for cell, row in zip(gold, rows, strict=True)
        ],
        "checklists": [{"query_id": each, "items": list(items)} for each in order],
        "dimensions": [{"item": item, "dimension": name} for item, name in items.items()],
        "gold": gold,
    }


def infobench(data: Path) -> dict[str, list[Row]]:
    """Return instructions with human-written yes/no questions, and GPT-4's verdict on each."""
    rows = {row["id"]: row for row in read(data / "infobench/infobench_gpt4")}
    order = drawn(rows)
    return {
        "queries": [
            {"id": each, "text": "\n\n".join(part for part in task(rows[each]) if part)}
            | {"category": rows[each]["subset"]}
            for each in order
        ],
        "responses": [
            {"query_id": each, "candidate": "gpt-4", "text": rows[each]["output"]} for each in order
        ],
        "checklists": [
            {"query_id": each, "items": rows[each]["decomposed_questions"]} for each in order
        ],
        "verdicts": [
            {"query_id": each, "verdicts": rows[each]["eval"]}
            | {"kinds": rows[each]["question_label"]}
            for each in order
        ],
    }


def task(row: Mapping[str, Any]) -> tuple[str, str]:
    """Return the instruction and its input."""
    return row["instruction"], row["input"]


def chat_prompt(conversation: str, fact: str) -> str:
    """Return the conversation so far and the fact that the next turn should use."""
    return (
        "Write the next turn of this conversation, and make use of the fact below it.\n\n"
        f"{conversation.strip()}\n\nFact: {fact.strip()}"
    )


def seed_questions(data: Path, benchmark: str, dimensions: Sequence[str]) -> dict[str, str]:
    """Return CheckEval's seed questions of all dimensions, each with its dimension."""
    known = json.loads((data / "checkeval/questions.json").read_text())
    found: dict[str, str] = {}
    for name in dimensions:
        for text in known[f"{benchmark}_questions/{name}_seed"]["sub_aspect"].values():
            for question in re.findall(r"[^?]+\?", text):
                found.setdefault(question.strip(), name)
    return found


def drawn(ids: Iterable[str]) -> list[str]:
    """Return all ids in a random order, the same at every call."""
    order = sorted(ids)
    random.Random(SEED).shuffle(order)
    return order


def read(path: Path) -> Iterator[Row]:
    """Yield the rows of a gzipped JSON lines file."""
    with gzip.open(path.with_name(path.name + ".jsonl.gz"), "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def write(path: Path, rows: Iterable[Row]) -> None:
    """Write rows as JSON lines."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


STUDIES = {
    "mt_bench": mt_bench,
    "arena_hard": arena_hard,
    "summeval": summeval,
    "topical_chat": topical_chat,
    "infobench": infobench,
}


if __name__ == "__main__":
    main()

"""Small benchmarks in every supported format, written to a folder."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

TWELVE_ITEMS = [f"Is point {number} made?" for number in range(1, 13)]


def write_jsonl(path: Path, rows: Iterable[Any]) -> Path:
    """Write one JSON object per line, gzipped if the name says so."""
    path.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    content = text.encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path


def jsonl_folder(folder: Path) -> Path:
    """Write two queries and two candidates, one file each, with every optional file."""
    history = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Hello"}]
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"id": "one", "text": "What is 1?", "reference": "A number.", "category": "maths"},
            {"id": 2, "text": "And 2?", "history": history},
        ],
    )
    for candidate in ("left", "right"):
        rows = [{"query_id": query, "text": f"{candidate} on {query}"} for query in ("one", "2")]
        write_jsonl(folder / "responses" / f"{candidate}.jsonl", rows)
    write_jsonl(
        folder / "checklists.jsonl",
        [
            {"query_id": "one", "items": ["Is it a number?"]},
            {"query_id": 2, "items": TWELVE_ITEMS, "author": "Ann"},
        ],
    )
    write_jsonl(
        folder / "labels.jsonl",
        [
            {"query_id": "one", "candidate": "left", "value": 7},
            {"query_id": 2, "candidate": "right", "value": "3.5", "labeler": "gpt-4"},
        ],
    )
    write_jsonl(
        folder / "votes.jsonl",
        [
            {"query_id": "one", "candidate_a": "left", "candidate_b": "right", "winner": "a"},
            {
                "query_id": 2,
                "candidate_a": "left",
                "candidate_b": "right",
                "winner": "tie",
                "voter": "Ben",
            },
        ],
    )
    write_jsonl(folder / "ratings.jsonl", [{"candidate": "left", "value": 1100}])
    return folder


def rocketeval_folder(folder: Path, *, queries: str = "query.jsonl") -> Path:
    """Write two sessions and two candidates in the layout of the paper's scripts."""
    write_jsonl(
        folder / queries,
        [
            {
                "session_id": "s1",
                "conversation_input": [{"role": "user", "content": "What is 1?"}],
                "checklist": ["Is it a number?"],
                "references": {"gpt-4": "A number."},
                "primary_tag": "maths",
            },
            {
                "session_id": "s2",
                "conversation_input": [
                    {"role": "user", "content": "What is 1?"},
                    {"role": "assistant", "content": "A number."},
                    {"role": "user", "content": "And 2?"},
                ],
                "checklist": TWELVE_ITEMS,
                "references": {},
            },
        ],
    )
    for candidate in ("gemma-2b-it", "gpt-4.1"):
        write_jsonl(
            folder / "response" / f"{candidate}.jsonl",
            [
                {"session_id": session, "output": [f"{candidate} on {session}", "unused"]}
                for session in ("s1", "s2")
            ],
        )
    labels = [
        {"session_id": "s1", "model_test": "google/gemma-2b-it", "score": "7"},
        {"session_id": "s2", "model_test": "google/gemma-2b-it", "score": 4},
    ]
    (folder / "score" / "gpt-4o").mkdir(parents=True)
    (folder / "score" / "gpt-4o" / "gemma-2b-it.json").write_text(json.dumps(labels))
    write_jsonl(
        folder / "score" / "gpt-4o" / "gpt-4.1.jsonl", [{"session_id": "s1", "score": "9.5"}]
    )
    rankings = [{"name": "gpt-4.1", "rating": 1300.5}, {"name": "unrated"}]
    (folder / "rankings.json").write_text(json.dumps(rankings))
    return folder


def mt_bench_folder(folder: Path) -> Path:
    """Write two questions and two candidates as FastChat's scripts do, and human votes."""
    questions = [
        {"question_id": 81, "category": "writing", "turns": ["Write.", "Write again."]},
        {
            "question_id": 101,
            "category": "reasoning",
            "turns": ["Which place?", "And now?"],
            "reference": ["Second.", "Last."],
        },
    ]
    write_jsonl(folder / "question.jsonl", questions)
    for model in ("gpt-4", "llama-13b"):
        rows = [native_answer(question["question_id"], model) for question in questions]
        write_jsonl(folder / "model_answer" / f"{model}.jsonl", rows)
    write_jsonl(folder / "reference_answer" / "gpt-4.jsonl", [native_answer(81, "gpt-4")])
    vote = {"question_id": 81, "model_a": "gpt-4", "model_b": "llama-13b", "turn": 1}
    write_jsonl(
        folder / "votes.jsonl",
        [
            {**vote, "winner": "model_a", "judge": "expert_1"},
            {**vote, "winner": "tie (inconsistent)", "judge": "expert_2"},
            {**vote, "winner": "model_b", "judge": "author_0", "turn": 2},
            {**vote, "winner": "tie", "judge": "expert_1", "question_id": 101},
        ],
    )
    score = {"question_id": 81, "model": "gpt-4", "judge": ["gpt-4", "single-v1"], "turn": 1}
    write_jsonl(
        folder / "scores.jsonl",
        [
            {**score, "score": 9},
            {**score, "score": -1, "question_id": 101},
            {**score, "score": None, "turn": 2},
            {**score, "score": 8.5, "turn": 2, "model": "llama-13b", "judge": "gpt-4o"},
        ],
    )
    write_jsonl(
        folder / "checklists.jsonl",
        [
            {"query_id": "81-1", "checklist": TWELVE_ITEMS},
            {"query_id": "81-2", "checklist": ["Is it written again?"]},
        ],
    )
    (folder / "elo.csv").write_text("model,elo\ngpt-4,1251\nllama-13b,\n", encoding="utf-8")
    return folder


MT_BENCH_OPTIONS = {
    "votes": "votes.jsonl",
    "scores": "scores.jsonl",
    "checklists": "checklists.jsonl",
    "ratings": "elo.csv",
    "ratings_column": "elo",
}


def native_answer(question: int, model: str) -> dict[str, Any]:
    """One row of FastChat's model_answer files."""
    turns = [f"{model} on {question}, first", f"{model} on {question}, second"]
    return {
        "question_id": question,
        "answer_id": f"id-{question}",
        "model_id": model,
        "choices": [{"index": 0, "turns": turns}],
        "tstamp": 1686286924.8,
    }

"""Convert PandaLM's test set to a benchmark folder in the generic format.

    python studies/mad_eval/prepare.py ../shared/data/pandalm/testset_v1.jsonl.gz FOLDER

A query is an instruction with its input, a candidate is one of the five fine-tuned models, and
every annotator is a voter. Some instructions occur twice in the file, with other responses of the
same models: those get a number. Responses that are a bare JSON `true` are shown as `True`.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import orjson

from rocketeval.store.files import write_jsonl

WINNERS = {0: "tie", 1: "a", 2: "b"}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    print(f"{convert(given.source, given.folder)}: {given.folder}")


def convert(source: Path, folder: Path) -> str:
    """Write the benchmark's files; return their sizes in words."""
    with gzip.open(source) as lines:
        rows = [orjson.loads(line) for line in lines]
    queries: dict[tuple[str, str], dict[str, Any]] = {}
    responses: dict[tuple[str, str], dict[str, Any]] = {}
    votes = []
    for row in rows:
        query = _query(row, queries)
        texts = (str(row["response1"]), str(row["response2"]))
        models = row["cmp_key"].split("_")
        first, second = (
            _candidate(query, model, text, responses)
            for model, text in zip(models, texts, strict=True)
        )
        votes += _votes(row, query, first, second)
    write_jsonl(folder / "queries.jsonl", queries.values())
    write_jsonl(folder / "responses.jsonl", responses.values())
    write_jsonl(folder / "votes.jsonl", votes)
    return f"{len(queries)} queries, {len(responses)} responses, {len(votes)} votes"


def _query(row: Mapping[str, Any], queries: dict[tuple[str, str], dict[str, Any]]) -> str:
    asked = (row["instruction"], row["input"])
    if asked not in queries:
        text = "\n\n".join(part for part in asked if part)
        queries[asked] = {
            "id": f"{len(queries):03d}",
            "text": text,
            "category": row["motivation_app"],
        }
    return str(queries[asked]["id"])


def _candidate(
    query: str, model: str, text: str, responses: dict[tuple[str, str], dict[str, Any]]
) -> str:
    """Return the candidate with this response; a model's second one to a query has a number."""
    name, number = model, 1
    while responses.get((query, name), {"text": text})["text"] != text:
        number += 1
        name = f"{model} #{number}"
    row = {"query_id": query, "candidate": name, "text": text}
    responses.setdefault((query, name), row)
    return name


def _votes(row: Mapping[str, Any], query: str, first: str, second: str) -> Iterator[dict[str, Any]]:
    for voter in ("annotator1", "annotator2", "annotator3"):
        yield {
            "query_id": query,
            "candidate_a": first,
            "candidate_b": second,
            "winner": WINNERS[row[voter]],
            "voter": voter,
        }


if __name__ == "__main__":
    main()

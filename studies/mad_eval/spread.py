"""MT-Bench with its questions in turn of their categories, so that the first few are of every kind.

    python studies/mad_eval/spread.py ../shared/data/mt_bench FOLDER

The other files are linked.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from rocketeval.store.files import write_jsonl

QUESTIONS = "questions.jsonl.gz"
LINKED = ("answers_official32.jsonl.gz", "human_votes.jsonl.gz")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    with gzip.open(given.source / QUESTIONS) as lines:
        questions = [orjson.loads(line) for line in lines]
    given.folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(given.folder / "questions.jsonl", in_turn(questions))
    for name in LINKED:
        link = given.folder / name
        link.unlink(missing_ok=True)
        link.symlink_to((given.source / name).resolve())
    print(f"{len(questions)} questions in turn of their categories: {given.folder}")


def in_turn(questions: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the first of each category, then the second of each, and so on."""
    places: dict[str, int] = {}
    ranked = []
    for question in questions:
        place = places[question["category"]] = places.get(question["category"], -1) + 1
        ranked.append((place, question))
    return [question for _, question in sorted(ranked, key=lambda each: each[0])]


if __name__ == "__main__":
    main()

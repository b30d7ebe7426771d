"""Reorder MT-Bench's questions by alternating categories, so that the first few cover all of them.

    python studies/mad_eval/spread.py ../shared/data/mt_bench FOLDER

The other files are linked.
"""

from __future__ import annotations

import argparse
import gzip
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson

from rocketeval.store.files import write_jsonl

Question = Mapping[str, Any]
GIVEN = "questions.jsonl.gz"
QUESTIONS = "questions.jsonl"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", type=Path)
    parser.add_argument("folder", type=Path)
    given = parser.parse_args()
    count = lay_out(given.source, given.folder, in_turn)
    print(f"{count} questions, categories alternating: {given.folder}")


def lay_out(
    source: Path, folder: Path, order: Callable[[Sequence[Question]], Sequence[Question]]
) -> int:
    """Write MT-Bench with its questions in another order; return their number."""
    with gzip.open(source / GIVEN) as lines:
        questions = [orjson.loads(line) for line in lines]
    folder.mkdir(parents=True, exist_ok=True)
    write_jsonl(folder / QUESTIONS, order(questions))
    for file in source.iterdir():
        if file.name != GIVEN:
            link = folder / file.name
            link.unlink(missing_ok=True)
            link.symlink_to(file.resolve())
    return len(questions)


def in_turn(questions: Sequence[Question]) -> list[Question]:
    """Return the first of each category, then the second of each, and so on."""
    places: dict[str, int] = {}
    ranked = []
    for question in questions:
        place = places[question["category"]] = places.get(question["category"], -1) + 1
        ranked.append((place, question))
    return [question for _, question in sorted(ranked, key=lambda each: each[0])]


if __name__ == "__main__":
    main()

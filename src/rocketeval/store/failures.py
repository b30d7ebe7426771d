"""failures.jsonl: the tasks of a run to retry, with the answers they already have."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from rocketeval.records import NO_ANSWER, Answer, Failure
from rocketeval.store.checksums import reading
from rocketeval.store.files import read_jsonl, remove, write_sealed
from rocketeval.store.schema import answers_to_lists, lists_to_answers

FAILURES = "failures.jsonl"


def save_failures(path: Path, failures: Iterable[Failure]) -> None:
    """Write the tasks to retry, each line with its checksum; an empty list removes the file."""
    rows = [
        {
            "key": failure.key.hex(),
            "query_id": failure.query_id,
            "candidate": failure.candidate,
            "reason": failure.reason,
            **answers_to_lists(failure.answers),
        }
        for failure in failures
    ]
    if rows:
        write_sealed(path, rows)
    else:
        remove(path)


def read_failures(path: Path) -> list[Failure]:
    """Return the tasks in the file; StoreError if it is damaged."""
    with reading(path):
        return [
            Failure(
                bytes.fromhex(row["key"]),
                row["query_id"],
                row["candidate"],
                row["reason"],
                lists_to_answers(row),
            )
            for row in read_jsonl(path)
        ]


def answered(failure: Failure) -> dict[int, Answer]:
    """Return the answers that a failed task received, by item."""
    return {
        position: answer
        for position, answer in enumerate(failure.answers)
        if answer.status not in NO_ANSWER
    }

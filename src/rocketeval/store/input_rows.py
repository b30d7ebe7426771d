"""Rows of a run's inputs: records as JSON lines, and responses as rows of a Parquet file."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

from rocketeval.hashing import content_hash
from rocketeval.items import parse_item
from rocketeval.records import Checklist, Query, Response, Turn
from rocketeval.store.files import write_jsonl
from rocketeval.store.schema import table_schema

RESPONSES = table_schema(
    ("query_id candidate hash", pa.string()),
    ("length", pa.int64()),
    ("text history context", pa.large_string()),
    ("context_hash", pa.string()),
)
"""The last two columns are absent in parts whose responses have no context of their own."""


def checklist_from_row(row: dict[str, Any]) -> Checklist:
    """Return the checklist in a row."""
    parsed = [parse_item(item, trusted=True) for item in row["items"]]
    made = Checklist.from_items(row["query_id"], parsed, row["author"], row.get("about"))
    return replace(made, groups=tuple(row["groups"])) if "groups" in row else made


def checklist_to_row(checklist: Checklist) -> dict[str, Any]:
    """Return a checklist as a row."""
    texts = replace(checklist, groups=None).to_json()
    row: dict[str, Any] = {
        "query_id": checklist.query_id,
        "items": texts,
        "author": checklist.author,
    }
    if checklist.groups is not None:
        row["groups"] = list(checklist.groups)
    if checklist.about is not None:
        row["about"] = checklist.about
    return row


def query_from_row(row: dict[str, Any]) -> Query:
    """Return the query in a row."""
    passages = row.get("context")
    own = {
        "history": turns_from_rows(row["history"]),
        "context": None if passages is None else tuple(passages),
        "tags": tuple(row.get("tags", ())),
    }
    return Query(**{**row, **own})


def response_from_row(row: dict[str, Any]) -> Response:
    """Return the response in a row."""
    own, passages = row["history"], row.get("context")
    history = None if own is None else turns_from_rows(orjson.loads(own))
    context = None if passages is None else tuple(orjson.loads(passages))
    return Response(row["query_id"], row["candidate"], row["text"], history, context)


def response_to_row(response: Response) -> dict[str, Any]:
    """Return a response as a row of `RESPONSES`."""
    own, passages = response.history, response.context
    return {
        "query_id": response.query_id,
        "candidate": response.candidate,
        "hash": response.content_hash.hex(),
        "length": len(response.text),
        "text": response.text,
        "history": None if own is None else orjson.dumps([asdict(turn) for turn in own]).decode(),
        "context": None if passages is None else orjson.dumps(passages).decode(),
        "context_hash": None if passages is None else response.hash_with_context.hex(),
    }


_UNHASHED = ("tags", "metadata")
"""Fields of a query that change nothing the judge sees and no score."""
_NEW: Mapping[str, object] = {
    "cluster": None,
    "system": None,
    "context": None,
    "tags": (),
    "metadata": {},
}
"""Fields that earlier versions did not write, with the value at which they are left out."""


def save_rows(folder: Path, name: str, records: Iterable[Any]) -> dict[str, Any]:
    """Write `<name>.jsonl`; return its fields of the summary."""
    rows = [asdict(record) for record in records]
    for row in rows:
        # Without these, the row and its hash are those of earlier versions.
        for field, default in _NEW.items():
            if field in row and row[field] == default:
                del row[field]
    write_jsonl(folder / f"{name}.jsonl", rows)
    hashed = [{key: own for key, own in row.items() if key not in _UNHASHED} for row in rows]
    return {name: len(rows), f"{name}_hash": content_hash(name, hashed).hex()}


def turns_from_rows(rows: Iterable[Mapping[str, str]]) -> tuple[Turn, ...]:
    """Return the turns in rows."""
    return tuple(Turn(row["role"], row["content"]) for row in rows)

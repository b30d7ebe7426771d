"""The run's snapshot of its inputs, so that every number can be traced without the originals.

Small records are JSON lines. Responses are Parquet, sorted by query so that candidates share a
judge's prefix cache; sorting uses buckets on disk and never holds all responses in memory.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rocketeval.errors import StageMissing
from rocketeval.hashing import combine, content_hash
from rocketeval.neutral import rules, shown_as_before
from rocketeval.records import Checklist, Label, Query, Rating, Response, Vote
from rocketeval.store.checksums import check_complete, check_file, keep_checksums, reading
from rocketeval.store.codec import Finding, decode_finding, encode_finding
from rocketeval.store.files import (
    copy_file,
    make_folder,
    read_json,
    read_jsonl,
    remove,
    write_json,
    write_jsonl,
    write_parquet,
)
from rocketeval.store.input_rows import (
    RESPONSES,
    checklist_from_row,
    checklist_to_row,
    query_from_row,
    response_from_row,
    response_to_row,
    save_rows,
)
from rocketeval.store.manifest import InputSummary

T = TypeVar("T")
PROVENANCE = "checklist_provenance.json"
EARLIER = "earlier_checklists.jsonl"
"""Replaced checklists: their judgments still answer the items that did not change."""
_HEAD_COLUMNS = ["query_id", "candidate", "hash", "context_hash"]
_RESPONSE_COLUMNS = ["query_id", "candidate", "text", "history", "context"]
_CONTEXT_COLUMNS = ("context", "context_hash")
QUERIES_PER_BUCKET = 64
MOST_BUCKETS = 128
"""Limit, because each bucket is an open file while responses are read."""
SPILL_BYTES = 64 << 20
BATCH_ROWS = 4096
HEAD_ROWS = 1 << 16


@dataclass(frozen=True, slots=True)
class ResponseHead:
    """A response without its text, which is all that most stages need."""

    query_id: str
    candidate: str
    hash: bytes
    length: int
    """Characters in the response."""
    context_hash: bytes | None = None
    """The hash including the response's own context; None without one."""

    def shown_hash(self, *, context: bool) -> bytes:
        """Return the hash of what a judge is shown, with or without the context."""
        return self.context_hash if context and self.context_hash else self.hash


def clusters_of(queries: Iterable[Query]) -> dict[str, str]:
    """Return the cluster of each query by id; a query without one is its own.

    >>> clusters_of([Query("81-1", "Hi", cluster="81"), Query("82-1", "Ho")])
    {'81-1': 'cluster 81', '82-1': 'query 82-1'}
    """
    return {
        query.id: f"query {query.id}" if query.cluster is None else f"cluster {query.cluster}"
        for query in queries
    }


class Inputs:
    """Reads and writes the inputs of one run."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def save(
        self,
        queries: list[Query],
        responses: Iterable[Response],
        labels: Iterable[Label],
        votes: Iterable[Vote],
        ratings: Iterable[Rating],
    ) -> InputSummary:
        """Replace the snapshot; return counts and content hashes for the manifest.

        The new snapshot is built in a separate folder and replaces the old one when it is complete,
        so an invalid benchmark leaves the run unchanged. Checklists are kept.
        """
        self.recover()
        fresh = self.folder.with_name(".inputs.new")
        shutil.rmtree(fresh, ignore_errors=True)
        make_folder(fresh)
        keep_checksums(fresh)
        positions = {query.id: place for place, query in enumerate(queries)}
        summary = InputSummary(
            **save_rows(fresh, "queries", queries),
            **_ResponseSorter(fresh / "responses", positions).write(responses),
            **save_rows(fresh, "labels", labels),
            **save_rows(fresh, "votes", votes),
            **save_rows(fresh, "ratings", ratings),
        )
        write_json(fresh / "summary.json", encode_finding(summary))
        self._take(fresh)
        return summary

    def _take(self, fresh: Path) -> None:
        stale = self.folder.with_name(".inputs.old")
        shutil.rmtree(stale, ignore_errors=True)
        if self.folder.exists():
            for name in ("checklists.jsonl", EARLIER, PROVENANCE):
                if (self.folder / name).exists():
                    check_file(self.folder / name)
                    copy_file(self.folder / name, fresh / name)
            self.folder.rename(stale)
        fresh.rename(self.folder)
        shutil.rmtree(stale, ignore_errors=True)
        self.__dict__.pop("queries", None)

    def recover(self) -> None:
        """Put the old snapshot back if a process was killed before the new one took its place."""
        stale = self.folder.with_name(".inputs.old")
        if stale.exists() and not self.folder.exists():
            stale.rename(self.folder)

    def shown_as_written(self, rules: str) -> bool:
        """Return whether it is known that these neutralizing rules change no response."""
        if not self.exist:
            return False
        summary = self.summary()
        return summary.neutralizing == rules and not summary.changed_by_rules

    @property
    def exist(self) -> bool:
        """Whether the load stage has finished."""
        return self._summary_path.exists()

    def summary(self) -> InputSummary:
        """Return the counts and hashes of the load stage."""
        if not self.exist:
            raise StageMissing(
                f"{self.folder.parent} has no inputs yet.", hint="Run `rocketeval run` first."
            )
        return decode_finding(InputSummary, read_json(self._summary_path), self._summary_path)

    @cached_property
    def queries(self) -> dict[str, Query]:
        """Queries by id, in benchmark order."""
        self.summary()
        check_complete(self.folder)
        path = self.folder / "queries.jsonl"
        with reading(path):
            return {row["id"]: query_from_row(row) for row in read_jsonl(path)}

    def clusters(self) -> dict[str, str]:
        """Return the cluster of each query; a query without one is its own."""
        return clusters_of(self.queries.values())

    def labels(self) -> list[Label]:
        """Return the labels."""
        return self._records("labels", Label)

    def votes(self) -> list[Vote]:
        """Return the human votes."""
        return self._records("votes", Vote)

    def ratings(self) -> list[Rating]:
        """Return the reference ratings."""
        return self._records("ratings", Rating)

    def _records(self, name: str, kind: Callable[..., T]) -> list[T]:
        path = self.folder / f"{name}.jsonl"
        check_complete(self.folder)
        with reading(path):
            return [kind(**row) for row in read_jsonl(path)]

    def responses(self) -> Iterator[Response]:
        """Yield every response in query order, candidates sorted within a query."""
        return map(response_from_row, self._rows(_RESPONSE_COLUMNS))

    def responses_to(self, query_ids: Sequence[str]) -> Iterator[Response]:
        """Yield the responses to a few queries, in the same order."""
        chosen = pc.field("query_id").isin(pa.array(list(query_ids), pa.string()))
        for path in self._parts():
            with reading(path):
                columns = _present(pq.read_schema(path), _RESPONSE_COLUMNS)
                table = pq.read_table(path, columns=columns, filters=chosen)
                found = list(map(response_from_row, table.to_pylist()))
            yield from found

    def heads(self) -> Iterator[ResponseHead]:
        """Yield every response without its text, in the same order.

        Each has the hash of its content.
        """
        for row in self._rows([*_HEAD_COLUMNS, "length"]):
            own = row.get("context_hash")
            # Callers keep millions of these: equal names should be the same object.
            yield ResponseHead(
                sys.intern(row["query_id"]),
                sys.intern(row["candidate"]),
                bytes.fromhex(row["hash"]),
                row["length"],
                None if own is None else bytes.fromhex(own),
            )

    def head_tables(
        self,
        rows: int,
        query_ids: Collection[str] | None = None,
        *,
        rehash: Callable[[Response, bool], bytes] | None = None,
    ) -> Iterator[pa.Table]:
        """Yield names and hashes of all responses in the same order, in tables of about `rows`.

        All responses to a query are in one table. Without responses there is one empty table.
        `query_ids` restricts the result to these queries. `rehash` computes other hashes than
        those of the content, with and without the context; it reads every text. `context_hash` is
        null for a response without its own context.
        """
        columns = _HEAD_COLUMNS if rehash is None else [*_HEAD_COLUMNS, *_RESPONSE_COLUMNS[2:]]
        chosen = None if query_ids is None else pa.array(sorted(query_ids), pa.string())
        waiting = RESPONSES.empty_table().select(_HEAD_COLUMNS)
        for path in self._parts():
            for batch in _batches(path, HEAD_ROWS, columns):
                heads = pa.Table.from_batches([batch])
                if rehash is not None:
                    heads = _rehashed(heads, rehash)
                elif "context_hash" not in heads.column_names:
                    none = pa.nulls(heads.num_rows, pa.string())
                    heads = heads.append_column("context_hash", none)
                heads = heads.select(_HEAD_COLUMNS)
                if chosen is not None:
                    heads = heads.filter(pc.is_in(heads["query_id"], value_set=chosen))
                waiting = pa.concat_tables([waiting, heads])
                cut = _last_query_begins(waiting) if waiting.num_rows >= rows else 0
                if cut:
                    yield waiting.slice(0, cut)
                    waiting = waiting.slice(cut)
        yield waiting

    def lengths_of(self, query_ids: Collection[str]) -> dict[tuple[str, str], int]:
        """Return the length of each response to these queries in characters."""
        chosen = pc.field("query_id").isin(list(query_ids))
        found: dict[tuple[str, str], int] = {}
        for path in self._parts():
            columns = ["query_id", "candidate", "length"]
            with reading(path):
                table = pq.read_table(path, columns=columns, filters=chosen)
            names = zip(table["query_id"].to_pylist(), table["candidate"].to_pylist(), strict=True)
            found.update(zip(names, table["length"].to_pylist(), strict=True))
        return found

    def candidates(self) -> set[str]:
        """Return the names of all candidates."""
        found: set[str] = set()
        for path in self._parts():
            with reading(path):
                names = pq.read_table(path, columns=["candidate"])["candidate"]
            found.update(names.unique().to_pylist())
        return found

    def save_checklists(self, checklists: Iterable[Checklist]) -> bool:
        """Write the checklists that the run grades with; return whether they changed."""
        path = self.folder / "checklists.jsonl"
        fresh = {checklist.query_id: checklist for checklist in checklists}
        before = path.read_bytes() if path.exists() else None
        if before is not None:
            self._keep_replaced(fresh)
        write_jsonl(path, map(checklist_to_row, fresh.values()))
        return path.read_bytes() != before

    def earlier_checklists(self) -> list[Checklist]:
        """Return the replaced checklists, in the order of their replacement."""
        with reading(self.folder / EARLIER):
            return [checklist_from_row(row) for row in read_jsonl(self.folder / EARLIER)]

    def _keep_replaced(self, fresh: Mapping[str, Checklist]) -> None:
        earlier = self.earlier_checklists()
        known = {(before.query_id, before.content_hash) for before in earlier}
        replaced = [
            before
            for before in self.checklists().values()
            if not _same(fresh.get(before.query_id), before)
            and (before.query_id, before.content_hash) not in known
        ]
        if replaced:
            write_jsonl(self.folder / EARLIER, map(checklist_to_row, [*earlier, *replaced]))

    def checklists(self) -> dict[str, Checklist]:
        """Return the checklists by query id; StageMissing before the checklist stage."""
        path = self.folder / "checklists.jsonl"
        if not path.exists():
            raise StageMissing(
                f"{self.folder.parent} has no checklists yet.",
                hint="Run `rocketeval run --only checklist` first.",
            )
        with reading(path):
            return {row["query_id"]: checklist_from_row(row) for row in read_jsonl(path)}

    def save_provenance(self, provenance: Finding | None) -> None:
        """Write the provenance of the checklist items; None removes an earlier author's."""
        path = self.folder / PROVENANCE
        if provenance is None:
            remove(path)
        else:
            write_json(path, encode_finding(provenance))

    @property
    def _summary_path(self) -> Path:
        return self.folder / "summary.json"

    def _parts(self) -> list[Path]:
        check_complete(self.folder / "responses")
        return sorted((self.folder / "responses").glob("part-*.parquet"))

    def _rows(self, columns: list[str]) -> Iterator[dict[str, Any]]:
        for path in self._parts():
            for batch in _batches(path, BATCH_ROWS, columns):
                yield from batch.to_pylist()


def _batches(path: Path, rows: int, columns: list[str]) -> Iterator[pa.RecordBatch]:
    """Yield those of the columns that a Parquet file has; StoreError if it is damaged."""
    with reading(path):
        part = pq.ParquetFile(path, page_checksum_verification=True)
    with part:
        batches = part.iter_batches(rows, columns=_present(part.schema_arrow, columns))
        while True:
            with reading(path):
                batch = next(batches, None)
            if batch is None:
                return
            yield batch


class _ResponseSorter:
    """Sorts a stream of responses by query, one bucket of queries at a time."""

    def __init__(self, folder: Path, positions: Mapping[str, int]) -> None:
        self.folder = folder
        self.positions = positions
        self._queries_per_bucket = max(QUERIES_PER_BUCKET, -(-len(positions) // MOST_BUCKETS))
        self._scratch = folder.with_name(".responses.tmp")
        self._buffers: dict[int, list[dict[str, Any]]] = {}
        self._buffered = 0
        self._writers: dict[int, pq.ParquetWriter] = {}

    def write(self, responses: Iterable[Response]) -> dict[str, Any]:
        """Write sorted parts; return their fields of the summary."""
        shutil.rmtree(self._scratch, ignore_errors=True)
        make_folder(self._scratch)
        try:
            return {**self._scatter(responses), "responses_hash": self._gather()}
        finally:
            shutil.rmtree(self._scratch, ignore_errors=True)

    def _scatter(self, responses: Iterable[Response]) -> dict[str, Any]:
        candidates: set[str] = set()
        count = empty = characters = changed = 0
        for response in responses:
            bucket = self.positions[response.query_id] // self._queries_per_bucket
            self._buffers.setdefault(bucket, []).append(response_to_row(response))
            self._buffered += len(response.text) + 200
            candidates.add(response.candidate)
            count += 1
            empty += not response.text.strip()
            turns = (turn.content for turn in response.history or ())
            texts = (response.text, *turns, *(response.context or ()))
            changed += not all(map(shown_as_before, texts))
            characters += len(response.text)
            if self._buffered > SPILL_BYTES:
                self._spill()
        self._spill()
        for writer in self._writers.values():
            writer.close()
        return {
            "responses": count,
            "candidates": len(candidates),
            "empty_responses": empty,
            "response_characters": characters,
            "changed_by_rules": changed,
            "neutralizing": rules(),
        }

    def _spill(self) -> None:
        for bucket, rows in self._buffers.items():
            if bucket not in self._writers:
                path = self._scratch / f"{bucket:06d}.parquet"
                self._writers[bucket] = pq.ParquetWriter(path, RESPONSES)
            self._writers[bucket].write_table(pa.Table.from_pylist(rows, schema=RESPONSES))
        self._buffers.clear()
        self._buffered = 0

    def _gather(self) -> str:
        shutil.rmtree(self.folder, ignore_errors=True)
        make_folder(self.folder)
        keep_checksums(self.folder)
        digest = content_hash("responses")
        for bucket in sorted(self._writers):
            table = pq.read_table(self._scratch / f"{bucket:06d}.parquet")
            place = [self.positions[query_id] for query_id in table["query_id"].to_pylist()]
            order = table.select(["candidate"]).append_column("place", pa.array(place))
            indices = pc.sort_indices(order, [("place", "ascending"), ("candidate", "ascending")])
            table = table.take(indices)
            hashed = ["query_id", "candidate", "hash"]
            if table["context_hash"].null_count == table.num_rows:
                table = table.drop_columns(list(_CONTEXT_COLUMNS))
            else:
                hashed.append("context_hash")
            write_parquet(self.folder / f"part-{bucket:06d}.parquet", table)
            digest = combine(digest, content_hash(*(table[name].to_pylist() for name in hashed)))
        return digest.hex()


def _last_query_begins(heads: pa.Table) -> int:
    """Return the row at which the last query's responses start."""
    query_ids = heads["query_id"]
    return int(query_ids.index(query_ids[-1]).as_py())


def _present(schema: pa.Schema, columns: Sequence[str]) -> list[str]:
    return [name for name in columns if name in schema.names]


def _rehashed(heads: pa.Table, rehash: Callable[[Response, bool], bytes]) -> pa.Table:
    rows = list(map(response_from_row, heads.to_pylist()))
    hashes = {
        "hash": [rehash(row, False).hex() for row in rows],
        "context_hash": [None if row.context is None else rehash(row, True).hex() for row in rows],
    }
    kept = heads.select(["query_id", "candidate"])
    for name, own in hashes.items():
        kept = kept.append_column(name, pa.array(own, pa.string()))
    return kept


def _same(now: Checklist | None, before: Checklist) -> bool:
    return now is not None and now.content_hash == before.content_hash

"""The order of grading tasks, the identities of their judgments, and which are unfinished."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rocketeval.hashing import combine, combine_each
from rocketeval.neutral import rules
from rocketeval.prompts.render import (
    Prompt,
    shown_checklist,
    shown_query,
    shown_response,
)
from rocketeval.records import Checklist, GradingTask, JudgeFingerprint, Query, Response
from rocketeval.store.finished_keys import FinishedKeys
from rocketeval.store.inputs import Inputs, ResponseHead
from rocketeval.store.ledger_index import hex_to_bytes
from rocketeval.store.run import RunStore


def judgment_key(judge: bytes, query: Query, head: ResponseHead, checklist: Checklist) -> bytes:
    """Return the identity of a judgment of one response with one checklist."""
    uses = checklist.uses
    response = head.shown_hash(context="context" in uses)
    return combine(judge + shown_query(query, uses), response, shown_checklist(checklist))


def identity(keys: Collection[bytes]) -> str:
    """Return a hash of a set of judgments, so that a plan is compared only with its own grading."""
    return combine(*sorted(keys)).hex()


@dataclass(frozen=True, slots=True)
class ScheduledResponse:
    """One response to judge, with the identity of its judgment."""

    query_id: str
    candidate: str
    key: bytes | None
    """None if its query has no checklist."""


@dataclass(frozen=True, slots=True, eq=False)
class CellBlock:
    """Many cells as columns: all responses to some queries, in query order."""

    query_ids: list[str]
    candidates: list[str]
    keys: bytes
    """16 bytes for each cell that has a key, concatenated."""
    known: NDArray[np.bool_]
    """Which cells have a key: those whose query has a checklist."""


class Identities:
    """Judgment identities, computed with each query and checklist hashed only once.

    A judgment's identity is the judge, and query, response and checklist as the judge sees them:
    judgments that agree in all four are the same judgment.
    """

    def __init__(
        self, judge: bytes, queries: Mapping[str, Query], checklists: Mapping[str, Checklist]
    ) -> None:
        uses = {query_id: made.uses for query_id, made in checklists.items()}
        self._heads = {
            query_id: (
                judge + shown_query(query, uses[query_id]),
                shown_checklist(checklists[query_id]),
            )
            for query_id, query in queries.items()
            if query_id in checklists
        }
        self._in_context = {query_id for query_id, own in uses.items() if "context" in own}

    def shows_context(self, query_id: str) -> bool:
        """Return whether the judge sees the context of responses to a query."""
        return query_id in self._in_context

    def key(self, query_id: str, response_hash: bytes) -> bytes | None:
        """Return the identity of a judgment; None if the query has no checklist.

        `response_hash` includes the response's own context if `shows_context`.
        """
        head = self._heads.get(query_id)
        return None if head is None else combine(head[0], response_hash, head[1])

    def keys(self, query_id: str, response_hashes: bytes) -> bytes | None:
        """Return the identities of a query's judgments; hashes and identities are concatenated."""
        head = self._heads.get(query_id)
        return None if head is None else combine_each(head[0], response_hashes, head[1])


class JudgingInputs(Protocol):
    """The inputs to judge: those of a run, or those it would have."""

    @property
    def queries(self) -> Mapping[str, Query]:
        """The queries by id."""
        ...

    def checklists(self) -> Mapping[str, Checklist]:
        """Return the checklists by query id."""
        ...

    def heads(self) -> Iterator[ResponseHead]:
        """Yield every response without its text."""
        ...

    def responses(self) -> Iterator[Response]:
        """Yield the same responses, in the same order."""
        ...

    def shown_as_written(self, rules: str) -> bool:
        """Return whether it is known that these neutralizing rules change no identity."""
        ...


def shown_heads(inputs: JudgingInputs) -> Iterator[ResponseHead]:
    """Yield every response without its text, with the hash of the text shown to the judge."""
    if inputs.shown_as_written(rules()):
        yield from inputs.heads()
    else:
        for one in inputs.responses():
            own = None if one.context is None else shown_response(one, context=True)
            yield ResponseHead(one.query_id, one.candidate, shown_response(one), len(one.text), own)


def cells(inputs: JudgingInputs, judge: bytes) -> Iterator[ScheduledResponse]:
    """Yield every response of the run in query order, with its judgment's identity."""
    identities = Identities(judge, inputs.queries, inputs.checklists())
    for head in shown_heads(inputs):
        shown = head.shown_hash(context=identities.shows_context(head.query_id))
        key = identities.key(head.query_id, shown)
        yield ScheduledResponse(head.query_id, head.candidate, key)


def cell_blocks(
    inputs: Inputs, judge: bytes, rows: int, query_ids: Collection[str] | None = None
) -> Iterator[CellBlock]:
    """Yield the same cells in blocks of about `rows`; a query's cells are always in one block.

    `query_ids` restricts the result to these queries. Without cells there is one empty block.
    """
    identities = Identities(judge, inputs.queries, inputs.checklists())
    rehash = None if inputs.shown_as_written(rules()) else shown_response
    for table in inputs.head_tables(rows, query_ids, rehash=rehash):
        queries = _encoded(table["query_id"])
        hashes = hex_to_bytes(table["hash"])
        in_context = hashes
        if table["context_hash"].null_count < table.num_rows:
            in_context = hex_to_bytes(pc.coalesce(table["context_hash"], table["hash"]))
        keys: list[bytes] = []
        known = np.ones(len(queries), dtype=bool)
        for query_id, start, stop in _runs(queries):
            own = in_context if identities.shows_context(query_id) else hashes
            made = identities.keys(query_id, own[16 * start : 16 * stop])
            known[start:stop] = made is not None
            keys.append(made or b"")
        candidates = _encoded(table["candidate"])
        yield CellBlock(_names(queries), _names(candidates), b"".join(keys), known)


def _encoded(column: pa.ChunkedArray) -> pa.DictionaryArray:
    return column.combine_chunks().dictionary_encode()


def _names(encoded: pa.DictionaryArray) -> list[str]:
    """Return the names of a column, with each distinct name held in memory once."""
    names = encoded.dictionary.to_pylist()
    return [names[place] for place in encoded.indices.to_pylist()]


def _runs(encoded: pa.DictionaryArray) -> Iterator[tuple[str, int, int]]:
    """Yield each run of equal names: the name, its first row, the row after its last."""
    runs = pc.run_end_encode(encoded.indices)
    names, start = encoded.dictionary.to_pylist(), 0
    for place, stop in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
        yield names[place], start, stop
        start = stop


def unfinished_tasks(
    inputs: JudgingInputs, prompt: Prompt, judge: bytes, finished: Callable[[bytes], bool]
) -> Iterator[GradingTask]:
    """Yield the unfinished tasks in query order.

    Responses that produce the same prompts are one task and share its judgment, even across two
    queries with the same text.
    """
    queries, checklists = inputs.queries, inputs.checklists()
    identities = Identities(judge, queries, checklists)
    given: set[bytes] = set()
    for response in inputs.responses():
        context = identities.shows_context(response.query_id)
        key = identities.key(response.query_id, shown_response(response, context))
        if key is None or key in given or finished(key):
            continue
        given.add(key)
        query_id = response.query_id
        yield prompt.render(queries[query_id], response, checklists[query_id], key)


def keys_before_precision(inputs: JudgingInputs, judge: JudgeFingerprint) -> dict[bytes, bytes]:
    """Return the current judgment keys by the keys they had before precision was recorded."""
    # One after the other, so that a benchmark is not read twice at the same time.
    earlier = [cell.key for cell in cells(inputs, judge.before_precision.digest)]
    pairs = zip(earlier, cells(inputs, judge.digest), strict=True)
    return {old: new.key for old, new in pairs if old is not None and new.key is not None}


def cached_keys(
    store: RunStore, inputs: JudgingInputs, judge: JudgeFingerprint, cache: Path | None
) -> FinishedKeys:
    """Return the keys of the judgments in the cache.

    Judgments made before precision was recorded count under their current keys.
    """
    found = store.cached(judge.digest, cache)
    before = store.cached(judge.before_precision.digest, cache) if judge.precision else None
    if before:
        renamed = keys_before_precision(inputs, judge)
        found.update(new for old, new in renamed.items() if old in before)
    return found

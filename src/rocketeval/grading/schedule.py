"""Which tasks there are, in which order, and which of them are still to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from rocketeval.hashing import combine
from rocketeval.prompts.render import Prompt
from rocketeval.records import Checklist, GradingTask, Query
from rocketeval.store.inputs import Inputs


@dataclass(frozen=True, slots=True)
class Cell:
    """One response to be judged, by the identity its judgment will have."""

    query_id: str
    candidate: str
    key: bytes | None
    """None when its query has no checklist."""


class Identities:
    """Computes judgment identities without hashing queries and checklists again."""

    def __init__(
        self, judge: bytes, queries: Mapping[str, Query], checklists: Mapping[str, Checklist]
    ) -> None:
        self._heads = {
            query_id: (judge + query.content_hash, checklists[query_id].content_hash)
            for query_id, query in queries.items()
            if query_id in checklists
        }

    def key(self, query_id: str, response_hash: bytes) -> bytes | None:
        """Return the identity of a judgment; None when the query has no checklist."""
        head = self._heads.get(query_id)
        return None if head is None else combine(head[0], response_hash, head[1])


def cells(inputs: Inputs, judge: bytes) -> Iterator[Cell]:
    """Yield every response of the run in query order, with its judgment's identity."""
    identities = Identities(judge, inputs.queries, inputs.checklists())
    for head in inputs.heads():
        key = identities.key(head.query_id, head.hash)
        yield Cell(head.query_id, head.candidate, key)


def unfinished_tasks(
    inputs: Inputs, prompt: Prompt, judge: bytes, finished: Callable[[bytes], bool]
) -> Iterator[GradingTask]:
    """Yield the tasks still to do, in query order.

    Responses that a judge would see in the same prompts are one task: they share its judgment,
    also across two queries that say the same.
    """
    queries, checklists = inputs.queries, inputs.checklists()
    identities = Identities(judge, queries, checklists)
    given: set[bytes] = set()
    for response in inputs.responses():
        key = identities.key(response.query_id, response.content_hash)
        if key is None or key in given or finished(key):
            continue
        given.add(key)
        query_id = response.query_id
        yield prompt.render(queries[query_id], response, checklists[query_id], key)

"""Search over the texts of a run: queries, checklist items and responses."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rocketeval.store.run import RunStore

MOST_MATCHES = 60
"""Number of matches to return."""
_AROUND = 60


@dataclass(frozen=True, slots=True)
class TextMatch:
    """A text that matches a search."""

    query: str
    """Id of its query."""
    candidate: str
    """Empty unless the text is a response."""
    where: str
    """The kind of text: query, response, or the number of an item."""
    before: str
    match: str
    after: str


def find_texts(store: RunStore, words: str) -> tuple[TextMatch, ...]:
    """Return the first texts that contain every word, one match per text."""
    wanted = words.lower().split()
    if not wanted:
        return ()
    return tuple(islice(_matches(store, wanted), MOST_MATCHES))


def _matches(store: RunStore, wanted: list[str]) -> Iterator[TextMatch]:
    for query in store.inputs.queries.values():
        yield from _in_text(query.text, wanted, query.id, "query")
    for query_id, checklist in store.inputs.checklists().items():
        for number, item in enumerate(checklist.titles, 1):
            yield from _in_text(item, wanted, query_id, f"item {number}")
    for response in store.inputs.responses():
        found = _in_text(response.text, wanted, response.query_id, "response", response.candidate)
        yield from found


def _in_text(
    text: str, wanted: list[str], query: str, where: str, candidate: str = ""
) -> Iterator[TextMatch]:
    lower = text.lower()
    if not all(word in lower for word in wanted):
        return
    at = lower.index(wanted[0])
    end = at + len(wanted[0])
    yield TextMatch(
        query=query,
        candidate=candidate,
        where=where,
        before=("…" if at > _AROUND else "") + text[max(0, at - _AROUND) : at],
        match=text[at:end],
        after=text[end : end + 2 * _AROUND],
    )

"""What a run has to do: its judgments, those that are there, and the tasks that are left."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from rocketeval.benchmarks.base import open_benchmark
from rocketeval.benchmarks.load import imported_checklists
from rocketeval.checklists.base import SharedAuthor, create_author
from rocketeval.checklists.write import authoring_key
from rocketeval.config import RunConfig
from rocketeval.errors import ChecklistError
from rocketeval.grading.methods.base import Method
from rocketeval.grading.reuse import known_answers
from rocketeval.grading.schedule import Identities
from rocketeval.hashing import combine
from rocketeval.prompts.render import Prompt
from rocketeval.records import Answer, Checklist, GradingTask, Query, Response, Usage
from rocketeval.store.run import RunStore


@dataclass
class Checklists:
    """The checklists a run will have, without writing any."""

    made: dict[str, Checklist] = field(default_factory=dict)
    unwritten: set[str] = field(default_factory=set)
    """Queries whose checklist an author would be paid for."""
    most: Usage = field(default_factory=Usage)
    """What writing those uses at most."""


async def foresee_checklists(
    store: RunStore, config: RunConfig, queries: Iterable[Query]
) -> Checklists:
    """Return the checklists that are there, and what writing the others would take."""
    imported = imported_checklists(open_benchmark(config.benchmark))
    author = create_author(config.author, imported, store.engine_home("author"))
    paid_for = store.authored(config.cache).known() if author.costly else {}
    found = Checklists()
    try:
        if isinstance(author, SharedAuthor) and (most := author.foresee(paid_for)) is not None:
            found.unwritten, found.most = {query.id for query in queries}, most
            return found
        shared = isinstance(author, SharedAuthor)
        for query in queries:
            if shared or not author.costly:
                try:
                    found.made[query.id] = await author.write(query)
                except ChecklistError:
                    continue
            elif (key := authoring_key(author, query)) in paid_for:
                paid = paid_for[key]
                found.made[query.id] = Checklist(query.id, paid.items, paid.author)
            else:
                found.unwritten.add(query.id)
                found.most += author.most(query)
    finally:
        await author.aclose()
    return found


class Material(Protocol):
    """What is to be judged: a benchmark, or what a judge is shown of one."""

    @property
    def queries(self) -> Sequence[Query]:
        """The queries."""
        ...

    def responses(self) -> Iterator[Response]:
        """Yield the responses, each time anew."""
        ...


class Work:
    """The judgments of one run by identity, found by reading the benchmark once."""

    def __init__(
        self,
        store: RunStore,
        config: RunConfig,
        loaded: Material,
        checklists: Checklists,
        judge: bytes,
        method: Method,
        *,
        also: Sequence[RunStore] = (),
    ) -> None:
        self.queries = {query.id: query for query in loaded.queries}
        self.checklists = checklists
        self._prompt: Prompt = method.prompt
        self._loaded = loaded
        self._identities = Identities(judge, self.queries, checklists.made)
        self.candidates: set[str] = set()
        self.responses: Counter[str] = Counter()
        """By query."""
        self.wanted: dict[bytes, str] = {}
        """Every judgment the run needs, with its query."""
        for response in loaded.responses():
            self.candidates.add(response.candidate)
            self.responses[response.query_id] += 1
            key = self._identities.key(response.query_id, response.content_hash)
            if key is not None:
                self.wanted.setdefault(key, response.query_id)
        finished = store.finished()
        self._known: Mapping[bytes, Mapping[int, Answer]] = known_answers(
            store, method, judge, checklists.made, finished, also=also
        )
        cached = store.cached(judge, config.cache)
        self.finished = sum(key in finished for key in self.wanted)
        self.from_cache = sum(key in cached and key not in finished for key in self.wanted)
        self.left = {key for key in self.wanted if key not in finished and key not in cached}
        """Judgments that are neither in the run nor in the cache."""

    def items(self) -> Counter[str]:
        """Return how many items are left to ask, by query."""
        asked: Counter[str] = Counter()
        for key, query_id in self.wanted.items():
            if key in self.left:
                items = len(self.checklists.made[query_id].items)
                asked[query_id] += items - len(self._known.get(key, ()))
        return asked

    def tasks(self) -> Iterator[tuple[GradingTask, list[str]]]:
        """Yield the tasks that are left, each with the prompts that will be asked."""
        given: set[bytes] = set()
        for response in self._loaded.responses():
            query_id = response.query_id
            key = self._identities.key(query_id, response.content_hash)
            if key is None or key not in self.left or key in given:
                continue
            given.add(key)
            query, checklist = self.queries[query_id], self.checklists.made[query_id]
            task = self._prompt.render(query, response, checklist, key)
            known = self._known.get(key, {})
            yield (
                task,
                [
                    task.prefix + suffix
                    for place, suffix in enumerate(task.suffixes)
                    if place not in known
                ],
            )


def identity(keys: Collection[bytes]) -> str:
    """Return a hash that stands for a set of judgments, so that a plan is held against its own."""
    return combine(*sorted(keys)).hex()

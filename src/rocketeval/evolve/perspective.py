"""Perspectives: questions a judge answers about a response or a query, and where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cached_property

from rocketeval.hashing import content_hash


class Kind(StrEnum):
    """What a perspective is about."""

    RESPONSE = "response"
    """Response-dependent: it is answered of a response, or of two side by side; yes is better."""
    QUERY = "query"
    """Response-independent: it says what sort of query this is, and so which expert judges it."""


class Form(StrEnum):
    """How finely a judge answers."""

    CHOICE = "choice"
    """Yes or no; of two responses, A or B."""
    GRADED = "graded"
    """A grade: 1 to 5 for a response, -4 to 4 for a pair; the mean over its probabilities."""


class Origin(StrEnum):
    """Where a perspective came from."""

    RULE = "rule"
    """Annotation guidelines, taken apart."""
    PRESET = "preset"
    """Written by hand for a type of instruction."""
    TRANSFER = "transfer"
    """The aim of a prompt that other evaluators use."""
    FAILURES = "failures"
    """Semantic back-propagation: the optimizer looked at what was judged wrongly."""
    DEPTH = "depth"
    """Another wording of one that is there."""
    BREADTH = "breadth"
    """Something that none of those there asks about."""
    MIX = "mix"
    """Explored from a perspective that was itself explored."""
    ROUTING = "routing"
    """A question about the query, derived from one about the response."""
    PERSON = "person"
    """Somebody added it between two rounds."""


EXPLORED = frozenset({Origin.DEPTH, Origin.BREADTH, Origin.MIX})
"""What in-depth and in-breadth exploration bring."""


@dataclass(frozen=True)
class Perspective:
    """One question of the pool.

    >>> Perspective("Does the response answer what was asked?").id
    'ba41b3a21812'
    """

    text: str
    """A yes/no question; about a response, yes is the better answer."""
    kind: Kind = Kind.RESPONSE
    origin: Origin = Origin.PERSON
    form: Form = Form.CHOICE
    """How it is answered; a question about a query is always a choice."""
    parents: tuple[str, ...] = ()
    """Ids of the perspectives it was made from."""
    round: int = 0
    """The round that brought it; 0 for what is there at the beginning."""
    types: tuple[str, ...] = ()
    """Types of instruction it was written for; empty for any."""
    importance: float | None = None
    """Its share in the surrogate's decisions, as a mean over folds; None before the first fit."""
    stability: float | None = None
    """In which share of the folds it was among those worth keeping."""

    @cached_property
    def id(self) -> str:
        """A short name that its content fixes."""
        return content_hash("perspective", self.kind, self.form, self.text).hex()[:12]


class Pool:
    """Perspectives in the order they came, no two with the same words.

    >>> pool = Pool([Perspective("Is it kind?")])
    >>> news = [Perspective("is it kind"), Perspective("Is it short?")]
    >>> more, repeated = pool.add(news)
    >>> [each.text for each in more], [each.text for each in repeated]
    (['Is it kind?', 'Is it short?'], ['is it kind'])
    """

    def __init__(self, perspectives: Iterable[Perspective] = ()) -> None:
        self._by_id: dict[str, Perspective] = {each.id: each for each in perspectives}

    def __iter__(self) -> Iterator[Perspective]:
        return iter(self._by_id.values())

    def __len__(self) -> int:
        return len(self._by_id)

    def __getitem__(self, perspective_id: str) -> Perspective:
        return self._by_id[perspective_id]

    def of(self, kind: Kind) -> tuple[Perspective, ...]:
        """Return those about responses, or those about queries."""
        return tuple(each for each in self if each.kind is kind)

    def add(self, news: Iterable[Perspective]) -> tuple[Pool, tuple[Perspective, ...]]:
        """Return the pool with what is new, and what only repeats words that are there."""
        taken = {_words(each) for each in self}
        grown, repeated = list(self), []
        for each in news:
            words = _words(each)
            if words in taken:
                repeated.append(each)
            else:
                taken.add(words)
                grown.append(each)
        return Pool(grown), tuple(repeated)

    def weigh(self, standings: Mapping[str, tuple[float, float]]) -> Pool:
        """Return the pool with importance and stability by id; None where none is given."""
        return Pool(
            replace(each, importance=standing[0], stability=standing[1])
            for each in self
            for standing in (standings.get(each.id, (None, None)),)
        )


def _words(perspective: Perspective) -> tuple[Kind, Form, tuple[str, ...]]:
    """What two perspectives share that ask the same: case and punctuation do not count."""
    plain = "".join(char if char.isalnum() else " " for char in perspective.text.casefold())
    return perspective.kind, perspective.form, tuple(plain.split())

"""Proposals that only say again what a perspective of the pool asks."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

from rocketeval.evolve.perspective import Kind, Perspective
from rocketeval.prompts.same_words import folded_words, same_words, written_words

_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts that do not part words, so that a whole sentence would count as one."""


@dataclass(frozen=True, slots=True)
class Twin:
    """The perspective that a proposal repeats."""

    of: Perspective
    exact: bool
    """Whether the words are the same, case and punctuation aside; else almost the same."""


@dataclass(frozen=True, slots=True)
class _Question:
    """What is asked in one or in both forms."""

    first: Perspective
    words: frozenset[str]
    ids: set[str] = field(default_factory=set)


class Asked:
    """What is asked already: tells whether a proposal repeats it, in whatever form.

    >>> asked = Asked([Perspective("Is the tone polite?")])
    >>> twin = asked.twin_of(Perspective("Is the tone of the response courteous?"))
    >>> twin.of.text, twin.exact
    ('Is the tone polite?', False)
    """

    def __init__(self, perspectives: Iterable[Perspective] = ()) -> None:
        self._questions: dict[tuple[Kind, tuple[str, ...]], _Question] = {}
        for each in perspectives:
            self.add(each)

    def add(self, perspective: Perspective) -> None:
        """Count a perspective among those that are asked."""
        asked = _Question(perspective, _folded(perspective.text))
        self._questions.setdefault(_key(perspective), asked).ids.add(perspective.id)

    def twin_of(self, proposal: Perspective) -> Twin | None:
        """Return the first that asks the same in the same, else in almost the same words.

        A rewording may come near the perspective that it rewords, as long as it is not the same.
        """
        same = self._questions.get(_key(proposal))
        if same is not None:
            return Twin(same.first, exact=True)
        words = _folded(proposal.text)
        for (kind, _), asked in self._questions.items():
            may_be = kind is proposal.kind and asked.ids.isdisjoint(proposal.parents)
            if may_be and same_words(words, asked.words):
                return Twin(asked.first, exact=False)
        return None


def _key(perspective: Perspective) -> tuple[Kind, tuple[str, ...]]:
    return perspective.kind, tuple(written_words(perspective.text))


def _folded(text: str) -> frozenset[str]:
    """Return the words to compare; none where a script does not part them."""
    return frozenset() if _WITHOUT_SPACES.search(text) else folded_words(written_words(text))

"""Items of one checklist that ask the same thing in the same or almost the same words."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from rocketeval.lint.item_text import ItemText
from rocketeval.prompts.same_words import folded_words, same_words

_SPACE = re.compile(r"\s+")


def find_twins(items: Sequence[ItemText]) -> Iterator[tuple[int, int, bool]]:
    """Yield each item that is another again: its place, that of the first such, whether exactly.

    >>> texts = ["Is the tone polite?", "is the tone polite", "Is the tone courteous?"]
    >>> list(find_twins([ItemText(text) for text in texts]))
    [(1, 0, True), (2, 0, False)]
    """
    exact: dict[str, int] = {}
    folded: list[frozenset[str]] = []
    for place, item in enumerate(items):
        key = _SPACE.sub(" ", " ".join(item.written))
        words = folded_words(item.written)
        folded.append(words)
        if not key:
            continue
        if key in exact:
            yield place, exact[key], True
            continue
        exact[key] = place
        for earlier in range(place):
            if same_words(words, folded[earlier]):
                yield place, earlier, False
                break

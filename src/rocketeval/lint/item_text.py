"""Item text for the static checks, without quotes and brackets."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from rocketeval.prompts.similar import WORD, written_words


def word_set(text: str) -> frozenset[str]:
    """Return the words of a text.

    >>> sorted(word_set("yes no"))
    ['no', 'yes']
    """
    return frozenset(text.split())


_QUOTED = re.compile(r"\"[^\"]*\"|\u201c[^\u201d]*\u201d|`[^`]*`|\u00ab[^\u00bb]*\u00bb")
_SINGLE = re.compile(r"(?<!\w)['\u2018](?=\S)[^'\u2018\u2019]*['\u2019](?!\w)")
_BRACKETS = re.compile(r"\([^()]*\)")
_LATIN = re.compile(r"[A-Za-z\u00c0-\u024f]")
_QUESTION_MARKS = "?\uff1f\u061f\u037e\u2e2e\u055e\u1367"

_ENGLISH = word_set(
    "the is are does do of to and or for with that this it its be been has have was were will "
    "would should can could not any all each every there by from as at what which why how who "
    "when where if response answer text"
)
_FOREIGN = word_set(
    "la le les est une des du que dans pour avec sur pas el los las una es por con para del se "
    "der das ein eine und ist mit nicht wird auf von zu den dem il lo gli della di che per non "
    "het een van dat niet wordt zijn og er det som ikke att och inte w na nie jest czy o os um "
    "uma e em com ou est-ce ist\u00e4 ja ne"
)


@dataclass(frozen=True)
class ItemText:
    """One item, with the derived texts that the checks use."""

    raw: str

    @cached_property
    def plain(self) -> str:
        """Return the item in lower case without bracketed text; quoted text becomes Q.

        >>> ItemText('Does it say "and so on" (or like)?').plain
        'does it say Q ?'
        """
        text = _SINGLE.sub("Q", _QUOTED.sub("Q", self.raw.lower()))
        text = _BRACKETS.sub("", text).replace("\u2019", "'")
        return " ".join(text.split())

    @cached_property
    def words(self) -> list[str]:
        """Return the words of `plain`."""
        return WORD.findall(self.plain)

    @cached_property
    def written(self) -> list[str]:
        """Return all words in lower case, including those in quotes and brackets."""
        return written_words(self.raw)

    @property
    def asks(self) -> bool:
        """Return whether the item has a question mark of any script."""
        return any(mark in self.raw for mark in _QUESTION_MARKS)

    @cached_property
    def english(self) -> bool:
        """Return whether the item is in English, so that English-only checks apply.

        Items without Latin letters are not English; otherwise function words decide.

        >>> [ItemText(text).english for text in ("Is it right?", "\u5bf9\u5417?", "Est-ce que \
la r\u00e9ponse est juste ?", "Polite")]
        [True, False, False, True]
        """
        letters = [mark for mark in self.raw if mark.isalpha()]
        latin = sum(bool(_LATIN.match(mark)) for mark in letters)
        if not letters or 2 * latin < len(letters):
            return False
        ours = sum(word in _ENGLISH for word in self.written)
        theirs = sum(word in _FOREIGN for word in self.written)
        return ours >= theirs and (ours > 0 or self.raw.isascii())


@dataclass(frozen=True)
class Context:
    """Context of an item: its query, which the item may refer to, and the candidate names."""

    query: str = ""
    """The query's text and history; empty if unknown."""
    candidates: Collection[str] = ()
    """Names of the candidates under test."""

    @cached_property
    def lower(self) -> str:
        """Return the query in lower case."""
        return " ".join(self.query.lower().replace("\u2019", "'").split())

    def speaks_of(self, phrase: str) -> bool:
        """Return whether the query contains a phrase, so that items may use it.

        >>> Context("Use the reference below.").speaks_of("the reference")
        True
        """
        return re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", self.lower) is not None

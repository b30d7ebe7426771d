"""Detection of near-duplicate questions.

Words are compared without endings, filler words and order, and common synonyms count as one word.
Two questions that each have a word the other lacks (`first`/`second`, `Paris`/`Rome`, 3/5) are
different, however similar they look. If one only adds a little to the other, they are
near-duplicates. Questions in scripts without spaces between words are never near-duplicates.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher

ALMOST = 0.84
"""Minimum share of common words, of all words of both, for near-duplicates."""
FEWEST_WORDS = 6
"""Minimum content words of the shorter question for an extra word to be negligible."""
SAME_SPELLING = 0.8
"""Minimum spelling similarity for two long words to count as one."""
LONG_WORD = 5

_FILLER_WORDS = (
    "the a an of to in on at for with by from as is are was were be been being does do did has "
    "have had can could will would should may might its it this that these those and there any "
    "some response answer output text reply generated clearly explicitly properly correctly indeed "
    "also actually really overall given provided successfully effectively specifically in"
)
_FILLER = frozenset(_FILLER_WORDS.split())
_SYNONYMS = {
    word: words.split()[0]
    for words in (
        "include contain mention feature present provide give offer state incorporate hold list "
        "name specify identify note comprise",
        "explain describe clarify discuss outline illustrate elaborate",
        "correct accurate right error-free true factual",
        "brief concise short succinct",
        "clear understandable comprehensible intelligible",
        "polite courteous respectful",
        "use employ utilise utilize apply",
        "suggest recommend propose advise",
        "start begin open",
        "end conclude close finish",
        "avoid refrain without free",
        "relevant related pertinent",
        "mistake error",
        "follow adhere obey respect comply",
        "engaging interesting captivating",
        "logical coherent",
        "organised organized structured well-structured well-organized well-organised",
    )
    for word in words.split()
}
_COUNTED = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_NUMBERS = {word: str(number) for number, word in enumerate(_COUNTED)}
WORD = re.compile(r"[^\W_]+(?:['\u2019-][^\W_]+)*")
"""A word, including parts joined by an apostrophe or a hyphen."""
_WITHOUT_SPACES = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff]")
"""Scripts without spaces between words, where a whole sentence would count as one word."""


def written_words(text: str) -> list[str]:
    """Return all words of a text in lower case.

    >>> written_words("Isn't it well-made?")
    ["isn't", 'it', 'well-made']
    """
    return WORD.findall(text.lower().replace("\u2019", "'"))


def folded_words(words: Iterable[str]) -> frozenset[str]:
    """Return the content words of a question, without endings and filler, synonyms merged.

    Empty, so that nothing is similar, for scripts without spaces between words.

    >>> sorted(folded_words(written_words("Does the response contain errors?")))
    ['include', 'mistake']
    """
    words = list(words)
    if any(_WITHOUT_SPACES.search(word) for word in words):
        return frozenset()
    kept = (_fold(word) for word in words if word not in _FILLER)
    return frozenset(word for word in kept if word)


def same_words(one: frozenset[str], other: frozenset[str]) -> bool:
    """Return whether two questions are near-duplicates, by their folded words."""
    if not one or not other:
        return False
    longer, shorter = (one, other) if len(one) >= len(other) else (other, one)
    if len(shorter) < ALMOST * len(longer):
        return False
    if one == other:
        # A single shared word is not enough evidence.
        return len(one) > 1 or len(max(one, key=len)) >= LONG_WORD
    only_long, only_short = longer - shorter, shorter - longer
    spelled = sum(any(_spelled_alike(word, theirs) for theirs in only_long) for word in only_short)
    if spelled < len(only_short):
        return False
    extra = len(only_long) - spelled
    if extra == 0:
        return True
    differs = {word for word in only_long if word.isdigit() or word in ("not", "no", "never")}
    common = len(longer) - extra
    return not differs and len(shorter) >= FEWEST_WORDS and common / len(longer) >= ALMOST


def _fold(word: str) -> str:
    word = _NUMBERS.get(word, word).removesuffix("'s")
    if word in _SYNONYMS:
        return _SYNONYMS[word]
    for ending in ("ies", "ing", "ed", "es", "s", "ly"):
        if word.endswith(ending) and len(word) - len(ending) >= 3 and not word.endswith("ss"):
            stem = word[: -len(ending)] + ("y" if ending == "ies" else "")
            return _SYNONYMS.get(stem, _SYNONYMS.get(stem + "e", stem.removesuffix("e")))
    return word.removesuffix("e") if len(word) > 4 else word


def _spelled_alike(one: str, other: str) -> bool:
    if min(len(one), len(other)) < LONG_WORD or one.isdigit() or one[0] != other[0]:
        return False
    return SequenceMatcher(None, one, other).ratio() >= SAME_SPELLING

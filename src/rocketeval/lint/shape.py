"""Items that are no whole question: empty, too short or long, cut off, or with remains in them."""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.word_set import word_set

MOST_WORDS = 60
MOST_CHARACTERS = 450
"""Quoted and bracketed text, which is mostly examples, counts for neither."""
FEWEST_WORDS = 3

_REMAINS = {
    "a placeholder": re.compile(
        r"\{\{|\}\}|(?<![\w\\$}])\{\s*[A-Za-z_][\w .-]{0,30}\s*\}|"
        r"\[\s*(?:item|insert\b[^\]]*|your\b[^\]]*|placeholder|query|response|question|topic|xxx?|"
        r"todo|tbd|criterion|fill[ -]in[^\]]*)\s*\]|"
        r"<\s*(?:item|insert\b[^>]*|your\b[^>]*|placeholder|query|response|question|criterion)\s*>|"
        r"_{4,}|\$\{",
        re.IGNORECASE,
    ),
    "a note to its writer": re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b|\blorem ipsum\b"),
    "a control token": re.compile(r"<\|[^|>]*\|>|\[/?INST\]|</?s>|```"),
    "numbering or a bullet": re.compile(
        r"^\s*(?:\(?\d{1,3}[.):]\s|\(?[a-hA-H][.)]\s|[-*+\u2022\u2023\u25e6\u2013\u2014]\s|"
        r"#{1,6}\s|"
        r"\[[ xX]?\]|(?:item|question|criterion|check|q)\s*#?\d+\s*[:.)-])",
        re.IGNORECASE,
    ),
    "markup": re.compile(r"^\s*(?:\*\*|__|<[a-z]{1,6}>)|(?:\*\*|__)\s*$", re.IGNORECASE),
    "a label": re.compile(r"^\s*(?:question|item|criterion|q|checklist)\s*:\s", re.IGNORECASE),
    "a list of answers": re.compile(
        r"[(\[]\s*(?:yes\s*/\s*no|y\s*/\s*n|yes or no)\s*[)\]]\s*[.?]*\s*$|"
        r"\b(?:answer|reply|respond)(?: with)?:? ['\"]?yes['\"]?,?(?: or |/)['\"]?no\b",
        re.IGNORECASE,
    ),
}
_UNFINISHED = word_set(
    "and or the a an of to in for with that which by from as at on but nor any its their"
)
# `"Is it what I asked for?"` is whole: a preposition may well end a question that has its mark.
_NEVER_LAST = word_set("and or the an nor but its their")


def empty(item: ItemText, _: Context) -> str | None:
    """Say that the item has no letter or number."""
    if any(mark.isalnum() for mark in item.raw):
        return None
    return "The item holds no words; remove it."


def residue(item: ItemText, context: Context) -> str | None:
    """Say which remains of a template, a list or a format are in the item."""
    for name, pattern in _REMAINS.items():
        found = pattern.search(item.raw)
        if found and not (context.query and context.speaks_of(found.group().strip().lower())):
            return (
                f"The item has {name} in it ({found.group().strip()[:30]!r}); write the plain "
                "question."
            )
    return None


def too_short(item: ItemText, _: Context) -> str | None:
    """Say that the item has too few words to be a question."""
    if not item.written or len(item.written) >= FEWEST_WORDS:
        return None
    return (
        "The item is too short to say what is asked of the response; write a whole question, such "
        "as `Does the response ...?`"
    )


def too_long(item: ItemText, _: Context) -> str | None:
    """Say that a small judge loses the thread."""
    words, characters = len(item.words), len(item.plain)
    if words <= MOST_WORDS and characters <= MOST_CHARACTERS:
        return None
    return (
        f"The item has {words} words and {characters} characters without quotes and brackets; a "
        "small judge loses the thread. Split it, or move examples into brackets."
    )


def cut_off(item: ItemText, _: Context) -> str | None:
    """Say that the item ends in the middle of a sentence."""
    text = item.raw.rstrip()
    if not item.written:
        return None
    last = item.written[-1]
    ended = text.endswith(("?", ".", "!", '"', "'", "\u201d", "\u2019", ")", "]", "`"))
    if text.endswith((",", ";", ":", "...", "\u2026", " -", "(", "/")) or (
        not ended and last in _UNFINISHED and not item.asks
    ):
        return "The item ends in the middle of a sentence; finish the question."
    if last in _NEVER_LAST and text.rstrip("?. ").lower().endswith(last):
        return f"The item ends on {last!r}, in the middle of a sentence; finish the question."
    return None


def no_question_mark(item: ItemText, _: Context) -> str | None:
    """Say that the question has no question mark."""
    if item.asks or not item.written:
        return None
    return "The question has no question mark; the judge may take it for a statement. Add it."

"""Static checks of weights, penalties, levels and code checks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations, pairwise

from rocketeval.checks.library import needs_reference
from rocketeval.checks.runner import passes_all
from rocketeval.items import Checklist, ItemDetail, ItemKind
from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.wording_checks import yes_is_worse
from rocketeval.prompts.similar import folded_words, written_words
from rocketeval.records import Query

IRRELEVANT = 0.01
"""An item with less than this share of all weights hardly changes a score."""

_QUESTION_CHECKS = frozenset(
    {"not_yes_no", "scale", "no_question_mark", "double_barrelled", "vague", "too_short"}
)
"""Kinds that apply to yes/no questions only."""
_GOOD = re.compile(
    r"\b(?:avoids?|free of|correct(?:ly)?|accurate(?:ly)?|clear(?:ly)?|helpful(?:ly)?|"
    r"appropriate(?:ly)?|polite(?:ly)?|safe(?:ly)?|complete(?:ly)?|relevant|well[- ]written)\b"
)
_NEGATED = re.compile(r"\b(?:not|no|never|without|fails?|lacks?|in(?:correct|accurate)\w*|un\w+)\b")
_BEST = re.compile(r"\b(?:excellent|perfect|fully|completely correct|outstanding|flawless)\b")
_WORST = re.compile(r"\b(?:poor|fails?|wrong|irrelevant|none|not at all|very bad|incoherent)\b")
_ANY_TEXTS = ("", "a", "Some words, 7.\n")
"""Texts with so little in common that a pattern found in all of them is found everywhere."""
_RANGE = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?)\s*(?:-|\u2013|to)\s*(\d+(?:\.\d+)?)(?![\w.])")


def not_checked(detail: ItemDetail) -> frozenset[str]:
    """Return the kinds of wording checks that do not apply to an item."""
    skipped: set[str] = set()
    if detail.kind is ItemKind.CHECK:
        return frozenset(
            {*_QUESTION_CHECKS, "yes_is_worse", "dangling", "about_query", "reference"}
        )
    if detail.kind is ItemKind.SCALE:
        skipped |= {*_QUESTION_CHECKS, "yes_is_worse", "dangling"}
    if detail.weight < 0:
        skipped.add("yes_is_worse")
    if "reference" in detail.uses:
        skipped.add("reference")
    return frozenset(skipped)


def why_by_hand(detail: ItemDetail) -> str | None:
    """Return why an item is not sent to the author; None if it is a question whose yes is better.

    The author writes only such questions, which in place of a penalty would turn the score around.
    """
    if detail.kind is ItemKind.CHECK:
        what = "is a check"
    elif detail.kind is ItemKind.SCALE:
        what = "has levels"
    elif detail.weight < 0:
        what = "is a penalty"
    else:
        return None
    return f"it {what}, and the author writes only questions whose yes is better; change it by hand"


def rubric_reasons(
    checklist: Checklist, place: int, item: ItemText, context: Context, query: Query | None
) -> Iterator[tuple[str, str]]:
    """Yield the kind and reason of each finding on an item's weight, levels, check or material."""
    detail = checklist.detail(place)
    yield from _weight(checklist, detail)
    if detail.weight < 0 and detail.kind is not ItemKind.CHECK and _sounds_good(item, context):
        yield (
            "penalty_is_good",
            "The item is a penalty, so yes lowers the score, but yes seems to be the better "
            "answer; turn the question round, or make the weight positive.",
        )
    if detail.kind is ItemKind.SCALE:
        yield from _levels(detail)
    if _always_passes(detail):
        yield "weak_check", "Every response passes the check; give it a stricter argument."
    if detail.check is not None:
        call = detail.check
        without = query is not None and query.reference is None
        if without and needs_reference(call.fn, call.args):
            yield (
                "never_shown",
                "The check needs the reference, which its query does not have, so it never has a "
                "result; add it, or drop the check.",
            )
        return
    for name in ("reference", "system"):
        if query is not None and name in detail.uses and getattr(query, name) is None:
            yield (
                "never_shown",
                f"The item uses the {name}, which its query does not have; add it, or remove it "
                "from `uses`.",
            )


def _weight(checklist: Checklist, detail: ItemDetail) -> Iterator[tuple[str, str]]:
    total = sum(abs(each.weight) for each in checklist.every_detail)
    if detail.weight == 0.0:
        yield "no_weight", "The item has weight 0, so it never changes a score; drop it."
    elif abs(detail.weight) < IRRELEVANT * total:
        yield (
            "outweighed",
            f"The item has {abs(detail.weight) / total:.1%} of all weights of its checklist, so it "
            "hardly changes a score; raise its weight, or drop it.",
        )


def _sounds_good(item: ItemText, context: Context) -> bool:
    if not item.english or yes_is_worse(item, context) is not None:
        return False
    return _GOOD.search(item.plain) is not None and _NEGATED.search(item.plain) is None


def _levels(detail: ItemDetail) -> Iterator[tuple[str, str]]:
    words = [folded_words(written_words(level)) for level in detail.levels]
    for (one, first), (two, second) in combinations(enumerate(words, 1), 2):
        if first and first == second:
            yield (
                "levels_overlap",
                f"The levels {one} and {two} say nearly the same; say what makes one better.",
            )
            break
    for number, (lower, upper) in enumerate(pairwise(detail.levels), 1):
        if _ranges_overlap(lower, upper):
            yield (
                "levels_overlap",
                f"The ranges of the levels {number} and {number + 1} overlap; a response may fit "
                "both.",
            )
            break
    first_level, last_level = detail.levels[0].lower(), detail.levels[-1].lower()
    if _BEST.search(first_level) and _WORST.search(last_level):
        yield (
            "levels_reversed",
            "The first level sounds best and the last one worst; levels go from worst to best.",
        )


def _ranges_overlap(lower: str, upper: str) -> bool:
    """Return whether the only ranges of numbers in two levels share more than nothing."""
    one, two = _RANGE.findall(lower), _RANGE.findall(upper)
    if len(one) != 1 or len(two) != 1:
        return False
    (low, high), (start, end) = (sorted(map(float, found[0])) for found in (one, two))
    return low <= end and start <= high


def _always_passes(detail: ItemDetail) -> bool:
    """Return whether a check of the library passes for every text."""
    if detail.check is None or detail.check.args.get("negate"):
        return False
    name, args = detail.check.fn, detail.check.args
    if name in ("words", "characters"):
        return not args.get("min") and "max" not in args
    return name == "regex" and passes_all(detail.check, _ANY_TEXTS)

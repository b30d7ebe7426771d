"""Whether yes or no can be the answer to an item."""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.word_set import word_set

AUXILIARIES = word_set(
    "is are was were am be does do did has have had can could will would should shall may might "
    "must isn't aren't wasn't weren't doesn't don't didn't hasn't haven't can't won't"
)
_OPEN = word_set("what which who whom whose why where how")
_STATEMENT = word_set(
    "the a an this that these those it its they he she we i you your his her their there no some "
    "any each every all both response answer responses answers output "
    # what commands begin with
    "check ensure verify rate score list evaluate describe explain make give provide identify name "
    "determine assess confirm judge decide consider count compare review write state tell note "
    "see look find mention include use avoid answer grade mark summarize summarise discuss "
    "please"
)
_LEADS = re.compile(r"^(?:yes[/ ]no|overall|finally|also|and|or|but|then|so|first|next)\b[:, ]*")
_SCALE = re.compile(
    r"^how (?:well|much|good|clear|clearly|accurate|accurately|helpful|relevant|often|far|closely|"
    r"many|likely|effective|effectively|thorough|thoroughly|complete|completely|detailed|coherent|"
    r"engaging|polite|fluent|convincing|creative|would you rate|do you rate)\b|"
    r"\bto what (?:extent|degree)\b|^(?:rate|score|grade)\b|\bon a scale\b|"
    r"\bon a \d+[- ]point scale|"
    r"\b(?:rate|score|grade|rank) (?:it|the (?:response|answer|text|output|summary))\b|"
    r"\bout of (?:5|10|ten|five|100)\?|\bfrom (?:1|one|0|zero) to (?:5|10|ten|five|100)\?|"
    r"\bhow (?:many|much) (?:points|stars|marks)\b|\b(?:1|0) ?(?:-|to|\u2013) ?(?:5|10|100) scale\b"
)
_RATED = re.compile(
    r"\byou\b|"
    r"^(?:is|are) (?:the )?(?:response|answer|text|summary|output)\b[\w ]{0,30}? on a scale"
)
_CHOICE = re.compile(r"\b([a-z-]+) or (?:rather |too |instead )?([a-z-]+)(?: in [a-z ]+)?\s?\?$")


def _pairs(text: str) -> list[str]:
    return text.split(",")


_OPPOSITES = {
    word_set(pair)
    for pair in _pairs(
        "right wrong,good bad,long short,positive negative,better worse,true false,clear confusing,"
        "polite rude,formal casual,high low,strong weak,complete partial,relevant off-topic,"
        "brief detailed,brief lengthy,concise verbose,serious funny,serious playful,easy hard,"
        "objective subjective,objective biased,helpful harmful,simple complex,yes no"
    )
}
_NEGATING = ("un", "in", "im", "ir", "il", "dis", "non-", "non", "not ")


def scale(item: ItemText, context: Context) -> str | None:
    """Say that the item asks how much, not whether."""
    found = _SCALE.search(item.plain)
    if found is None:
        return None
    # `Is each mood given on a scale of 1 to 5?` asks about the response's own scale.
    start = _first_word(item)
    if start in AUXILIARIES and "scale" in found.group() and not _RATED.search(item.plain):
        return None
    if context.speaks_of(found.group().rstrip("?")) and start in AUXILIARIES:
        return None
    return (
        f"The item asks for a degree ({found.group().strip()!r}), which yes or no cannot give; ask "
        "whether one stated bar is met."
    )


def not_yes_no(item: ItemText, context: Context) -> str | None:
    """Say that the item is an open question, a choice, a statement or a command."""
    if not item.words or scale(item, context):
        return None
    first = _first_word(item)
    if first in AUXILIARIES:
        return _choice(item)
    asked = _auxiliary_after_lead(item)
    if first in _OPEN or _asks_openly_after_preposition(item) or _asks_when(item):
        return (
            f"The item is an open question ({first!r}), which yes or no cannot answer; ask whether "
            "the response holds one particular thing."
        )
    if first not in _STATEMENT and asked:
        return _choice(item)
    return (
        "The item is a statement or a command, not a question; ask it as `Does the response ...?` "
        "or `Is the ...?`"
    )


def _first_word(item: ItemText) -> str:
    text = _LEADS.sub("", item.plain)
    words = re.findall(r"[a-z']+", text)
    return words[0] if words else ""


def _auxiliary_after_lead(item: ItemText) -> bool:
    """Whether yes or no is asked after something in front, as in `In the table, are all ...?`"""
    parts = re.split(r"[,;:\u2013\u2014]\s*|\s-\s", item.plain)[1:]
    starts = [re.findall(r"[a-z']+", part)[:1] for part in parts]
    if any(start and start[0] in AUXILIARIES for start in starts):
        return True
    # Some leave the comma out: `For each day does the plan ...?`
    return item.asks and any(word in AUXILIARIES for word in item.words[1:12])


def _asks_openly_after_preposition(item: ItemText) -> bool:
    words = item.words
    return len(words) > 2 and words[0] in _PREPOSITIONS and words[1] in {*_OPEN, "what", "which"}


def _asks_when(item: ItemText) -> bool:
    """Whether it asks for a time: `When did ...?`, not `When the list is empty, does ...?`"""
    words = item.words
    return words[0] == "when" and len(words) > 1 and words[1] in AUXILIARIES


def _choice(item: ItemText) -> str | None:
    found = _CHOICE.search(item.plain)
    if found is None or re.search(r"\b(?:whether|if|either)\b", item.plain):
        return None
    # `in the given input is correct or incorrect` asks whether the response says so.
    one, other = found.groups()
    if not _opposite(one, other):
        return None
    if re.search(r"\b(?:label|mark|classif|denot|state|say|indicat|as)\w*\b", item.plain):
        return None
    return (
        f"The item lets choose ({found.group().strip(' ?')!r}), and yes would mean either; ask "
        "about one of the two."
    )


def _opposite(one: str, other: str) -> bool:
    if other == "not" or frozenset((one, other)) in _OPPOSITES:
        return other != "not"
    return any(other == f"{prefix}{one}" or one == f"{prefix}{other}" for prefix in _NEGATING)


_PREPOSITIONS = word_set("in on at by for from to with of under within about")

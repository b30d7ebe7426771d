"""Items that speak of what the judge does not see, or of something other than the response.

Whatever the query speaks of itself is part of the task, and an item may speak of it.
"""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.yes_no import AUXILIARIES

_REFERENCE = re.compile(
    r"\b(?:the|a|our|provided|given|gold|golden) (?:(?:gold|golden|ideal|provided|given|correct|"
    r"expert|official|original) )?(?:reference(?: (?:answer|response|solution|text|output|summary|"
    r"translation|material|document|above|below|provided|given))?|gold(?:en)? (?:answer|response|"
    r"standard|solution)|model answer|answer key|ground[- ]truth|ideal (?:answer|response)|"
    r"(?:sample|example|expected) (?:answer|response|solution))(?= (?:answer|response|solution|"
    r"and|or|"
    r"in|with|that|which|as|for|do|does|is|says?|states?|gives?|provides?|mentions?|by)\b|"
    r"['?,.)]|$)|"
    r"\breference (?:answer|response|solution)s?\b|\bground[- ]truth\b"
)
_OTHER_ITEM = re.compile(
    r"\b(?:this|the|that|our) (?:check-?list|rubric)\b|\b(?:as|mentioned|described|listed|asked|"
    r"stated) "
    r"above\b|\bthe above(?:\b|$)|\b(?:previous|preceding|earlier|next|following|other|remaining|"
    r"first|last) (?:check-?list )?(?:items?|criteri(?:on|a)|checks?)\b|\b(?:items?|criterion|"
    r"checks?) "
    r"#?\d+\b|\b(?:question|point) #?\d+ (?:above|of the checklist)\b|\b(?:previous|preceding|"
    r"earlier) questions? (?:above|in (?:this|the) (?:check-?list|list))\b|\bsame as (?:above|"
    r"before|"
    r"item)\b|\banswered (?:yes|no) to\b|\bif (?:yes|no|so|not) to\b|\bquestions? above\b|"
    r"^if (?:yes|no|so|not),|\bthe aforementioned\b"
)
_FAMILY_NAMES = (
    r"gpt-?\d[\w.]*|chatgpt|claude(?:[- ][\w.]+)?|gemini(?:[- ][\w.]+)?|llama-?\d?[\w.]*|mistral|"
    r"mixtral|"
    r"qwen[\w.]*|deepseek[\w.-]*|vicuna[\w.-]*|gpt4|grok|copilot"
)
_CANDIDATE = re.compile(
    rf"\b(?:{_FAMILY_NAMES})\b|"
    r"\bthe (?:first|second|other|better|best|worse|two|three|competing|rival) (?:responses?|"
    r"models?|"
    r"candidates?|assistants?|outputs?)\b|\b(?:other|competing|all|both) (?:responses|models|"
    r"candidates|"
    r"assistants)\b|\b(?:better|worse|longer|shorter|more [a-z]+) than (?:the )?(?:other|another|"
    r"baseline|competing)s?\b|\bbaseline (?:response|model|answer)\b"
)
# `Response A` is a candidate, `Is the response a poem?` is not.
_LETTERED = re.compile(
    r"\b(?:[Rr]esponse|[Aa]nswer|[Cc]andidate|[Mm]odel|[Aa]ssistant) (?:[AB]|#?[1-9])\b"
)
_QUERY_NOUN = (
    r"(?:user(?:'s)?(?: (?:query|question|prompt|request|message|instruction|instructions|input|"
    r"intent))?|query|prompt|instruction|request|task|question)"
)
_ABOUT_QUERY = re.compile(
    rf"^(?:is|are|does|do|did|was|were|has|have|can|could|would|will) (?:the|this|that) "
    rf"(?:(?:original|given|input|provided) )?(?P<noun>{_QUERY_NOUN}) (?!response|answer)"
)
_PERSON = re.compile(r"^\w+ the user (?:satisfied|likely|able|going|happy|expected)\b")
_RESPONSE = re.compile(
    r"\b(?:responses?|answers?|answered|outputs?|generated|texts?|repl(?:y|ies)|summar(?:y|ies)|"
    r"fulfilled|followed|met|solved|addressed|completed|written|assistant)\b"
)


def reference(item: ItemText, context: Context) -> str | None:
    """Say that only the author saw the reference."""
    found = _REFERENCE.search(item.plain)
    if found is None or context.speaks_of("reference") or context.speaks_of(found.group()):
        return None
    return (
        f"The item speaks of {found.group().strip()!r}, which the judge does not see; write into "
        "the item what the response must hold."
    )


def other_item(item: ItemText, context: Context) -> str | None:
    """Say that every item is asked alone."""
    found = _OTHER_ITEM.search(item.plain)
    if found is None or (found.group().strip() and context.speaks_of(found.group().strip())):
        return None
    if re.search(r"check-?list|rubric", found.group()) and re.search(
        r"check-?list|rubric", context.lower
    ):
        return None
    return (
        f"The item speaks of other items or of the checklist ({found.group().strip()!r}), but "
        "each item is asked alone; repeat in it what is meant."
    )


def candidate(item: ItemText, context: Context) -> str | None:
    """Say that every response is judged alone, and nobody knows whose it is."""
    found = _CANDIDATE.search(item.plain) or _LETTERED.search(item.raw)
    name = found.group() if found else _named(item, context)
    if name is None or context.speaks_of(name.lower()):
        return None
    return (
        f"The item speaks of one candidate or of other responses ({name.strip()!r}), but each "
        "response is judged alone and without its name; ask about `the response`."
    )


def about_query(item: ItemText, context: Context) -> str | None:
    """Say that the answer is the same for every response."""
    found = _ABOUT_QUERY.search(item.plain + " ")
    if found is None or item.words[0] not in AUXILIARIES or _PERSON.search(item.plain):
        return None
    # Where the query asks for a question or a task, that may be the response.
    if _RESPONSE.search(item.plain[found.end() - 1 :]) or context.speaks_of(found["noun"]):
        return None
    return (
        "The item asks about the query, so that its answer is the same for every response; ask "
        "about the response."
    )


def _named(item: ItemText, context: Context) -> str | None:
    """Return a candidate's name that the item holds; short names are too likely other words."""
    for name in context.candidates:
        lower = name.lower()
        if len(lower) >= 5 and re.search(rf"(?<!\w){re.escape(lower)}(?!\w)", item.plain):
            return name
    return None

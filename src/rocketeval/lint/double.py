"""Items that ask two independent things: a yes to one and a no to the other has no answer.

Two things joined by `and` are one requirement where they share a verb (`list the causes and the
effects`), where two verbs share an object (`name and explain the law`), or where a comparison,
`both`, `either` or a quotation needs them together.
"""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.word_set import word_set

_JOINT = (
    r"(?:,? and(?: also| then| additionally| further)?|,? as well as|; ?(?:and )?|,? but(?: also)?)"
)
_SECOND_QUESTION = re.compile(
    rf"^(?:is|are|does|do|has|have|can|will|was|were|did|would)\b[^?]*?(?:{_JOINT}|\?) "
    r"(?:if so,? |also )?(?:is|are|does|do|can|was|were|did|will|would) "
    r"(?:it|they|the|this|that|there|its|their|each|all|he|she|any|these|those)\b"
)
_VERBS = word_set(
    "acknowledge add address analyse analyze apologise apologize argue avoid calculate cite "
    "clarify compare conclude contain cover define demonstrate describe discuss "
    "emphasise emphasize encourage evaluate explain express follow give greet highlight "
    "identify illustrate include incorporate indicate introduce invite justify keep list maintain "
    "make mention name offer outline praise propose provide quote recommend "
    "refer refute remain remind respond reveal show specify stay stress suggest summarise "
    "summarize solve talk tell thank use utilise utilize verify warn"
)
_VERB = "|".join(sorted(_VERBS))
_SECOND_VERB = re.compile(
    rf"^(?:does|do|did|can|will|would)\b(?P<subject>[^,;?]{{2,60}}?) (?P<one>{_VERB}) "
    rf"(?P<object>[^;?]*?)(?:,? and(?: also| then)?|,? as well as|; and)"
    rf" (?:[a-z]+ly )?(?P<other>{_VERB}) (?P<rest>[^?]+)"
)
_ALSO = re.compile(r"\b(?:and also|and additionally|and furthermore|and, in addition,)\b")
_TIED = re.compile(
    r"\b(?:both|either|neither|between|not only|then|before|after|so that|such as|while|each|every|"
    r"whether|how|that|which|who|where|when|if)\b"
)
_FAMILIES = (
    "accurate correct factual true truthful right error-free factually-correct",
    "clear readable understandable concise brief succinct short simple easy-to-read direct "
    "legible intelligible straightforward",
    "polite friendly kind respectful professional formal warm empathetic courteous",
    "engaging interesting creative funny entertaining captivating original vivid compelling "
    "imaginative humorous",
    "relevant on-topic",
    "complete comprehensive thorough detailed exhaustive in-depth",
    "coherent organized organised logical structured well-structured well-organized "
    "well-organised consistent",
    "grammatical fluent",
    "safe harmless legal ethical",
    "helpful useful practical actionable",
    "efficient fast",
)
_FAMILY = {word: number for number, words in enumerate(_FAMILIES) for word in words.split()}
_QUALITIES = re.compile(
    r"^(?:is|are|was|were)\b(?P<subject>[^,;?]*?) (?:[a-z]+ly )?(?P<one>[a-z-]+)"
    r"(?:,(?: [a-z]+ly)? (?P<middle>[a-z-]+))?,? and (?:[a-z]+ly |also )?(?P<other>[a-z-]+)\s?\?$"
)


def double_barrelled(item: ItemText, _: Context) -> str | None:
    """Say which second thing the item asks."""
    text = item.plain
    if _SECOND_QUESTION.search(text):
        return _told("a second question")
    if _ALSO.search(text):
        return _told("a second requirement after `also`")
    found = _SECOND_VERB.search(text)
    if found and not _TIED.search(found["subject"] + " " + found["object"]) and _has_object(found):
        return _told(f"`{found['one']} ...` and `{found['other']} ...`")
    found = _QUALITIES.search(text)
    if found and not _TIED.search(found["subject"]):
        named = [word for word in (found["one"], found["middle"], found["other"]) if word]
        families = [_FAMILY.get(word) for word in named]
        if None not in families and len(set(families)) > 1:
            return _told(" and ".join(f"`{word}`" for word in named))
    return None


def _has_object(found: re.Match[str]) -> bool:
    """Whether the first verb has something of its own: `name and explain the law` is one thing."""
    return len(found["object"].split()) >= 2 or found["object"].strip() not in ("", "and")


def _told(what: str) -> str:
    return (
        f"The item asks two things ({what}): a response that does one of them has no right answer. "
        "Make two items of it."
    )

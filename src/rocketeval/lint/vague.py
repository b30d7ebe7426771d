"""Items without a criterion, or without a word for what they ask about."""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText
from rocketeval.lint.word_set import word_set

_SUBJECT = (
    r"(?:it|this|(?:the|this) (?:overall )?(?:(?:generated|whole|entire|final|given) )?(?:response|"
    r"answer|text|output|reply|content|summary|message|quality(?: of (?:the )?(?:response|answer|"
    r"text|"
    r"output|writing|summary))?|writing(?: style)?|result|work|style))"
)
_PRAISE = (
    r"(?:good|great|nice|fine|ok|okay|decent|excellent|perfect|amazing|awesome|acceptable|"
    r"satisfactory|satisfying|adequate|helpful|useful|appropriate|suitable|proper|sufficient|"
    r"impressive|effective|reasonable|valuable|strong|high|high-quality|of (?:a )?(?:high|good|"
    r"sufficient|decent) quality|well-written|well written|well done|good enough|right|solid|"
    r"up to (?:standard|par|the mark)|the best|beautiful|pleasant|likable|interesting)"
)
_ADVERB = (
    r"(?:(?:overall|really|very|generally|quite|truly|sufficiently|pretty|also|all in all|of|a) )*"
)
_VAGUE = re.compile(
    rf"^(?:overall,? )?(?:is|was|are|were) {_SUBJECT} (?:overall )?{_ADVERB}{_PRAISE}"
    rf"(?:,? (?:and|or) {_ADVERB}{_PRAISE})?(?: (?:overall|enough|in general|response|answer|one|"
    rf"text|"
    r"to you|for the user|to the user))*\s?\?$|"
    rf"^(?:does|did|do) {_SUBJECT} (?:do|make) (?:a|the) (?:good|great|nice|decent|fine|right|"
    rf"excellent)"
    r" (?:job|impression|work|thing)\b[^?]*\?$|"
    rf"^(?:does|did) {_SUBJECT} (?:sound|look|seem|feel|read|work|perform|flow) (?:{_PRAISE}|well|"
    r"nicely)(?: (?:overall|enough|to you|in general))?\s?\?$|"
    rf"^(?:does|did) {_SUBJECT} (?:meet|exceed|satisfy|match|live up to) (?:the |all |your |any |"
    r"user |users' |the user's )*(?:expectations?|standards?|requirements?|quality|needs|criteria)"
    r"\s?\?$|"
    rf"^(?:is|was) {_SUBJECT} (?:a |an |of )?{_PRAISE} (?:response|answer|text|summary|reply|"
    rf"one)\s?\?$|"
    rf"^(?:does|did) {_SUBJECT} (?:have|show|demonstrate|possess|be of) (?:a )?(?:good|high|great|"
    r"sufficient|decent|excellent) quality\s?\?$|"
    r"^(?:do|would|are|did|were) you (?:like|love|enjoy|prefer|happy|satisfied|pleased|recommend|"
    r"be "
    r"(?:happy|satisfied|pleased)|think|find|feel)\b|"
    r"^(?:would|will|is|are) (?:the|a|most|any) (?:users?|readers?|people|person) (?:be )?(?:happy|"
    r"satisfied|like|likely to like|love|pleased|enjoy)\b[^?]{0,40}\?$|"
    r"^does (?:the response|the answer|it) (?:answer|address|handle|respond to) (?:the (?:question|"
    r"query|prompt|request|task)|it) (?:well|properly|nicely|adequately|appropriately|"
    r"sufficiently)\s?\?$"
)
_DANGLING = re.compile(
    r"^(?:is|are|does|do|did|was|were|has|have|can|could|will|would|should) "
    r"(?P<word>it|this|that|they|these|those|he|she|its|their|them)\b(?P<next> [a-z'-]+)?"
)
_NOT_A_NOUN = word_set(
    "is are was were be been being a an the in on at of to for with by from as not also and or "
    "mentioned included correct accurate clear right wrong true false relevant explained addressed "
    "mention include explain provide contain use follow give have make say state describe answer "
    "cover list show discuss present done enough appropriate good well complete reasonable "
    "properly "
    "correctly clearly stated supported polite helpful useful fully present really make sense work "
    "formatted written described covered cited discussed specified consistent avoid address"
)
_EXPLETIVE = re.compile(
    r"^\w+ it (?:[a-z]+ly |still |very |made |also )*[a-z-]+ (?:to|that|who|how|whether|what|why|"
    r"which|"
    r"where|when|from)\b"
)


def vague(item: ItemText, _: Context) -> str | None:
    """Say that praise alone is no criterion."""
    if not _VAGUE.search(item.plain):
        return None
    return (
        "The item asks for praise without a criterion, and a small judge says yes to that; name "
        "what makes a response good here."
    )


def dangling(item: ItemText, _: Context) -> str | None:
    """Say that nothing in the item tells what its subject is."""
    found = _DANGLING.search(item.plain)
    if found is None:
        return None
    word, following = found["word"], (found["next"] or "").strip()
    # `Is it clear who speaks?` needs no word before it.
    if word == "it" and item.words[0] in ("is", "was") and _EXPLETIVE.search(item.plain):
        return None
    if word in ("this", "that", "these", "those", "its", "their") and following:
        pointed_at = following not in _NOT_A_NOUN and not following.endswith("ly")
        if pointed_at:
            return None
    return (
        f"Nothing in the item says what {word!r} is, and each item is asked alone; name it, for "
        "example `the response`."
    )

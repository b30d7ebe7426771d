"""Wording checks of items. An author reads the returned reasons, so keep their wording."""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText, word_set

AUXILIARIES = word_set(
    "is are was were am be does do did has have had can could will would should shall may might "
    "must isn't aren't wasn't weren't doesn't don't didn't hasn't haven't can't won't"
)
_OPEN = word_set("what which who whom whose why where how")
_STATEMENT = word_set(
    "the a an this that these those it its they he she we i you your his her their there no some "
    "any each every all both response answer responses answers output "
    # verbs that start a command
    "check ensure verify rate score list evaluate describe explain make give provide identify name "
    "determine assess confirm judge decide consider count compare review write state tell note see "
    "look find mention include use avoid answer grade mark summarize summarise discuss please"
)
_LEADS = re.compile(r"^(?:yes[/ ]no|overall|finally|also|and|or|but|then|so|first|next)\b[:, ]*")
_SCALE = re.compile(
    r"^how (?:well|much|good|clear|clearly|accurate|accurately|helpful|relevant|often|far|closely|"
    r"many|likely|effective|effectively|thorough|thoroughly|complete|completely|detailed|coherent|"
    r"engaging|polite|fluent|convincing|creative|would you rate|do you rate)\b|\bto what (?:extent|"
    r"degree)\b|^(?:rate|score|grade)\b|\bon a scale\b|\bon a \d+[- ]point scale|\b(?:rate|score|"
    r"grade|rank) (?:it|the (?:response|answer|text|output|summary))\b|\bout of (?:5|10|ten|five|"
    r"100)\?|\bfrom (?:1|one|0|zero) to (?:5|10|ten|five|100)\?|\bhow (?:many|much) (?:points|"
    r"stars|marks)\b|\b(?:1|0) ?(?:-|to|\u2013) ?(?:5|10|100) scale\b"
)
_RATED = re.compile(
    r"\byou\b|^(?:is|are) (?:the )?(?:response|answer|text|summary|output)\b[\w ]{0,30}? on a scale"
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
    """Return a reason if the item asks for a degree instead of yes or no."""
    found = _SCALE.search(item.plain)
    if found is None:
        return None
    # `Is each mood given on a scale of 1 to 5?` asks about a scale in the response.
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
    """Return a reason if the item is an open question, a choice, a statement or a command."""
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
    """Return whether a yes/no question follows a lead, as in `In the table, are all ...?`"""
    parts = re.split(r"[,;:\u2013\u2014]\s*|\s-\s", item.plain)[1:]
    starts = [re.findall(r"[a-z']+", part)[:1] for part in parts]
    if any(start and start[0] in AUXILIARIES for start in starts):
        return True
    # The comma may be missing: `For each day does the plan ...?`
    return item.asks and any(word in AUXILIARIES for word in item.words[1:12])


def _asks_openly_after_preposition(item: ItemText) -> bool:
    words = item.words
    return len(words) > 2 and words[0] in _PREPOSITIONS and words[1] in {*_OPEN, "what", "which"}


def _asks_when(item: ItemText) -> bool:
    """Return whether it asks for a time: `When did ...?`, but not `When it is empty, does ...?`"""
    words = item.words
    return words[0] == "when" and len(words) > 1 and words[1] in AUXILIARIES


def _choice(item: ItemText) -> str | None:
    found = _CHOICE.search(item.plain)
    if found is None or re.search(r"\b(?:whether|if|either)\b", item.plain):
        return None
    # Exclude items that ask how the response labels something, `correct or incorrect`.
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

_DEFECTS = (
    r"errors?|mistakes?|inaccurac(?:y|ies)|hallucinations?|typos?|contradictions?|inconsistenc"
    r"(?:y|ies)|misinformation|falsehoods?|misspellings?|redundanc(?:y|ies)|filler|fluff|flaws?|"
    r"omissions?|gaps|bugs?|fallac(?:y|ies)|misunderstandings?|misconceptions?|plagiarism|"
    r"repetitions?|nonsense|problems?|issues?|ambiguit(?:y|ies)|distortions?|bias(?:es)?|"
    r"stereotypes?|lies"
)
_BAD = (
    r"wrong|incorrect|inaccurate|misleading|irrelevant|incomplete|confusing|rude|impolite|"
    r"off-topic|off topic|harmful|repetitive|redundant|incoherent|illogical|unclear|unhelpful|"
    r"offensive|toxic|biased|fabricated|made-up|made up|invented|false|hallucinated|contradictory|"
    r"unnecessary|unrelated|unsupported|nonsensical|verbose|wordy|disorganized|disorganised|"
    r"ungrammatical|inappropriate|unsafe|untrue|unreadable|vague|sloppy|boring|hard to (?:follow|"
    r"read|understand)|difficult to (?:follow|read|understand)|cut off|truncated|inconsistent|"
    r"insulting|disrespectful|outdated|unverified|unfounded|extraneous|superfluous|insufficient|"
    r"inadequate"
)
_OWN = (
    r"it|response|answers?|reply|output|text|summary|explanations?|information|content|writing|"
    r"tone|reasoning|style|claims?|facts?|sentences?|code|language|result|essay|email|translation|"
    r"solution|arguments?|paragraphs?|conclusions?|instructions|details|statements?|advice|"
    r"structure|wording|calculations?|examples?"
)
_CONTAIN = (
    r"contain|contains|have|has|include|includes|make|makes|introduce|introduces|add|adds|"
    r"suffer from|exhibit|commit|give|provide"
)
_FAILING = (
    r"fail|fails|failing|lack|lacks|lacking|ignore|ignores|omit|omits|miss|misses|neglect(?! of)|"
    r"neglects|hallucinate|hallucinates|contradict|contradicts|misinterpret|misinterprets|"
    r"misunderstand|misrepresent|misrepresents|fabricate|fabricates|deviate from|stray from|ramble|"
    r"distort|forget|forgets|violate|violates|overlook|overlooks|mislead|misleads|digress|"
    r"plagiarize|plagiarise|confuse|misquote|exaggerate|break the rule|exceed the [a-z ]*limit|"
    r"skip|repeat itself|go off|get any|refuse to (?:answer|help|follow)|waste"
)
_FAILING_VERB = re.compile(
    rf"^(?:does|do|did|is|are|has|have|will|would|can|could|might|may)\b(?P<between>(?: [^\s,"
    rf";?]+){{1,6}}?) (?:ever |completely |simply |also )?(?P<verb>{_FAILING})\b"
)
_DEFECTIVE = re.compile(
    rf"^(?:does|do|did|has|have|is|are|can|could|will|"
    rf"would)\b(?P<between>[^,;?]*?)\b(?:{_CONTAIN})\b"
    rf"(?P<gap>(?:\s+(?:and\s+|or\s+)?[\w'-]+,?){{0,4}}?)\s+(?P<defect>{_DEFECTS})\b"
    r"(?!\s+(?:handling|messages?|codes?|bars?|rates?|logs?|logging|checking|correction|reports?|"
    r"statements?|solving|sets?|of))"
)
_BAD_CONTENT = re.compile(
    rf"^(?:does|do|did|has|have)\b(?P<between>[^,;?]*?)\b(?:{_CONTAIN})\b(?P<gap>(?:\s+[\w'-]+){{0,"
    rf"2}}?)\s+(?P<defect>{_BAD})\s+(?:or [\w-]+ )?(?:information|content|"
    r"details?|facts?|claims?|material|statements?|sentences?|words?|language|text|advice|answers?|"
    r"assumptions?|jargon|remarks?|phrases?|data|conclusions?|quotes?|sources?|citations?)\b"
)
_IS_BAD = re.compile(
    rf"^(?:(?:is|are|was|were)(?P<between> [^,;?]*?\b(?:{_OWN})\b[^,;?]*?)|(?:does|"
    rf"do) [^,;?]{{2,50}} "
    r"(?:seem|sound|feel|look|appear|become|get|come across as|read as)(?: to be)?)\s"
    rf"(?:(?P<too>too|overly|excessively|unduly|"
    rf"unnecessarily) [\w-]+|(?P<defect>{_BAD}))(?:\s+(?:and|or)\s+[\w -]+)?"
    r"(?:\s+(?:in any way|at all|overall|anywhere|to (?:read|the reader|the user)))?\s*\?"
)
_THERE_ARE = re.compile(
    rf"^(?:is|are|were|was) there\b(?P<gap>(?:\s+(?:and\s+|or\s+)?[\w'-]+,?){{0,5}}?)\s+"
    rf"(?P<defect>{_DEFECTS}|(?:{_BAD}) (?:information|content|details?|facts?|claims?|statements?|"
    r"sentences?|words?|material))\b(?!\s+(?:handling|messages?|codes?|bars?|rates?|checking))"
)
_BAD_SENTENCES = re.compile(
    r"^are there\b[^?]*\b(?:that|which) (?:introduce|contradict|distract|detract|repeat|confuse|"
    r"are "
    rf"(?:{_BAD}))\b"
)
_NEGATION = re.compile(
    r"\b(?:no|not|n't|never|without|free|avoid\w*|refrain\w*|devoid|nor|none|neither|instead|"
    r"rather|zero|few|fewer|minimal|prevent\w*|only|correct\w*|fix\w*|identif\w*|point\w* out|"
    r"mention\w*|address\w*|explain\w*|warn\w*|acknowledg\w*|describ\w*|discuss\w*|note|notes|"
    r"handle\w*|detect\w*|show\w*|demonstrat\w*|when|what|as|label\w*|mark\w*|cover\w*|"
    r"recogni[sz]e\w*|whether|if|how|why|that|where|who|which|least|resolve\w*|solv\w*)\b|n't\b"
)
_OF = re.compile(
    r"\b(?:of|about|on|for|to|list|examples?|how|with|from|by|between|against|two|three|four|five|"
    r"several|at|least|exactly|one|plausible|common|potential|possible|real|ethical|social)\b"
)
_AVOIDING = re.compile(r"\b(?:without|avoid\w*|no|not|never|free (?:of|from)|n't)\b")


def yes_is_worse(item: ItemText, context: Context) -> str | None:
    """Return a reason if yes would mean a fault of the response."""
    for pattern in (_FAILING_VERB, _DEFECTIVE, _BAD_CONTENT, _THERE_ARE, _IS_BAD, _BAD_SENTENCES):
        found = pattern.search(item.plain)
        if found is None:
            continue
        named = found.groupdict()
        if _NEGATION.search(named.get("between") or "") or _negated(named.get("gap")):
            continue
        fault = named.get("verb") or named.get("defect") or named.get("too") or found.group()
        if fault is None or _is_asked_for(fault, context):
            continue
        return (
            f"Yes would be the worse answer ({fault.strip()!r}), and it raises the score; turn the "
            "question round, for example with `avoid` or `free of`."
        )
    return None


def _negated(gap: str | None) -> bool:
    return bool(gap) and bool(_NEGATION.search(gap or "") or _OF.search(gap or ""))


def _is_asked_for(fault: str, context: Context) -> bool:
    """Return whether the query asks for the fault, such as a villain's wrong answers."""
    for found in re.finditer(rf"(?<!\w){re.escape(fault)}", context.lower):
        before = " ".join(context.lower[: found.start()].split()[-4:])
        if not _AVOIDING.search(before):
            return True
    return False


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
    """Return a reason if the item asks two things."""
    text = item.plain
    if _SECOND_QUESTION.search(text):
        return _two_things("a second question")
    if _ALSO.search(text):
        return _two_things("a second requirement after `also`")
    found = _SECOND_VERB.search(text)
    if found and not _TIED.search(found["subject"] + " " + found["object"]) and _has_object(found):
        return _two_things(f"`{found['one']} ...` and `{found['other']} ...`")
    found = _QUALITIES.search(text)
    if found and not _TIED.search(found["subject"]):
        named = [word for word in (found["one"], found["middle"], found["other"]) if word]
        families = [_FAMILY.get(word) for word in named]
        if None not in families and len(set(families)) > 1:
            return _two_things(" and ".join(f"`{word}`" for word in named))
    return None


def _has_object(found: re.Match[str]) -> bool:
    """Return whether the first verb has its own object: `name and explain the law` has not."""
    return len(found["object"].split()) >= 2 or found["object"].strip() not in ("", "and")


def _two_things(what: str) -> str:
    return (
        f"The item asks two things ({what}): a response that does one of them has no right answer. "
        "Make two items of it."
    )


_SUBJECT = (
    r"(?:it|this|(?:the|this) (?:overall )?(?:(?:generated|whole|entire|final|given) )?(?:response|"
    r"answer|text|output|reply|content|summary|message|quality(?: of (?:the )?(?:response|answer|"
    r"text|output|writing|summary))?|writing(?: style)?|result|work|style))"
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
    rf"^(?:overall,? )?(?:is|was|are|were) {_SUBJECT} (?:overall )?{_ADVERB}{_PRAISE}(?:,? (?:and|"
    rf"or) {_ADVERB}{_PRAISE})?(?: (?:overall|enough|in general|response|answer|one|text|"
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
    r"sufficient|decent|excellent) quality\s?\?$|^(?:do|would|are|did|were) you (?:like|love|enjoy|"
    r"prefer|happy|satisfied|pleased|recommend|be (?:happy|satisfied|pleased)|think|find|feel)\b|"
    r"^(?:would|will|is|are) (?:the|a|most|any) (?:users?|readers?|people|person) (?:be )?(?:happy|"
    r"satisfied|like|likely to like|love|pleased|enjoy)\b[^?]{0,40}\?$|^does (?:the response|the "
    r"answer|it) (?:answer|address|handle|respond to) (?:the (?:question|query|prompt|request|"
    r"task)|it) (?:well|properly|nicely|adequately|appropriately|sufficiently)\s?\?$"
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
    r"which|where|when|from)\b"
)


def vague(item: ItemText, _: Context) -> str | None:
    """Return a reason if the item asks for praise without a criterion."""
    if not _VAGUE.search(item.plain):
        return None
    return (
        "The item asks for praise without a criterion, and a small judge says yes to that; name "
        "what makes a response good here."
    )


def dangling(item: ItemText, _: Context) -> str | None:
    """Return a reason if the item has a pronoun without a referent."""
    found = _DANGLING.search(item.plain)
    if found is None:
        return None
    word, following = found["word"], (found["next"] or "").strip()
    # In `Is it clear who speaks?`, `it` needs no referent.
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

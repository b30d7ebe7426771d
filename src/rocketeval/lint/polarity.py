"""Items whose yes is the worse answer."""

from __future__ import annotations

import re

from rocketeval.lint.item_text import Context, ItemText

_DEFECTS = (
    r"errors?|mistakes?|inaccurac(?:y|ies)|hallucinations?|typos?|contradictions?|inconsistenc"
    r"(?:y|ies)|misinformation|falsehoods?|misspellings?|redundanc(?:y|ies)|filler|fluff|flaws?|"
    r"omissions?|gaps|bugs?|fallac(?:y|ies)|misunderstandings?|misconceptions?|plagiarism|"
    r"repetitions?|nonsense|problems?|issues?|ambiguit(?:y|ies)|distortions?|bias(?:es)?|"
    r"stereotypes?|lies"
)
_BAD = (
    r"wrong|incorrect|inaccurate|misleading|irrelevant|incomplete|confusing|rude|impolite|"
    r"off-topic|"
    r"off topic|harmful|repetitive|redundant|incoherent|illogical|unclear|unhelpful|offensive|"
    r"toxic|"
    r"biased|fabricated|made-up|made up|invented|false|hallucinated|contradictory|unnecessary|"
    r"unrelated|unsupported|nonsensical|verbose|wordy|disorganized|disorganised|ungrammatical|"
    r"inappropriate|unsafe|untrue|unreadable|vague|sloppy|boring|hard to (?:follow|read|"
    r"understand)|"
    r"difficult to (?:follow|read|understand)|cut off|truncated|inconsistent|insulting|"
    r"disrespectful|"
    r"outdated|unverified|unfounded|extraneous|superfluous|insufficient|inadequate"
)
_OWN = (
    r"it|response|answers?|reply|output|text|summary|explanations?|information|content|writing|"
    r"tone|"
    r"reasoning|style|claims?|facts?|sentences?|code|language|result|essay|email|translation|"
    r"solution|"
    r"arguments?|paragraphs?|conclusions?|instructions|details|statements?|advice|structure|"
    r"wording|"
    r"calculations?|examples?"
)
_CONTAIN = (
    r"contain|contains|have|has|include|includes|make|makes|introduce|introduces|add|adds|"
    r"suffer from|exhibit|commit|give|provide"
)
_FAILING = (
    r"fail|fails|failing|lack|lacks|lacking|ignore|ignores|omit|omits|miss|misses|neglect(?! of)|"
    r"neglects|"
    r"hallucinate|hallucinates|contradict|contradicts|misinterpret|misinterprets|misunderstand|"
    r"misrepresent|misrepresents|fabricate|fabricates|deviate from|stray from|ramble|distort|"
    r"forget|forgets|violate|violates|overlook|overlooks|mislead|misleads|"
    r"digress|plagiarize|plagiarise|confuse|misquote|exaggerate|break the rule|"
    r"exceed the [a-z ]*limit|skip|repeat "
    r"itself|go off|get any|refuse to (?:answer|help|follow)|waste"
)
_FAILING_VERB = re.compile(
    rf"^(?:does|do|did|is|are|has|have|will|would|can|could|might|"
    rf"may)\b(?P<between>(?: [^\s,;?]+){{1,6}}?) "
    rf"(?:ever |completely |simply |also )?(?P<verb>{_FAILING})\b"
)
_DEFECTIVE = re.compile(
    rf"^(?:does|do|did|has|have|is|are|can|could|will|"
    rf"would)\b(?P<between>[^,;?]*?)\b(?:{_CONTAIN})\b"
    rf"(?P<gap>(?:\s+(?:and\s+|or\s+)?[\w'-]+,?){{0,4}}?)\s+(?P<defect>{_DEFECTS})\b"
    r"(?!\s+(?:handling|messages?|codes?|bars?|rates?|logs?|logging|checking|correction|reports?|"
    r"statements?|solving|sets?|of))"
)
_BAD_CONTENT = re.compile(
    rf"^(?:does|do|did|has|have)\b(?P<between>[^,;?]*?)\b(?:{_CONTAIN})\b"
    rf"(?P<gap>(?:\s+[\w'-]+){{0,2}}?)\s+(?P<defect>{_BAD})\s+(?:or [\w-]+ )?(?:information|"
    rf"content|"
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
    r"rather|"
    r"zero|few|fewer|minimal|prevent\w*|only|correct\w*|fix\w*|identif\w*|point\w* out|mention\w*|"
    r"address\w*|explain\w*|warn\w*|acknowledg\w*|describ\w*|discuss\w*|note|notes|handle\w*|"
    r"detect\w*|"
    r"show\w*|demonstrat\w*|when|what|as|label\w*|mark\w*|cover\w*|recogni[sz]e\w*|whether|if|"
    r"how|why|that|where|who|which|least|resolve\w*|solv\w*)\b|n't\b"
)
_OF = re.compile(
    r"\b(?:of|about|on|for|to|list|examples?|how|with|from|by|between|against|two|three|four|five|"
    r"several|at|least|exactly|one|plausible|common|potential|possible|real|ethical|social)\b"
)
_AVOIDING = re.compile(r"\b(?:without|avoid\w*|no|not|never|free (?:of|from)|n't)\b")


def yes_is_worse(item: ItemText, context: Context) -> str | None:
    """Say that a yes would be a fault of the response."""
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
    """Whether the query asks for the fault, as one for a villain's wrong answers does."""
    for found in re.finditer(rf"(?<!\w){re.escape(fault)}", context.lower):
        before = " ".join(context.lower[: found.start()].split()[-4:])
        if not _AVOIDING.search(before):
            return True
    return False

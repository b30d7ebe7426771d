"""Static checks of item texts. An author reads the returned reasons, so keep their wording."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rocketeval.lint.findings import KINDS, ItemFinding, make_finding
from rocketeval.lint.item_text import Context, ItemText, word_set
from rocketeval.lint.rubric_checks import not_checked, rubric_reasons
from rocketeval.lint.wording_checks import (
    AUXILIARIES,
    dangling,
    double_barrelled,
    not_yes_no,
    scale,
    vague,
    yes_is_worse,
)
from rocketeval.prompts.similar import folded_words, same_words
from rocketeval.records import Checklist, Query

_REFERENCE = re.compile(
    r"\b(?:the|a|our|provided|given|gold|golden) (?:(?:gold|golden|ideal|provided|given|correct|"
    r"expert|official|original) )?(?:reference(?: (?:answer|response|solution|text|output|summary|"
    r"translation|material|document|above|below|provided|given))?|gold(?:en)? (?:answer|response|"
    r"standard|solution)|model answer|answer key|ground[- ]truth|ideal (?:answer|response)|"
    r"(?:sample|example|expected) (?:answer|response|solution))(?= (?:answer|response|solution|and|"
    r"or|in|with|that|which|as|for|do|does|is|says?|states?|gives?|provides?|mentions?|by)\b|['?,"
    r".)]|$)|\breference (?:answer|response|solution)s?\b|\bground[- ]truth\b"
)
_OTHER_ITEM = re.compile(
    r"\b(?:this|the|that|our) (?:check-?list|rubric)\b|\b(?:as|mentioned|described|listed|asked|"
    r"stated) above\b|\bthe above(?:\b|$)|\b(?:previous|preceding|earlier|next|following|other|"
    r"remaining|first|last) (?:check-?list )?(?:items?|criteri(?:on|a)|checks?)\b|\b(?:items?|"
    r"criterion|checks?) #?\d+\b|\b(?:question|point) #?\d+ (?:above|of the checklist)\b|"
    r"\b(?:previous|preceding|earlier) questions? (?:above|in (?:this|the) (?:check-?list|list))\b|"
    r"\bsame as (?:above|before|item)\b|\banswered (?:yes|no) to\b|\bif (?:yes|no|so|not) to\b|"
    r"\bquestions? above\b|^if (?:yes|no|so|not),|\bthe aforementioned\b"
)
_FAMILY_NAMES = (
    r"gpt-?\d[\w.]*|chatgpt|claude(?:[- ][\w.]+)?|gemini(?:[- ][\w.]+)?|llama-?\d?[\w.]*|mistral|"
    r"mixtral|qwen[\w.]*|deepseek[\w.-]*|vicuna[\w.-]*|gpt4|grok|copilot"
)
_CANDIDATE = re.compile(
    rf"\b(?:{_FAMILY_NAMES})\b|"
    r"\bthe (?:first|second|other|better|best|worse|two|three|competing|rival) (?:responses?|"
    r"models?|candidates?|assistants?|outputs?)\b|\b(?:other|competing|all|both) (?:responses|"
    r"models|candidates|assistants)\b|\b(?:better|worse|longer|shorter|more [a-z]+) than (?:the "
    r")?(?:other|another|baseline|competing)s?\b|\bbaseline (?:response|model|answer)\b"
)
# Match `Response A`, but not `Is the response a poem?`.
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
    """Return a reason if the item refers to a reference, which the judge does not see."""
    found = _REFERENCE.search(item.plain)
    if found is None or context.speaks_of("reference") or context.speaks_of(found.group()):
        return None
    return (
        f"The item speaks of {found.group().strip()!r}, which the judge does not see; write into "
        "the item what the response must hold."
    )


def other_item(item: ItemText, context: Context) -> str | None:
    """Return a reason if the item refers to other items, since items are asked independently."""
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
    """Return a reason if the item names a candidate or compares responses."""
    found = _CANDIDATE.search(item.plain) or _LETTERED.search(item.raw)
    name = found.group() if found else _named(item, context)
    if name is None or context.speaks_of(name.lower()):
        return None
    return (
        f"The item speaks of one candidate or of other responses ({name.strip()!r}), but each "
        "response is judged alone and without its name; ask about `the response`."
    )


def about_query(item: ItemText, context: Context) -> str | None:
    """Return a reason if the item asks about the query instead of the response."""
    found = _ABOUT_QUERY.search(item.plain + " ")
    if found is None or item.words[0] not in AUXILIARIES or _PERSON.search(item.plain):
        return None
    # If the query asks for a question or a task, the noun may mean the response.
    if _RESPONSE.search(item.plain[found.end() - 1 :]) or context.speaks_of(found["noun"]):
        return None
    return (
        "The item asks about the query, so that its answer is the same for every response; ask "
        "about the response."
    )


def _named(item: ItemText, context: Context) -> str | None:
    """Return a candidate name in the item; short names are ignored, as they may be other words."""
    for name in context.candidates:
        lower = name.lower()
        if len(lower) >= 5 and re.search(rf"(?<!\w){re.escape(lower)}(?!\w)", item.plain):
            return name
    return None


MOST_WORDS = 60
MOST_CHARACTERS = 450
"""Both limits ignore quoted and bracketed text, which is mostly examples."""
FEWEST_WORDS = 3

_REMAINS = {
    "a placeholder": re.compile(
        r"\{\{|\}\}|(?<![\w\\$}])\{\s*[A-Za-z_][\w .-]{0,30}\s*\}|\[\s*(?:item|insert\b[^\]]*|"
        r"your\b[^\]]*|placeholder|query|response|question|topic|xxx?|todo|tbd|criterion|fill[ "
        r"-]in[^\]]*)\s*\]|<\s*(?:item|insert\b[^>]*|your\b[^>]*|placeholder|query|response|"
        r"question|criterion)\s*>|_{4,}|\$\{",
        re.IGNORECASE,
    ),
    "a note to its writer": re.compile(r"\b(?:TODO|TBD|FIXME|XXX)\b|\blorem ipsum\b"),
    "a control token": re.compile(r"<\|[^|>]*\|>|\[/?INST\]|</?s>|```"),
    "numbering or a bullet": re.compile(
        r"^\s*(?:\(?\d{1,3}[.):]\s|\(?[a-hA-H][.)]\s|[-*+\u2022\u2023\u25e6\u2013\u2014]\s|#{1,"
        r"6}\s|\[[ xX]?\]|(?:item|question|criterion|check|q)\s*#?\d+\s*[:.)-])",
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
# A preposition may end a complete question, as in `Is it what I asked for?`
_NEVER_LAST = word_set("and or the an nor but its their")


def empty(item: ItemText, _: Context) -> str | None:
    """Return a reason if the item has no letters or digits."""
    if any(mark.isalnum() for mark in item.raw):
        return None
    return "The item holds no words; remove it."


def residue(item: ItemText, context: Context) -> str | None:
    """Return a reason if the item has remains of a template, a list or a format."""
    for name, pattern in _REMAINS.items():
        found = pattern.search(item.raw)
        if found and not (context.query and context.speaks_of(found.group().strip().lower())):
            return (
                f"The item has {name} in it ({found.group().strip()[:30]!r}); write the plain "
                "question."
            )
    return None


def too_short(item: ItemText, _: Context) -> str | None:
    """Return a reason if the item has too few words for a question."""
    if not item.written or len(item.written) >= FEWEST_WORDS:
        return None
    return (
        "The item is too short to say what is asked of the response; write a whole question, such "
        "as `Does the response ...?`"
    )


def too_long(item: ItemText, _: Context) -> str | None:
    """Return a reason if the item is too long for a small judge."""
    words, characters = len(item.words), len(item.plain)
    if words <= MOST_WORDS and characters <= MOST_CHARACTERS:
        return None
    return (
        f"The item has {words} words and {characters} characters without quotes and brackets; a "
        "small judge loses the thread. Split it, or move examples into brackets."
    )


def cut_off(item: ItemText, _: Context) -> str | None:
    """Return a reason if the item ends in mid-sentence."""
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
    """Return a reason if the item has no question mark."""
    if item.asks or not item.written:
        return None
    return "The question has no question mark; the judge may take it for a statement. Add it."


_SPACE = re.compile(r"\s+")


def find_near_duplicates(items: Sequence[ItemText]) -> Iterator[tuple[int, int, bool]]:
    """Yield (index, index of the first equal item, whether exactly equal) per duplicate item.

    >>> texts = ["Is the tone polite?", "is the tone polite", "Is the tone courteous?"]
    >>> list(find_near_duplicates([ItemText(text) for text in texts]))
    [(1, 0, True), (2, 0, False)]
    """
    exact: dict[str, int] = {}
    folded: list[frozenset[str]] = []
    for place, item in enumerate(items):
        key = _SPACE.sub(" ", " ".join(item.written))
        words = folded_words(item.written)
        folded.append(words)
        if not key:
            continue
        if key in exact:
            yield place, exact[key], True
            continue
        exact[key] = place
        for earlier in range(place):
            if same_words(words, folded[earlier]):
                yield place, earlier, False
                break


Check = Callable[[ItemText, Context], str | None]

CHECKS: dict[str, Check] = {
    "empty": empty,
    "residue": residue,
    "scale": scale,
    "not_yes_no": not_yes_no,
    "yes_is_worse": yes_is_worse,
    "reference": reference,
    "other_item": other_item,
    "candidate": candidate,
    "cut_off": cut_off,
    "no_question_mark": no_question_mark,
    "double_barrelled": double_barrelled,
    "about_query": about_query,
    "vague": vague,
    "dangling": dangling,
    "too_short": too_short,
    "too_long": too_long,
}
"""All checks of one item, by the kind they find."""

MOST_READ = 3000
"""Items with more characters are only reported as too long."""

_EXPLAINED_BY = {
    "no_question_mark": {"not_yes_no", "scale", "cut_off", "residue", "too_short"},
    "not_yes_no": {"too_short", "residue"},
    "dangling": {"vague", "other_item"},
}
"""Kinds that are dropped if one of these others is found, which has the same cause."""


@dataclass(frozen=True, slots=True)
class StaticFindings:
    """Findings of the static checks."""

    findings: tuple[ItemFinding, ...]
    items: int
    not_english: int
    """Items skipped by English-only checks."""


def check_checklists(
    checklists: Iterable[Checklist],
    queries: Mapping[str, Query] | None = None,
    candidates: Collection[str] = (),
) -> StaticFindings:
    """Run the static checks on all items.

    >>> bad = Checklist("q", ("How good is the response?", "Does the response name Paris?"))
    >>> [(found.item, found.kind) for found in check_checklists([bad]).findings]
    [(1, 'scale')]
    """
    found: list[ItemFinding] = []
    items = not_english = 0
    for checklist in checklists:
        context = context_of((queries or {}).get(checklist.query_id), candidates)
        texts = [ItemText(text) for text in checklist.items]
        items += len(texts)
        not_english += sum(bool(text.written) and not text.english for text in texts)
        found += _of_checklist(checklist, texts, context, (queries or {}).get(checklist.query_id))
    return StaticFindings(tuple(found), items, not_english)


def check_item(item: ItemText, context: Context) -> dict[str, str]:
    """Return the reasons for one item, by kind."""
    empty_one = empty(item, context)
    if empty_one is not None:
        return {"empty": empty_one}
    if len(item.raw) > MOST_READ:
        return {"too_long": f"The item has {len(item.raw):,} characters; ask one short question."}
    reasons: dict[str, str] = {}
    for kind, check in CHECKS.items():
        readable = item.english or not KINDS[kind].english
        why = check(item, context) if readable else None
        if why is not None:
            reasons[kind] = why
    return {
        kind: why
        for kind, why in reasons.items()
        if not _EXPLAINED_BY.get(kind, set()) & reasons.keys()
    }


def _of_checklist(
    checklist: Checklist, texts: list[ItemText], context: Context, query: Query | None
) -> Iterable[ItemFinding]:
    duplicates = {place: (first, exactly) for place, first, exactly in find_near_duplicates(texts)}
    for place, text in enumerate(texts):
        reasons = check_item(text, context)
        if checklist.details is not None:
            skipped = not_checked(checklist.details[place])
            reasons = {kind: why for kind, why in reasons.items() if kind not in skipped}
            reasons |= rubric_reasons(checklist, place, text, context, query)
        if place in duplicates and "empty" not in reasons:
            first, exactly = duplicates[place]
            kind = "duplicate" if exactly else "near_duplicate"
            same = "the same as" if exactly else "almost the same as"
            reasons[kind] = (
                f"The item asks {same} item {first + 1}, which counts it twice; drop one, or say "
                "what is different."
            )
        for kind, why in reasons.items():
            yield make_finding(checklist.query_id, place + 1, text.raw, kind, why)


def context_of(query: Query | None, candidates: Collection[str] = ()) -> Context:
    """Return the context of an item; the query may be unknown (None)."""
    if query is None:
        return Context("", candidates)
    return Context("\n".join([*(turn.content for turn in query.history), query.text]), candidates)


MOST_QUERIES = 0.5
"""Minimum share of queries for a finding on the answers to a shared item."""


def merge_shared(
    findings: Iterable[ItemFinding], query_ids: Sequence[str]
) -> tuple[list[ItemFinding], int]:
    """Merge the findings of a shared checklist by item and kind; also count those left out.

    Static findings always count. Findings on answers differ between queries: they are left out if
    they apply to fewer than half of the queries.
    """
    by_kind: dict[tuple[int, str], list[ItemFinding]] = {}
    for found in findings:
        by_kind.setdefault((found.item, found.kind), []).append(found)
    merged, left_out = [], 0
    for (_, kind), same in by_kind.items():
        behavioural = KINDS[kind].behavioural
        if behavioural and len(same) < MOST_QUERIES * len(query_ids):
            left_out += len(same)
            continue
        merged.append(_as_one(same, query_ids, behavioural=behavioural))
    return merged, left_out


def _as_one(
    same: Sequence[ItemFinding], query_ids: Sequence[str], *, behavioural: bool
) -> ItemFinding:
    first = same[0]
    why = first.why
    if behavioural:
        # The figures are those of one query.
        why = f"In {len(same):,} of {len(query_ids):,} queries; in {first.query_id!r}: {why}"
    return replace(
        first, query_id=query_ids[0], why=why, query_ids=tuple(found.query_id for found in same)
    )

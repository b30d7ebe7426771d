"""Answers that are there already though the checklist was changed: only new items are asked.

An item that is asked alone gets the same prompt in every checklist it stands in. So when items of
a checklist are edited, added, removed or put in another order, the answers to the others are taken
from the run's own judgments under the earlier checklist.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from itertools import chain

from rocketeval.errors import StageMissing
from rocketeval.grading.methods.base import Method, each_item_alone
from rocketeval.hashing import combine
from rocketeval.prompts.render import GradingPrompt
from rocketeval.records import NO_ANSWER, Answer, Checklist, Judgment
from rocketeval.store.inputs import Inputs
from rocketeval.store.run import RunStore

Known = dict[bytes, dict[int, Answer]]


def asks_items_alone(method: Method) -> bool:
    """Whether what is asked about an item does not depend on the other items."""
    prompt = method.prompt
    return (
        method.asking is each_item_alone
        and isinstance(prompt, GradingPrompt)
        and type(prompt).endings is GradingPrompt.endings
    )


def known_answers(
    store: RunStore,
    method: Method,
    judge: bytes,
    checklists: Mapping[str, Checklist],
    finished: Collection[bytes],
) -> Known:
    """Return, by the key of an unfinished judgment, the answers that need not be asked again.

    Those of tasks that failed half way, and those that the judge gave to the same items of an
    earlier checklist. What is returned is held in memory; it concerns edited queries alone.
    """
    known = {key: dict(answers) for key, answers in store.half_answered().items()}
    if not store.inputs.exist or not asks_items_alone(method):
        return known
    pairs = list(_pairs(store.inputs, judge, checklists, finished))
    judged = store.judgments_of({old.hex() for _, old, _, _ in pairs}) if pairs else {}
    for new, old, now, before in pairs:
        for place, answer in _same_items(judged[old.hex()], now, before):
            known.setdefault(new, {}).setdefault(place, answer)
    return known


def _pairs(
    inputs: Inputs, judge: bytes, checklists: Mapping[str, Checklist], finished: Collection[bytes]
) -> Iterator[tuple[bytes, bytes, Checklist, Checklist]]:
    """Yield each unfinished judgment with a finished one of the same response, latest first."""
    earlier = _earlier(inputs, checklists)
    if not earlier:
        return
    for head in inputs.heads():
        if head.query_id not in earlier:
            continue
        seen = judge + inputs.queries[head.query_id].content_hash
        now = checklists[head.query_id]
        new = combine(seen, head.hash, now.content_hash)
        if new in finished:
            continue
        for before in earlier[head.query_id]:
            old = combine(seen, head.hash, before.content_hash)
            if old in finished:
                yield new, old, now, before


def _earlier(inputs: Inputs, checklists: Mapping[str, Checklist]) -> dict[str, list[Checklist]]:
    """Return the checklists that queries had before, the latest first."""
    try:
        latest = list(inputs.checklists().values())
    except StageMissing:
        latest = []
    found: dict[str, list[Checklist]] = {}
    for before in chain(latest, reversed(inputs.earlier_checklists())):
        now = checklists.get(before.query_id)
        if now is not None and now.content_hash != before.content_hash:
            found.setdefault(before.query_id, []).append(before)
    return found


def _same_items(
    judgment: Judgment, now: Checklist, before: Checklist
) -> Iterator[tuple[int, Answer]]:
    answers = dict(zip(before.items, judgment.answers, strict=True))
    for place, item in enumerate(now.items):
        answer = answers.get(item)
        if answer is not None and answer.status not in NO_ANSWER:
            yield place, answer

"""Answers that are there already though the checklist was changed: only new items are asked.

An item that is asked alone gets the same prompt in every checklist it stands in. So when items of
a checklist are edited, added, removed or put in another order, the answers to the others are taken
from the run's own judgments under the earlier checklist. The same holds between runs that ask the
same judge in the same way, such as the sheets of an evolution and of the evaluator it made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
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
    *,
    also: Sequence[RunStore] = (),
) -> Known:
    """Return, by the key of an unfinished judgment, the answers that need not be asked again.

    Those of tasks that failed half way, those that the judge gave to the same items of an earlier
    checklist, and those that it gave to them in the runs `also` named, about the same query and
    response. What is returned is held in memory; of the run itself it concerns edited queries
    alone.
    """
    known = {key: dict(answers) for key, answers in store.half_answered().items()}
    if not asks_items_alone(method):
        return known
    for source in (store, *also):
        if not source.inputs.exist:
            continue
        had = _had(source.inputs, checklists)
        if source is store:
            had = _without_current(had, checklists)
        theirs = finished if source is store else source.finished()
        pairs = list(_pairs(source.inputs, had, judge, checklists, finished, theirs))
        judged = source.judgments_of({old.hex() for _, old, _, _ in pairs}) if pairs else {}
        for new, old, now, before in pairs:
            for place, answer in _same_items(judged[old.hex()], now, before):
                known.setdefault(new, {}).setdefault(place, answer)
    return known


def _pairs(
    inputs: Inputs,
    had: Mapping[str, Sequence[Checklist]],
    judge: bytes,
    checklists: Mapping[str, Checklist],
    finished: Collection[bytes],
    theirs: Collection[bytes],
) -> Iterator[tuple[bytes, bytes, Checklist, Checklist]]:
    """Yield each unfinished judgment with one of `theirs` on the same response, latest first."""
    if not had:
        return
    for head in inputs.heads():
        if head.query_id not in had:
            continue
        seen = judge + inputs.queries[head.query_id].content_hash
        now = checklists[head.query_id]
        new = combine(seen, head.hash, now.content_hash)
        if new in finished:
            continue
        for before in had[head.query_id]:
            old = combine(seen, head.hash, before.content_hash)
            if old in theirs:
                yield new, old, now, before


def _had(inputs: Inputs, checklists: Mapping[str, Checklist]) -> dict[str, list[Checklist]]:
    """Return the checklists that queries have and had in a run, the latest first."""
    try:
        latest = list(inputs.checklists().values())
    except StageMissing:
        latest = []
    found: dict[str, list[Checklist]] = {}
    for before in chain(latest, reversed(inputs.earlier_checklists())):
        if before.query_id in checklists:
            found.setdefault(before.query_id, []).append(before)
    return found


def _without_current(
    had: Mapping[str, Sequence[Checklist]], checklists: Mapping[str, Checklist]
) -> dict[str, list[Checklist]]:
    """Return the others than a query has now, of the queries that have any.

    A run's own judgments under its checklist are finished, and most of its queries have no other.
    """
    others = {
        name: [one for one in own if one.content_hash != checklists[name].content_hash]
        for name, own in had.items()
    }
    return {name: own for name, own in others.items() if own}


def _same_items(
    judgment: Judgment, now: Checklist, before: Checklist
) -> Iterator[tuple[int, Answer]]:
    answers = dict(zip(before.items, judgment.answers, strict=True))
    for place, item in enumerate(now.items):
        answer = answers.get(item)
        if answer is not None and answer.status not in NO_ANSWER:
            yield place, answer

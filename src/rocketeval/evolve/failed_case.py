"""Cases that were judged wrongly, as an optimizer is shown them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from rocketeval.checklists.asking import shortened
from rocketeval.prompts.neutralise import neutralise
from rocketeval.records import Query, Response

MOST_SHOWN = 18_000
"""Bytes of all cases of a batch: some 4,500 tokens of English, beside what else is asked."""
LEAST_SHOWN = 600
"""Bytes of a case, however many share a batch."""
_CASE = """\
## Case {number}
{earlier}<<<query>>>
{query}
<<<end of query>>>
{responses}
People's verdict: {gold}
The evaluator's verdict: {predicted}{confidence}"""
_RESPONSE = """\
{name}
<<<response>>>
{text}
<<<end of response>>>"""
_EARLIER = """\
Earlier turns:
<<<history>>>
{history}
<<<end of history>>>
"""


@dataclass(frozen=True)
class FailedCase:
    """A case that the evaluator judged otherwise than people."""

    query: Query
    responses: tuple[Response, ...]
    """The one response, or both: A and B."""
    gold: str
    """What people said, in words, such as `A is better`."""
    predicted: str
    """What the evaluator said, likewise."""
    confidence: float | None = None
    """How sure it was, from 0 to 1."""


def outcome_in_words(value: float, responses: int) -> str:
    """Return a verdict as an optimizer reads it: who wins of two, or the grade of one.

    >>> outcome_in_words(-1.0, 2), outcome_in_words(0.0, 2), outcome_in_words(3.25, 1)
    ('B is better', 'neither is better', '3.25')
    """
    if responses == 1:
        return f"{value:.4g}"
    return "neither is better" if value == 0 else f"{'A' if value > 0 else 'B'} is better"


def choose_batches(
    failures: Sequence[FailedCase], *, turn: int, batches: int, size: int
) -> list[tuple[FailedCase, ...]]:
    """Return at most so many batches of at most `size` cases, for the `turn`-th time from 1.

    What the evaluator was surest of comes first, but one case of each query before a second of
    any. Each turn begins where the one before ended, so that verdicts which nobody can explain do
    not take up every round.
    """
    wanted = batches * size
    if not failures or not wanted:
        return []
    ordered = _in_order(failures)
    start = (turn - 1) * wanted % len(ordered)
    chosen = (ordered[start:] + ordered[:start])[:wanted]
    count = -(-len(chosen) // size)
    return [tuple(chosen[place::count]) for place in range(count)]


def show_cases(cases: Sequence[FailedCase]) -> str:
    """Return the cases of a batch as text: shortened to fit, and unable to forge a marker."""
    room = max(LEAST_SHOWN, MOST_SHOWN // max(1, len(cases)))
    return "\n\n".join(_show(case, number, room) for number, case in enumerate(cases, 1))


def _in_order(failures: Sequence[FailedCase]) -> list[FailedCase]:
    surest = sorted(failures, key=lambda case: -(case.confidence or 0.0))
    seen: Counter[str] = Counter()
    turns = []
    for case in surest:
        turns.append(seen[case.query.id])
        seen[case.query.id] += 1
    return [case for _, case in sorted(zip(turns, surest, strict=True), key=lambda pair: pair[0])]


def _show(case: FailedCase, number: int, room: int) -> str:
    query = _safe(case.query.text, room // 3)
    earlier = _earlier(case, room // 6)
    left = room - len(query.encode()) - len(earlier.encode())
    each = max(LEAST_SHOWN // 4, left // len(case.responses))
    names = ("Response A:", "Response B:") if len(case.responses) > 1 else ("The response:",)
    told = case.confidence
    return _CASE.format(
        number=number,
        earlier=earlier,
        query=query,
        responses="\n".join(
            _RESPONSE.format(name=name, text=_safe(response.text, each))
            for name, response in zip(names, case.responses, strict=True)
        ),
        gold=_line(case.gold),
        predicted=_line(case.predicted),
        confidence="" if told is None else f" (it was {told:.0%} sure)",
    )


def _earlier(case: FailedCase, room: int) -> str:
    own = case.responses[0].history
    turns = case.query.history if own is None else own
    if not turns:
        return ""
    history = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
    return _EARLIER.format(history=_safe(history, room))


def _safe(text: str, longest: int) -> str:
    # Shortened first: what is left out could bring two halves of a marker together.
    return neutralise(shortened(text, longest)).text.strip() or "(empty)"


def _line(text: str) -> str:
    return neutralise(" ".join(text.split())).text

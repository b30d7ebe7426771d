"""Requests to the optimizer: their prompts, the failed cases they show, and answer readers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rocketeval.checklists.dimension_steps import AuthorStep
from rocketeval.checklists.instance import list_tokens, shortened
from rocketeval.errors import ConfigError
from rocketeval.evolve.perspective import Perspective, PerspectiveKind, PerspectiveOrigin, Pool
from rocketeval.hashing import content_hash
from rocketeval.prompts.parse import DROP
from rocketeval.prompts.read_perspectives import (
    ABOUT_QUERIES,
    ABOUT_RESPONSES,
    ProposedQuestions,
    read_proposed,
    read_questions,
    read_replies,
)
from rocketeval.prompts.render import FIRST_RULES, Template, neutral_line, neutralize
from rocketeval.records import Query, Response

MOST_SHOWN = 18_000
"""Maximum bytes of all cases in a batch: about 4,500 tokens of English."""
LEAST_SHOWN = 600
"""Minimum bytes per case, regardless of the batch size."""
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
    """A case on which the evaluator disagrees with people."""

    query: Query
    responses: tuple[Response, ...]
    """One response, or two: A and B."""
    gold: str
    """People's verdict as text, such as `A is better`."""
    predicted: str
    """The evaluator's verdict as text."""
    confidence: float | None = None
    """Confidence of the evaluator, from 0 to 1."""


def outcome_in_words(value: float, responses: int) -> str:
    """Return a verdict as text for the optimizer: the winner of two, or the grade of one.

    >>> outcome_in_words(-1.0, 2), outcome_in_words(0.0, 2), outcome_in_words(3.25, 1)
    ('B is better', 'neither is better', '3.25')
    """
    if responses == 1:
        return f"{value:.4g}"
    return "neither is better" if value == 0 else f"{'A' if value > 0 else 'B'} is better"


def choose_batches(
    failures: Sequence[FailedCase], *, turn: int, batches: int, size: int
) -> list[tuple[FailedCase, ...]]:
    """Return up to `batches` batches of up to `size` cases for round `turn` (from 1).

    The order is random, but the same at every call: the most confident mistakes are often those
    whose reference is wrong. One case of every query comes before a second of any, and each turn
    starts where the previous one ended.
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
    """Return the cases of a batch as text, shortened to fit, with forged markers neutralized."""
    room = max(LEAST_SHOWN, MOST_SHOWN // max(1, len(cases)))
    return "\n\n".join(_show(case, number, room) for number, case in enumerate(cases, 1))


def _in_order(failures: Sequence[FailedCase]) -> list[FailedCase]:
    drawn = sorted(failures, key=_draw)
    seen: Counter[str] = Counter()
    turns = []
    for case in drawn:
        turns.append(seen[case.query.id])
        seen[case.query.id] += 1
    return [case for _, case in sorted(zip(turns, drawn, strict=True), key=lambda pair: pair[0])]


def _draw(case: FailedCase) -> bytes:
    return content_hash("failure", case.query.id, *(each.candidate for each in case.responses))


def _show(case: FailedCase, number: int, room: int) -> str:
    query = _safe(case.query.text, room // 3)
    earlier = _earlier(case, room // 6)
    left = room - len(query.encode()) - len(earlier.encode())
    each = max(LEAST_SHOWN // 4, left // len(case.responses))
    names = ("Response A:", "Response B:") if len(case.responses) > 1 else ("The response:",)
    sureness = case.confidence
    return _CASE.format(
        number=number,
        earlier=earlier,
        query=query,
        responses="\n".join(
            _RESPONSE.format(name=name, text=_safe(response.text, each))
            for name, response in zip(names, case.responses, strict=True)
        ),
        gold=neutral_line(case.gold),
        predicted=neutral_line(case.predicted),
        confidence="" if sureness is None else f" (it was {sureness:.0%} sure)",
    )


def _earlier(case: FailedCase, room: int) -> str:
    own = case.responses[0].history
    turns = case.query.history if own is None else own
    if not turns:
        return ""
    history = "\n".join(f"{turn.role}: {turn.content}" for turn in turns)
    return _EARLIER.format(history=_safe(history, room))


def _safe(text: str, longest: int) -> str:
    # Shorten first: cutting text out could join two halves of a marker.
    return neutralize(shortened(text, longest)).text.strip() or "(empty)"


ASKED_OF_MISTAKES = (2, 5)
"""Minimum and maximum questions about responses to request per batch of mistakes."""
ASKED_ABOUT_QUERIES = 3
TAKEN = 8
"""Maximum questions of each kind accepted from one batch, even if the optimizer writes more."""
DECOMPOSED = (3, 24)
"""Minimum and maximum questions to extract from guidelines."""
SHOWN = 24
"""Number of pool questions shown with a batch of mistakes."""
SHOWN_WHOLE = 120
"""Number of pool questions shown in a request for questions that must be new."""
ANALYSIS_TOKENS = 2000
"""Maximum tokens of an analysis with its questions."""
LONGEST_GUIDELINES = 40_000
"""Maximum bytes of annotation guidelines."""
NONE_YET = "(none yet)"


class RequestPurpose(StrEnum):
    """Purpose of a request; also the name of its template."""

    DECOMPOSE = "decompose"
    FAILURES = "failures"
    DEEPEN = "deepen"
    BROADEN = "broaden"
    ROUTING = "routing"


NEEDS: Mapping[RequestPurpose, tuple[str, ...]] = {
    RequestPurpose.DECOMPOSE: ("request", "guidelines", "least", "most"),
    RequestPurpose.FAILURES: ("request", "pool", "cases", "least", "most", "most_queries"),
    RequestPurpose.DEEPEN: ("request", "questions"),
    RequestPurpose.BROADEN: ("request", "pool", "least", "most"),
    RequestPurpose.ROUTING: ("request", "questions", "known"),
}
"""Placeholders of each template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerRequest(AuthorStep):
    """One request to an optimizer."""

    ask: RequestPurpose
    round: int
    sources: tuple[Perspective, ...] = ()
    """Perspectives that its numbered answers derive from, in order; may be empty."""


class RequestMaker:
    """Makes the requests of one optimizer."""

    def __init__(self, model: str, settings: Mapping[str, Any]) -> None:
        """`settings` are the optimizer settings, besides the model, that can change its output."""
        self._optimizer = (model, dict(settings))
        self._templates = {
            ask: Template.load(ask.value, needs=NEEDS[ask]) for ask in RequestPurpose
        }

    def decompose(self, guidelines: str) -> OptimizerRequest:
        """Return the request to turn annotation guidelines into questions."""
        length = len(guidelines.encode())
        if not guidelines.strip() or length > LONGEST_GUIDELINES:
            problem = "are empty" if not guidelines.strip() else f"have {length:,} bytes"
            raise ConfigError(
                f"evolve.guidelines: the guidelines {problem}.",
                hint=f"Give the part on how to judge, at most {LONGEST_GUIDELINES:,} bytes.",
            )
        least, most = DECOMPOSED
        values = {"guidelines": neutralize(guidelines).text.strip()}
        values |= {"least": str(least), "most": str(most)}
        return self._request(
            RequestPurpose.DECOMPOSE,
            0,
            "",
            values,
            lines_of_questions(most),
            tokens=list_tokens(most),
        )

    def of_failures(
        self, round: int, failures: Sequence[FailedCase], pool: Pool, *, batches: int, size: int
    ) -> Iterator[OptimizerRequest]:
        """Yield a request for each batch of mistakes."""
        least, most = ASKED_OF_MISTAKES
        chosen = choose_batches(failures, turn=max(1, round), batches=batches, size=size)
        for number, cases in enumerate(chosen, 1):
            values = {
                "pool": show_pool(most_important(pool, PerspectiveKind.RESPONSE), SHOWN),
                "cases": show_cases(cases),
                "least": str(least),
                "most": str(most),
                "most_queries": str(ASKED_ABOUT_QUERIES),
            }
            yield self._request(
                RequestPurpose.FAILURES,
                round,
                f", batch {number}",
                values,
                lambda text: read_failures(text).lines(),
                tokens=ANALYSIS_TOKENS,
            )

    def deepen(self, round: int, pool: Pool, count: int) -> OptimizerRequest | None:
        """Return the request to reword the most important perspectives; None if there are none."""
        sources = to_deepen(pool, count)
        if not sources:
            return None
        values = {"questions": numbered(sources)}
        return self._replies(RequestPurpose.DEEPEN, round, values, sources)

    def broaden(self, round: int, pool: Pool, count: int) -> OptimizerRequest | None:
        """Return the request for aspects that no perspective covers; None if `count` is 0."""
        if not count:
            return None
        values = {
            "pool": show_pool(most_important(pool, PerspectiveKind.RESPONSE), SHOWN_WHOLE),
            "least": "1",
            "most": str(count),
        }
        reader = lines_of_questions(count)
        return self._request(
            RequestPurpose.BROADEN, round, "", values, reader, tokens=list_tokens(count)
        )

    def route(
        self, round: int, news: Sequence[Perspective], known: Pool
    ) -> OptimizerRequest | None:
        """Return the request to derive questions about queries from new ones about responses."""
        if not news:
            return None
        values = {
            "questions": numbered(news),
            "known": show_pool(most_important(known, PerspectiveKind.QUERY), SHOWN_WHOLE),
        }
        return self._replies(RequestPurpose.ROUTING, round, values, news)

    def _replies(
        self,
        ask: RequestPurpose,
        round: int,
        values: Mapping[str, str],
        sources: Sequence[Perspective],
    ) -> OptimizerRequest:
        reader = lines_of_replies(ask, len(sources))
        tokens = list_tokens(len(sources))
        return self._request(ask, round, "", values, reader, tokens=tokens, sources=sources)

    def _request(
        self,
        ask: RequestPurpose,
        round: int,
        part: str,
        values: Mapping[str, str],
        reader: Callable[[str], tuple[str, ...]],
        *,
        tokens: int,
        sources: Sequence[Perspective] = (),
    ) -> OptimizerRequest:
        name = f"round {round}, {ask.value}{part}"
        asked = self._templates[ask].fill({"request": name, **values})
        return OptimizerRequest(
            name=name,
            asked=asked,
            key=content_hash("optimizer step", *self._optimizer, asked, FIRST_RULES),
            read=reader,
            text_of="\n".join,
            max_tokens=tokens,
            ask=ask,
            round=round,
            sources=tuple(sources),
        )


def read_failures(text: str) -> ProposedQuestions:
    """Parse the optimizer's answer about a batch of mistakes."""
    return read_proposed(text, most_responses=TAKEN, most_queries=TAKEN)


def lines_of_questions(most: int) -> Callable[[str], tuple[str, ...]]:
    """Return a parser that turns a list of questions into numbered lines."""
    return lambda text: tuple(
        f"{number}. {question}" for number, question in enumerate(read_questions(text, 1, most), 1)
    )


def lines_of_replies(ask: RequestPurpose, count: int) -> Callable[[str], tuple[str, ...]]:
    """Return a parser that reads a question or DROP for each of `count` into numbered lines."""
    return lambda text: tuple(
        f"{number}. {question or DROP}"
        for number, question in enumerate(replies_in(ask, text, count), 1)
    )


def replies_in(ask: RequestPurpose, text: str, count: int) -> tuple[str | None, ...]:
    """Return the question for each of `count`; None for a dropped one."""
    return read_replies(
        text, count, ABOUT_QUERIES if ask is RequestPurpose.ROUTING else ABOUT_RESPONSES
    )


def most_important(pool: Pool, kind: PerspectiveKind) -> list[Perspective]:
    """Return the perspectives of a kind, most important first, each in one answer format."""
    weighed = sorted(pool.of(kind), key=lambda each: -(each.importance or 0.0))
    first: dict[str, Perspective] = {}
    for each in weighed:
        first.setdefault(each.text, each)
    return list(first.values())


def to_deepen(pool: Pool, count: int) -> tuple[Perspective, ...]:
    """Return the most important perspectives that have not been reworded yet."""
    texts = {each.id: each.text for each in pool}
    reworded = {
        texts[parent]
        for each in pool
        if each.origin in (PerspectiveOrigin.DEPTH, PerspectiveOrigin.MIX)
        for parent in each.parents
        # The graded format of a rewording has that rewording as its parent.
        if parent in texts and texts[parent] != each.text
    }
    left = [
        each for each in most_important(pool, PerspectiveKind.RESPONSE) if each.text not in reworded
    ]
    return tuple(left[:count])


def show_pool(perspectives: Sequence[Perspective], most: int) -> str:
    """Return the first `most` perspectives as a list, and the number of others."""
    shown = [f"- {neutral_line(each.text)}" for each in perspectives[:most]]
    if len(perspectives) > most:
        shown.append(f"(and {len(perspectives) - most} more)")
    return "\n".join(shown) or NONE_YET


def numbered(perspectives: Sequence[Perspective]) -> str:
    """Return perspectives as a numbered list."""
    return "\n".join(
        f"{number}. {neutral_line(each.text)}" for number, each in enumerate(perspectives, 1)
    )

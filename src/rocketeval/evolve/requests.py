"""What an optimizer is asked in a round: one step a request, each with the reader of its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from rocketeval.checklists.asking import list_tokens
from rocketeval.checklists.steps import Step
from rocketeval.errors import ConfigError
from rocketeval.evolve.failed_case import FailedCase, choose_batches, show_cases
from rocketeval.evolve.perspective import Kind, Origin, Perspective, Pool
from rocketeval.hashing import content_hash
from rocketeval.prompts.neutralise import RULES, neutralise
from rocketeval.prompts.read_perspectives import (
    ABOUT_QUERIES,
    ABOUT_RESPONSES,
    ProposedQuestions,
    read_proposed,
    read_questions,
    read_replies,
)
from rocketeval.prompts.read_rewrites import DROP
from rocketeval.prompts.render import Template

ASKED_OF_MISTAKES = (2, 5)
"""Questions about responses that an optimizer is asked for when it sees a batch of mistakes."""
ASKED_ABOUT_QUERIES = 3
TAKEN = 8
"""Questions about either that are taken from one batch, should it write more than asked."""
DECOMPOSED = (3, 24)
"""Questions that guidelines are taken apart into."""
SHOWN = 24
"""Questions of the pool that stand beside mistakes."""
SHOWN_WHOLE = 120
"""Questions of the pool that a request shows which must repeat none."""
ANALYSED_TOKENS = 2000
"""What an analysis with its questions may be long."""
LONGEST_GUIDELINES = 40_000
"""Bytes of annotation guidelines."""
NONE_YET = "(none yet)"


class Ask(StrEnum):
    """What a request is for; the name of its template."""

    DECOMPOSE = "decompose"
    FAILURES = "failures"
    DEEPEN = "deepen"
    BROADEN = "broaden"
    ROUTING = "routing"


NEEDS: Mapping[Ask, tuple[str, ...]] = {
    Ask.DECOMPOSE: ("request", "guidelines", "least", "most"),
    Ask.FAILURES: ("request", "pool", "cases", "least", "most", "most_queries"),
    Ask.DEEPEN: ("request", "questions"),
    Ask.BROADEN: ("request", "pool", "least", "most"),
    Ask.ROUTING: ("request", "questions", "known"),
}
"""Placeholders of each template."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Step):
    """One request to an optimizer."""

    ask: Ask
    round: int
    sources: tuple[Perspective, ...] = ()
    """What its numbered answers are made from, in their order; empty where they are made anew."""


class RequestMaker:
    """Makes the requests of one optimizer."""

    def __init__(self, model: str, settings: Mapping[str, Any]) -> None:
        """`settings` are what else of the optimizer can change what it writes."""
        self._optimizer = (model, dict(settings))
        self._templates = {ask: Template.load(ask.value, needs=NEEDS[ask]) for ask in Ask}

    def decompose(self, guidelines: str) -> Request:
        """Return the request that takes annotation guidelines apart."""
        length = len(guidelines.encode())
        if not guidelines.strip() or length > LONGEST_GUIDELINES:
            told = "are empty" if not guidelines.strip() else f"have {length:,} bytes"
            raise ConfigError(
                f"evolve.guidelines: the guidelines {told}.",
                hint=f"Give the part that says how to judge, {LONGEST_GUIDELINES:,} bytes at most.",
            )
        least, most = DECOMPOSED
        values = {"guidelines": neutralise(guidelines).text.strip()}
        values |= {"least": str(least), "most": str(most)}
        return self._request(
            Ask.DECOMPOSE, 0, "", values, lines_of_questions(most), tokens=list_tokens(most)
        )

    def of_failures(
        self, round: int, failures: Sequence[FailedCase], pool: Pool, *, batches: int, size: int
    ) -> Iterator[Request]:
        """Yield a request for each batch of mistakes."""
        least, most = ASKED_OF_MISTAKES
        chosen = choose_batches(failures, turn=max(1, round), batches=batches, size=size)
        for number, cases in enumerate(chosen, 1):
            values = {
                "pool": show_pool(most_important(pool, Kind.RESPONSE), SHOWN),
                "cases": show_cases(cases),
                "least": str(least),
                "most": str(most),
                "most_queries": str(ASKED_ABOUT_QUERIES),
            }
            yield self._request(
                Ask.FAILURES,
                round,
                f", batch {number}",
                values,
                lambda text: read_failures(text).lines(),
                tokens=ANALYSED_TOKENS,
            )

    def deepen(self, round: int, pool: Pool, count: int) -> Request | None:
        """Return the request for other wordings of the most important; None without any."""
        sources = to_deepen(pool, count)
        if not sources:
            return None
        values = {"questions": numbered(sources)}
        return self._replies(Ask.DEEPEN, round, values, sources)

    def broaden(self, round: int, pool: Pool, count: int) -> Request | None:
        """Return the request for what no perspective asks about; None when none is wanted."""
        if not count:
            return None
        values = {
            "pool": show_pool(most_important(pool, Kind.RESPONSE), SHOWN_WHOLE),
            "least": "1",
            "most": str(count),
        }
        reader = lines_of_questions(count)
        return self._request(Ask.BROADEN, round, "", values, reader, tokens=list_tokens(count))

    def route(self, round: int, news: Sequence[Perspective], known: Pool) -> Request | None:
        """Return the request for questions about queries, made of new ones about responses."""
        if not news:
            return None
        values = {
            "questions": numbered(news),
            "known": show_pool(most_important(known, Kind.QUERY), SHOWN_WHOLE),
        }
        return self._replies(Ask.ROUTING, round, values, news)

    def _replies(
        self, ask: Ask, round: int, values: Mapping[str, str], sources: Sequence[Perspective]
    ) -> Request:
        reader = lines_of_replies(ask, len(sources))
        tokens = list_tokens(len(sources))
        return self._request(ask, round, "", values, reader, tokens=tokens, sources=sources)

    def _request(
        self,
        ask: Ask,
        round: int,
        part: str,
        values: Mapping[str, str],
        reader: Callable[[str], tuple[str, ...]],
        *,
        tokens: int,
        sources: Sequence[Perspective] = (),
    ) -> Request:
        name = f"round {round}, {ask.value}{part}"
        asked = self._templates[ask].fill({"request": name, **values})
        return Request(
            name=name,
            asked=asked,
            key=content_hash("optimizer step", *self._optimizer, asked, RULES),
            read=reader,
            text_of="\n".join,
            max_tokens=tokens,
            ask=ask,
            round=round,
            sources=tuple(sources),
        )


def read_failures(text: str) -> ProposedQuestions:
    """Return what an optimizer wrote about a batch of mistakes."""
    return read_proposed(text, most_responses=TAKEN, most_queries=TAKEN)


def lines_of_questions(most: int) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of a list of questions, as numbered lines."""
    return lambda text: tuple(
        f"{number}. {question}" for number, question in enumerate(read_questions(text, 1, most), 1)
    )


def lines_of_replies(ask: Ask, count: int) -> Callable[[str], tuple[str, ...]]:
    """Return a reader of a question or DROP for each of `count`, as numbered lines."""
    return lambda text: tuple(
        f"{number}. {question or DROP}"
        for number, question in enumerate(replies_in(ask, text, count), 1)
    )


def replies_in(ask: Ask, text: str, count: int) -> tuple[str | None, ...]:
    """Return the question for each of `count`, None for one that was dropped."""
    return read_replies(text, count, ABOUT_QUERIES if ask is Ask.ROUTING else ABOUT_RESPONSES)


def most_important(pool: Pool, kind: Kind) -> list[Perspective]:
    """Return the perspectives of a kind, the most important first, each question in one form."""
    weighed = sorted(pool.of(kind), key=lambda each: -(each.importance or 0.0))
    first: dict[str, Perspective] = {}
    for each in weighed:
        first.setdefault(each.text, each)
    return list(first.values())


def to_deepen(pool: Pool, count: int) -> tuple[Perspective, ...]:
    """Return the most important perspectives of which the pool holds no other wording yet."""
    texts = {each.id: each.text for each in pool}
    reworded = {
        texts[parent]
        for each in pool
        if each.origin in (Origin.DEPTH, Origin.MIX)
        for parent in each.parents
        # The graded twin of a rewording has that rewording for its parent.
        if parent in texts and texts[parent] != each.text
    }
    left = [each for each in most_important(pool, Kind.RESPONSE) if each.text not in reworded]
    return tuple(left[:count])


def show_pool(perspectives: Sequence[Perspective], most: int) -> str:
    """Return the first of some perspectives as a list, and how many others there are."""
    shown = [f"- {_line(each.text)}" for each in perspectives[:most]]
    if len(perspectives) > most:
        shown.append(f"(and {len(perspectives) - most} more)")
    return "\n".join(shown) or NONE_YET


def numbered(perspectives: Sequence[Perspective]) -> str:
    """Return perspectives as a numbered list."""
    return "\n".join(f"{number}. {_line(each.text)}" for number, each in enumerate(perspectives, 1))


def _line(text: str) -> str:
    return neutralise(" ".join(text.split())).text

"""Optimizer rounds: requests are journaled, replayed without a call, and stopped in time."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocketeval.budget import Budget, PricedBudget
from rocketeval.checklists.base import AuthorContext
from rocketeval.config import EngineConfig, EvolveConfig, PriceConfig
from rocketeval.engines.base import WrittenText, create_engine
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import (
    ChecklistError,
    ConfigError,
    EngineRefused,
    EngineUnavailable,
    UnusableReply,
)
from rocketeval.evolve.optimizer import Optimizer, RejectionReason
from rocketeval.evolve.perspective import (
    AnswerFormat,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    Pool,
)
from rocketeval.evolve.requests import FailedCase
from rocketeval.records import Query, Response, Usage
from rocketeval.store.journal import AuthoredJournal

POOL = Pool(
    [
        Perspective("Is the response correct?", importance=0.2),
        Perspective("Is the response brief enough?", importance=0.5),
        Perspective("Is arithmetic asked for?", PerspectiveKind.QUERY, importance=0.1),
    ]
)
TEXTS = {
    "round 1, failures, batch 1": "# Analysis\nTone was overlooked.\n"
    "# About responses\n1. Is the response friendly?\n"
    "# About queries\n1. Does the query begin with a greeting?",
    "round 1, failures, batch 2": "# Analysis\nSources were overlooked.\n"
    "# About responses\n1. Does the response name its sources?\n2. Is the response FRIENDLY?",
    "round 1, deepen": "1. Does the response do without needless sentences?\n2. DROP",
    "round 1, broaden": "1. Does the response own up to what it does not know?",
    "round 1, routing": "1. DROP\n2. Does the query call for claims that need proof?\n"
    "3. Does the query ask to be brief?\n4. Does the query start with a greeting?",
    "round 0, decompose": "1. Is the response safe?\n2. Is the response right?",
}


def reply(prompt: str) -> str:
    """Return the text for the request that a prompt's first line names."""
    return TEXTS[prompt.partition("\n")[0].removeprefix("Request: ")]


def failed_case(number: int) -> FailedCase:
    """Return one of several cases."""
    query = Query(f"q{number}", f"Question {number}?")
    both = (Response(query.id, "x", f"First {number}."), Response(query.id, "y", "Second."))
    return FailedCase(query, both, "A is better", "B is better", 0.9)


CASES = [failed_case(number) for number in range(4)]


class Work:
    """An optimizer on a scripted engine, with its prompts and its journal."""

    def __init__(self, folder: Path, text: Callable[[str], str] = reply, **settings: Any) -> None:
        self.prompts: list[str] = []
        self.failed: list[str] = []
        self.spent: list[Usage] = []
        self.journal = AuthoredJournal(folder / "optimizer.jsonl")
        self.stop = asyncio.Event()
        self.budget: PricedBudget | None = None
        self._text = text
        config = EvolveConfig(**{"batch": 2, "batches": 2, "answers": "choice", **settings})
        self.optimizer = Optimizer(config, ScriptedEngine(text=self._answer, in_flight=2), "big")

    def _answer(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self._text(prompt)

    @property
    def context(self) -> AuthorContext:
        """An author context with everything paid for so far."""
        return AuthorContext(
            self.journal.known(),
            self.journal.append,
            lambda name, reason: self.failed.append(name),
            self.spent.append,
            self.stop,
            self.budget,
            "run-1",
        )

    async def propose(self, cases: list[FailedCase] = CASES, pool: Pool = POOL) -> Any:
        """Return the first round's proposals."""
        return await self.optimizer.propose(1, cases, pool, self.context)


async def test_requests_left_exclude_journaled_ones(tmp_path: Path) -> None:
    """All attempts of two batches, deepen, broaden and routing; none once all are answered."""

    def left(work: Work) -> int:
        return work.optimizer.most_requests(1, CASES, POOL, work.journal.known())

    work = Work(tmp_path)
    assert left(work) == 3 * 5

    def stopping(prompt: str) -> str:
        cut.stop.set()
        return reply(prompt)

    cut = Work(tmp_path, stopping)
    await cut.propose()
    assert left(cut) == 3 * (5 - len(cut.prompts)) < 3 * 5
    await work.propose()
    assert left(work) == 0
    (tmp_path / "failing").mkdir()
    failing = Work(tmp_path / "failing", lambda prompt: "I cannot.")
    with pytest.raises(ChecklistError):
        await failing.propose()
    assert left(failing) == 3 * 5


async def test_round_proposes_every_origin(tmp_path: Path) -> None:
    """From mistakes, rewording, new aspects, and routing; with parents."""
    proposals = await Work(tmp_path).propose()
    found = {each.text: (each.kind, each.origin, each.round) for each in proposals.perspectives}
    about, query = PerspectiveKind.RESPONSE, PerspectiveKind.QUERY
    assert found == {
        "Is the response friendly?": (about, PerspectiveOrigin.FAILURES, 1),
        "Does the query begin with a greeting?": (query, PerspectiveOrigin.FAILURES, 1),
        "Does the response name its sources?": (about, PerspectiveOrigin.FAILURES, 1),
        "Does the response do without needless sentences?": (about, PerspectiveOrigin.DEPTH, 1),
        "Does the response own up to what it does not know?": (about, PerspectiveOrigin.BREADTH, 1),
        "Does the query call for claims that need proof?": (query, PerspectiveOrigin.ROUTING, 1),
        "Does the query ask to be brief?": (query, PerspectiveOrigin.ROUTING, 1),
    }
    ids = {each.text: each.id for each in (*POOL, *proposals.perspectives)}
    parents = {each.text: each.parents for each in proposals.perspectives if each.parents}
    assert parents == {
        "Does the response do without needless sentences?": (ids["Is the response brief enough?"],),
        "Does the query call for claims that need proof?": (
            ids["Does the response name its sources?"],
        ),
        "Does the query ask to be brief?": (
            ids["Does the response do without needless sentences?"],
        ),
    }


async def test_proposals_have_provenance(tmp_path: Path) -> None:
    """The request behind each, the analyses, and the dropped duplicates."""
    proposals = await Work(tmp_path).propose()
    steps = {each.text: proposals.steps[each.id] for each in proposals.perspectives}
    assert steps["Is the response friendly?"] == "round 1, failures, batch 1"
    assert steps["Does the query ask to be brief?"] == "round 1, routing"
    assert proposals.analyses == {
        "round 1, failures, batch 1": "Tone was overlooked.",
        "round 1, failures, batch 2": "Sources were overlooked.",
    }
    assert [(each.text, each.why, each.step) for each in proposals.dropped] == [
        ("Is the response FRIENDLY?", RejectionReason.REPEAT, "round 1, failures, batch 2"),
        (
            "Does the query start with a greeting?",
            RejectionReason.NEAR_DUPLICATE,
            "round 1, routing",
        ),
    ]
    assert list(proposals.traces) == [*list(TEXTS)[:5]]
    assert (proposals.failed, proposals.cut_short, proposals.reused) == ({}, None, 0)
    assert proposals.usage == Usage(requests=5)


async def test_journal_replays_the_round_without_a_call(tmp_path: Path) -> None:
    """A resumed round gives the same result at no cost."""
    first = await Work(tmp_path).propose()
    again = Work(tmp_path)
    second = await again.propose()
    assert again.prompts == []
    assert second.perspectives == first.perspectives
    assert (second.dropped, second.analyses) == (first.dropped, first.analyses)
    assert (second.reused, second.usage) == (5, Usage())
    then, now = (each.traces["round 1, deepen"] for each in (first, second))
    assert (now.attempts, now.refused, now.usage) == (then.attempts, then.refused, then.usage)


async def test_new_model_or_pool_sends_new_requests(tmp_path: Path) -> None:
    """A request's identity covers the prompt and the model."""
    await Work(tmp_path).propose()
    grown, _ = POOL.add([Perspective("Is the response in verse?", importance=0.9)])
    work = Work(tmp_path, lambda _: "1. Is the response in rhymes, as verse should be?", deepen=1)
    proposals = await work.propose([], grown)
    # The reply fits the requests to reword and to broaden, and its duplicate is dropped.
    assert len(work.prompts) == 2 + 3, "routing was tried three times"
    assert proposals.failed.keys() == {"round 1, routing"}


async def test_both_formats_share_one_request(tmp_path: Path) -> None:
    """A proposal gets its graded format without a second request."""
    proposals = await Work(tmp_path, answers="both").propose()
    friendly = [each for each in proposals.perspectives if "friendly" in each.text]
    assert [each.form for each in friendly] == [AnswerFormat.CHOICE, AnswerFormat.GRADED]
    assert friendly[1].parents == (friendly[0].id,)
    assert {proposals.steps[each.id] for each in friendly} == {"round 1, failures, batch 1"}


async def test_graded_proposals_are_parents(tmp_path: Path) -> None:
    """Parents name perspectives that are in the pool."""
    proposals = await Work(tmp_path, answers="graded").propose()
    ids = {each.id for each in (*POOL, *proposals.perspectives)}
    assert all(set(each.parents) <= ids for each in proposals.perspectives)
    assert {
        each.form for each in proposals.perspectives if each.kind is PerspectiveKind.RESPONSE
    } == {AnswerFormat.GRADED}


async def test_repeated_exploration_is_a_mix(tmp_path: Path) -> None:
    """The paper distinguishes exploration over several rounds from that of one."""
    pool = Pool([Perspective("Is the response brief enough?", origin=PerspectiveOrigin.BREADTH)])
    text = "1. Does the response do without needless sentences?"
    proposals = await Work(tmp_path, lambda _: text, broaden=0, most_about_queries=0).propose(
        [], pool
    )
    assert [each.origin for each in proposals.perspectives] == [PerspectiveOrigin.MIX]


async def test_no_query_questions_if_none_are_kept(tmp_path: Path) -> None:
    """They are not requested, and unrequested ones are counted as dropped."""
    work = Work(tmp_path, most_about_queries=0)
    proposals = await work.propose()
    assert len(work.prompts) == 4
    assert {each.kind for each in proposals.perspectives} == {PerspectiveKind.RESPONSE}
    assert RejectionReason.UNWANTED in {each.why for each in proposals.dropped}


async def test_retry_shows_the_mistake(tmp_path: Path) -> None:
    """The reason is sent to the optimizer, counted, and journaled."""

    def text(prompt: str) -> str:
        sloppy = "round 1, broaden" in prompt and "# Your last answer" not in prompt
        return "1. How nice is Response A?" if sloppy else reply(prompt)

    work = Work(tmp_path, text)
    proposals = await work.propose()
    shown = next(prompt for prompt in work.prompts if "# Your last answer" in prompt)
    assert "1. How nice is Response A?" in shown
    assert "cannot be answered by Yes or No" in shown
    trace = proposals.traces["round 1, broaden"]
    assert trace.attempts == 2
    assert [refused.mistake for refused in trace.refused or ()] == [
        "an item is not a yes/no question"
    ]
    paid = {paid.effort.attempts for paid in work.journal.known().values() if paid.effort}
    assert paid == {1, 2}


async def test_failed_request_is_reported_and_the_round_continues(tmp_path: Path) -> None:
    """It is remembered, so a resumed round is the same."""

    def text(prompt: str) -> str:
        return "No." if "round 1, broaden" in prompt else reply(prompt)

    def without(prompt: str) -> str:
        return text(prompt) if "round 1, routing" not in prompt else "1. DROP\n2. DROP\n3. DROP"

    work = Work(tmp_path, without)
    proposals = await work.propose()
    assert list(proposals.failed) == work.failed == ["round 1, broaden"]
    assert "refused 3 times" in proposals.failed["round 1, broaden"]
    assert proposals.cut_short is None
    again = Work(tmp_path)
    resumed = await again.propose()
    assert again.prompts == []
    assert (resumed.perspectives, resumed.failed) == (proposals.perspectives, proposals.failed)


async def test_round_with_only_failures_is_retried(tmp_path: Path) -> None:
    """It is an error, and the next command sends the requests again."""
    with pytest.raises(ChecklistError, match="every request failed") as caught:
        await Work(tmp_path, lambda _: "No.").propose()
    assert "round 1, failures, batch 1: " in str(caught.value)
    work = Work(tmp_path)
    assert (await work.propose()).failed == {}
    assert len(work.prompts) == 5


async def test_a_server_that_dies_stops_the_round(tmp_path: Path) -> None:
    """After 16 failures in a row no more requests are sent, and none is remembered as failed."""

    def text(prompt: str) -> str:
        if len(work.prompts) > 2:
            raise UnusableReply("the answer was not JSON (6 times).")
        return reply(prompt)

    many = [CASES[n % len(CASES)] for n in range(60)]
    work = Work(tmp_path, text, batch=1, batches=60)
    with pytest.raises(EngineRefused, match="16 times in a row"):
        await work.propose(many)
    assert len(work.prompts) <= 2 + 16 + 2
    assert len(work.journal.known()) == 2


async def test_failed_routing_is_not_fatal(tmp_path: Path) -> None:
    """The questions it derives from exist."""

    def text(prompt: str) -> str:
        return "No." if "round 1, routing" in prompt else reply(prompt)

    proposals = await Work(tmp_path, text).propose()
    assert list(proposals.failed) == ["round 1, routing"]
    again = Work(tmp_path)
    assert list((await again.propose()).failed) == ["round 1, routing"]
    assert again.prompts == []


async def test_budget_stops_a_round(tmp_path: Path) -> None:
    """Paid results are kept; with more budget the round continues."""
    work = Work(tmp_path)
    price = PriceConfig(prompt=1.0, completion=1.0)
    # Room for one request; without token usage the maximum is charged.
    work.budget = PricedBudget(Budget(0.05), price)
    proposals = await work.propose()
    asked = len(work.prompts)
    assert 0 < asked < 5
    assert proposals.cut_short == "out of money"
    assert "round 1, routing" not in proposals.traces
    again = Work(tmp_path)
    whole = await again.propose()
    assert (len(again.prompts), whole.reused) == (5 - asked, asked)
    assert whole.cut_short is None


async def test_stopped_round_reports_it(tmp_path: Path) -> None:
    """No new request starts."""
    work = Work(tmp_path)

    def text(prompt: str) -> str:
        work.stop.set()
        return reply(prompt)

    work._text = text
    proposals = await work.propose()
    assert proposals.cut_short == "stopped"
    assert 0 < len(work.prompts) < 4


async def test_usage_adds_up_over_calls(tmp_path: Path) -> None:
    """The observer gets the total usage so far."""
    work = Work(tmp_path)
    await work.optimizer.decompose("Be safe. Be right.", POOL, work.context)
    await work.propose()
    assert work.optimizer.usage == Usage(requests=6)
    assert [used.requests for used in work.spent] == [1, 2, 3, 4, 5, 6]


async def test_unreachable_engine_ends_the_round(tmp_path: Path) -> None:
    """Answers so far are kept; the next command requests the rest."""

    class Gone(ScriptedEngine):
        async def write(self, prompt: str, **settings: Any) -> WrittenText:
            if "round 1, broaden" in prompt:
                raise EngineUnavailable("it is gone")
            return await super().write(prompt, **settings)

    work = Work(tmp_path)
    work.optimizer = Optimizer(
        EvolveConfig(batch=2, batches=2, answers="choice"), Gone(text=reply, in_flight=1), "big"
    )
    with pytest.raises(EngineUnavailable):
        await work.propose()
    assert len(work.journal.known()) == 3
    assert work.optimizer.usage == Usage(requests=4)


async def test_guidelines_become_questions(tmp_path: Path) -> None:
    """Questions that the pool lacks, with origin `rule` in round 0; requested once."""
    work = Work(tmp_path)
    proposals = await work.optimizer.decompose("Be safe. Be right.", POOL, work.context)
    assert [(each.text, each.origin, each.round) for each in proposals.perspectives] == [
        ("Is the response safe?", PerspectiveOrigin.RULE, 0)
    ]
    assert [(each.why, each.repeats) for each in proposals.dropped] == [
        (RejectionReason.NEAR_DUPLICATE, "Is the response correct?")
    ]
    await work.optimizer.decompose("Be safe. Be right.", POOL, work.context)
    assert len(work.prompts) == 1


@pytest.mark.parametrize(
    ("text", "problem"), [(" \n", "are empty"), ("x" * 50_000, "50,000 bytes")]
)
async def test_unusable_guidelines_are_refused(tmp_path: Path, text: str, problem: str) -> None:
    """They are never truncated silently."""
    work = Work(tmp_path)
    with pytest.raises(ConfigError, match=problem):
        await work.optimizer.decompose(text, POOL, work.context)
    assert work.prompts == []


async def test_recorded_optimizer_replays(tmp_path: Path) -> None:
    """A round from a config and a file of texts; a request without a row fails."""
    rows = [{"when": when, "text": text} for when, text in TEXTS.items() if "routing" not in when]
    record = tmp_path / "texts.jsonl"
    record.write_text("\n".join(map(json.dumps, rows)))
    options = {"texts": str(record)}
    engine = EngineConfig(engine="scripted", model="recorded", options=options)
    config = EvolveConfig(batch=2, batches=2, optimizer=engine)
    optimizer = Optimizer(config, create_engine(engine), engine.model)
    await optimizer.prepare()
    proposals = await optimizer.propose(1, CASES, POOL, Work(tmp_path).context)
    assert len(proposals.perspectives) == 5
    assert "none of the 5 texts" in proposals.failed["round 1, routing"]
    await optimizer.aclose()

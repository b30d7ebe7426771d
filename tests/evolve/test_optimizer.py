"""A round of proposals: asked once, journaled, replayed without a call, stopped, paid for."""

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
from rocketeval.errors import ChecklistError, ConfigError, EngineUnavailable
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
    """An optimizer on a scripted engine, the prompts it was sent, and what was journaled."""

    def __init__(self, folder: Path, text: Callable[[str], str] = reply, **settings: Any) -> None:
        self.prompts: list[str] = []
        self.failed: list[str] = []
        self.spent: list[Usage] = []
        self.journal = AuthoredJournal(folder / "optimizer.jsonl")
        self.stop = asyncio.Event()
        self.purse: PricedBudget | None = None
        self._text = text
        config = EvolveConfig(**{"batch": 2, "batches": 2, "answers": "choice", **settings})
        self.optimizer = Optimizer(config, ScriptedEngine(text=self._answer, in_flight=2), "big")

    def _answer(self, prompt: str) -> str:
        self.prompts.append(prompt)
        return self._text(prompt)

    @property
    def desk(self) -> AuthorContext:
        """A desk with everything that was paid for until now."""
        return AuthorContext(
            self.journal.known(),
            self.journal.append,
            lambda name, reason: self.failed.append(name),
            self.spent.append,
            self.stop,
            self.purse,
            "run-1",
        )

    async def propose(self, cases: list[FailedCase] = CASES, pool: Pool = POOL) -> Any:
        """Return what the first round brings."""
        return await self.optimizer.propose(1, cases, pool, self.desk)


async def test_a_round_brings_perspectives_of_every_origin(tmp_path: Path) -> None:
    """From mistakes, other wordings, new sides, and what these mean for queries; with parents."""
    brought = await Work(tmp_path).propose()
    found = {each.text: (each.kind, each.origin, each.round) for each in brought.perspectives}
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
    ids = {each.text: each.id for each in (*POOL, *brought.perspectives)}
    parents = {each.text: each.parents for each in brought.perspectives if each.parents}
    assert parents == {
        "Does the response do without needless sentences?": (ids["Is the response brief enough?"],),
        "Does the query call for claims that need proof?": (
            ids["Does the response name its sources?"],
        ),
        "Does the query ask to be brief?": (
            ids["Does the response do without needless sentences?"],
        ),
    }


async def test_how_each_came_about_is_told(tmp_path: Path) -> None:
    """The request behind each, the analyses, and what was left out because it is there."""
    brought = await Work(tmp_path).propose()
    steps = {each.text: brought.steps[each.id] for each in brought.perspectives}
    assert steps["Is the response friendly?"] == "round 1, failures, batch 1"
    assert steps["Does the query ask to be brief?"] == "round 1, routing"
    assert brought.analyses == {
        "round 1, failures, batch 1": "Tone was overlooked.",
        "round 1, failures, batch 2": "Sources were overlooked.",
    }
    assert [(each.text, each.why, each.step) for each in brought.dropped] == [
        ("Is the response FRIENDLY?", RejectionReason.REPEAT, "round 1, failures, batch 2"),
        ("Does the query start with a greeting?", RejectionReason.TWIN, "round 1, routing"),
    ]
    assert list(brought.traces) == [*list(TEXTS)[:5]]
    assert (brought.failed, brought.cut_short, brought.reused) == ({}, None, 0)
    assert brought.usage == Usage(requests=5)


async def test_a_journal_replays_the_round_without_a_call(tmp_path: Path) -> None:
    """Whoever resumes gets the same, and nobody is paid twice."""
    first = await Work(tmp_path).propose()
    again = Work(tmp_path)
    second = await again.propose()
    assert again.prompts == []
    assert second.perspectives == first.perspectives
    assert (second.dropped, second.analyses) == (first.dropped, first.analyses)
    assert (second.reused, second.usage) == (5, Usage())
    then, now = (each.traces["round 1, deepen"] for each in (first, second))
    assert (now.attempts, now.refused, now.usage) == (then.attempts, then.refused, then.usage)


async def test_another_model_or_pool_is_asked_anew(tmp_path: Path) -> None:
    """A request is what was asked, and of whom."""
    await Work(tmp_path).propose()
    grown, _ = POOL.add([Perspective("Is the response in verse?", importance=0.9)])
    work = Work(tmp_path, lambda _: "1. Is the response in rhymes, as verse should be?", deepen=1)
    brought = await work.propose([], grown)
    # The reply fits the requests for other wordings and for new sides, and its twin is dropped.
    assert len(work.prompts) == 2 + 3, "and three times for what cannot be said of a query alone"
    assert brought.failed.keys() == {"round 1, routing"}


async def test_both_forms_share_one_request(tmp_path: Path) -> None:
    """A proposal gets its graded twin without being asked for twice."""
    brought = await Work(tmp_path, answers="both").propose()
    friendly = [each for each in brought.perspectives if "friendly" in each.text]
    assert [each.form for each in friendly] == [AnswerFormat.CHOICE, AnswerFormat.GRADED]
    assert friendly[1].parents == (friendly[0].id,)
    assert {brought.steps[each.id] for each in friendly} == {"round 1, failures, batch 1"}


async def test_graded_proposals_are_the_parents_of_what_is_derived(tmp_path: Path) -> None:
    """Parents name what is really in the pool."""
    brought = await Work(tmp_path, answers="graded").propose()
    ids = {each.id for each in (*POOL, *brought.perspectives)}
    assert all(set(each.parents) <= ids for each in brought.perspectives)
    assert {
        each.form for each in brought.perspectives if each.kind is PerspectiveKind.RESPONSE
    } == {AnswerFormat.GRADED}


async def test_what_was_explored_from_the_explored_is_a_mix(tmp_path: Path) -> None:
    """The paper tells exploration over several rounds from that of one."""
    pool = Pool([Perspective("Is the response brief enough?", origin=PerspectiveOrigin.BREADTH)])
    text = "1. Does the response do without needless sentences?"
    brought = await Work(tmp_path, lambda _: text, broaden=0, most_about_queries=0).propose(
        [], pool
    )
    assert [each.origin for each in brought.perspectives] == [PerspectiveOrigin.MIX]


async def test_no_questions_about_queries_where_none_are_kept(tmp_path: Path) -> None:
    """They are not asked for, and those that come along are counted as dropped."""
    work = Work(tmp_path, most_about_queries=0)
    brought = await work.propose()
    assert len(work.prompts) == 4
    assert {each.kind for each in brought.perspectives} == {PerspectiveKind.RESPONSE}
    assert RejectionReason.UNWANTED in {each.why for each in brought.dropped}


async def test_a_mistake_is_shown_at_the_second_attempt(tmp_path: Path) -> None:
    """What was refused is told to the optimizer, counted, and journaled."""

    def text(prompt: str) -> str:
        sloppy = "round 1, broaden" in prompt and "# Your last answer" not in prompt
        return "1. How nice is Response A?" if sloppy else reply(prompt)

    work = Work(tmp_path, text)
    brought = await work.propose()
    shown = next(prompt for prompt in work.prompts if "# Your last answer" in prompt)
    assert "1. How nice is Response A?" in shown
    assert "cannot be answered by Yes or No" in shown
    trace = brought.traces["round 1, broaden"]
    assert trace.attempts == 2
    assert [refused.mistake for refused in trace.refused or ()] == [
        "an item is not a yes/no question"
    ]
    paid = {paid.effort.attempts for paid in work.journal.known().values() if paid.effort}
    assert paid == {1, 2}


async def test_a_failed_request_is_told_and_the_round_goes_on(tmp_path: Path) -> None:
    """It is remembered: a resumed round is the same round."""

    def text(prompt: str) -> str:
        return "No." if "round 1, broaden" in prompt else reply(prompt)

    def without(prompt: str) -> str:
        return text(prompt) if "round 1, routing" not in prompt else "1. DROP\n2. DROP\n3. DROP"

    work = Work(tmp_path, without)
    brought = await work.propose()
    assert list(brought.failed) == work.failed == ["round 1, broaden"]
    assert "refused 3 times" in brought.failed["round 1, broaden"]
    assert brought.cut_short is None
    again = Work(tmp_path)
    resumed = await again.propose()
    assert again.prompts == []
    assert (resumed.perspectives, resumed.failed) == (brought.perspectives, brought.failed)


async def test_a_round_of_which_all_failed_is_an_error_and_is_asked_again(tmp_path: Path) -> None:
    """Nothing went on without it, so nothing holds the next command to it."""
    with pytest.raises(ChecklistError, match="every request failed") as caught:
        await Work(tmp_path, lambda _: "No.").propose()
    assert "round 1, failures, batch 1: " in str(caught.value)
    work = Work(tmp_path)
    assert (await work.propose()).failed == {}
    assert len(work.prompts) == 5


async def test_a_failed_routing_alone_is_not_fatal(tmp_path: Path) -> None:
    """What it was to be derived from is there."""

    def text(prompt: str) -> str:
        return "No." if "round 1, routing" in prompt else reply(prompt)

    brought = await Work(tmp_path, text).propose()
    assert list(brought.failed) == ["round 1, routing"]
    again = Work(tmp_path)
    assert list((await again.propose()).failed) == ["round 1, routing"]
    assert again.prompts == []


async def test_money_that_does_not_suffice_cuts_a_round_short(tmp_path: Path) -> None:
    """What was paid for is kept; with more money the round goes on where it ended."""
    work = Work(tmp_path)
    price = PriceConfig(prompt=1.0, completion=1.0)
    # Room for one of the requests; a script that tells no tokens is charged the most.
    work.purse = PricedBudget(Budget(0.05), price)
    brought = await work.propose()
    asked = len(work.prompts)
    assert 0 < asked < 5
    assert brought.cut_short == "out of money"
    assert "round 1, routing" not in brought.traces
    again = Work(tmp_path)
    whole = await again.propose()
    assert (len(again.prompts), whole.reused) == (5 - asked, asked)
    assert whole.cut_short is None


async def test_a_stopped_round_says_so(tmp_path: Path) -> None:
    """Nothing new is begun."""
    work = Work(tmp_path)

    def text(prompt: str) -> str:
        work.stop.set()
        return reply(prompt)

    work._text = text
    brought = await work.propose()
    assert brought.cut_short == "stopped"
    assert 0 < len(work.prompts) < 4


async def test_usage_adds_up_over_calls(tmp_path: Path) -> None:
    """Who watches hears what all work has cost so far."""
    work = Work(tmp_path)
    await work.optimizer.decompose("Be safe. Be right.", POOL, work.desk)
    await work.propose()
    assert work.optimizer.usage == Usage(requests=6)
    assert [used.requests for used in work.spent] == [1, 2, 3, 4, 5, 6]


async def test_an_engine_that_is_gone_ends_the_round_and_keeps_what_came(tmp_path: Path) -> None:
    """It is no failed request: the next command asks for the rest."""

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
    assert work.optimizer.usage == Usage(requests=3)


async def test_guidelines_are_taken_apart(tmp_path: Path) -> None:
    """What they ask beyond the pool, as rules of round 0; also asked once."""
    work = Work(tmp_path)
    brought = await work.optimizer.decompose("Be safe. Be right.", POOL, work.desk)
    assert [(each.text, each.origin, each.round) for each in brought.perspectives] == [
        ("Is the response safe?", PerspectiveOrigin.RULE, 0)
    ]
    assert [(each.why, each.repeats) for each in brought.dropped] == [
        (RejectionReason.TWIN, "Is the response correct?")
    ]
    await work.optimizer.decompose("Be safe. Be right.", POOL, work.desk)
    assert len(work.prompts) == 1


@pytest.mark.parametrize(("text", "told"), [(" \n", "are empty"), ("x" * 50_000, "50,000 bytes")])
async def test_guidelines_that_cannot_be_used_are_refused(
    tmp_path: Path, text: str, told: str
) -> None:
    """Nobody pays for a part of them without knowing."""
    work = Work(tmp_path)
    with pytest.raises(ConfigError, match=told):
        await work.optimizer.decompose(text, POOL, work.desk)
    assert work.prompts == []


async def test_a_recorded_optimizer_plays_back(tmp_path: Path) -> None:
    """A round from a config and a file of texts; what no row fits is a failed request."""
    rows = [{"when": when, "text": text} for when, text in TEXTS.items() if "routing" not in when]
    record = tmp_path / "texts.jsonl"
    record.write_text("\n".join(map(json.dumps, rows)))
    options = {"texts": str(record)}
    engine = EngineConfig(engine="scripted", model="recorded", options=options)
    config = EvolveConfig(batch=2, batches=2, optimizer=engine)
    optimizer = Optimizer(config, create_engine(engine), engine.model)
    await optimizer.prepare()
    brought = await optimizer.propose(1, CASES, POOL, Work(tmp_path).desk)
    assert len(brought.perspectives) == 5
    assert "none of the 5 texts" in brought.failed["round 1, routing"]
    await optimizer.aclose()

"""Writing checklists: nothing is paid for twice, and every gap has a reason."""

from __future__ import annotations

import asyncio
import json
from functools import partial
from pathlib import Path

import pytest

from rocketeval.checklists.base import count_refusals
from rocketeval.checklists.instance import USELESS_CALLS, USELESS_IN_A_ROW, InstanceAuthor
from rocketeval.checklists.write import AuthoredChecklists, authoring_key, write_checklists
from rocketeval.config import AuthorConfig
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import EngineRefused, EngineUnavailable
from rocketeval.records import Checklist, Query, Turn, Usage
from rocketeval.store.journal import AuthoredJournal, AuthoringEffort, PaidWork, RefusedList
from rocketeval.store.manifest import RefusalCounts

QUERIES = [Query(f"q{number}", f"Question {number}?") for number in range(6)]


class Asked:
    """An author with its prompts."""

    def __init__(
        self, *, fail_on: str | None = None, bad_on: str | None = None, fixes: bool = False
    ) -> None:
        self.prompts: list[str] = []
        self.fixes = fixes
        self.bad_on = bad_on
        engine = ScriptedEngine(text=self._text, fail_on=fail_on)
        self.author = InstanceAuthor(AuthorConfig(), engine, "big")

    def _text(self, prompt: str) -> str:
        self.prompts.append(prompt)
        if self.fixes and "# Your last answer" not in prompt:
            return "Sorry."
        if self.bad_on is not None and self.bad_on in prompt:
            return "Sorry."
        return "\n".join(f"{n}. Is point {n} of {len(prompt)} made?" for n in range(1, 13))


async def write(
    asked: Asked,
    journal: AuthoredJournal | None = None,
    queries: list[Query] = QUERIES,
    stop: asyncio.Event | None = None,
    concurrency: int = 3,
    run: str | None = None,
) -> AuthoredChecklists:
    """Write the checklists, with a journal if one is given."""
    return await write_checklists(
        asked.author,
        queries,
        known=journal.known() if journal else {},
        record=partial(journal.append, run=run) if journal else None,
        advance=lambda: None,
        concurrency=concurrency,
        stop=stop or asyncio.Event(),
        run=run,
    )


@pytest.fixture
def journal(tmp_path: Path) -> AuthoredJournal:
    """A journal in a folder that does not exist yet."""
    return AuthoredJournal(tmp_path / "cache" / "authored.jsonl")


async def test_every_query_gets_its_checklist() -> None:
    """Six queries, six calls, items in order."""
    asked = Asked()
    authoring = await write(asked)
    assert set(authoring.checklists) == {query.id for query in QUERIES}
    assert authoring.checklists["q0"].items[9].startswith("Is point 10 ")
    assert (len(asked.prompts), authoring.usage.requests) == (6, 6)
    assert (authoring.failures, authoring.reused) == ({}, 0)


async def test_one_failure_does_not_affect_others() -> None:
    """The query is named with its reason, and its cost is counted."""
    authoring = await write(Asked(bad_on="Question 3"))
    assert len(authoring.checklists) == 5
    assert list(authoring.failures) == ["q3"]
    assert "refused 3 times" in authoring.failures["q3"]
    assert authoring.usage.requests == 5 + 3


async def test_rejected_request_is_a_failure() -> None:
    """The failure names its query."""
    authoring = await write(Asked(fail_on="Question 3"))
    assert authoring.failures == {"q3": "the author rejected it: scripted to fail"}


async def test_next_run_reuses_all_checklists(journal: AuthoredJournal) -> None:
    """At no cost, and identical."""
    first = await write(Asked(), journal)
    again = Asked()
    second = await write(again, journal)
    assert again.prompts == []
    assert second.checklists == first.checklists
    assert (second.reused, second.usage.requests) == (6, 0)


async def test_failure_is_retried(journal: AuthoredJournal) -> None:
    """Only missing checklists are requested."""
    await write(Asked(bad_on="Question 3"), journal)
    again = Asked()
    authoring = await write(again, journal)
    assert len(again.prompts) == 1
    assert len(authoring.checklists) == 6


async def test_stopped_run_keeps_finished_checklists(journal: AuthoredJournal) -> None:
    """No new calls start; the next run continues."""
    stop = asyncio.Event()
    asked = Asked()
    asked.author._engine._text = lambda _: (stop.set(), "1. A?\n2. B?\n3. C?")[1]
    stopped = await write(asked, journal, stop=stop, concurrency=1)
    assert len(stopped.checklists) == 1
    again = Asked()
    assert (await write(again, journal)).reused == 1
    assert len(again.prompts) == 5


async def test_refusal_keeps_lists_in_flight(journal: AuthoredJournal) -> None:
    """If the author refuses all requests, lists in flight are kept, and no other is started."""
    asked = Asked()
    scripted = asked.author.write

    async def write_some(query: Query) -> Checklist:
        await asyncio.sleep(0 if query.id == "q1" else 0.05)
        if query.id == "q1":
            raise EngineRefused("no credit")
        return await scripted(query)

    asked.author.write = write_some  # type: ignore[method-assign]
    with pytest.raises(EngineRefused, match="no credit"):
        await write(asked, journal)
    assert len(journal.known()) == len(asked.prompts) == 2


async def test_unreachable_author_is_reported_first() -> None:
    """`prepare` fails the stage before any query."""

    class Gone(ScriptedEngine):
        async def ready(self) -> None:
            raise EngineUnavailable("nobody there")

    asked = Asked()
    asked.author._engine = Gone()
    with pytest.raises(EngineUnavailable, match="nobody there"):
        await write(asked)


MANY = [Query(f"q{number}", f"Question {number}?") for number in range(300)]


@pytest.mark.parametrize("attempts", [1, 2, 3, 5])
async def test_author_without_a_readable_list_is_given_up(attempts: int) -> None:
    """After at most twelve calls; the error shows its last text."""
    asked = Asked(bad_on="Question")
    asked.author.attempts = attempts
    asked.author.config = AuthorConfig(attempts=attempts)
    with pytest.raises(EngineRefused) as caught:
        await write(asked, queries=MANY, concurrency=32)
    assert 8 <= len(asked.prompts) <= USELESS_CALLS == 12
    assert "Sorry." in caught.value.message
    assert f"in {len(asked.prompts)} calls" in caught.value.message
    assert "kept" in caught.value.hint


async def test_author_that_rejects_requests_is_given_up() -> None:
    """A rejected request counts as one call."""
    asked = Asked(fail_on="Question")
    with pytest.raises(EngineRefused, match="scripted to fail"):
        await write(asked, queries=MANY, concurrency=32)


async def test_author_that_fixes_its_lists_is_not_given_up() -> None:
    """An author that needs one retry every time still writes every list."""
    asked = Asked(fixes=True)
    authoring = await write(asked, queries=MANY[:40], concurrency=32)
    assert len(authoring.checklists) == 40
    assert len(asked.prompts) == 80


async def test_proven_author_is_given_up_later(
    journal: AuthoredJournal,
) -> None:
    """Many failures in a row end it; its lists are kept, also for the next run."""
    asked = Asked()
    await write(asked, journal, MANY[:20])
    asked.bad_on = "Question"
    with pytest.raises(EngineRefused, match="in a row") as caught:
        await write(asked, journal, MANY, concurrency=4)
    assert "20 finished lists" in caught.value.hint
    failed = (len(asked.prompts) - 20) / 3
    assert USELESS_IN_A_ROW <= failed <= USELESS_IN_A_ROW + 4
    # A few impossible queries do not count against an author.
    asked.bad_on = "Question 5"
    authoring = await write(asked, journal, MANY, concurrency=4)
    assert len(authoring.checklists) + len(authoring.failures) == len(MANY)
    assert len(authoring.failures) == 10


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param(Query("q0", "Question 00?"), id="text"),
        pytest.param(Query("q0", "Question 0?", (Turn("user", "Hi"),)), id="history"),
        pytest.param(Query("q0", "Question 0?", reference="R"), id="reference"),
    ],
)
async def test_changed_query_is_requested_again(journal: AuthoredJournal, changed: Query) -> None:
    """The identity covers everything the author sees of a query."""
    await write(Asked(), journal, [QUERIES[0]])
    again = Asked()
    await write(again, journal, [changed])
    assert len(again.prompts) == 1


async def test_renamed_query_is_reused(journal: AuthoredJournal) -> None:
    """The author does not see the id; the checklist gets the new one."""
    await write(Asked(), journal, [QUERIES[0]])
    again = Asked()
    authoring = await write(again, journal, [Query("new", QUERIES[0].text)])
    assert again.prompts == []
    assert authoring.checklists["new"].query_id == "new"


def test_journal_round_trips(journal: AuthoredJournal) -> None:
    """Author and items, also with line endings and other scripts."""
    made = Checklist("q", ("Is it \n new\u2028line?", "天?"), "big")
    assert journal.known() == {}
    effort = AuthoringEffort(
        2, (RefusedList("too few items", "there are 0 items."),), Usage(2, 30, 0, 4, 0.5)
    )
    journal.append(b"\x01" * 16, made, effort, run="r1")
    assert journal.known() == {b"\x01" * 16: PaidWork("big", made.items, effort, "r1")}


def test_a_journal_of_an_earlier_version_is_read(journal: AuthoredJournal) -> None:
    """Missing details stay unknown; paid lists are reused."""
    journal.path.parent.mkdir()
    row = {"key": "01" * 16, "query_id": "q", "author": "big", "items": ["A?"]}
    journal.path.write_text(json.dumps(row) + "\n")
    assert journal.known() == {b"\x01" * 16: PaidWork("big", ("A?",), None, None)}


async def test_reused_list_keeps_its_trace(
    journal: AuthoredJournal,
) -> None:
    """Attempts, mistakes, tokens and the run that paid, from the journal as from the author."""
    asked = Asked(fixes=True)
    first = await write(asked, journal, run="one")
    second = await write(Asked(), journal, run="two")
    assert second.traces == first.traces
    row = first.traces["q0"]
    assert (row.items, row.attempts, row.run, row.failure) == (12, 2, "one", None)
    assert row.refused[0].mistake == "a line is not a numbered question"
    assert row.usage.requests == 2
    assert count_refusals(first.traces.values()) == RefusalCounts(
        lists=6,
        refused_at_first=6,
        refusals=6,
        mistakes={"a line is not a numbered question": 6},
        untold=0,
    )


async def test_failed_list_keeps_its_mistakes() -> None:
    """Every attempt, and the reason why there is no list."""
    authoring = await write(Asked(bad_on="Question 3"))
    row = authoring.traces["q3"]
    assert (row.items, row.attempts, len(row.refused)) == (None, 3, 3)
    assert row.failure == authoring.failures["q3"]


@pytest.mark.parametrize("cut", [1, 10, 60])
def test_the_journal_survives_a_torn_line(journal: AuthoredJournal, cut: int) -> None:
    """A kill while writing loses only that line."""
    first, torn, after = (bytes([number]) * 16 for number in (1, 2, 3))
    journal.append(first, Checklist("a", ("A?",)))
    whole = journal.path.stat().st_size
    journal.append(torn, Checklist("b", ("B?",)))
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[: whole + cut])
    assert set(journal.known()) == {first}
    journal.append(after, Checklist("c", ("C?",)))
    assert set(journal.known()) == {first, after}


def test_key_covers_author_and_query() -> None:
    """Another author's checklist is never reused."""
    one, other = Asked().author, Asked().author
    other.digest = b"other"
    assert authoring_key(one, QUERIES[0]) != authoring_key(other, QUERIES[0])
    assert authoring_key(one, QUERIES[0]) != authoring_key(one, QUERIES[1])

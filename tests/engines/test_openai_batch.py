"""The batch engine: no request is paid for twice, and every answer is used."""

from __future__ import annotations

import asyncio
import errno
import json
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import orjson
import pytest

import rocketeval
from contracts.engine_contract import EngineContract
from fakes import batch_server
from fakes.batch_server import FakeBatches, serving, status
from fakes.openai_server import MODEL, FakeOpenAI, grades
from fakes.openai_server import serving as serving_chat
from rocketeval.config import EngineConfig
from rocketeval.engines import http
from rocketeval.engines.base import EngineAnswers, fails_for_good
from rocketeval.engines.batch import api
from rocketeval.engines.batch import store as batch_store
from rocketeval.engines.batch.engine import OpenAIBatchEngine
from rocketeval.engines.batch.store import BatchAnswers
from rocketeval.engines.openai_http import OpenAIEngine
from rocketeval.errors import (
    ConfigError,
    EngineRefused,
    RequestRejected,
    StoreError,
    UnusableReply,
)
from rocketeval.grading.loop import Grading, grade
from rocketeval.observer import Observer
from rocketeval.records import Answer, GradingTask, Judgment, Status
from rocketeval.store import ledger
from rocketeval.testing import EngineCase
from support.make import key, make_config

REJECTED = "far too long"
ITEMS = ("Is it right?", "Is it clear?", "Is it short?")
CREATE = "POST /v1/batches"
JOURNAL = "batches.jsonl"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorten all waits to milliseconds."""
    monkeypatch.setattr(http, "FIRST_WAIT", 0.004)
    monkeypatch.setattr(http, "LONGEST_WAIT", 0.02)
    monkeypatch.setattr(api, "SETTLE", 0.01)
    monkeypatch.setattr(api, "PAUSE", 0.01)


@pytest.fixture
async def server() -> AsyncIterator[FakeBatches]:
    """A fake Batch API."""
    async with serving(FakeBatches()) as running:
        yield running


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder that survives an engine."""
    return tmp_path / "engines" / "judge"


def configured(server: FakeBatches, **options: Any) -> EngineConfig:
    """Return the config of an engine with short waits in front of `server`."""
    return EngineConfig(
        engine="openai_batch",
        model=MODEL,
        base_url=server.base_url,
        patience=2,
        options={"gather": 0.02, "poll": 0.01, **options},
    )


@asynccontextmanager
async def engine_at(
    server: FakeBatches, home: Path | None, **options: Any
) -> AsyncIterator[OpenAIBatchEngine]:
    """Yield the engine of one process; if it ends normally, its answers are recorded."""
    engine = OpenAIBatchEngine.create(configured(server, **options), home)
    try:
        yield engine
        engine.answers_recorded()
    finally:
        await engine.aclose()


def task(name: str = "one", items: tuple[str, ...] = ITEMS) -> GradingTask:
    """Return a task with its own prefix."""
    return GradingTask(key(name), f"q-{name}", "c", f"{name} says hello.\n", items)


async def graded(engine: OpenAIBatchEngine, *names: str) -> list[EngineAnswers]:
    """Grade tasks with these names at once."""
    return list(await asyncio.gather(*(engine.grade(task(name), {}) for name in names)))


def all_good(results: list[EngineAnswers]) -> bool:
    """Return whether every item of every task was answered."""
    return all(
        result.failure is None and all(a.status is Status.OK for a in result.answers)
        for result in results
    )


def paid_once(server: FakeBatches, tasks: int) -> bool:
    """Return whether the items of that many tasks were paid for exactly once."""
    return len(server.paid) == tasks * len(ITEMS) and set(server.paid.values()) == {1}


class TestContract(EngineContract):
    """The batch engine, in front of a fake server."""

    @pytest.fixture
    async def case(self) -> AsyncIterator[EngineCase]:
        async with serving(FakeBatches(rejects=REJECTED)) as server:
            yield EngineCase(partial(OpenAIBatchEngine, configured(server)), REJECTED)


class TestScale(EngineContract):
    """The batch engine on a scale of grades."""

    @pytest.fixture
    async def case(self) -> AsyncIterator[EngineCase]:
        labels = tuple("54321")
        async with serving(FakeBatches(rejects=REJECTED, distribution=grades)) as server:
            config = configured(server).model_copy(update={"labels": labels})
            yield EngineCase(partial(OpenAIBatchEngine, config), REJECTED, labels=labels)


async def test_batch_and_live_engines_agree(server: FakeBatches, home: Path) -> None:
    """Both send the same bodies and read the same answers, under two identities."""
    async with serving_chat(FakeOpenAI()) as live_server:
        config = EngineConfig(model=MODEL, base_url=live_server.base_url, transport="chat")
        live = OpenAIEngine.create(config)
        alone = await live.grade(task(), {})
        live_identity = await live.identify()
        await live.aclose()
    async with engine_at(server, home) as engine:
        batched = await engine.grade(task(), {})
        identity = await engine.identify()
    assert batched.answers == alone.answers
    bodies = [row["body"] for row in server.batches["batch_0"].rows]
    assert bodies == [seen.body for seen in live_server.chats[-len(ITEMS) :]]
    assert batched.usage.requests == len(ITEMS)
    assert batched.usage.prompt_tokens == alone.usage.prompt_tokens > 0
    assert (identity.engine, identity.endpoint) == ("openai_batch", "batch")
    assert (identity.logprobs, identity.readout) == (live_identity.logprobs, live_identity.readout)


async def test_tasks_share_a_batch(server: FakeBatches, home: Path) -> None:
    """Requests made at about the same time go into one batch."""
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one", "two", "three"))
    assert len(server.batches) == 1
    assert paid_once(server, tasks=3)


async def test_full_batch_is_sent_at_once(server: FakeBatches, home: Path) -> None:
    """max_requests splits batches, also within a task; several are open at once."""
    server.stuck = True
    async with engine_at(server, home, max_requests=4) as engine:
        grading = asyncio.create_task(graded(engine, "one", "two", "three"))
        await server.until(lambda: len(server.batches) == 3)
        server.stuck = False
        assert all_good(await grading)
    assert sorted(len(batch.rows) for batch in server.batches.values()) == [1, 4, 4]
    assert paid_once(server, tasks=3)


async def test_max_bytes_limits_files(server: FakeBatches, home: Path) -> None:
    """max_bytes splits batches; a request that fits into none is rejected."""
    async with engine_at(server, home, max_bytes=700) as engine:
        assert all_good(await graded(engine, "one", "two"))
        too_long = await engine.grade(task("long", (ITEMS[0], "x" * 900)), {})
    assert len(server.batches) > 2
    assert max(server.uploaded) <= 700
    assert too_long.answers[0].status is Status.OK
    assert too_long.answers[1] == Answer(Status.ERROR)
    assert "at most 700" in str(too_long.failure)


async def test_identical_requests_are_sent_once(server: FakeBatches, home: Path) -> None:
    """Identical requests, at once or later, share one row of one batch."""
    async with engine_at(server, home) as engine:
        first, second = await graded(engine, "one", "one")
        (third,) = await graded(engine, "one")
    assert first.answers == second.answers == third.answers
    assert paid_once(server, tasks=1)


async def test_failed_row_fails_only_its_item(server: FakeBatches, home: Path) -> None:
    """A failed row fails one item, which can be asked again."""
    server.rejects = "clear"
    async with engine_at(server, home) as engine:
        one, two = await graded(engine, "one", "two")
        server.rejects = None
        assert all_good(await graded(engine, "one"))
    assert sorted(server.paid.values()) == [1] * 5 + [2]
    assert [answer.status.value for answer in one.answers] == ["ok", "error", "ok"]
    assert "item 2: HTTP 400: the prompt is too long" in str(one.failure)
    assert not one.unavailable
    assert one.rejected
    assert two.failure == one.failure


@pytest.mark.parametrize(
    ("second", "rejected"),
    [
        (RequestRejected("HTTP 400: the prompt is too long"), True),
        (UnusableReply("HTTP 429: too many requests"), False),
        (UnusableReply("HTTP 500: something broke"), False),
        (UnusableReply("batch batch_0 expired without an answer to it."), False),
    ],
)
async def test_task_is_rejected_if_all_its_failures_are(
    server: FakeBatches,
    home: Path,
    monkeypatch: pytest.MonkeyPatch,
    second: RequestRejected,
    rejected: bool,
) -> None:
    """A failure of the server or of the whole batch is worth a retry."""

    async def ask(_: object) -> list[RequestRejected]:
        return [RequestRejected("HTTP 400: the prompt is too long"), second]

    async with engine_at(server, home) as engine:
        monkeypatch.setattr(engine._batcher, "ask", ask)
        result = await engine.grade(task(items=ITEMS[:2]), {})
    assert (result.rejected, result.unavailable) == (rejected, False)
    assert "1 more item" in str(result.failure)


@pytest.mark.parametrize(
    ("status", "rejected"), [(400, True), (413, True), (401, False), (429, False), (500, False)]
)
def test_rows_are_rejected_by_the_same_status_as_live_requests(
    tmp_path: Path, status: int, rejected: bool
) -> None:
    """Another status, and a row without an answer, are worth a retry; so is a missing row."""
    response = {"status_code": status, "body": {"error": {"message": "why"}}}
    rows = [{"custom_id": "one", "response": response}, {"custom_id": "two", "response": None}]
    (tmp_path / "rows").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    answers = BatchAnswers(tmp_path / "rows", "the batch expired", str)
    for request, why in (("one", f"HTTP {status}: why"), ("two", "no answer"), ("x", "expired")):
        with pytest.raises(RequestRejected, match=why) as found:
            answers.get(request)
        assert fails_for_good(found.value) is (rejected and request == "one")


@pytest.mark.parametrize("silent", [False, True], ids=["error file", "missing rows"])
@pytest.mark.parametrize("ending", ["expired", "cancelled"])
async def test_expired_batch_returns_finished_rows(
    server: FakeBatches, home: Path, ending: str, silent: bool
) -> None:
    """Finished rows are used; the next run asks only for the others."""
    server.ends_as, server.answers, server.silent = ending, 4, silent
    async with engine_at(server, home) as engine:
        results = await graded(engine, "one", "two", "three")
    answered = [answer for result in results for answer in result.answers]
    assert sum(answer.status is Status.OK for answer in answered) == 4
    failures = [result.failure for result in results if result.failure]
    assert failures
    assert all(ending in why if silent else "window has closed" in why for why in failures)
    assert not any(result.unavailable or result.rejected for result in results)
    server.ends_as, server.answers = "completed", None
    async with engine_at(server, home) as engine:
        for name, result in zip(("one", "two", "three"), results, strict=True):
            known = {i: a for i, a in enumerate(result.answers) if a.status is Status.OK}
            assert all_good([await engine.grade(task(name), known)])
    assert sorted(server.paid.values()) == [1] * 4 + [2] * 5


async def test_rejected_batch_names_the_reason(server: FakeBatches, home: Path) -> None:
    """A validation error names its line and does not block the next batch."""
    config = configured(server).model_copy(update={"extra_body": {"model": "other"}})
    engine = OpenAIBatchEngine.create(config, home)
    (result,) = await graded(engine, "one")
    await engine.aclose()
    for words in ("item 1: ", "batch_0", "no such model (line 1)", "2 more items"):
        assert words in str(result.failure)
    assert not result.unavailable
    assert not result.rejected
    assert not list(home.iterdir())


@pytest.mark.parametrize(
    "fault",
    [
        batch_server.dropped_before_it,
        batch_server.dropped_after_it,
        status(500),
        status(429),
    ],
    ids=["dropped before", "dropped after", "500", "429"],
)
async def test_batch_is_created_once(
    server: FakeBatches, home: Path, fault: batch_server.Fault
) -> None:
    """If the answer is lost, the batch is searched for before a second attempt."""
    server.fail(CREATE, fault)
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
    assert len(server.batches) == 1
    assert paid_once(server, tasks=1)


async def test_next_process_finds_a_batch_of_unknown_state(server: FakeBatches, home: Path) -> None:
    """After a lost answer the tag finds the batch, across pages of the list."""
    server.fail(CREATE, batch_server.dropped_after_it)
    server.fail("GET /v1/batches", status(503), times=1000)
    engine = OpenAIBatchEngine.create(
        configured(server).model_copy(update={"patience": 0.05}), home
    )
    (result,) = await graded(engine, "one")
    await engine.aclose()
    assert result.unavailable
    assert "GET /v1/batches" in server.calls
    (ours,) = server.batches.values()
    server.mend()
    for number in range(1, 251):
        later = batch_server.FakeBatch(f"batch_{number}", [], {"tag": "other"}, ours.created)
        server.batches[later.id] = later
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
    assert paid_once(server, tasks=1)
    assert server.calls.count(CREATE) == 1


@pytest.mark.parametrize("code", [401, 404])
async def test_batch_in_doubt_survives_a_refused_search(
    server: FakeBatches, home: Path, code: int
) -> None:
    """If the answer is lost and the search is refused, the batch may exist all the same."""
    server.fail(CREATE, batch_server.dropped_after_it)
    server.fail("GET /v1/batches", status(code), times=1000)
    async with engine_at(server, home) as engine:
        with pytest.raises(EngineRefused):
            await engine.grade(task(), {})
    server.mend()
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
    assert paid_once(server, tasks=1)
    assert server.calls.count(CREATE) == 1


async def test_intent_without_a_batch_is_dropped(server: FakeBatches, home: Path) -> None:
    """A process that died before creating a batch costs and blocks nothing."""
    home.mkdir(parents=True)
    intent = {"event": "intent", "job": "a", "tag": "a-1", "file": "f", "since": 1.0}
    (home / JOURNAL).write_text(json.dumps(intent) + '\n{"event": "crea')
    (home / "b.input.jsonl").write_text("half a li")
    async with engine_at(server, home) as engine:
        found = await engine.findings()
        assert all_good(await graded(engine, "one"))
        assert not (home / "b.input.jsonl").exists()
    assert any("1 of an earlier process" in finding.told for finding in found)
    assert paid_once(server, tasks=1)
    assert not list(home.iterdir())


async def test_cancelled_wait_keeps_the_batch(server: FakeBatches, home: Path) -> None:
    """The batch continues, and the next process waits for the same one."""
    server.stuck = True
    async with engine_at(server, home) as engine:
        waiting = asyncio.create_task(graded(engine, "one", "two"))
        await server.until(lambda: bool(server.batches))
        waiting.cancel()
        await asyncio.wait([waiting])
    assert waiting.cancelled()
    assert (home / JOURNAL).exists()
    server.stuck = False
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "two", "one"))
    assert server.calls.count(CREATE) == 1
    assert not list(home.iterdir())


async def test_answers_are_kept_until_all_are_used(server: FakeBatches, home: Path) -> None:
    """A later process reads downloaded answers from disk, or downloads them again."""
    await cut_off(server, home, "one", "two")
    server.stuck = True
    server.calls.clear()
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
    assert not server.calls
    for output in home.glob("*.output.jsonl"):
        output.unlink()
    async with engine_at(server, home) as engine:
        server.stuck = False
        assert all_good(await graded(engine, "one", "two", "open"))
    assert paid_once(server, tasks=3)
    assert not list(home.iterdir())


async def judge(engine: OpenAIBatchEngine, record: Callable[[Judgment], None]) -> Grading:
    """Grade two tasks as a run does."""
    return await grade(
        iter([task("one"), task("two")]),
        engine,
        record,
        concurrency=2,
        known={},
        observer=Observer(),
        stop=asyncio.Event(),
    )


async def test_answers_that_could_not_be_recorded_are_kept(server: FakeBatches, home: Path) -> None:
    """All tasks of a batch have their answers at once; then the disk is full."""

    def full(_: Judgment) -> None:
        raise StoreError("No space left on device.")

    engine = OpenAIBatchEngine.create(configured(server), home)
    with pytest.raises(StoreError):
        await judge(engine, full)
    await engine.aclose()
    recorded: list[Judgment] = []
    async with engine_at(server, home) as engine:
        await judge(engine, recorded.append)
    assert len(recorded) == 2
    assert paid_once(server, tasks=2)
    assert not list(home.iterdir())


async def test_interrupted_run_pays_once_and_leaves_no_files(
    server: FakeBatches, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers stay until they are in the ledger; those of the first process are removed too."""
    settings = configured(server).model_dump(exclude_unset=True)
    config = make_config(
        tmp_path, judge=settings, author={"kind": "instance", "engine": settings}, cache=None
    )
    written, append = [], ledger.append_whole

    def full(handle: int, line: bytes) -> None:
        if len(written) == 2:
            raise OSError(errno.ENOSPC, "No space left on device")
        written.append(line)
        append(handle, line)

    monkeypatch.setattr(ledger, "append_whole", full)
    with pytest.raises(StoreError, match="No space left"):
        await rocketeval.arun(config)
    monkeypatch.undo()
    outcome = await rocketeval.arun(config)
    assert (outcome.stages.grade.judged, len(server.paid)) == (4, 21)
    assert set(server.paid.values()) == {1}
    assert not [path for path in (outcome.path / "engines").rglob("*") if path.is_file()]


async def cut_off(server: FakeBatches, home: Path, *names: str) -> list[EngineAnswers]:
    """Grade tasks with these names in a process that is stopped while another batch is open."""
    engine = OpenAIBatchEngine.create(configured(server), home)
    results = await graded(engine, *names)
    server.stuck = True
    waiting = asyncio.create_task(graded(engine, "open"))
    await server.until(lambda: len(server.batches) == 2)
    waiting.cancel()
    await asyncio.wait([waiting])
    await engine.aclose()
    server.stuck = False
    return results


async def test_files_are_removed_once_nothing_is_needed(server: FakeBatches, home: Path) -> None:
    """A process that was stopped recorded some answers, so the next one never asks for them."""
    await cut_off(server, home, "one", "two")
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "open"))
    assert len(list(home.glob("*.output.jsonl"))) == 1
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
        engine.answers_recorded(everything=True)
        await engine.aclose()
    assert paid_once(server, tasks=3)
    assert not list(home.iterdir())


class WithoutLogprobs(FakeBatches):
    """Answers one question without log-probabilities."""

    def _brain(self) -> FakeOpenAI:
        return Forgetful(self.distribution, self.text)


class Forgetful(FakeOpenAI):
    """The server behind it."""

    def reply(self, prompt: str, body: Any) -> dict[str, Any]:
        """Return a reply, sometimes without log-probabilities."""
        reply = super().reply(prompt, body)
        if "clear" in prompt:
            reply["choices"][0]["logprobs"] = None
        return reply


async def test_unusable_row_is_asked_again(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row counts as failed, also for the next process, which reads the same file."""
    async with serving(WithoutLogprobs()) as server:
        (first,) = await cut_off(server, home, "one")
        monkeypatch.setattr(WithoutLogprobs, "_brain", FakeBatches._brain)
        async with engine_at(server, home) as engine:
            (second,) = await graded(engine, "one")
    assert "item 2: the server sent no log-probabilities" in str(first.failure)
    assert all_good([second])
    assert sorted(server.paid.values()) == [1] * 5 + [2]


async def test_unusable_row_is_asked_again_by_the_same_process(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Until then every reader of the row sees what is wrong with it."""
    async with serving(WithoutLogprobs()) as server, engine_at(server, home) as engine:
        first, second = await graded(engine, "one", "one")
        monkeypatch.setattr(WithoutLogprobs, "_brain", FakeBatches._brain)
        assert all_good(await graded(engine, "one"))
    assert first.failure == second.failure == "item 2: the server sent no log-probabilities"
    assert sorted(server.paid.values()) == [1, 1, 2]
    assert not list(home.iterdir())


async def test_unused_engine_forgets_no_batch(server: FakeBatches, home: Path) -> None:
    """A command that asks for nothing, such as a plan, leaves open batches in the journal."""
    await cut_off(server, home, "one")
    await OpenAIBatchEngine.create(configured(server), home).aclose()
    async with engine_at(server, home):
        pass
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one", "open"))
    assert paid_once(server, tasks=2)


@pytest.mark.parametrize("step", ["add", "seal"])
async def test_full_disk_ends_the_task(
    server: FakeBatches, home: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """A request file that cannot be written is an error, not a batch that never ends."""

    def full(*_: object) -> None:
        raise StoreError("No space left on device.")

    monkeypatch.setattr(batch_store.BatchJob, step, full)
    async with engine_at(server, home) as engine:
        async with asyncio.timeout(60):
            with pytest.raises(StoreError, match="No space left"):
                await engine.grade(task(), {})
        monkeypatch.undo()
        assert all_good(await graded(engine, "one"))
    assert paid_once(server, tasks=1)


async def test_closing_drops_unsent_requests(server: FakeBatches, home: Path) -> None:
    """Requests being collected are dropped unpaid, and their callers get an error."""
    engine = OpenAIBatchEngine.create(configured(server, gather=60), home)
    waiting = asyncio.create_task(engine.grade(task(), {}))
    while not list(home.glob("*.input.jsonl")):
        await asyncio.sleep(0.005)
    await engine.aclose()
    assert (await waiting).unavailable
    assert not server.batches
    assert not list(home.iterdir())


async def test_interrupted_download_is_repeated(server: FakeBatches, home: Path) -> None:
    """A partial output file is downloaded again."""
    server.fail("GET /v1/files/", batch_server.half_of_it, times=2)
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))


async def test_uploads_are_retried(server: FakeBatches, home: Path) -> None:
    """A failed upload is repeated; the batch is created once."""
    server.fail("POST /v1/files", status(503))
    server.fail("POST /v1/files", batch_server.dropped_after_it)
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
    assert paid_once(server, tasks=1)


async def test_temporary_outage_is_waited_out(server: FakeBatches, home: Path) -> None:
    """Polls that fail for a while change nothing."""
    server.fail("GET /v1/batches/", status(502), times=4)
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))


async def test_unreachable_server_is_unavailable(server: FakeBatches, home: Path) -> None:
    """The task fails as the engine's fault, and a later attempt works."""
    away = configured(server).model_copy(
        update={"patience": 0.05, "base_url": "http://127.0.0.1:9/v1"}
    )
    engine = OpenAIBatchEngine.create(away, home)
    (result,) = await graded(engine, "one")
    await engine.aclose()
    assert result.unavailable
    assert "127.0.0.1:9" in str(result.failure)
    assert result.usage.requests == 0
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))


async def test_engine_recovers_after_an_outage(server: FakeBatches, home: Path) -> None:
    """A batch that could not be polled is polled again on the next request."""
    server.fail("GET /v1/batches/", status(502), times=1000)
    config = configured(server).model_copy(update={"patience": 0.05})
    engine = OpenAIBatchEngine.create(config, home)
    (result,) = await graded(engine, "one")
    assert result.unavailable
    server.mend()
    assert all_good(await graded(engine, "one"))
    await engine.aclose()
    assert paid_once(server, tasks=1)


@pytest.mark.parametrize("call", ["POST /v1/files", CREATE, "GET /v1/batches/"])
async def test_refused_key_stops_the_engine(server: FakeBatches, home: Path, call: str) -> None:
    """HTTP 401 at any step is an error about the key, not a failed task."""
    server.fail(call, status(401))
    async with engine_at(server, home) as engine:
        with pytest.raises(EngineRefused, match="401") as caught:
            await engine.grade(task(), {})
        assert all_good(await graded(engine, "one"))
    assert "api_key_env" in caught.value.hint
    assert paid_once(server, tasks=1)


async def test_key_is_never_shown(
    server: FakeBatches, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If the server repeats the key, our messages do not contain it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    server.rejects, server.reason = "clear", "you sent sk-secret"
    server.fail(CREATE, batch_server.echoed_key)
    async with engine_at(server, home) as engine:
        (refused,) = await graded(engine, "one")
        (row,) = await graded(engine, "one")
    assert "you sent Bearer ***" in str(refused.failure)
    assert row.failure == "item 2: HTTP 400: you sent ***"


async def test_unknown_batch_is_not_paid_for_again(server: FakeBatches, home: Path) -> None:
    """If another key cannot see the open batch, that is an error, not a second batch."""
    server.stuck = True
    async with engine_at(server, home) as engine:
        waiting = asyncio.create_task(graded(engine, "one"))
        await server.until(lambda: bool(server.batches))
        waiting.cancel()
        await asyncio.wait([waiting])
    theirs = server.batches.copy()
    server.batches.clear()
    async with engine_at(server, home) as engine:
        with pytest.raises(EngineRefused, match="does not know the batch batch_0"):
            await engine.grade(task(), {})
    server.batches, server.stuck = theirs, False
    async with engine_at(server, home) as engine:
        assert all_good(await graded(engine, "one"))
    assert paid_once(server, tasks=1)


async def test_deleted_answers_can_be_requested_again(server: FakeBatches, home: Path) -> None:
    """If the server deleted the output file, the task fails and the next run pays again."""
    server.fail("GET /v1/files/", status(404))
    async with engine_at(server, home) as engine:
        (result,) = await graded(engine, "one")
        assert "no longer has the answers of batch batch_0" in str(result.failure)
        assert all_good(await graded(engine, "one"))


async def test_full_queue_is_waited_for(server: FakeBatches, home: Path) -> None:
    """If too many tokens are queued, batches wait in turn and all are answered."""
    server.queue = 4
    async with engine_at(server, home, max_requests=3) as engine:
        assert all_good(await graded(engine, "one", "two", "three", "four"))
    assert paid_once(server, tasks=4)
    assert not list(home.iterdir())


async def test_full_queue_is_retried_after_another_batch_ended(
    server: FakeBatches, home: Path
) -> None:
    """The other batch ended before this failure was seen, so there is room now."""
    server.queue = 4
    server.fail("GET /v1/batches/batch_1", status(502), times=15)
    async with engine_at(server, home, max_requests=3) as engine:
        assert all_good(await graded(engine, "one", "two"))
    assert paid_once(server, tasks=2)


async def test_too_small_queue_names_the_setting(server: FakeBatches, home: Path) -> None:
    """Without another batch to wait for, the failure names the setting to lower."""
    server.queue = 2
    async with engine_at(server, home) as engine:
        (result,) = await graded(engine, "one")
        assert not server.paid
        server.queue = None
        assert all_good(await graded(engine, "one"))
    assert "Enqueued token limit reached. Set a lower `options.max_requests`" in str(result.failure)


async def test_progress_is_logged(
    server: FakeBatches, home: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log shows submission, progress and result of a batch."""
    caplog.set_level(logging.INFO, "rocketeval.batch")
    async with engine_at(server, home) as engine:
        await graded(engine, "one", "two")
    assert caplog.messages == [
        "batch batch_0: 6 requests submitted",
        "batch batch_0: in_progress, 3 of 6 answered",
        "batch batch_0: finalizing, 3 of 6 answered",
        "batch batch_0: completed, 6 of 6 answered",
        "batch batch_0: ended with 6 of 6 answers",
    ]


async def test_engine_without_home_reports_it(server: FakeBatches) -> None:
    """Without a folder answers arrive, and the findings say that batches can be lost."""
    async with engine_at(server, None) as engine:
        assert not engine.durable
        assert all_good(await graded(engine, "one"))
        found = {finding.name: finding for finding in await engine.findings()}
    assert "are lost when this process ends" in found["durability"].told
    assert found["batches"].told == "answers arrive within 24h"


async def test_server_without_batch_api_is_refused(server: FakeBatches, home: Path) -> None:
    """A live-only server is refused before anything is sent."""
    server.fail("GET /v1/batches", status(404), times=9)
    async with engine_at(server, home) as engine:
        with pytest.raises(EngineRefused, match="has no Batch API") as caught:
            await engine.ready()
    assert "engine: openai" in caught.value.hint


async def test_unserved_model_is_refused(server: FakeBatches, home: Path) -> None:
    """The error names the served models."""
    config = configured(server).model_copy(update={"model": "other"})
    engine = OpenAIBatchEngine.create(config, home)
    with pytest.raises(EngineRefused, match="does not serve the model 'other'") as caught:
        await engine.identify()
    await engine.aclose()
    assert MODEL in caught.value.hint


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"options": {"gater": 1}}, "gather"),
        ({"options": {"max_requests": 50_001}}, "max_requests"),
        ({"transport": "completions"}, "cannot be sent in batches"),
    ],
)
def test_mistakes_in_the_settings_are_named(changes: dict[str, Any], message: str) -> None:
    """Unknown options, values above the documented limits and other transports are refused."""
    with pytest.raises(ConfigError, match=message):
        OpenAIBatchEngine.create(EngineConfig(model=MODEL, **changes))


async def test_rejected_text_raises(server: FakeBatches, home: Path) -> None:
    """write raises the failure of this prompt."""
    server.rejects = "hello"
    async with engine_at(server, home) as engine:
        with pytest.raises(RequestRejected, match="too long"):
            await engine.write("hello", max_tokens=5)
        assert (await engine.write("others", max_tokens=5)).text == server.text


async def test_author_and_judge_in_one_run(server: FakeBatches, tmp_path: Path) -> None:
    """A whole run through batches: checklists and judgments, each requested once."""
    settings = configured(server).model_dump(exclude_unset=True)
    config = make_config(
        tmp_path, judge=settings, author={"kind": "instance", "engine": settings}, cache=None
    )
    outcome = await rocketeval.arun(config)
    assert len(outcome.ranking.rows) == 2
    stages = outcome.stages
    assert (stages.checklist.checklists, stages.grade.judged) == (3, 6)
    assert (stages.checklist.usage.requests, stages.grade.usage.requests) == (
        3,
        18,
    )
    assert len(server.batches) == 2
    assert len(server.paid) == 21
    assert set(server.paid.values()) == {1}
    identity = json.loads((outcome.path / "manifest.json").read_text())["judge"]
    assert (identity["engine"], identity["endpoint"]) == ("openai_batch", "batch")


async def test_samples_differ_by_seed(server: FakeBatches, home: Path) -> None:
    """Requests are identified by their body: one greedy text, one sample per seed."""
    async with engine_at(server, home) as engine:
        await asyncio.gather(
            engine.write("List.", max_tokens=9),
            engine.write("List.", max_tokens=9, temperature=0.7, seed=1),
            engine.write("List.", max_tokens=9, temperature=0.7, seed=2),
        )
    bodies = [row["body"] for batch in server.batches.values() for row in batch.rows]
    greedy = {"model": MODEL, "messages": [{"role": "user", "content": "List."}]}
    assert json.dumps(bodies[0]) == json.dumps({**greedy, "temperature": 0, "max_tokens": 9})
    drawn = [(body["temperature"], body["seed"]) for body in bodies[1:]]
    assert drawn == [(0.7, 1), (0.7, 2)]


async def test_likelihood_is_refused(server: FakeBatches) -> None:
    """The error names what would be needed."""
    async with engine_at(server, None) as engine:
        with pytest.raises(EngineRefused, match="Batch API") as caught:
            await engine.likelihood("Well?", "Yes.")
    assert "vLLM" in caught.value.hint

"""A worker grades its batches like one machine does, whatever happens to its servers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from aiohttp import web
from pyarrow import fs

from fakes.openai_server import MODEL, FakeOpenAI, serving, status
from fakes.vllm_package import installed
from rocketeval.config import JudgeConfig
from rocketeval.distributed import worker as judging
from rocketeval.distributed.driver import ReportCounter
from rocketeval.distributed.staging import RESULTS, TASKS, JobFolder, failed_row, judged_row
from rocketeval.distributed.worker import (
    BatchGrader,
    WorkerReport,
    WorkerSettings,
    identify,
)
from rocketeval.engines.base import EngineIdentity, create_engine
from rocketeval.errors import EngineRefused, EngineUnavailable
from rocketeval.grading import loop
from rocketeval.grading.ask import each_item_independently
from rocketeval.records import Answer, Failure, Status
from support.make import judgment, key

SCRIPTED = JudgeConfig(engine="scripted", model="scripted")
VLLM = JudgeConfig(engine="vllm", model="judge")


class Handle:
    """Calls a counter as if it were an actor."""

    def __init__(self) -> None:
        self.counting = ReportCounter()
        self.counting.begin(np.zeros(100, dtype=bool))
        self.reported: list[pa.Table] = []

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.counting, name)

        async def call(*args: Any) -> Any:
            if name == "report" and args[0].results is not None:
                self.reported.append(args[0].results)
            return method(*args)

        return SimpleNamespace(remote=call)

    def results(self) -> pa.Table:
        """Return the rows reported so far."""
        return pa.concat_tables(self.reported) if self.reported else RESULTS.empty_table()


def batch(count: int, first: int = 0) -> pa.Table:
    """Return this many tasks of two items."""
    rows = [
        {
            "id": number,
            "key": key(str(number)),
            "query_id": f"q{number // 4}",
            "candidate": f"c{number % 4}",
            "prefix": f"response {number}: ",
            "suffixes": ["one", "two"],
            "neutralised": 0,
        }
        for number in range(first, first + count)
    ]
    return pa.Table.from_pylist(rows, schema=TASKS)


async def terms(judge: JudgeConfig, *replicas: str) -> WorkerSettings:
    """Return the settings of the judge that answers now."""
    engine = create_engine(judge)
    try:
        return WorkerSettings(
            judge, each_item_independently, await engine.identify(), "digest", replicas
        )
    finally:
        await engine.aclose()


def judge_at(server: FakeOpenAI, **changes: Any) -> JudgeConfig:
    return JudgeConfig(
        **{"model": MODEL, "base_url": server.base_url, "patience": 0, "timeout": 60, **changes}
    )


@asynccontextmanager
async def working(known: WorkerSettings, handle: Handle) -> AsyncIterator[BatchGrader]:
    """Yield a worker and close it."""
    worker = BatchGrader(known, handle)
    try:
        yield worker
    finally:
        await worker.aclose()


def refused(handle: Handle, reason: str) -> None:
    """Check that the driver knows why the worker may not judge."""
    error = handle.counting.look().error
    assert isinstance(error, EngineRefused)
    assert reason in error.message


async def test_every_task_becomes_a_row() -> None:
    """All tasks of a batch come back judged, in the results schema, and are counted."""
    handle = Handle()
    worker = BatchGrader(await terms(SCRIPTED), handle)
    assert (await worker(batch(10)))["asked"].to_pylist() == [10]
    table = handle.results()
    assert table.schema.equals(RESULTS)
    assert sorted(table["id"].to_pylist()) == list(range(10))
    assert table["failure"].null_count == 10
    assert set(table["judge"].to_pylist()) == {"digest"}
    progress = handle.counting.look()
    assert (progress.asked, progress.judged, progress.failed) == (10, 10, 0)
    assert progress.usage.requests == 20


async def test_failed_task_is_a_row_with_its_reason() -> None:
    """A task that the judge cannot answer does not affect the others."""
    judge = SCRIPTED.model_copy(update={"options": {"fail_on": "response 3"}})
    handle = Handle()
    await BatchGrader(await terms(judge), handle)(batch(6))
    table = handle.results()
    failed = [row for row in table.to_pylist() if row["failure"]]
    assert [(row["id"], row["failure"]) for row in failed] == [(3, "item 1: scripted to fail")]
    progress = handle.counting.look()
    assert (progress.judged, progress.failed) == (5, 1)
    assert [failure.key for failure in progress.failures] == [key("3")]
    assert handle.counting.look().failures == ()


async def test_stop_keeps_the_answers_of_interrupted_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The answers that arrived before a stop reach the driver, and no task counts as failed."""
    monkeypatch.setattr(loop, "GRACE_SECONDS", 0.2)
    monkeypatch.setattr(judging, "REPORT_SECONDS", 0.05)
    handle = Handle()

    class Half(FakeOpenAI):
        async def _chat(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
            if "two" in body["messages"][-1]["content"]:
                handle.counting.stop()
                await asyncio.sleep(60)
            return await super()._chat(request, body)

    async with serving(Half()) as server:
        known = await terms(judge_at(server, concurrency=4))
        async with working(known, handle) as worker:
            await worker(batch(4))
    rows = handle.results().to_pylist()
    assert sorted(row["id"] for row in rows) == [0, 1, 2, 3]
    assert {row["failure"] for row in rows} == {loop.CUT_OFF}
    assert {tuple(row["status"]) for row in rows} == {("ok", "error")}
    progress = handle.counting.look()
    assert (progress.judged, progress.failed, progress.failures) == (0, 0, ())
    assert handle.counting.unfinished(np.arange(4)).all()


async def test_refusal_keeps_the_answers_before_it() -> None:
    """Answers that were paid for before HTTP 402 reach the driver, with what they cost."""
    handle = Handle()

    class Broke(FakeOpenAI):
        answered = 0

        async def _chat(self, request: web.Request, body: dict[str, Any]) -> web.StreamResponse:
            prompt = body["messages"][-1]["content"]
            if prompt.startswith("response"):
                if "two" in prompt:
                    while self.answered < 4:
                        await asyncio.sleep(0.01)
                    return web.json_response({"error": {"message": "no credit"}}, status=402)
                self.answered += 1
            return await super()._chat(request, body)

    async with serving(Broke()) as server:
        known = await terms(judge_at(server, concurrency=4))
        async with working(known, handle) as worker:
            await worker(batch(4))
    rows = handle.results().to_pylist()
    assert {tuple(row["status"]) for row in rows} == {("ok", "error")}
    assert len(rows) == 4
    progress = handle.counting.look()
    assert isinstance(progress.error, EngineRefused)
    assert progress.usage.requests >= 4


async def test_concurrent_batches_share_one_limit() -> None:
    """Several batches have no more requests in flight than one machine would."""
    async with serving(FakeOpenAI(latency=0.01)) as server:
        known = await terms(judge_at(server, concurrency=2))
        async with working(known, Handle()) as worker:
            await asyncio.gather(worker(batch(6)), worker(batch(6, 6)), worker(batch(6, 12)))
        assert len(server.chats) == 36
        assert server.most_in_flight <= 2 * 2


async def test_other_replica_takes_over() -> None:
    """A replica that dies in the middle of a batch costs only time."""
    async with AsyncExitStack() as stack:
        alive = await stack.enter_async_context(serving(FakeOpenAI()))
        async with serving(FakeOpenAI()) as dying:
            known = await terms(judge_at(dying), dying.base_url, alive.base_url)
            handle = Handle()
            worker = await stack.enter_async_context(working(known, handle))
            await worker(batch(4))
            assert dying.chats
            assert not alive.chats
        await worker(batch(4, 4))
        await worker(batch(4, 8))
        assert sorted(handle.results()["id"].to_pylist()) == list(range(12))
        assert handle.results()["failure"].null_count == 12


async def test_worker_gives_up_without_a_judge() -> None:
    """If no replica answers, the driver gets the reason, and no task counts as failed."""
    async with serving(FakeOpenAI()) as server:
        known = await terms(judge_at(server, concurrency=4))
        server.always("/v1/chat/completions", status(503))
        handle = Handle()
        async with working(known, handle) as worker:
            await worker(batch(4))
    assert handle.results().num_rows == 0
    progress = handle.counting.look()
    assert isinstance(progress.error, EngineUnavailable)
    assert "Judge unreachable" in progress.error.message
    assert (progress.judged, progress.failed) == (0, 0)


async def test_other_judge_is_refused() -> None:
    """Answers of a replica with another model or version are never mixed in."""
    async with serving(FakeOpenAI()) as server:
        known = await terms(judge_at(server))
        server.always("/version", status(404))
        handle = Handle()
        await BatchGrader(known, handle)(batch(4))
    refused(handle, "is another judge")


async def test_judgments_of_an_unfinished_batch_are_reported() -> None:
    """A judge that disappears in the middle loses no paid judgment."""
    async with serving(FakeOpenAI(latency=0.02)) as server:
        known = await terms(judge_at(server, concurrency=1))
        handle = Handle()

        async def go_away() -> None:
            while len(server.chats) < 6:
                await asyncio.sleep(0.001)
            server.always("/v1/chat/completions", status(503))

        async with working(known, handle) as worker:
            await asyncio.gather(worker(batch(8)), go_away())
            table = handle.results()
            assert 0 < table.num_rows < 8
            assert table["failure"].null_count == table.num_rows
            await worker(batch(8, 8))
            assert handle.results().num_rows == table.num_rows
    progress = handle.counting.look()
    assert isinstance(progress.error, EngineUnavailable)
    assert progress.in_flight == 0


async def test_unfit_worker_is_refused(tmp_path: Path) -> None:
    """A worker with another version, or that cannot see the tasks, judges nothing."""
    known = await terms(SCRIPTED)
    unseen = JobFolder(fs.LocalFileSystem(), str(tmp_path / "nowhere"))
    for terms_, reason in (
        (replace(known, version="0.0.0"), "the command 0.0.0"),
        (replace(known, folder=unseen), "cannot see"),
    ):
        handle = Handle()
        await BatchGrader(terms_, handle)(batch(4))
        assert handle.results().num_rows == 0
        refused(handle, reason)


async def test_model_in_a_worker_is_loaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The identity needs no loading; the worker checks the model it loads."""
    fake = installed(monkeypatch)
    identity = await asyncio.to_thread(identify, VLLM, ())
    assert isinstance(identity, EngineIdentity)
    assert not fake.engines
    handle = Handle()
    async with working(
        WorkerSettings(VLLM, each_item_independently, identity, "digest"), handle
    ) as worker:
        await worker(batch(4))
        assert sorted(handle.results()["id"].to_pylist()) == list(range(4))
        assert len(fake.engines) == 1
    other = replace(identity, version="another")
    handle = Handle()
    async with working(
        WorkerSettings(VLLM, each_item_independently, other, "digest"), handle
    ) as worker:
        await worker(batch(4))
    refused(handle, "A worker is another judge")


async def test_model_that_cannot_be_loaded_ends_the_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """The driver gets vLLM's message, although the identity was known."""
    fake = installed(monkeypatch)
    identity = await asyncio.to_thread(identify, VLLM, ())
    assert isinstance(identity, EngineIdentity)
    fake.cannot_load = RuntimeError("no memory left")
    handle = Handle()
    await BatchGrader(WorkerSettings(VLLM, each_item_independently, identity, "digest"), handle)(
        batch(4)
    )
    refused(handle, "no memory left")


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"no_such_option": 1}, "no_such_option"),
        ({"engine_args": {"no_such_argument": 1}}, "no_such_argument"),
    ],
)
async def test_worker_config_error_is_a_refusal(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], reason: str
) -> None:
    """Settings and packages are checked on the worker, and reported as a refusal."""
    installed(monkeypatch)
    wrong = VLLM.model_copy(update={"options": options})
    found = await asyncio.to_thread(identify, wrong, ())
    assert isinstance(found, EngineRefused)
    assert reason in str(found)
    identity = await asyncio.to_thread(identify, VLLM, ())
    assert isinstance(identity, EngineIdentity)
    handle = Handle()
    await BatchGrader(WorkerSettings(wrong, each_item_independently, identity, "digest"), handle)(
        batch(4)
    )
    refused(handle, reason)


async def test_stop_keeps_finished_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a stop, tasks in flight are kept and no others start."""
    monkeypatch.setattr(judging, "REPORT_SECONDS", 0.01)
    judge = SCRIPTED.model_copy(update={"options": {"delay": 0.05}, "concurrency": 2})
    handle = Handle()
    worker = BatchGrader(await terms(judge), handle)
    handle.counting.stop()
    await worker(batch(10))
    kept = handle.results().num_rows
    assert 2 <= kept <= 4
    await worker(batch(10, 10))
    assert handle.results().num_rows == kept


async def test_slow_batch_is_reported_before_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker that dies in the middle of a batch loses what it judged since the last report."""
    monkeypatch.setattr(judging, "REPORT_SECONDS", 0.01)
    judge = SCRIPTED.model_copy(update={"options": {"delay": 0.02}, "concurrency": 1})
    handle = Handle()
    grading = asyncio.create_task(BatchGrader(await terms(judge), handle)(batch(10)))
    while not handle.reported:
        await asyncio.sleep(0.001)
    assert not grading.done()
    assert handle.counting.look().judged > 0
    await grading
    assert sorted(handle.results()["id"].to_pylist()) == list(range(10))


async def test_finished_tasks_of_a_repeated_batch_are_skipped() -> None:
    """A resumed job asks only the tasks without a result, and counts only those."""
    handle = Handle()
    handle.counting.begin(np.arange(100) % 2 == 0)
    await BatchGrader(replace(await terms(SCRIPTED), resumed=True), handle)(batch(6))
    assert sorted(handle.results()["id"].to_pylist()) == [1, 3, 5]
    assert (handle.counting.look().asked, handle.counting.look().judged) == (3, 3)


def test_repeated_task_counts_once() -> None:
    """A task of a worker that died after its report is not counted twice."""
    counting = ReportCounter()
    counting.begin(np.zeros(10, dtype=bool))
    failure = Failure(key("9"), "q", "c", "too long", (Answer(Status.ERROR),))
    judged = [judged_row(n, judgment(str(n), 0.5), "digest") for n in range(8)]
    first = pa.Table.from_pylist([*judged[:5], failed_row(9, failure, "digest")], schema=RESULTS)
    counting.report(WorkerReport(asked=6, results=first))
    counting.report(WorkerReport(asked=8, results=pa.Table.from_pylist(judged, schema=RESULTS)))
    progress = counting.look()
    assert (progress.asked, progress.judged, progress.failed) == (14, 8, 1)
    assert counting.unfinished(np.arange(10)).nonzero()[0].tolist() == [8]

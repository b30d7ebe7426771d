"""Files over HTTP: complete or absent, retried, and never created twice."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from fakes import batch_server
from fakes.batch_server import FakeBatches, serving, status
from rocketeval.engines.batch.api import AnswerLost, FileClient
from rocketeval.errors import EngineRefused, EngineUnavailable, RequestRejected, StoreError

PURPOSE = {"purpose": "batch"}
BATCH = {
    "input_file_id": "file-0",
    "endpoint": "/v1/chat/completions",
    "completion_window": "24h",
    "metadata": {},
}


@pytest.fixture
async def server() -> AsyncIterator[FakeBatches]:
    """A server that keeps files."""
    async with serving(FakeBatches()) as running:
        yield running


@pytest.fixture
async def client(server: FakeBatches, fast_retries: None) -> AsyncIterator[FileClient]:
    """A client with little patience."""
    made = FileClient(server.base_url, key="sk-secret", concurrency=2, timeout=5, patience=0.5)
    yield made
    await made.aclose()


async def test_file_survives_upload_and_download(
    server: FakeBatches, client: FileClient, tmp_path: Path
) -> None:
    """Every byte is kept, also in a file longer than one chunk."""
    sent, back = tmp_path / "sent.jsonl", tmp_path / "folder" / "back.jsonl"
    sent.write_bytes(bytes(range(256)) * 10_000)
    name = (await client.upload("/files", PURPOSE, sent))["id"]
    assert await client.download(f"/files/{name}/content", back)
    assert back.read_bytes() == sent.read_bytes()
    assert server.uploaded == [2_560_000]


async def test_interrupted_download_leaves_no_file(
    server: FakeBatches, client: FileClient, tmp_path: Path
) -> None:
    """A transfer that always breaks off raises an error and writes no file."""
    server.files["file-0"] = b"x" * 100_000
    server.fail("GET /v1/files/", batch_server.half_of_it, times=1000)
    with pytest.raises(EngineUnavailable, match="no answer in"):
        await client.download("/files/file-0/content", tmp_path / "target")
    assert not list(tmp_path.iterdir())
    assert client.retries > 1


async def test_full_disk_is_not_the_servers_fault(
    server: FakeBatches, client: FileClient, tmp_path: Path
) -> None:
    """A file that cannot be written is an error at once, and the server is not asked again."""
    server.files["file-0"] = b"x"
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StoreError, match="cannot be written"):
        await client.download("/files/file-0/content", tmp_path / "file" / "target")
    assert (client.retries, len(server.calls)) == (0, 1)


async def test_a_missing_file_is_not_an_error(client: FileClient, tmp_path: Path) -> None:
    """HTTP 404 means that there is no file."""
    assert not await client.download("/files/other/content", tmp_path / "target")


@pytest.mark.parametrize(
    ("fault", "error"), [(status(401), EngineRefused), (batch_server.echoed_key, RequestRejected)]
)
async def test_refusals_hide_the_key(
    server: FakeBatches,
    client: FileClient,
    tmp_path: Path,
    fault: batch_server.Fault,
    error: type[Exception],
) -> None:
    """A refused upload or download raises our error, without the key."""
    file = tmp_path / "file.jsonl"
    file.write_bytes(b"{}")
    server.fail("POST /v1/files", fault)
    server.fail("GET /v1/files/", fault)
    with pytest.raises(error) as up:
        await client.upload("/files", PURPOSE, file)
    with pytest.raises(error) as down:
        await client.download("/files/file-0/content", tmp_path / "target")
    assert "sk-secret" not in f"{up.value}{down.value}"


@pytest.mark.parametrize(
    "fault", [batch_server.dropped_after_it, batch_server.dropped_before_it, status(502)]
)
async def test_lost_answer_is_not_retried(
    server: FakeBatches, client: FileClient, fault: batch_server.Fault
) -> None:
    """A request that the server may have acted on is not repeated."""
    server.files["file-0"] = b""
    server.fail("POST /v1/batches", fault)
    assert isinstance(await client.post_once("/batches", BATCH), AnswerLost)
    assert server.calls == ["POST /v1/batches"]


async def test_429_is_retried(server: FakeBatches, client: FileClient) -> None:
    """HTTP 429 means that the server did nothing, so the request is repeated."""
    server.files["file-0"] = b""
    server.fail("POST /v1/batches", status(429), times=2)
    answer = await client.post_once("/batches", BATCH)
    assert isinstance(answer, dict)
    assert len(server.batches) == 1


async def test_failed_connection_is_unavailable(fast_retries: None) -> None:
    """Without a connection the server cannot have acted: unavailable, not in doubt."""
    client = FileClient("http://127.0.0.1:9/v1", key=None, concurrency=1, timeout=1, patience=0.05)
    with pytest.raises(EngineUnavailable):
        await client.post_once("/batches", BATCH)
    await client.aclose()

"""The page of a finished run: the head and blocks of report.html, read-only and hardened."""

from __future__ import annotations

import asyncio
import gzip
import json
import re
import threading
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from rocketeval.config import load_config
from rocketeval.report.content import RunContent
from rocketeval.report.findings import read_findings
from rocketeval.report.stage import gather
from rocketeval.store.run import RunStore
from support.make import write_benchmark
from support.viewing import Viewing, files_of, finish


def embedded_head(page: bytes) -> Any:
    """Return the head embedded in a page."""
    found = re.search(rb'<script type="application/json" id="head">(.*?)</script>', page, re.DOTALL)
    assert found is not None
    return json.loads(found[1])


async def test_single_run_has_no_list(tmp_path: Path, viewing: Viewing) -> None:
    """The root redirects to the page of the only run, which has no link to a list."""
    view = await viewing(finish(tmp_path))
    moved = await view.get("/")
    assert (moved.status, moved.headers["Location"]) == (302, "run/run/")
    assert (await view.get("/run/run")).headers["Location"] == "run/"
    page = await view.get("/run/run/")
    assert page.status == 200
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    head = embedded_head(page.body)
    assert [one["name"] for one in head["candidates"]] == ["left", "right"]
    assert (head["blocks"], head["files_at"], head["index_at"]) == ("served", "files/", None)
    assert head["provisional"] == ""
    live = head["live"]
    assert (live["state"], live["done"], live["total"]) == ("finished", 6, 6)
    assert await view.json("/run/run/head.json") == head
    assert await view.json("/run/run/pulse.json") == live


async def test_blocks_are_those_of_the_report(tmp_path: Path, viewing: Viewing) -> None:
    """Every block is served gzipped, for the page to unpack."""
    path = finish(tmp_path)
    view = await viewing(path)
    store = RunStore(path)
    source = gather(store, load_config(path / "run.yaml"), read_findings(store))
    for name in ("queries", "scores", "answers", "items", "pairs", "query-0", "query-2"):
        answer = await view.get(f"/run/run/block/{name}")
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert "Content-Encoding" not in answer.headers
        assert answer.body == source.block(name)
    assert json.loads(gzip.decompress((await view.get("/run/run/block/queries")).body))["id"] == [
        "sky",
        "sea",
        "sun",
    ]
    for name in ("query-3", "query-", "query--1", "labels", "nothing", "..%2fhead.json"):
        assert (await view.get(f"/run/run/block/{name}")).status == 404


async def test_block_belongs_to_a_version(tmp_path: Path, viewing: Viewing) -> None:
    """An open page gets the blocks of its version, or status 409."""
    view = await viewing(finish(tmp_path))
    before = (await view.json("/run/run/head.json"))["live"]["version"]
    finish(tmp_path, scorer={"kind": "hard"})
    assert (await view.get(f"/run/run/block/scores?version={before}")).status == 200
    head = await view.json("/run/run/head.json")
    assert head["scorer"] != "mean"
    assert head["live"]["version"] != before
    assert (await view.json("/run/run/pulse.json"))["version"] == head["live"]["version"]
    assert (await view.get("/run/run/block/scores?version=f0-finished")).status == 409


async def test_viewing_does_not_change_the_run(tmp_path: Path, viewing: Viewing) -> None:
    """Requests change, add and lock no file in the run directory."""
    path = finish(tmp_path)
    (path / ".lock").unlink(missing_ok=True)
    before = files_of(tmp_path)
    view = await viewing(tmp_path / "runs")
    for place in (
        "",
        "head.json",
        "pulse.json",
        "block/queries",
        "block/query-1",
        "files/run.yaml",
    ):
        assert (await view.get(f"/run/run/{place}")).status == 200
    await view.get("/runs.json")
    assert files_of(tmp_path) == before


async def test_every_response_has_security_headers(tmp_path: Path, viewing: Viewing) -> None:
    """Pages, data, files, redirects and errors have the same headers."""
    view = await viewing(finish(tmp_path))
    for place in ("/", "/run/run/", "/run/run/head.json", "/run/run/files/run.yaml", "/nothing"):
        headers = (await view.get(place)).headers
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["Cache-Control"] == "no-store"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]
        assert "default-src 'none'" in headers["Content-Security-Policy"]
        assert "aiohttp" not in headers["Server"]
        assert "Access-Control-Allow-Origin" not in headers
    page = await view.get("/run/run/")
    policy = page.headers["Content-Security-Policy"]
    assert "connect-src 'self'" in policy
    assert "script-src 'sha256-" in policy
    assert "unsafe" not in policy


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
async def test_other_methods_are_refused(tmp_path: Path, viewing: Viewing, method: str) -> None:
    """Methods other than GET and HEAD are refused at every URL."""
    view = await viewing(finish(tmp_path))
    for place in ("/", "/run/run/", "/run/run/files/run.yaml", "/nothing"):
        answer = await view.get(place, method)
        assert answer.status == 405
        assert answer.headers["Allow"] == "GET,HEAD"


async def test_head_request_has_no_body(tmp_path: Path, viewing: Viewing) -> None:
    """HEAD has the same headers and no body."""
    view = await viewing(finish(tmp_path))
    for place in ("/run/run/", "/run/run/head.json", "/run/run/files/run.yaml"):
        full, bare = await view.get(place), await view.get(place, "HEAD")
        assert (bare.status, bare.body) == (200, b"")
        assert bare.headers["Content-Length"] == full.headers["Content-Length"]


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:80", 200),
        ("localhost", 200),
        ("[::1]:9000", 200),
        ("evil.example", 403),
        ("evil.example:8700", 403),
        ("localhost.evil.example", 403),
        ("127.0.0.1.evil.example", 403),
        ("192.168.1.2", 403),
        ("", 403),
    ],
)
async def test_only_local_host_names_are_accepted(
    tmp_path: Path, viewing: Viewing, host: str, status: int
) -> None:
    """A site that resolves its name to 127.0.0.1 (DNS rebinding) is refused."""
    view = await viewing(finish(tmp_path))
    for place in ("/run/run/", "/run/run/files/run.yaml"):
        assert (await view.get(place, Host=host)).status == status


async def test_remote_readers_can_be_allowed(tmp_path: Path, viewing: Viewing) -> None:
    """With --allow-remote, the given names and the local address are accepted."""
    view = await viewing(finish(tmp_path), allow_remote=True, names=("GPU-box.lan", "10.0.0.7"))
    for host in ("gpu-box.lan:8700", "gpu-box.lan.", "10.0.0.7", "127.0.0.1:1", "localhost"):
        assert (await view.get("/run/run/", Host=host)).status == 200, host
    for host in ("evil.example", "gpu-box.lan.evil.example", "10.0.0.8", ""):
        refused = await view.get("/run/run/", Host=host)
        assert refused.status == 403, host
        assert b"--host-name" in refused.body


async def test_names_need_remote_access(tmp_path: Path, viewing: Viewing) -> None:
    """Without --allow-remote, only local names are accepted."""
    view = await viewing(finish(tmp_path), names=("gpu-box.lan",))
    assert (await view.get("/run/run/", Host="gpu-box.lan")).status == 403


async def test_large_block_is_computed_once_without_blocking(
    tmp_path: Path, viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other requests are served meanwhile, and repeated requests get the same result."""
    made: list[int] = []
    began, go_on = threading.Event(), threading.Event()

    def slow(self: RunContent) -> dict[str, Any]:
        made.append(1)
        began.set()
        assert go_on.wait(60)
        return {"first": 2}

    view = await viewing(finish(tmp_path))
    monkeypatch.setattr(RunContent, "pairs", slow)
    asked = [asyncio.create_task(view.get("/run/run/block/pairs")) for _ in range(2)]
    assert await asyncio.to_thread(began.wait, 60)
    assert (await view.get("/run/run/block/query-0")).status == 200
    assert (await view.get("/run/run/pulse.json")).status == 200
    go_on.set()
    bodies = [(await answer).body for answer in asked]
    bodies.append((await view.get("/run/run/block/pairs")).body)
    assert len(set(bodies)) == 1
    assert len(made) == 1


async def test_failed_block_is_computed_again(
    tmp_path: Path, viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error is returned once and not cached."""
    view = await viewing(finish(tmp_path))
    with monkeypatch.context() as broken:
        for problem in (IndexError, ZeroDivisionError):
            broken.setattr(RunContent, "pairs", Mock(side_effect=problem("broken")))
            answer = await view.get("/run/run/block/pairs")
            assert answer.status == 500
            assert b"cannot be read" in answer.body
    assert (await view.get("/run/run/block/pairs")).status == 200


async def test_hostile_names_stay_text(tmp_path: Path, viewing: Viewing) -> None:
    """A candidate's name is never rendered as markup."""
    name = "<img src=x onerror=alert(1)>"
    write_benchmark(tmp_path / "benchmark")
    responses = tmp_path / "benchmark" / "responses"
    (responses / "left.jsonl").rename(responses / f"{name}.jsonl")
    (tmp_path / "benchmark" / "votes.jsonl").unlink()
    view = await viewing(finish(tmp_path))
    page = await view.get("/run/run/")
    assert name in [one["name"] for one in embedded_head(page.body)["candidates"]]
    assert b"<img src=x" not in page.body

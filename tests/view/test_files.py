"""Downloads: files of a run are served, nothing else on the machine is."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.viewing import Viewing, finish

SECRET = b"nobody's business"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    path = finish(tmp_path)
    (tmp_path / "secret.txt").write_bytes(SECRET)
    (tmp_path / "runs" / "secret.txt").write_bytes(SECRET)
    (path / "secret.txt").write_bytes(SECRET)
    (path / ".env").write_bytes(SECRET)
    return path


@pytest.mark.parametrize(
    ("name", "kind", "saved"),
    [
        ("ranking.json", "application/json", False),
        ("ranking.csv", "text/csv; charset=utf-8", True),
        ("scores.parquet", "application/octet-stream", True),
        ("scores.jsonl", "text/plain; charset=utf-8", False),
        ("run.yaml", "text/plain; charset=utf-8", False),
        ("report.html", "application/octet-stream", True),
        ("inputs/queries.jsonl", "text/plain; charset=utf-8", False),
        ("inputs/responses/part-000000.parquet", "application/octet-stream", True),
        ("ledger/part-000001.parquet", "application/octet-stream", True),
    ],
)
async def test_files_are_served_unchanged(
    run: Path, viewing: Viewing, name: str, kind: str, saved: bool
) -> None:
    """Content is unchanged; files that a browser could run are attachments."""
    answer = await (await viewing(run)).get(f"/run/run/files/{name}")
    assert answer.status == 200
    assert answer.body == (run / name).read_bytes()
    assert answer.headers["Content-Type"] == kind
    assert ("attachment" in answer.headers.get("Content-Disposition", "")) == saved


async def test_linked_files_exist(run: Path, viewing: Viewing) -> None:
    """Every file that the head names can be downloaded."""
    view = await viewing(run)
    head = await view.json("/run/run/head.json")
    assert head["files"]
    for file in head["files"]:
        if (run / file["name"]).is_file():
            assert (await view.get(f"/run/run/files/{file['name']}")).status == 200, file


@pytest.mark.parametrize(
    "path",
    [
        "/run/run/files/secret.txt",
        "/run/run/files/.env",
        "/run/run/files/.lock",
        "/run/run/files/../secret.txt",
        "/run/run/files/../../../secret.txt",
        "/run/run/files/..%2f..%2fsecret.txt",
        "/run/run/files/%2e%2e/%2e%2e/secret.txt",
        "/run/run/files/%252e%252e/secret.txt",
        "/run/run/files/inputs/../secret.txt",
        "/run/run/files/inputs%2f..%2fsecret.txt",
        "/run/run/files//etc/passwd",
        "/run/run/files/%2fetc%2fpasswd",
        "/run/run/files/..%5csecret.txt",
        "/run/run/files/run.yaml%00.txt",
        "/run/run/files/",
        "/run/run/files/inputs",
        "/run/..%2f..%2f/files/secret.txt",
        "/run/../../secret.txt",
        "/run/./files/secret.txt",
        "/../secret.txt",
        "/secret.txt",
        "/run/%2e%2e/files/secret.txt",
    ],
)
async def test_no_path_leaves_the_run(run: Path, viewing: Viewing, path: str) -> None:
    """Dots and slashes, plain or encoded, and other names are refused."""
    answer = await (await viewing(run)).get(path)
    assert answer.status in (400, 404)
    assert SECRET not in answer.body
    assert b"root:" not in answer.body


async def test_no_link_leaves_the_run(run: Path, viewing: Viewing, tmp_path: Path) -> None:
    """A link instead of a result is not followed, nor is a compressed variant of a file."""
    (run / "explain.json").unlink()
    (run / "explain.json").symlink_to(tmp_path / "secret.txt")
    (run / "run.yaml.gz").symlink_to(tmp_path / "secret.txt")
    view = await viewing(run)
    assert (await view.get("/run/run/files/explain.json")).status == 404
    answer = await view.get("/run/run/files/run.yaml", **{"Accept-Encoding": "gzip"})
    assert answer.body == (run / "run.yaml").read_bytes()


async def test_no_api_key_is_served(
    tmp_path: Path, viewing: Viewing, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The config names the key's variable; the key is in no file and on no page."""
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    judge = {"engine": "scripted", "model": "scripted", "api_key_env": "MY_KEY"}
    path = finish(tmp_path, judge=judge)
    view = await viewing(path)
    config = await view.get("/run/run/files/run.yaml")
    assert b"api_key_env: MY_KEY" in config.body
    for place in ("", "head.json", "files/run.yaml", "files/manifest.json"):
        assert b"sk-very-secret" not in (await view.get(f"/run/run/{place}")).body

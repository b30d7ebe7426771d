"""Sharing: a picture of the leaderboard, a folder for a static host, and the printed overview."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from xml.etree import ElementTree

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Opener
from support.command import cli


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without a log."""

    def log_message(self, *_: object) -> None:
        """Log nothing."""


@pytest.fixture
def host(report: Path, tmp_path: Path) -> Iterator[str]:
    """A static host with the folder of the demo run."""
    folder = tmp_path / "public"
    written = cli(tmp_path, "view", str(report.parent), "--folder", str(folder)).stdout
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert f"Wrote {len(files)} files" in written
    assert (
        "not empty"
        in cli(tmp_path, "view", str(report.parent), "--folder", str(folder), code=2).stderr
    )
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_folder_works_on_a_static_host(served_page: Page, host: str) -> None:
    """The leaderboard, a query with its texts, search and charts, without a server of ours."""
    page = served_page
    page.goto(host)
    expect(page.locator(".leaderboard tbody tr")).to_have_count(5)
    page.goto(host + "#/read?q=twisted-ankle")
    expect(page.locator("article.response .rendered")).to_have_count(2)
    page.keyboard.press("Control+k")
    page.get_by_label("Search all texts").fill("ankle")
    expect(page.locator(".matches mark").first).to_have_text("ankle")
    page.keyboard.press("Enter")
    expect(page.locator(".foot")).to_contain_text("only from its own folder")
    expect(page.locator(".top nav")).not_to_contain_text("Changes")


def test_the_picture_of_the_leaderboard_reads_by_itself(opened: Opener) -> None:
    """It names the run, the judge, the date and every candidate."""
    page = opened()
    files = page.get_by_role("group", name="Save the leaderboard")
    with page.expect_download() as download:
        files.get_by_role("button", name="SVG").click()
    svg = Path(download.value.path()).read_text("utf-8")
    words = " ".join(ElementTree.fromstring(svg).itertext())
    for name in ("careful", "solid", "brief", "rambling", "broken", "run demo", "Judge scripted"):
        assert name in words
    assert re.search(r"\w{3} \d{1,2}, \d{4}", words)
    with page.expect_download() as download:
        files.get_by_role("button", name="PNG").click()
    assert Path(download.value.path()).read_bytes().startswith(b"\x89PNG")


def test_the_overview_prints_on_two_pages(opened: Opener) -> None:
    """With charts, and without controls."""
    page = opened()
    printed = page.pdf(format="A4", prefer_css_page_size=True)
    assert len(re.findall(rb"/Type\s*/Page\b", printed)) == 2
    page.emulate_media(media="print")
    expect(page.get_by_role("button", name="CSV").first).to_be_hidden()
    expect(page.locator(".leaderboard tbody tr")).to_have_count(5)

"""The pages of `rocketeval view` in a browser, during a run and after it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.served_runs import start, viewed
from support.command import cli, run_scripted

SLOW = """\
name: slow
benchmark: {path: benchmark}
judge: {engine: scripted, model: slow, concurrency: 2, options: {delay: 0.25}}
ranking: {bootstrap: 50}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two finished runs of one benchmark."""
    made = tmp_path_factory.mktemp("runs")
    cli(made, "init", "demo")
    (made / "demo" / "benchmark").rename(made / "benchmark")
    run_scripted(made, "one", "other")
    return made


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with viewed(folder, "runs") as found:
        yield found


def test_from_the_list_to_a_response_and_back(served_page: Page, address: str) -> None:
    page = served_page
    page.goto(address)
    expect(page.get_by_role("figure")).to_have_count(1)
    page.get_by_role("link", name="one", exact=True).first.click()
    expect(page.locator(".leaderboard tbody tr")).to_have_count(5)
    page.locator(".leaderboard a").first.click()
    page.locator("a.candidate-line").first.click()
    expect(page.get_by_role("heading", name="Responses", exact=True)).to_be_visible()
    page.keyboard.press("Control+k")
    page.get_by_label("Search all texts").fill("ankle")
    expect(page.locator(".matches mark").first).to_have_text("ankle")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/read.q=twisted-ankle"))
    page.get_by_role("link", name="All runs").click()
    expect(page.locator("body")).to_contain_text("other")


def test_a_running_run_shows_progress_and_its_end(
    served_page: Page, address: str, folder: Path
) -> None:
    page = served_page
    (folder / "slow.yaml").write_text(SLOW)
    going = start(folder, "run", "slow.yaml", "--quiet")
    try:
        page.goto(address)
        line = page.get_by_role("link", name="slow", exact=True).first
        line.wait_for(timeout=20_000)
        line.click()
        banner = page.locator(".live")
        expect(banner).to_contain_text(re.compile(r"Judging: \d+ of 60"), timeout=20_000)
        expect(banner).to_contain_text("judged so far", timeout=20_000)
        expect(page.locator(".leaderboard tbody tr")).to_have_count(5)
        before = banner.inner_text()
        expect(banner).not_to_have_text(before, timeout=20_000)
    finally:
        assert going.wait() == 0
        going.stdout.close()  # type: ignore[union-attr]
    expect(banner).to_have_count(0, timeout=20_000)
    expect(page.locator(".trust-number")).to_have_count(3)
    expect(page.locator(".hero")).not_to_contain_text("Not final")


def test_a_finished_page_continues_after_a_new_run(
    browser: Browser, address: str, folder: Path
) -> None:
    """The server no longer has its blocks, so it gets a new head."""
    page = browser.new_page()
    page.goto(address)
    page.get_by_role("link", name="one", exact=True).first.click()
    expect(page.locator(".leaderboard tbody tr")).to_have_count(5)
    head = page.url.partition("#")[0] + "head.json"
    for _ in range(2):
        os.utime(folder / "runs" / "one" / "manifest.json")
        assert page.request.get(head).ok
    page.evaluate("location.hash = '#/read?q=twisted-ankle'")
    expect(page.locator("article.response .rendered")).to_have_count(2)
    expect(page.get_by_label("Sort by")).to_contain_text("label")
    page.close()

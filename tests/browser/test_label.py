"""Labeling in a browser: 20 votes narrow the judge's agreement, and a killed server loses none."""

from __future__ import annotations

import json
import os
import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, Route, expect

from browser.conftest import Opener
from browser.served_runs import start_view
from support.command import cli
from support.forked import Forked

CONFIG = """\
name: voted
benchmark: {path: benchmark, collected: collected.jsonl}
judge: {engine: scripted, model: scripted}
ranking: {bootstrap: 50}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A finished run of a benchmark without votes or labels."""
    cli(tmp_path, "init", "demo")
    (tmp_path / "demo" / "benchmark").rename(tmp_path / "benchmark")
    for name in ("votes", "labels"):
        (tmp_path / "benchmark" / f"{name}.jsonl").unlink()
    (tmp_path / "voted.yaml").write_text(CONFIG)
    cli(tmp_path, "run", "voted.yaml", "--quiet")
    return tmp_path


def _served(folder: Path) -> tuple[Forked, str]:
    return start_view(folder, "voted.yaml", "--label", "--labeler", "Ada")


@pytest.fixture
def servers(folder: Path) -> Iterator[list[Forked]]:
    started: list[Forked] = []
    yield started
    for server in started:
        server.kill()
        server.communicate()


def _votes(folder: Path) -> list[dict[str, str]]:
    lines = (folder / "collected.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines if line]


def _wait_for_pair(page: Page) -> None:
    """Keys vote once both responses are on screen."""
    expect(page.get_by_role("button", name="A is better")).to_be_enabled()


def test_twenty_votes_by_keyboard_reach_the_audit(
    served_page: Page,
    folder: Path,
    servers: list[Forked],
) -> None:
    """From the queue to the file, the live agreement, and the audit of the next run."""
    page = served_page
    server, address = _served(folder)
    servers.append(server)
    page.goto(address)
    page.locator(".top nav").get_by_role("link", name="Label").click()
    expect(page.locator("article.response .rendered")).to_have_count(2)
    names = ("careful", "solid", "broken", "rambling")
    assert not any(name in page.locator(".label-main").inner_text() for name in names)
    count = page.locator(".label-progress [role=status]")
    widths = []
    for votes, key in enumerate("abtab" * 4, 1):
        _wait_for_pair(page)
        page.keyboard.press(key)
        expect(count).to_contain_text(f"{votes} vote")
        said = page.locator(".label-agreement").inner_text()
        if found := re.search(r"\(([\d.]+)\u2013([\d.]+)%\)", said):
            widths.append(float(found[2]) - float(found[1]))
    assert widths[-1] < widths[0]
    page.keyboard.press("u")
    expect(count).to_contain_text("19 votes by Ada")
    _wait_for_pair(page)
    page.keyboard.press("7")
    expect(count).to_contain_text("1 score")
    # What was acknowledged is on disk.
    os.kill(server.pid, signal.SIGKILL)
    rows = _votes(folder)
    assert [row["kind"] for row in rows].count("vote") == 20
    assert {row["by"] for row in rows if row["kind"] == "vote"} == {"Ada"}
    cli(folder, "run", "voted.yaml", "--quiet")
    audit = json.loads((folder / "runs/voted/audit.json").read_text())
    assert audit["agreement"]["judge"]["votes"] == 19


def test_a_page_says_when_a_vote_was_not_saved(
    folder: Path, servers: list[Forked], opened: Opener
) -> None:
    """After kill -9, the vote is not counted; a new server continues with what was saved."""
    server, address = _served(folder)
    servers.append(server)
    context = opened().context
    shown = context.new_page()
    shown.goto(address)
    shown.locator(".top nav").get_by_role("link", name="Label").click()
    _wait_for_pair(shown)
    shown.keyboard.press("a")
    expect(shown.locator(".label-progress [role=status]")).to_contain_text("1 vote")
    _wait_for_pair(shown)
    server.kill()
    server.wait()
    shown.keyboard.press("b")
    expect(shown.get_by_role("alert")).to_contain_text("Not saved")
    assert len(_votes(folder)) == 1
    again, address = _served(folder)
    servers.append(again)
    shown.goto(address + "#/label")
    shown.goto(shown.url.split("#")[0] + "#/label")
    expect(shown.locator(".label-progress [role=status]")).to_contain_text("1 vote")


def test_a_report_keeps_labels_and_offers_them_for_download(opened: Opener) -> None:
    """In the format of the file that the config names."""
    page = opened("#/label")
    _wait_for_pair(page)
    page.keyboard.press("a")
    expect(page.locator(".label-progress [role=status]")).to_contain_text("1 vote")
    page.reload()
    expect(page.locator(".label-progress [role=status]")).to_contain_text("1 vote")
    page.get_by_label("Your name").fill("Ada")
    with page.expect_download() as download:
        page.get_by_role("button", name="Download labels").click()
    (row,) = map(json.loads, Path(download.value.path()).read_text("utf-8").splitlines())
    assert (row["kind"], row["winner"], row["by"]) == ("vote", "a", "Ada")
    assert {"query_id", "candidate_a", "candidate_b", "id", "at"} <= row.keys()


def test_a_held_key_votes_once(opened: Opener) -> None:
    """Repeats of the key must not vote on the pairs that follow."""
    page = opened("#/label")
    _wait_for_pair(page)
    page.keyboard.down("a")
    expect(page.locator(".query-head .hint")).to_contain_text("Pair 2 ")
    for _ in range(5):
        _wait_for_pair(page)
        page.keyboard.down("a")
    page.keyboard.up("a")
    page.keyboard.press("b")
    expect(page.locator(".label-progress [role=status]")).to_contain_text("2 votes")


def test_a_pair_with_a_missing_response_is_not_voted_on(
    served_page: Page, folder: Path, servers: list[Forked]
) -> None:
    """It can only be skipped."""
    responses = folder / "benchmark" / "responses" / "careful.jsonl"
    kept = [line for line in responses.read_text().splitlines() if "twisted-ankle" not in line]
    responses.write_text("\n".join(kept) + "\n")
    cli(folder, "run", "voted.yaml", "--quiet")
    server, address = _served(folder)
    servers.append(server)
    page = served_page

    def offer(route: Route) -> None:
        answer = route.fetch()
        missing = {"query": "twisted-ankle", "a": "solid", "b": "careful"}
        route.fulfill(json={**answer.json(), "pairs": [missing, *answer.json()["pairs"][:1]]})

    page.route("**/label", offer)
    page.goto(address)
    page.locator(".top nav").get_by_role("link", name="Label").click()
    expect(page.locator(".label-main")).to_contain_text("No response to this query.")
    for key in "at7":
        page.keyboard.press(key)
    expect(page.get_by_role("button", name="A is better")).to_be_disabled()
    expect(page.locator(".score-steps")).to_have_count(0)
    page.keyboard.press("s")
    _wait_for_pair(page)
    assert not (folder / "collected.jsonl").exists()


def test_labels_of_a_page_without_storage_can_be_downloaded(
    browser: Browser, report: Path, tmp_path: Path
) -> None:
    """The page warns that they are only in this tab."""
    frame = f'<iframe sandbox="allow-scripts allow-downloads" src="{report.as_uri()}#/label">'
    (tmp_path / "frame.html").write_text(frame)
    page = browser.new_page()
    page.goto((tmp_path / "frame.html").as_uri())
    inside = page.frame_locator("iframe")
    for votes in (1, 2):
        inside.get_by_role("button", name="A is better").click()
        expect(inside.locator(".label-progress [role=status]")).to_contain_text(f"{votes} vote")
    expect(inside.get_by_role("alert")).to_contain_text("only in this tab")
    with page.expect_download() as download:
        inside.get_by_role("button", name="Download labels").click()
    assert len(Path(download.value.path()).read_text("utf-8").splitlines()) == 2
    page.close()

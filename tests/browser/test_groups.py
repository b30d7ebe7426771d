"""Checklists with groups: means on the first screen, items by group, hostile names."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from playwright.sync_api import expect

from browser.conftest import Opener
from support.grouped_run import GROUPS, NAMES, grouped_run

HOSTILE = "tone: <b>glad_and_quite_long_for_a_column</b>"


@pytest.fixture(scope="module")
def grouped(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a run with three groups, two of them in one dimension."""
    return grouped_run(tmp_path_factory.mktemp("grouped"))[1].report


def test_first_screen_has_means_by_group_and_candidate(opened: Opener, grouped: Path) -> None:
    page = opened(file=grouped)
    table = page.locator(".group-map")
    expect(table.locator("tbody tr")).to_have_count(len(NAMES))
    heads = table.locator("thead tr").last.locator("th").all_inner_texts()
    assert heads == ["Candidate", "all", "warm", HOSTILE.removeprefix("tone: "), "=length"]
    left = table.locator("tbody tr").filter(has_text="left").locator("td").all_inner_texts()
    assert [cell.split()[0] for cell in left] == ["0.69", "0.86", "0.25", "0.55"]
    right = table.locator("tbody tr").filter(has_text="right").locator("td.odd")
    expect(right).to_have_count(4)
    expect(right.first).to_have_attribute("title", "3 unanswered items")
    expect(right.first.locator(".spoken")).to_have_text(", 3 unanswered items")
    expect(page.locator(".section").filter(has=table)).to_contain_text("5 unanswered items")


def test_group_means_csv_has_no_formulas(opened: Opener, grouped: Path) -> None:
    page = opened(file=grouped)
    section = page.locator(".section").filter(has=page.locator(".group-map"))
    with page.expect_download() as download:
        section.get_by_role("button", name="CSV").click()
    text = Path(download.value.path()).read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert len(rows) == 4 * len(NAMES)
    assert {row["group"] for row in rows} == {"tone", "tone: warm", HOSTILE, "'=length"}


def test_items_are_listed_by_group(opened: Opener, grouped: Path) -> None:
    """In the reader's checklist, the heat map and the candidate view."""
    page = opened("#/query/q2", file=grouped)
    expect(page.locator(".answers-table .group th")).to_have_text(list(GROUPS))
    expect(page.locator(".item-number")).to_have_text(["1", "2", "3", "4", "5"])
    expect(page.locator(".heat-map .spans th")).to_have_text(["tone", "=length"])
    page.goto(page.url.split("#")[0] + "#/candidate/left")
    expect(page.locator(".own-groups tbody tr")).to_have_count(4)


def test_items_are_filtered_by_group(opened: Opener, grouped: Path) -> None:
    page = opened("#/items", file=grouped)
    page.get_by_label("Group").select_option(HOSTILE)
    expect(page.locator(".filter [role=status]")).to_have_text("7 of 36")
    expect(page.locator(".item-line .tag").first).to_have_text(HOSTILE)


@pytest.mark.parametrize("width", [390, 1440])
def test_groups_do_not_scroll_the_page_sideways(opened: Opener, grouped: Path, width: int) -> None:
    page = opened(file=grouped, viewport={"width": width, "height": 900})
    for route in ("", "#/query/q2", "#/response/left/q2", "#/candidate/left", "#/items"):
        page.goto(page.url.split("#")[0] + route)
        page.locator("h1").wait_for()
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, route


def test_without_groups_there_is_no_group_table(opened: Opener) -> None:
    page = opened()
    page.locator(".leaderboard").wait_for()
    assert page.locator(".group-map:not(.slice-map)").count() == 0
    page.goto(page.url.split("#")[0] + "#/items")
    page.locator(".item-line").last.wait_for()
    assert page.get_by_label("Group", exact=True).count() == 0

"""The report works at all widths, in dark mode, on paper and with the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from browser.accessibility import NEEDS_AXE, violations
from browser.conftest import Opener

ROUTES = (
    "",
    "#/read",
    "#/read?q=twisted-ankle&look=diff",
    "#/label",
    "#/items",
    "#/charts",
    "#/trust",
    "#/compare",
    "#/candidate/careful",
)
WEB = Path(__file__).parents[2] / "web"
OVERLAPS = (WEB / "test" / "overlaps.js").read_text("utf-8")
"""Returns the pairs of visible texts whose boxes overlap."""


@pytest.mark.parametrize("width", [390, 768, 1024, 1100, 1440])
def test_no_view_scrolls_sideways_or_overlaps(opened: Opener, width: int) -> None:
    """No two texts overlap, and nothing is wider than the window."""
    page = opened(viewport={"width": width, "height": 900})
    for route in ROUTES:
        page.goto(page.url.split("#")[0] + route)
        page.locator("h1").wait_for(state="attached")
        expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, route
        assert page.evaluate(OVERLAPS) == [], route


@pytest.mark.parametrize("width", [390, 1440])
def test_slice_names_are_not_broken_inside_words(opened: Opener, width: int) -> None:
    page = opened("#/?by=category", viewport={"width": width, "height": 900})
    lines = """names => names.filter(name => !/[\\s-]/.test(name.textContent))
        .map(name => name.getClientRects().length)"""
    found = page.locator(".slice-map thead bdi").evaluate_all(lines)
    assert len(found) > 3
    assert set(found) == {1}


def test_a_third_response_is_in_sight(opened: Opener) -> None:
    """Part of it is visible at once, so that a reader knows that the columns scroll."""
    page = opened("#/read?q=twisted-ankle&c=careful&c=solid&c=brief")
    third = page.locator("article.response").nth(2).bounding_box()
    columns = page.locator(".columns-of-responses").bounding_box()
    assert third is not None
    assert columns is not None
    assert third["x"] + 60 < columns["x"] + columns["width"]


@pytest.mark.parametrize("width", [1024, 1100, 1400, 1440])
def test_two_responses_are_shown_whole(opened: Opener, width: int) -> None:
    """The buttons of the second are in reach without scrolling sideways."""
    viewport = {"width": width, "height": 900}
    page = opened("#/read?q=twisted-ankle&c=careful&c=solid", viewport=viewport)
    columns = page.locator(".columns-of-responses")
    expect(columns.locator("article.response")).to_have_count(2)
    assert columns.evaluate("each => each.scrollWidth - each.clientWidth") == 0


def test_filters_name_scores_not_quality(opened: Opener) -> None:
    """The judge's score decides the filter, and the judge may be wrong."""
    page = opened("#/read?c=careful&c=solid")
    options = page.get_by_label("Where").locator("option").all_inner_texts()
    assert {"careful scores higher", "solid scores higher"} <= set(options)
    assert not any("better" in option for option in options)


@NEEDS_AXE
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_has_an_accessibility_violation(opened: Opener, scheme: str) -> None:
    """By the rules of axe-core."""
    page = opened(color_scheme=scheme, bypass_csp=True)
    for route in ROUTES:
        page.evaluate("route => { location.hash = route || '#/' }", route)
        page.locator("h1").wait_for()
        expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        page.wait_for_timeout(150)
        assert violations(page) == [], route


def test_dark_mode_and_the_theme_button(opened: Opener) -> None:
    page = opened(color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.locator("button.theme-button").click()
    page.wait_for_function(f"{paper} !== '{dark}'")
    light = page.evaluate(paper)
    assert sum(map(int, dark[4:-1].split(","))) < 150 < 600 < sum(map(int, light[4:-1].split(",")))


def test_keyboard_reaches_a_candidate_from_the_top(opened: Opener) -> None:
    page = opened()
    for _ in range(40):
        page.keyboard.press("Tab")
        href = page.evaluate("document.activeElement.getAttribute('href') ?? ''")
        if href.startswith("#/candidate/"):
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**#/candidate/**")
    page.locator("h1:focus").wait_for()


def test_print_shows_the_whole_leaderboard(opened: Opener, tmp_path: Path) -> None:
    page = opened()
    page.locator(".leaderboard").wait_for()
    page.emulate_media(media="print")
    assert not page.locator(".top nav").is_visible()
    assert page.locator(".leaderboard tbody tr").count() == 5
    assert page.pdf(path=tmp_path / "report.pdf", print_background=True).startswith(b"%PDF")


def test_print_of_a_query_names_the_columns_of_its_tables(opened: Opener) -> None:
    """Buttons are not printed, except those that are the heads of a table."""
    page = opened("#/read?q=twisted-ankle")
    page.locator(".heat-map").scroll_into_view_if_needed()
    page.emulate_media(media="print")
    assert page.locator(".heat-map thead button").first.is_visible()
    assert not page.get_by_role("button", name="Sort by this item").is_visible()


def test_the_ranking_is_readable_without_scripts(browser: Browser, report: Path) -> None:
    page = browser.new_context(java_script_enabled=False).new_page()
    page.goto(report.as_uri())
    text = page.inner_text("body")
    assert all(name in text for name in ("careful", "solid", "broken"))
    page.context.close()


def test_the_page_loads_nothing_from_the_network(browser: Browser, report: Path) -> None:
    page = browser.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto(report.as_uri())
    page.locator("figure.chart").first.scroll_into_view_if_needed()
    page.locator("figure.chart svg.plot").first.wait_for()
    assert [url for url in asked if not url.startswith("data:")] == [report.as_uri()]
    page.close()

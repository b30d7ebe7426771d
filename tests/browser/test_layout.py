"""The report works at all widths, in dark mode, on paper and with the keyboard."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser

from browser.conftest import Opener

ROUTES = ("", "#/queries", "#/items", "#/charts", "#/trust", "#/compare")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_no_view_scrolls_sideways(opened: Opener, width: int, scheme: str) -> None:
    page = opened(viewport={"width": width, "height": 900}, color_scheme=scheme)
    found = list(ROUTES)
    for start in ("#/queries", ""):
        page.goto(page.url.split("#")[0] + start)
        link = page.locator("a[href^='#/query/'], a[href^='#/candidate/']").first
        link.wait_for()
        found.append(str(link.get_attribute("href")))
    for route in found:
        page.goto(page.url.split("#")[0] + route)
        page.locator("h1").wait_for()
        page.wait_for_timeout(150)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, route


def test_dark_mode_and_the_theme_button(opened: Opener) -> None:
    page = opened(color_scheme="dark")
    paper = "getComputedStyle(document.body).backgroundColor"
    dark = page.evaluate(paper)
    page.locator("button.theme").click()
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

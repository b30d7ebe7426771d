"""Why this answer, in a browser: the cost, the confirmation, the marked sentences."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.accessibility import NEEDS_AXE, violations
from browser.conftest import Opener
from browser.served_runs import viewed
from browser.test_layout import OVERLAPS
from support.command import cli

CONFIG = """\
name: demo
benchmark: {path: demo/benchmark}
judge:
  engine: scripted
  model: scripted
  price: {prompt: 0.1, completion: 0.4, currency: USD}
ranking: {bootstrap: 50}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of the demo, with a judge whose answers depend on every character."""
    made = tmp_path_factory.mktemp("why")
    cli(made, "init", "demo")
    (made / "demo.yaml").write_text(CONFIG)
    cli(made, "run", "demo.yaml", "--quiet")
    return made


@pytest.fixture(params=[("--ask-judge",)])
def address(folder: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    with viewed(folder, "demo.yaml", *request.param) as found:
        yield found


def _read(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_url("**/run/demo/")
    page.goto(page.url + "#/read?q=twisted-ankle&c=careful&c=solid")
    expect(page.locator(".reader-checklist tbody").first).to_be_visible()


def test_from_the_question_to_the_marked_sentences(served_page: Page, address: str) -> None:
    """By keyboard; the cost comes first, the second time is free, and the focus comes back."""
    page = served_page
    _read(page, address)
    text = page.locator("article.response").first.inner_text()
    why = page.get_by_role("button", name="Why? item 1, careful")
    why.focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Why this answer")
    expect(dialog).to_contain_text(re.compile(r"\d+ requests with about [\d,]+ prompt tokens"))
    expect(dialog).to_contain_text("Estimated cost: 0.00")
    expect(dialog.locator("mark")).to_have_count(0)
    dialog.get_by_role("button", name="Ask the judge").press("Enter")
    expect(dialog.get_by_role("heading", level=3).first).to_contain_text("in the run")
    expect(dialog).to_contain_text("not the judge\u2019s reason")
    # Every part changes the scripted answer, and each mark says how in words.
    marks = dialog.locator("mark")
    expect(marks.first).to_contain_text(re.compile(r"(\u25b2 raises|\u25bc lowers) by 0\.\d\d"))
    assert marks.count() == dialog.locator(".why-list li").count() > 1
    first = marks.first.inner_text().split(".")[0]
    assert first.strip("*# ") in text.replace("*", "")
    dialog.locator(".why-list button").first.press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "MARK"
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    expect(why).to_be_focused()
    why.press("Enter")
    expect(dialog.locator("mark").first).to_be_visible()


@NEEDS_AXE
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_dialog_has_no_accessibility_violation(
    browser: Browser, address: str, scheme: str
) -> None:
    """Nor overlapping texts: the offer and the result, also on a phone."""
    context = browser.new_context(
        color_scheme=scheme, bypass_csp=True, viewport={"width": 390, "height": 844}
    )
    page = context.new_page()
    _read(page, address)
    page.get_by_role("button", name="Why? item 2, careful").click()
    dialog = page.get_by_role("dialog")
    expect(dialog.get_by_role("button", name="Ask the judge")).to_be_visible()
    for _ in range(2):
        assert violations(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 390
        overlaps = page.evaluate(
            OVERLAPS.replace("document.body", "document.querySelector('dialog')")
        )
        assert overlaps == []
        ask = dialog.get_by_role("button", name="Ask the judge")
        if ask.count():
            ask.click()
            expect(dialog.locator("mark").first).to_be_visible()
    context.close()


@pytest.mark.parametrize("address", [()], indirect=True)
def test_without_the_option_there_is_no_button(served_page: Page, address: str) -> None:
    """Nor in a file: see `test_a_file_cannot_ask`."""
    _read(served_page, address)
    expect(served_page.get_by_role("button", name="Why?")).to_have_count(0)


def test_a_file_cannot_ask(opened: Opener) -> None:
    page = opened("#/read?q=twisted-ankle")
    expect(page.locator(".reader-checklist tbody").first).to_be_visible()
    expect(page.get_by_role("button", name="Why?")).to_have_count(0)

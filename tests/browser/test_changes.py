"""What changed since another run, in a browser: from the list of runs to one response."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from browser.accessibility import NEEDS_AXE, violations
from browser.served_runs import viewed
from browser.test_layout import OVERLAPS
from support.command import cli

CONFIG = """\
name: {name}
benchmark: {{path: {path}}}
judge: {{engine: scripted, model: {model}}}
ranking: {{bootstrap: 50}}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two versions of one candidate by one judge, and a run of another judge."""
    made = tmp_path_factory.mktemp("runs")
    cli(made, "init", "demo")
    (made / "demo" / "benchmark").rename(made / "before")
    shutil.copytree(made / "before", made / "after")
    file = made / "after" / "responses" / "careful.jsonl"
    rows = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    for row in rows[:4]:
        row["text"] = row["text"].replace(" the ", " some ")
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    for name, path, model in (
        ("june", "before", "small"),
        ("july", "after", "small"),
        ("other", "before", "large"),
    ):
        (made / f"{name}.yaml").write_text(CONFIG.format(name=name, path=path, model=model))
        cli(made, "run", f"{name}.yaml", "--quiet")
    return made


@pytest.fixture
def address(folder: Path) -> Iterator[str]:
    with viewed(folder, "runs") as found:
        yield found


def test_from_the_list_of_runs_to_a_changed_response(served_page: Page, address: str) -> None:
    """The verdict, the regressions, one response in both runs, and the way back."""
    page = served_page
    page.goto(address)
    # Runs of two judges are not joined: each candidate has one line of june and july.
    expect(page.get_by_role("figure")).to_contain_text("not joined by a line")
    page.get_by_role("link", name="What changed since june").click()
    expect(page.locator("h1")).to_have_text("What changed since june")
    expect(page.locator(".changes-table tbody tr")).to_have_count(5)
    expect(page.locator("main")).to_contain_text("5 candidates are tested")
    lines = page.locator(".change-lines .query-line")
    expect(lines.first).to_contain_text("careful")
    falls = [float(text.replace("\u2212", "-")) for text in lines.locator("b").all_inner_texts()]
    assert falls == sorted(falls)
    assert len(falls) >= 3
    page.get_by_label("Where").select_option("Score rose")
    expect(page).to_have_url(re.compile("only=better"))
    expect(lines).to_have_count(sum(fall >= 0.1 for fall in falls))
    page.get_by_label("Where").select_option("All changes")
    lines.first.click()
    expect(page.locator("article.response")).to_have_count(2)
    expect(page.get_by_label("Baseline: june").locator("mark").first).to_have_text("the")
    expect(page.get_by_label("This run: july").locator("mark").first).to_have_text("some")
    expect(page.locator(".reader-checklist tbody")).not_to_have_count(0)
    first = page.locator("h1").inner_text()
    page.keyboard.press("j")
    expect(page.locator("h1")).not_to_have_text(first)
    page.go_back()
    expect(page.locator("h1")).to_have_text(first)
    page.get_by_role("link", name="All changes since june").click()
    expect(page.locator("h1")).to_have_text("What changed since june")


def test_another_judge_is_refused_with_the_reason(served_page: Page, address: str) -> None:
    """In the list of baselines, and at its address."""
    page = served_page
    page.goto(address)
    page.get_by_role("link", name="july", exact=True).first.click()
    page.locator(".top nav").get_by_role("link", name="Changes").click()
    expect(page.get_by_role("link", name="june")).to_be_visible()
    expect(page.locator(".baselines").last).to_contain_text(
        "another judge (model: large \u2192 small)"
    )
    page.goto(page.url.split("#")[0] + "#/changes?base=other")
    expect(page.locator("h1")).to_have_text("Not comparable")
    expect(page.get_by_role("status").last).to_contain_text("another judge")


def _views(page: Page, address: str) -> Iterator[str]:
    """Open each view of changes: baselines, a refusal, all changes, and one response."""
    page.goto(address)
    page.locator("h1").first.wait_for()
    root = f"{address.partition('?')[0]}run/july/"
    for route in ("#/changes", "#/changes?base=other", "#/changes?base=june"):
        page.goto(root + route)
        _loaded(page)
        yield route
    page.locator(".change-lines .query-line").first.click()
    page.locator("article.response").first.wait_for()
    _loaded(page)
    yield "one response"


def _loaded(page: Page) -> None:
    page.locator("h1").wait_for()
    expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
    page.wait_for_timeout(150)


def test_no_view_of_changes_scrolls_sideways_or_overlaps(browser: Browser, address: str) -> None:
    """Nor do the tabs take a second row from 1024 pixels on."""
    page = browser.new_page()
    for view in _views(page, address):
        for width in (390, 768, 1024, 1100, 1440):
            page.set_viewport_size({"width": width, "height": 900})
            page.wait_for_timeout(100)
            assert page.evaluate("document.documentElement.scrollWidth") <= width, (view, width)
            assert page.evaluate(OVERLAPS) == [], (view, width)
            rows = page.evaluate(
                "new Set([...document.querySelectorAll('.top nav a')].map(a => a.offsetTop)).size"
            )
            assert rows == 1, (view, width)
            height = page.evaluate("document.querySelector('.top').offsetHeight")
            assert height < (60 if width >= 1024 else 90), (view, width)
    page.close()


@NEEDS_AXE
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_view_of_changes_has_an_accessibility_violation(
    browser: Browser, address: str, scheme: str
) -> None:
    """By the rules of axe-core."""
    context = browser.new_context(
        color_scheme=scheme, bypass_csp=True, viewport={"width": 1440, "height": 900}
    )
    page = context.new_page()
    for view in _views(page, address):
        assert violations(page) == [], view
    context.close()

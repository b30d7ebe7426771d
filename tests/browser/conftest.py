"""A real browser and reports of real runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from support.command import cli

FLAGS = (
    "--no-sandbox",
    "--disable-quic",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CONFIG = """\
name: demo
benchmark: {path: demo/benchmark}
judge: {engine: scripted, model: scripted}
ranking: {bootstrap: 100}
"""

# A busy machine needs more than the default of five seconds.
expect.set_options(timeout=30_000)

Opener = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    named = ("chromium-headless-shell", "chromium", "google-chrome")
    binary = next(filter(None, map(shutil.which, named)), None)
    if binary is None:
        if os.environ.get("CI") and os.environ.get("ROCKETEVAL_REQUIRE_CHROMIUM"):
            pytest.fail("ROCKETEVAL_REQUIRE_CHROMIUM is set, but chromium is not installed")
        pytest.skip("chromium is not installed")
    # Playwright runs an event loop in this thread, so async tests must not run in this session.
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=binary, args=list(FLAGS))
        yield found
        found.close()


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo report, judged by the scripted engine: 5 candidates, 12 queries, labels, votes."""
    folder = tmp_path_factory.mktemp("demo")
    cli(folder, "init", "demo")
    (folder / "demo.yaml").write_text(CONFIG)
    cli(folder, "run", "demo.yaml", "--quiet")
    return folder / "runs" / "demo" / "report.html"


@pytest.fixture
def opened(browser: Browser, report: Path) -> Iterator[Opener]:
    """Return a function that opens a page at a route; logged errors fail the test."""
    pages: list[Page] = []
    errors: list[str] = []

    def open_page(route: str = "", *, file: Path = report, **options: object) -> Page:
        context = browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        page = context.new_page()
        pages.append(page)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
        page.goto(file.as_uri() + route)
        page.locator("h1").first.wait_for()
        return page

    yield open_page
    for page in pages:
        page.context.close()
    assert not errors


@pytest.fixture
def served_page(browser: Browser) -> Iterator[Page]:
    """A page of a server; logged errors fail the test."""
    made = browser.new_page(viewport={"width": 1440, "height": 900})
    errors: list[str] = []
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
    yield made
    made.close()
    assert not errors

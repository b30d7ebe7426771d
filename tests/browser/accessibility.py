"""Accessibility of a page, by the rules of axe-core."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
NEEDS_AXE = pytest.mark.skipif(
    not AXE.is_file(), reason="axe-core is not installed: run npm ci in web/"
)


def violations(page: Page) -> list[tuple[str, str]]:
    """Return the broken rules, each with its first element; the page needs `bypass_csp`."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(AXE.read_text("utf-8"))
    found = page.evaluate("axe.run(document, {resultTypes: ['violations']})")["violations"]
    return [(one["id"], one["nodes"][0]["html"]) for one in found]

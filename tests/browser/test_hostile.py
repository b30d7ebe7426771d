"""Hostile text in responses, queries, items and names never runs and never breaks the page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from support.command import run_scripted
from support.payloads import PAYLOADS, RENDERED

VIEWS = ("#/", "#/read", "#/items", "#/charts", "#/trust", "#/compare")


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _at(query: int, candidate: int) -> int:
    """Return which payload a response is; the first two queries have all of them."""
    return (query * len(PAYLOADS) + candidate) % len(RENDERED)


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A real run with the payloads as candidate names, responses, queries and items."""
    folder = tmp_path_factory.mktemp("hostile")
    benchmark = folder / "benchmark"
    names = [text.strip() or f"blank {place}" for place, text in enumerate(PAYLOADS)]
    names = [
        f"{name} {place}" if names.count(name) > 1 else name for place, name in enumerate(names)
    ]
    queries = [f"{text[:150]} #{place}" for place, text in enumerate(PAYLOADS[:40])]
    _write(
        benchmark / "queries.jsonl",
        [
            {
                "id": query,
                "text": PAYLOADS[place],
                "category": PAYLOADS[-1 - place][:200],
                "reference": PAYLOADS[place],
                "history": [{"role": "user", "content": PAYLOADS[-1 - place]}],
            }
            for place, query in enumerate(queries)
        ],
    )
    _write(
        benchmark / "checklists.jsonl",
        [
            {
                "query_id": query,
                "items": [f"{PAYLOADS[(place + n) % len(PAYLOADS)][:400]} {n}?" for n in range(3)],
            }
            for place, query in enumerate(queries)
        ],
    )
    _write(
        benchmark / "responses" / "all.jsonl",
        [
            {"query_id": query, "candidate": name, "text": RENDERED[_at(place, at)]}
            for place, query in enumerate(queries)
            for at, name in enumerate(names)
        ],
    )
    _write(
        benchmark / "labels.jsonl",
        [
            {"query_id": query, "candidate": name, "value": 1 + (place + at) % 10}
            for place, query in enumerate(queries[:5])
            for at, name in enumerate(names)
        ],
    )
    run_scripted(folder, "hostile")
    return folder / "runs" / "hostile" / "report.html"


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    made = browser.new_page(viewport={"width": 1440, "height": 900})
    violations: list[str] = []
    made.on("dialog", lambda dialog: violations.append(f"dialog {dialog.message}"))
    made.on("console", lambda m: violations.append(m.text) if m.type == "error" else None)
    made.on("pageerror", lambda error: violations.append(str(error)))
    made.on("request", lambda r: violations.append(r.url) if r.url.startswith("http") else None)
    yield made
    made.close()
    assert not violations


def _quiet(page: Page) -> None:
    page.locator("h1").first.wait_for()
    page.wait_for_timeout(120)
    assert page.evaluate("window.__canary") is None
    strange = "main script, main iframe, main object, main style:not(svg.plot > style)"
    assert page.locator(strange).count() == 0


def test_there_are_enough_payloads() -> None:
    assert len(set(RENDERED)) >= 150


def test_the_canary_detects_a_running_payload(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(PAYLOADS[0])
    assert page.evaluate("window.__canary") == 1
    page.close()


def test_views_run_no_payload(page: Page, hostile: Path) -> None:
    for view in VIEWS:
        page.goto(hostile.as_uri() + view)
        _quiet(page)


def test_candidates_queries_and_responses_run_no_payload(page: Page, hostile: Path) -> None:
    page.goto(hostile.as_uri())
    page.locator(".leaderboard tbody tr").first.wait_for()
    if page.get_by_role("button", name="Show all").count():
        page.get_by_role("button", name="Show all").first.click()
    candidates = page.evaluate("[...document.querySelectorAll('.leaderboard a')].map(a => a.hash)")
    assert len(candidates) == len(PAYLOADS)
    page.goto(hostile.as_uri() + "#/read")
    page.locator("a.query-line").first.wait_for()
    queries = page.evaluate("[...document.querySelectorAll('a.query-line')].map(a => a.hash)")
    assert len(queries) == 40
    for route in [*candidates[::8], *queries[::2]]:
        page.evaluate("route => { location.hash = route }", route)
        expect(page.get_by_role("status").filter(has_text="Loading")).to_have_count(0)
        _quiet(page)
        assert page.locator("h1").inner_text() != "Not in this report"
    page.evaluate("[...document.querySelectorAll('details')].forEach(one => { one.open = true })")
    _quiet(page)
    page.locator(".heat-map tbody a").first.click()
    _quiet(page)


def test_rendered_responses_run_no_payload_and_keep_the_layout(page: Page, hostile: Path) -> None:
    """Every payload passes through the renderer; none widens the page or loads anything."""
    page.goto(hostile.as_uri() + "#/read?sort=benchmark")
    page.locator("article.response").first.wait_for()
    ids = page.evaluate(
        "[...document.querySelectorAll('a.query-line')].slice(0, 2).map("
        "line => new URLSearchParams(line.hash.split('?')[1]).get('q'))"
    )
    names = page.evaluate("JSON.parse(document.getElementById('head').textContent).candidates")
    seen: set[str] = set()
    for query in ids:
        for first in range(0, len(names), 4):
            shown = [candidate["name"] for candidate in names[first : first + 4]]
            page.evaluate(
                "([query, shown]) => { location.hash = '#/read?' + new URLSearchParams("
                "[['sort', 'benchmark'], ['q', query], ...shown.map(name => ['c', name])]) }",
                [query, shown],
            )
            columns = page.locator("article.response select")
            expect(columns).to_have_count(len(shown))
            expect(columns.first).to_have_value(str(first))
            seen |= {f"{query} {name}" for name in shown}
            assert page.evaluate("window.__canary") is None
            assert page.evaluate("document.documentElement.scrollWidth") <= 1440
            strange = (
                ".rendered :is(script, img, iframe, object, embed, style, svg, base, link, form)"
            )
            assert page.locator(strange).count() == 0
            links = page.locator(".rendered a").evaluate_all("all => all.map(a => a.protocol)")
            assert set(links) <= {"http:", "https:", "mailto:"}
    assert len(seen) == 2 * len(names)


@pytest.mark.parametrize("width", [390, 1440])
def test_payloads_do_not_break_the_leaderboard(page: Page, hostile: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(hostile.as_uri())
    page.get_by_role("button", name="Show all").first.click()
    rows = page.locator(".leaderboard tbody tr")
    assert rows.count() == len(PAYLOADS)
    boxes = page.evaluate(
        "[...document.querySelectorAll('.leaderboard tbody tr')].map(row => {"
        "const box = row.getBoundingClientRect(); return [box.left, box.width, box.height]})"
    )
    lefts, widths, heights = (set(map(round, side)) for side in zip(*boxes, strict=True))
    assert len(lefts) == len(widths) == 1
    assert max(heights) <= 160
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_names_are_shown_literally(page: Page, hostile: Path) -> None:
    page.goto(hostile.as_uri())
    page.get_by_role("button", name="Show all").first.click()
    shown = page.evaluate(
        "[...document.querySelectorAll('.leaderboard bdi')].map(b => b.textContent)"
    )
    assert "<script>window.__canary=(window.__canary||0)+1</script>" in shown
    assert "__proto__" in shown

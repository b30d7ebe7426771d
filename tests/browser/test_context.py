"""The context of a query in the reader: collapsed, above the responses, as text."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import expect

import rocketeval
from browser.accessibility import AXE, violations
from browser.conftest import Opener
from support.make import make_config, write_jsonl

HOSTILE = "<img src=x onerror='window.hit=1'> Rain."


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with passages for a query, and other ones for a candidate."""
    folder = tmp_path_factory.mktemp("context")
    config = make_config(folder)
    queries: list[dict[str, object]] = [{"id": q, "text": f"Why the {q}?"} for q in ("sky", "sea")]
    queries[0]["context"] = ["The sky is blue.", HOSTILE]
    write_jsonl(folder / "benchmark" / "queries.jsonl", queries)
    for name in ("left", "right"):
        rows: list[dict[str, object]] = [{"query_id": "sky", "text": name}]
        if name == "right":
            rows[0]["context"] = ["Only for right."]
        rows.append({"query_id": "sea", "text": name})
        write_jsonl(folder / "benchmark" / "responses" / f"{name}.jsonl", rows)
    (folder / "benchmark" / "votes.jsonl").unlink()
    lists = [{"query_id": q, "items": ["Is it right?", "Is it clear?"]} for q in ("sky", "sea")]
    write_jsonl(folder / "benchmark" / "checklists.jsonl", lists)
    return rocketeval.run(config).path / "report.html"


def test_the_reader_shows_the_context(opened: Opener, file: Path) -> None:
    """Closed at first; a query without a context has no such part."""
    page = opened("#/read?q=sky", file=file, bypass_csp=True)
    context = page.locator(".query-text details", has_text="Context: 2 passages")
    expect(context).to_be_visible()
    expect(page.get_by_text("The sky is blue.")).to_be_hidden()
    context.locator("summary").press("Enter")
    expect(page.get_by_text("The sky is blue.")).to_be_visible()
    expect(context).to_contain_text("<img src=x")
    assert page.evaluate("window.hit") is None
    own = page.get_by_label("Response of right").locator("details")
    expect(own).to_contain_text("candidate\u2019s own context: 1 passage")
    above = "a => a.getBoundingClientRect().bottom"
    responses = page.locator("article.response").first.bounding_box()
    assert responses is not None
    assert context.evaluate(above) < responses["y"]
    if AXE.is_file():
        assert violations(page) == []
    page.evaluate("location.hash = '#/read?q=sea'")
    expect(page.locator("h1")).to_have_text("sea")
    expect(page.locator(".query-text details")).to_have_count(0)

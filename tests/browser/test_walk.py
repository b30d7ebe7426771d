"""A click-through of the report: leaderboard, candidate, query, item, filter, compare."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Opener
from support.command import cli


def test_first_screen_shows_result_trust_and_next_steps(opened: Opener) -> None:
    page = opened()
    expect(page.locator(".conclusion")).to_contain_text("not significantly better")
    expect(page.locator(".next-steps li").first).to_be_visible()
    expect(page.locator("h1")).to_contain_text("5 candidates on 12 queries")
    expect(page.locator(".lead")).to_contain_text("scripted")
    expect(page.locator(".trust-number")).to_have_count(3)
    expect(page.locator(".leaderboard tbody tr")).to_have_count(5)
    expect(page.locator(".leaderboard .interval")).to_have_count(5)
    expect(page.locator(".losses h2")).to_be_visible()
    assert page.locator(".trust-number").first.bounding_box()["y"] < 900


def test_leaderboard_to_candidate_to_query_to_item_and_back(opened: Opener) -> None:
    page = opened()
    link = page.locator(".leaderboard tbody a").first
    name = link.inner_text()
    link.click()
    expect(page.locator("h1")).to_have_text(name)
    expect(page).to_have_title(re.compile(re.escape(name)))
    page.locator("a[href^='#/response/']").first.click()
    expect(page).to_have_url(re.compile("#/response/"))
    page.locator(".crumbs a, .facts a, a").filter(has_text=re.compile(r"^q|-")).first.wait_for()
    page.locator("a[href^='#/query/']").first.click()
    expect(page).to_have_url(re.compile("#/query/"))
    rows = page.locator(".heat-map tbody tr")
    expect(rows).to_have_count(5)
    page.goto(page.url.split("#")[0] + "#/items")
    page.locator("a[href^='#/query/']").first.wait_for()
    page.locator("a[href^='#/query/']").first.click()
    expect(page.locator(".heat-map")).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Checklist items")


def test_clicking_an_item_sorts_the_heat_map(opened: Opener) -> None:
    page = opened("#/queries")
    page.locator("a[href^='#/query/']").first.click()
    page.locator(".heat-map thead button").last.click()
    expect(page.locator(".heat-map thead th").last).to_have_attribute(
        "aria-sort", re.compile("ascending|descending")
    )
    cells = page.locator(".heat-map tbody tr > td:last-child").all_inner_texts()
    values = [float(cell) for cell in cells]
    assert values in (sorted(values), sorted(values, reverse=True))
    assert len(set(values)) > 1


def test_filter_keeps_matches_and_counts_them(opened: Opener) -> None:
    page = opened("#/queries")
    lines = page.locator("a[href^='#/query/']")
    expect(lines).to_have_count(12)
    page.locator("input[type=search]").fill("Ankle")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("twisted-ankle")
    expect(page.locator(".filter [role=status]")).to_have_text("1 of 12")
    page.locator("input[type=search]").fill("no query has this word")
    expect(lines).to_have_count(0)


def test_leaderboard_links_to_the_comparison(opened: Opener) -> None:
    page = opened()
    page.get_by_text("Compare two").click()
    selects = page.locator("select")
    first, second = (selects.nth(place).input_value() for place in (0, 1))
    assert first != second
    expect(page.locator("body")).to_contain_text(
        re.compile("significantly (better|worse)|are tied")
    )
    page.locator("details summary").filter(has_text=re.compile(r"[+\u2212]\d")).first.click()
    expect(page.locator(".prose").first).to_be_visible()


def test_compare_view_matches_the_command(opened: Opener, report: Path) -> None:
    folder = report.parents[2]
    ranking = json.loads((folder / "runs/demo/ranking.json").read_text())
    first, second = (row["candidate"] for row in ranking["rows"][:2])
    found = json.loads(cli(folder, "compare", first, second, "demo.yaml", "--json").stdout)
    page = opened(f"#/compare/{first}/{second}")
    body = page.locator("main")
    verdict = found["verdict"] if found["verdict"] in ("better", "worse") else "are tied"
    expect(body).to_contain_text(verdict)
    shown = re.search(r"Difference([+\u2212])([\d.]+)", body.inner_text().replace("\n", ""))
    assert shown is not None
    effect = float(shown[2]) * (-1 if shown[1] == "\u2212" else 1)
    assert effect == pytest.approx(found["effect"]["value"], abs=0.051)
    expect(body).to_contain_text(f"{found['wins']} won")


def _downloaded(page: Page, label: str) -> tuple[str, bytes]:
    with page.expect_download() as waiting:
        page.locator("figure.chart").first.get_by_role("button", name=label).click()
    download = waiting.value
    return download.suggested_filename, download.path().read_bytes()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_charts_can_be_saved_as_image_and_csv(opened: Opener, scheme: str) -> None:
    page = opened("#/charts", color_scheme=scheme)
    page.locator("figure.chart svg.plot").first.wait_for()
    name, png = _downloaded(page, "PNG")
    assert name.endswith(".png")
    assert png.startswith(b"\x89PNG")
    assert len(png) > 2000
    name, svg = _downloaded(page, "SVG")
    assert b"<svg" in svg
    assert b"var(--" not in svg
    name, text = _downloaded(page, "CSV")
    rows = list(csv.reader(io.StringIO(text.decode())))
    assert rows[0] == ["candidate", "rating", "low", "high"]
    assert len(rows) == 6
    for title in ("Ratings", "Score distributions", "Win rates", "Scores and labels"):
        expect(page.get_by_role("figure", name=title)).to_be_visible()
    assert page.locator("figure.chart .how").count() == page.locator("figure.chart").count()


def test_a_dot_of_the_scatter_plot_opens_its_response(opened: Opener) -> None:
    page = opened("#/charts")
    dots = page.get_by_role("figure", name="Scores and labels").locator("svg a")
    dots.first.wait_for()
    assert dots.count() > 20
    dots.nth(7).evaluate("dot => dot.dispatchEvent(new MouseEvent('click', {bubbles: true}))")
    expect(page).to_have_url(re.compile("#/response/"))


def test_invalid_and_unknown_routes_show_a_message(opened: Opener) -> None:
    for route in ("#/candidate/nobody", "#/compare/a/b", "#/%E0%A4%A", "#/nowhere/at/all"):
        page = opened(route)
        expect(page.locator("h1")).to_have_text("Not in this report")
    for route in ("#/query/nobody", "#/response/careful/nobody"):
        page = opened(route)
        expect(page.locator("main")).to_contain_text(re.compile("There is no|has no"))

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
    page.locator("a.candidate-line").first.click()
    expect(page).to_have_url(re.compile(f"#/read.q=.*c={name}"))
    expect(page.locator("article.response")).to_have_count(1)
    expect(page.locator(".heat-map tbody tr")).to_have_count(5)
    page.goto(page.url.split("#")[0] + "#/items")
    page.locator(".item-line a").first.click()
    expect(page.locator(".heat-map")).to_be_visible()
    page.go_back()
    expect(page.locator("h1")).to_have_text("Checklist items")


def test_the_reader_shows_two_responses_and_one_checklist(opened: Opener) -> None:
    """Answers are lined up under the names of the shown candidates."""
    page = opened("#/read?q=twisted-ankle&c=careful&c=broken")
    expect(page.locator("article.response")).to_have_count(2)
    expect(page.locator(".answers-table thead th")).to_have_text(["careful", "broken"])
    items = page.locator(".answers-table tbody.item")
    assert items.count() > 2
    expect(items.first.locator("td")).to_have_count(2)
    page.get_by_role("button", name="Diff").click()
    expect(page).to_have_url(re.compile("look=diff"))
    expect(page.locator("article.response mark").first).to_be_visible()
    page.keyboard.press("l")
    expect(page.locator(".answers-table thead th").last).not_to_have_text("broken")
    page.get_by_role("button", name="Hide the response").last.click()
    expect(page.locator("article.response")).to_have_count(1)


def test_keys_and_history_walk_through_the_reader(opened: Opener) -> None:
    """Back and forward restore the query; every choice is in the address."""
    page = opened("#/read?sort=benchmark")
    titles = page.locator("a.query-line .snippet").all_inner_texts()
    first = page.locator("h1").inner_text()
    page.keyboard.press("j")
    expect(page.locator("h1")).not_to_have_text(first)
    second = page.locator("h1").inner_text()
    expect(page).to_have_url(re.compile(f"sort=benchmark.*q={second}|q={second}.*sort=benchmark"))
    page.keyboard.press("j")
    expect(page.locator("h1")).not_to_have_text(second)
    page.go_back()
    expect(page.locator("h1")).to_have_text(second)
    page.keyboard.press("k")
    expect(page.locator("h1")).to_have_text(first)
    page.keyboard.press("d")
    expect(page).to_have_url(re.compile("look=diff"))
    page.keyboard.press("/")
    page.keyboard.type("ankle")
    expect(page).to_have_url(re.compile("words=ankle"))
    expect(page.locator("a.query-line")).to_have_count(1)
    page.reload()
    expect(page.locator("a.query-line")).to_have_count(1)
    expect(page.locator(".query-pane input")).to_have_value("ankle")
    assert len(titles) == 12


def test_search_finds_responses_and_opens_them(opened: Opener) -> None:
    """Over all texts in the file, with the keyboard alone."""
    page = opened()
    page.keyboard.press("Control+k")
    page.keyboard.type("ankle")
    expect(page.get_by_role("dialog").get_by_role("status")).to_have_text(re.compile(r"^\d+ match"))
    found = page.locator(".matches small").filter(has_text="response of")
    expect(found.first).to_be_visible()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile("#/read.q=twisted-ankle"))


def test_question_mark_lists_the_keys_and_turns_them_off(opened: Opener) -> None:
    page = opened("#/read?sort=benchmark")
    first = page.locator("h1").inner_text()
    page.keyboard.press("?")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Next or previous query")
    dialog.get_by_role("checkbox").uncheck()
    dialog.get_by_role("button", name="Close").click()
    page.keyboard.press("j")
    page.wait_for_timeout(100)
    expect(page.locator("h1")).to_have_text(first)


def test_the_theme_is_remembered(opened: Opener) -> None:
    page = opened(color_scheme="dark")
    page.locator("button.theme-button").click()
    page.reload()
    expect(page.locator("button.theme-button")).to_have_text("Theme: light")


def test_older_addresses_lead_to_the_reader(opened: Opener) -> None:
    page = opened("#/response/solid/twisted-ankle")
    expect(page).to_have_url(re.compile("#/read.q=twisted-ankle&c=solid"))
    expect(page.locator("article.response")).to_have_count(1)
    page.goto(page.url.split("#")[0] + "#/queries")
    expect(page).to_have_url(re.compile("#/read$"))


def test_clicking_an_item_sorts_the_heat_map(opened: Opener) -> None:
    page = opened("#/read")
    page.locator(".heat-map thead button").last.click()
    expect(page.locator(".heat-map thead th").last).to_have_attribute(
        "aria-sort", re.compile("ascending|descending")
    )
    cells = page.locator(".heat-map tbody tr > td:last-child").all_inner_texts()
    values = [float(cell) for cell in cells]
    assert values in (sorted(values), sorted(values, reverse=True))
    assert len(set(values)) > 1


def test_filter_keeps_matches_and_counts_them(opened: Opener) -> None:
    page = opened("#/read")
    lines = page.locator("a.query-line")
    expect(lines).to_have_count(12)
    page.locator(".query-pane input").fill("Ankle")
    expect(lines).to_have_count(1)
    expect(lines).to_contain_text("twisted-ankle")
    expect(page.locator(".query-pane [role=status]")).to_have_text("1 of 12")
    page.locator(".query-pane input").fill("no query has this word")
    expect(lines).to_have_count(0)


def test_leaderboard_links_to_the_comparison(opened: Opener) -> None:
    page = opened()
    page.get_by_text("Compare two").click()
    selects = page.locator("select")
    first, second = (selects.nth(place).input_value() for place in (0, 1))
    assert first != second
    expect(page.locator("body")).to_contain_text(
        re.compile("scores significantly (higher|lower)|are tied")
    )
    page.get_by_role("link", name="Read the queries that decide it").click()
    expect(page.locator("article.response .rendered")).to_have_count(2)


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
    expect(page).to_have_url(re.compile("#/read.q="))


def test_invalid_and_unknown_routes_show_a_message(opened: Opener) -> None:
    for route in ("#/candidate/nobody", "#/compare/a/b", "#/%E0%A4%A", "#/nowhere/at/all"):
        page = opened(route)
        expect(page.locator("h1")).to_have_text("Not in this report")
    for route in ("#/query/nobody", "#/response/careful/nobody"):
        page = opened(route)
        expect(page.locator("main")).to_contain_text(re.compile("There is no|has no"))


def test_slices_filter_the_reader_and_group_the_leaderboard(opened: Opener) -> None:
    """The number of slices is said, a slice opens its queries, and the address keeps the choice."""
    page = opened()
    board = page.locator("section", has=page.get_by_role("heading", name="Leaderboard by slice"))
    expect(board.locator("tbody tr")).to_have_count(5)
    board.get_by_label("Group by").select_option("category")
    expect(board).to_contain_text(re.compile(r"By category: \d+ slices"))
    board.get_by_label("Group by").select_option("length")
    expect(page).to_have_url(re.compile("by=length"))
    expect(board).to_contain_text(re.compile(r"By length: 2 slices.*Bonferroni"))
    heads = board.locator("thead a")
    queries = int(re.sub(r"\D", "", board.locator("thead small").first.inner_text()))
    heads.first.click()
    expect(page).to_have_url(re.compile("#/read.in=length"))
    expect(page.locator(".query-line")).to_have_count(queries)
    assert queries < 12
    page.go_back()
    expect(board.get_by_label("Group by")).to_have_value("length")

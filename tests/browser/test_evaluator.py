"""The evaluator view: confidence, experts and perspectives."""

from __future__ import annotations

import csv
import io
import shutil
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from browser.conftest import Opener
from rocketeval.config import load_config
from rocketeval.report.stage import write_report
from rocketeval.store.run import RunStore
from support.described_evaluator import CODE, DROPPED, HOSTILE, TEXTS, described


@pytest.fixture(scope="module")
def evolved(report: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo report with an added evaluator."""
    run = tmp_path_factory.mktemp("evolved") / "demo"
    shutil.copytree(report.parent, run)
    store = RunStore(run)
    store.save_json("evaluator", described())
    return write_report(store, load_config(run / "run.yaml"))


@pytest.fixture
def page(opened: Opener, evolved: Path) -> Page:
    """The evaluator view."""
    shown = opened("#/evaluator", file=evolved)
    shown.locator(".perspective-line").last.wait_for()
    return shown


def test_the_first_screen_links_to_the_evaluator(opened: Opener, evolved: Path) -> None:
    """With a description and an entry in the navigation bar."""
    page = opened(file=evolved)
    expect(page.locator(".lead").last).to_contain_text("2 experts, trained on 100 pairs from duels")
    page.locator(".top nav").get_by_role("link", name="Evaluator").click()
    expect(page.locator("h1")).to_have_text("Evaluator")
    expect(page.locator(".lead")).to_contain_text("accuracy: 74.0%")


def test_cases_for_human_review_are_counted(page: Page) -> None:
    """With the accuracy above the threshold; the table marks the recommended row."""
    notice = page.locator(".notice")
    expect(notice).to_contain_text("18 of 40 cases")
    expect(notice).to_contain_text("86.0% (84.0\u201388.0%)")
    page.get_by_text("Show as table").click()
    rows = page.locator(".sureness-rows tbody tr")
    expect(rows).to_have_count(3)
    expect(page.locator(".sureness-rows tr.chosen")).to_contain_text("recommended")
    expect(rows.last).to_contain_text("\u2013")
    expect(page.locator("figure.chart svg.plot")).to_have_count(2)


def test_experts_show_cases_traits_and_attention(page: Page) -> None:
    """One card and one attention column per expert."""
    cards = page.locator(".expert")
    expect(cards).to_have_count(2)
    expect(cards.first).to_contain_text("30 of 40 cases")
    expect(cards.last).to_contain_text(CODE)
    expect(cards.last).to_contain_text("yes for 10.0% of its queries, 50.0% of all")
    names = page.locator(".attention tbody th")
    expect(names).to_have_text([TEXTS[1], TEXTS[2], TEXTS[0]])
    page.locator(".attention-head select").select_option("0")
    expect(names).to_have_text([TEXTS[2], TEXTS[1], TEXTS[0]])
    cells = page.locator(".attention tbody tr").first.locator("td")
    expect(cells.first).to_contain_text("70.0%")
    expect(cells.last).to_contain_text("0.0%")


def test_perspectives_are_sorted_and_filtered(page: Page) -> None:
    """Perspectives on responses come first, because importance is relative to the kind."""
    texts = page.locator(".fold-list .item-text")
    expect(texts).to_have_text([TEXTS[1], TEXTS[2], TEXTS[0], CODE])
    choices = page.locator(".section").filter(has=page.locator(".fold-list"))
    choices.get_by_label("Sort by").select_option("new")
    expect(texts.first).to_have_text(TEXTS[2])
    choices.get_by_label("About").select_option("query")
    expect(texts).to_have_text([CODE])
    expect(choices.locator(".filter [role=status]")).to_have_text("1 of 4")
    choices.get_by_label("About").select_option("")
    choices.get_by_label("Filter").fill("coding")
    expect(texts).to_have_text([TEXTS[2]])


def test_a_perspective_shows_its_chain_of_parents(page: Page) -> None:
    """Also with the keyboard; a dropped parent is marked."""
    row = page.locator(".fold-row").filter(has_text=TEXTS[2])
    row.locator("summary").focus()
    page.keyboard.press("Enter")
    inside = row.locator(".fold-inside")
    expect(inside).to_contain_text("expert 1 70.0%, expert 2 0.0%")
    expect(inside.locator(".parents > li").first).to_contain_text(HOSTILE)
    expect(inside.locator(".parents .parents > li").first).to_contain_text(DROPPED)
    expect(inside.locator(".parents .parents > li").last).to_contain_text("No longer in the pool")


def test_perspectives_csv_has_no_formulas(page: Page) -> None:
    """Text that a spreadsheet would run gets an apostrophe."""
    section = page.locator(".section").filter(has=page.locator(".fold-list"))
    with page.expect_download() as download:
        section.get_by_role("button", name="CSV").click()
    text = Path(download.value.path()).read_text("utf-8")
    rows = list(csv.DictReader(io.StringIO(text, newline="")))
    assert [row["text"] for row in rows] == [f"'{HOSTILE}", TEXTS[2], TEXTS[0], CODE]
    assert rows[0]["parents"] == "old gone"


def test_hostile_texts_stay_text(page: Page) -> None:
    """They create no elements."""
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1440])
def test_the_view_does_not_scroll_sideways(
    opened: Opener, evolved: Path, width: int, scheme: str
) -> None:
    """On phone and desktop widths, light and dark."""
    page = opened(
        "#/evaluator",
        file=evolved,
        viewport={"width": width, "height": 900},
        color_scheme=scheme,
    )
    page.locator(".perspective-line").last.wait_for(state="attached")
    page.get_by_text("Show as table").click()
    page.wait_for_timeout(150)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_without_an_evaluator_the_view_is_empty(opened: Opener) -> None:
    """The navigation bar has no entry; the route shows a message."""
    page = opened("#/evaluator")
    expect(page.locator(".lead")).to_contain_text("not judged by an evolved evaluator")
    assert page.locator(".top nav").get_by_role("link", name="Evaluator").count() == 0

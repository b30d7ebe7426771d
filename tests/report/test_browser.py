"""In a real browser the details open, and nothing that a response says is ever executed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import pytest

from rocketeval.report.data import (
    ReportAnswer,
    ReportData,
    ReportExplained,
    ReportItem,
    ReportLoss,
    ReportQuery,
    ReportResponse,
    ReportRow,
    ReportWins,
)
from rocketeval.report.html import build_report

MARK = "document.documentElement.setAttribute('data-executed','1')"
NAME = f"""a/b "c" <img src=x onerror="{MARK}"> %41 ü"""
ATTACK = (
    f"</script><script>{MARK}</script><!--<script>{MARK}</script>-->"
    f'<img src=x onerror="{MARK}"><svg onload="{MARK}"></svg>'
    f'<a href="javascript:{MARK}">click</a><iframe srcdoc="<script>{MARK}</script>"></iframe>'
    "{{script}}\u2028end of the response"
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-logging=stderr",
    "--dump-dom",
)


class Browser:
    """Opens a page at a route, and tells what became of it."""

    def __init__(self, binary: str, folder: Path) -> None:
        self.binary = binary
        self.folder = folder

    def open(self, page: str, route: str = "") -> tuple[str, str]:
        """Return the document after its scripts ran, and the browser's log."""
        file = self.folder / "report.html"
        file.write_text(page, encoding="utf-8")
        profile = f"--user-data-dir={self.folder / 'profile'}"
        command = [self.binary, *FLAGS, profile, file.as_uri() + route]
        done = subprocess.run(command, capture_output=True, timeout=120, check=True)
        return done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")


@pytest.fixture
def browser(tmp_path: Path) -> Browser:
    binary = shutil.which("chromium") or shutil.which("google-chrome")
    if binary is None:
        if os.environ.get("CI") and os.environ.get("ROCKETEVAL_REQUIRE_CHROMIUM"):
            pytest.fail("ROCKETEVAL_REQUIRE_CHROMIUM is set, and there is no chromium to run")
        pytest.skip("no chromium on this machine")
    return Browser(binary, tmp_path)


@pytest.fixture
def hostile(quickstart: ReportData) -> ReportData:
    answers = (
        ReportAnswer(0.25, 0.25, 0.25, "ok"),
        ReportAnswer(None, None, None, "hidden"),
        ReportAnswer(None, 0.35, 1.0, "unbounded"),
    )
    responses = (
        ReportResponse(NAME, ATTACK, None, 3.25, answers, 2),
        ReportResponse("never judged", ATTACK, None, None, ()),
    )
    items = (ATTACK, "Is it hidden?", "Is it wide?")
    figures = (
        ReportItem(0.7, True, 0.25, 0.0, None, ATTACK),
        ReportItem(0.3, False, None, None, -0.5, None),
    )
    query = ReportQuery("q/1 <b>", ATTACK, (), ATTACK, ATTACK, items, responses, figures)
    row = ReportRow(NAME, 1, 1, 1, 1, None, None, 1, 0)
    loss = ReportLoss("q/1 <b>", 1, ATTACK, 0.25, 0.75, 1.5)
    return replace(
        quickstart,
        run_name=ATTACK,
        rows=(row,),
        queries=(query,),
        separation=(ATTACK,),
        wins=ReportWins((NAME, ATTACK), ((None, 1.0), (0.0, None))),
        explained=(ReportExplained(NAME, 1, None, (loss,)),),
    )


def route(*parts: str) -> str:
    return "#/" + "/".join(quote(part, safe="") for part in parts)


def view_of(dom: str) -> str:
    """Return the drawn view, as markup."""
    return dom[dom.index('<div id="view">') : dom.index("</main>")]


class Elements(HTMLParser):
    """Every element of a page with its attributes."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))


def was_executed(dom: str) -> bool:
    return any("data-executed" in attributes for _, attributes in Elements(dom).found)


def assert_inert(dom: str, log: str) -> None:
    assert not was_executed(dom)
    assert "Content Security Policy" not in log
    assert "Uncaught" not in log
    elements = Elements(dom).found
    tags = [tag for tag, _ in elements]
    assert not {"img", "iframe"} & set(tags)
    assert tags.count("script") == 2
    assert not [name for _, names in elements for name in names if name.startswith("on")]


def test_probe_notices_execution(browser: Browser) -> None:
    """The mark that the other tests look for does appear when a script runs."""
    dom, _ = browser.open(f"<!doctype html><html><body><script>{MARK}</script></body></html>")
    assert was_executed(dom)


def test_policy_stops_markup_that_slipped_in(browser: Browser, quickstart: ReportData) -> None:
    """Even if hostile markup got into the page, the policy would not let it run."""
    page = build_report(quickstart).replace("<main>", f"<main><script>{MARK}</script>")
    dom, log = browser.open(page)
    assert not was_executed(dom)
    assert "Content Security Policy" in log


def test_response_of_a_hostile_candidate_is_shown_as_text(
    browser: Browser, hostile: ReportData
) -> None:
    """The response's own view draws text, answers and gaps, and runs nothing."""
    dom, log = browser.open(build_report(hostile), route("candidate", NAME, "q/1 <b>"))
    assert_inert(dom, log)
    view = view_of(dom)
    assert "&lt;/script&gt;&lt;script&gt;document" in view
    assert "end of the response" in view
    assert ">0.25<" in view
    assert "missing: yes and no hidden" in view
    assert "missing (0.35\N{EN DASH}1.00): yes or no hidden, bounds too wide" in view
    assert "2 forged delimiters or tokens disarmed" in view


def test_first_screen_of_a_hostile_run_is_inert(browser: Browser, hostile: ReportData) -> None:
    """Names and items in the table of wins, the losses and the sentences run nothing."""
    dom, log = browser.open(build_report(hostile))
    assert_inert(dom, log)
    assert "&lt;/script&gt;&lt;script&gt;document" in dom[: dom.index('<div id="view"')]


def test_items_of_a_query_carry_their_weights(browser: Browser, hostile: ReportData) -> None:
    """The checklist says what each item weighs and whom it tells apart, and runs nothing."""
    dom, log = browser.open(build_report(hostile), route("query", "q/1 <b>"))
    assert_inert(dom, log)
    view = view_of(dom)
    assert "weight 0.70 (learned; equal would be 0.33)" in view
    assert "weight 0.30 · no answers · correlation with score -0.50" in view
    assert '<span class="tag">&lt;/script&gt;' in view


def test_candidate_lists_its_queries(browser: Browser, hostile: ReportData) -> None:
    """A candidate's view opens from its link and lists each query with its score."""
    page = build_report(hostile)
    link = re.search('href="(#/candidate/[^"]+)"', page)
    assert link is not None
    dom, log = browser.open(page, link[1])
    assert_inert(dom, log)
    assert view_of(dom).count("<details>") == 1
    assert "<b>3.25</b>" in view_of(dom)


def test_query_compares_all_candidates(browser: Browser, hostile: ReportData) -> None:
    """A query's view is a table of every candidate and item, gaps included."""
    dom, log = browser.open(build_report(hostile), route("query", "q/1 <b>"))
    assert_inert(dom, log)
    view = view_of(dom)
    cells = [names.get("class") or "" for tag, names in Elements(view).found if tag == "td"]
    assert [cell for cell in cells if cell] == ["heat no", *["heat gap"] * 5]
    assert "no score" in view
    assert "yes and no hidden" in view


def test_worst_queries_come_first_and_long_lists_are_cut(
    browser: Browser, quickstart: ReportData
) -> None:
    """A candidate's queries are sorted by score, and only the first page of them is drawn."""
    scores = [((7 * place) % 450) / 50 + 1 for place in range(450)]
    queries = tuple(
        ReportQuery(
            f"q{place}", "text", (), None, None, (),
            (ReportResponse("careful", "text", None, None if place == 0 else score, ()),),
        )
        for place, score in enumerate(scores)
    )  # fmt: skip
    page = build_report(replace(quickstart, queries=queries))
    dom, _ = browser.open(page, route("candidate", "careful"))
    view = view_of(dom)
    shown = [float(found) for found in re.findall(r"<b>(\d+\.\d\d)</b>", view)]
    assert shown == [round(score, 2) for score in sorted(scores[1:])[:200]]
    assert "200 of 450 shown" in view


@pytest.mark.parametrize("damaged", ["#/candidate/nobody", "#/query/%E0%A4%A", "#/__proto__"])
def test_unknown_routes_say_so(browser: Browser, quickstart: ReportData, damaged: str) -> None:
    """A link into another report, or a broken one, ends in a sentence."""
    dom, log = browser.open(build_report(quickstart), damaged)
    assert "Not in this report" in view_of(dom)
    assert "Uncaught" not in log

"""The report is one closed file: complete, loud about gaps, and deaf to what it shows."""

from __future__ import annotations

import json
import re
from base64 import b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from typing import Any

import pytest

from rocketeval.errors import RocketEvalError
from rocketeval.records import Interval, Status, Turn
from rocketeval.report.data import (
    STATUS_TEXT,
    ReportAnswer,
    ReportData,
    ReportExplained,
    ReportFigure,
    ReportItem,
    ReportLoss,
    ReportQuery,
    ReportResponse,
    ReportRow,
    ReportWins,
)
from rocketeval.report.html import build_report

HOSTILE = (
    "</script><script>alert(1)</script>",
    "<!--<script>",
    "]]><svg onload=alert(1)>",
    '"><img src=x onerror="alert(1)">',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{data}} {{script}} {{policy}}",
    r"\u003cscript\u003e \1 \g<0>",
    "line\u2028separator\u2029paragraph",
    "nul\x00 bell\x07 escape\x1b",
    "\u202eright to left",
    "&lt;b&gt; &amp;quot;",
    "http://example.org/x.js",
    "日本語 😀",
)


class Page(HTMLParser):
    """The elements of a page, and the text of its scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.raw: dict[str, list[str]] = {"script": [], "style": []}
        self.words: list[str] = []
        self._open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag in self.raw:
            self.raw[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open in self.raw:
            self.raw[self._open][-1] += data
        else:
            self.words.append(data)

    @property
    def skeleton(self) -> list[tuple[str, tuple[str, ...]]]:
        return [(tag, tuple(attributes)) for tag, attributes in self.elements]

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.words).split()).replace("\N{EN DASH}", "-")

    @property
    def embedded(self) -> Any:
        return json.loads(self.raw["script"][0])

    @property
    def policy(self) -> str:
        return next(
            attributes["content"] or ""
            for tag, attributes in self.elements
            if tag == "meta" and "http-equiv" in attributes
        )


def report_of(word: str) -> ReportData:
    """Return a report in which every free text is `word`."""
    answer = ReportAnswer(None, 0.1, 0.9, word)
    response = ReportResponse(word, word, (Turn(word, word),), 5.5, (answer,), 1)
    figures = (ReportItem(1.0, True, 0.5, 0.1, None, word),)
    turns = (Turn(word, word),)
    query = ReportQuery(word, word, turns, word, word, (word,), (response,), figures)
    loss = ReportLoss(word, 1, word, 0.1, 0.9, 3.6)
    interval = Interval(5.0, 4.0, 6.0)
    return ReportData(
        run_name=word,
        judge=word,
        judge_details={word: word},
        author=word,
        rows=(
            ReportRow(word, 1, 1, 2, word, interval, interval, 9, 1),
            ReportRow(word, 2, 1, 2, word, interval, None, 9, 0),
        ),
        scale=(1.0, 10.0),
        queries=(query,),
        queries_omitted=2,
        separation=(word,),
        wins=ReportWins((word, word), ((None, 0.75), (0.25, None)), 3),
        explained=(ReportExplained(word, 1, interval, (loss,)), ReportExplained(word, 2, None, ())),
        counts={word: 3, "queries": 3},
        agreement=(ReportFigure(word, interval, word), ReportFigure(word, None, word)),
        methods=(word,),
        cost={word: word},
        created_with=word,
    )


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_text_changes_no_markup(word: str) -> None:
    """A page full of hostile text has the very elements and attributes of a harmless one."""
    assert (
        Page(build_report(report_of(word))).skeleton
        == Page(build_report(report_of("harmless"))).skeleton
    )


@pytest.mark.parametrize("word", HOSTILE)
def test_embedded_data_round_trips(word: str) -> None:
    """The script reads exactly the text that the run holds."""
    embedded = Page(build_report(report_of(word))).embedded
    query = embedded["queries"][0]
    response = query["responses"][0]
    assert {query["id"], query["text"], query["reference"], *query["items"]} == {word}
    assert {response["candidate"], response["text"], *response["history"][0]} == {word}
    assert response["answers"] == [[None, 0.1, 0.9, word]]
    assert query["figures"][0]["dead"] == word


@pytest.mark.parametrize("word", HOSTILE)
def test_embedded_data_holds_no_character_that_html_reads(word: str) -> None:
    """Inside the JSON block nothing can close it, open a comment or end a line of script."""
    block = Page(build_report(report_of(word))).raw["script"][0]
    assert not re.search("[<>&\u2028\u2029]", block)


@pytest.mark.parametrize("word", HOSTILE)
def test_links_are_routes_of_the_page(word: str) -> None:
    """No name of a candidate can turn its link into anything but a route."""
    page = Page(build_report(report_of(word)))
    links = [attributes["href"] or "" for tag, attributes in page.elements if tag == "a"]
    assert links
    assert all(re.fullmatch(r"#[/\w.~%-]*", link) for link in links)


def test_lone_surrogate_can_still_be_written() -> None:
    """Text that UTF-8 cannot hold is shown as the replacement character, not refused."""
    page = build_report(report_of("a\ud800b"))
    assert "a\N{REPLACEMENT CHARACTER}b" in page.encode("utf-8").decode("utf-8")


def test_there_are_two_scripts_and_one_style(quickstart: ReportData) -> None:
    """One block of data, one program, one style sheet."""
    page = Page(build_report(quickstart))
    scripts = [attributes for tag, attributes in page.elements if tag == "script"]
    assert scripts == [{"type": "application/json", "id": "data"}, {}]
    assert len(page.raw["style"]) == 1


def test_policy_allows_the_inlined_script_and_style_alone(quickstart: ReportData) -> None:
    """The hashes in the policy are those of what the page really holds."""
    page = Page(build_report(quickstart))
    directives = dict(part.split(" ", 1) for part in page.policy.split("; "))
    assert directives == {
        "default-src": "'none'",
        "script-src": quoted_hash(page.raw["script"][1]),
        "style-src": quoted_hash(page.raw["style"][0]),
        "img-src": "data:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def quoted_hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"


def test_nothing_is_loaded(quickstart: ReportData) -> None:
    """No attribute, style or script names anything outside the file."""
    page = Page(build_report(quickstart))
    addresses = {
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "action", "poster", "data"}
    }
    assert all(value is not None and value.startswith(("#", "data:,")) for value in addresses)
    assert not re.search(r"url\(|@import", page.raw["style"][0])
    assert not re.search(r"fetch\(|XMLHttp|WebSocket|import\(|https?:", page.raw["script"][1])


def test_script_never_parses_markup(quickstart: ReportData) -> None:
    """The program has none of the doors through which text becomes markup or code."""
    doors = r"innerHTML|outerHTML|insertAdjacent|document\.write|DOMParser|eval\(|Function\("
    assert not re.search(doors, Page(build_report(quickstart)).raw["script"][1])


def test_no_style_attribute(quickstart: ReportData) -> None:
    """The policy refuses style attributes, so none may be relied on."""
    page = Page(build_report(quickstart))
    assert not [tag for tag, attributes in page.elements if "style" in attributes]


def test_same_data_same_bytes(quickstart: ReportData) -> None:
    """Two reports of one run are equal byte for byte."""
    assert build_report(quickstart) == build_report(replace(quickstart))


def test_leaderboard_reads_without_scripts(quickstart: ReportData) -> None:
    """Ranks, ratings, scores and their intervals are in the markup itself."""
    shown = Page(build_report(quickstart)).text
    assert "1 1-2 careful 1288 1221-1371 9.20 8.90-9.50 0 of 12" in shown
    assert "5 broken 612 520-701 3.10 2.50-3.80 2 of 12" in shown


def test_inseparable_candidates_are_joined(quickstart: ReportData) -> None:
    """Each group of several gets one bracket over its rows, a group of one gets none."""
    page = Page(build_report(quickstart))
    spans = [a["rowspan"] for tag, a in page.elements if tag == "th" and "rowspan" in a]
    assert spans == ["2", "2"]


def test_inseparable_candidates_are_named_in_words(quickstart: ReportData) -> None:
    """A reader who knows no brackets still reads which order is not a finding."""
    sentence = "Group 1: solid cannot be told apart from careful."
    assert sentence in Page(build_report(replace(quickstart, separation=(sentence,)))).text


def test_wins_read_without_colour_or_script(quickstart: ReportData) -> None:
    """Every cell is a number beside full names; the rest of a long ranking is counted."""
    wins = ReportWins(("careful", "solid"), ((None, 0.625), (0.375, None)), 40)
    page = Page(build_report(replace(quickstart, wins=wins)))
    assert "Row beats column 1 careful 2 solid 1 careful - 62 2 solid 38 -" in page.text
    assert "The first 2 are shown, 40 more are ranked" in page.text
    shades = [a.get("class") for tag, a in page.elements if tag == "td" and "class" in a]
    assert {"w6", "w4"} <= set(shades)


def test_no_table_of_too_many_candidates(quickstart: ReportData) -> None:
    """Where the ranking has no matrix, the page says why."""
    assert "too many candidates for a table of pairs" in Page(build_report(quickstart)).text


def test_losses_are_folded_and_need_no_script(quickstart: ReportData) -> None:
    """Each candidate's losses stand in the markup with item, query and both probabilities."""
    loss = ReportLoss(quickstart.queries[0].id, 3, "Is it right?", 0.1, 0.9, 1.25)
    absent = ReportLoss("not in the file", 1, "Is it kind?", 0.2, 0.7, 0.5)
    explained = (
        ReportExplained("careful", 1, Interval(-0.4, -0.6, -0.2), ()),
        ReportExplained("solid", 2, Interval(0.3, 0.1, 0.5), (loss, absent)),
        ReportExplained("silent", 3, None, ()),
    )
    page = Page(build_report(replace(quickstart, explained=explained)))
    assert "1 careful no item costs it points gains 0.40 points a query 0.20-0.60" in page.text
    assert "2 solid Is it right? loses 0.30 points a query 0.10-0.50" in page.text
    assert f"1.25 Is it right? {quickstart.queries[0].id} , item 3 0.10 0.90" in page.text
    assert "3 silent no item costs it points not compared" in page.text
    assert "The first 3 of 5 candidates are shown" in page.text
    links = [a["href"] for tag, a in page.elements if tag == "a" and "#/query/" in str(a["href"])]
    assert links == [f"#/query/{quickstart.queries[0].id}"]


def test_an_unexplained_run_says_how_to_explain_it(quickstart: ReportData) -> None:
    """A missing part names the command that makes it."""
    assert "rocketeval explain" in Page(build_report(quickstart)).text


def test_a_loss_that_is_no_number_is_refused(quickstart: ReportData) -> None:
    """The report names item, query and candidate of a broken figure."""
    loss = ReportLoss("q", 3, "Is it right?", 0.1, float("nan"), 1.25)
    broken = replace(quickstart, explained=(ReportExplained("solid", 2, None, (loss,)),))
    with pytest.raises(RocketEvalError, match="item 3 of query 'q', candidate 'solid'"):
        build_report(broken)


def test_audit_figures_stand_beside_their_baselines(quickstart: ReportData) -> None:
    """Agreement is shown as a share with its interval, and what it must beat next to it."""
    shown = Page(build_report(quickstart)).text
    assert "Agreement with votes 120 votes by people 74.2 % 66.0-81.0 %" in shown
    assert "baseline Longer response wins 48.3 %" in shown
    assert "Kendall of the ranking needs reference ratings missing" in shown


def test_unaudited_run_says_so(quickstart: ReportData) -> None:
    """Without labels and votes the report does not keep silent about trust."""
    assert "Not audited" in Page(build_report(replace(quickstart, agreement=()))).text


def test_every_loss_is_loud(quickstart: ReportData) -> None:
    """Any count that is no plain size, known or not, is listed at the top."""
    losses = {"queries": 12, "hidden": 4, "unheard_of_loss": 7}
    shown = Page(build_report(replace(quickstart, counts=losses, queries_omitted=1_000))).text
    notice = shown[shown.index("Not complete") : shown.index("Leaderboard Rank")]
    assert "2 responses without a score" in notice
    assert "4 answers: yes and no hidden" in notice
    assert "7 unheard of loss" in notice
    assert "1,000 queries scored and ranked, but left out" in notice


def test_complete_run_has_no_notice(quickstart: ReportData) -> None:
    """A run that lost nothing is not cried wolf over, and its zeros are still stated."""
    rows = tuple(replace(row, missing=0) for row in quickstart.rows)
    whole = replace(quickstart, rows=rows, counts={"queries": 12, "truncated": 3, "hidden": 0})
    shown = Page(build_report(whole)).text
    assert "Not complete" not in shown
    assert "None of these: answers: yes and no hidden." in shown


def test_missing_rating_and_score_are_shown(quickstart: ReportData) -> None:
    """A candidate without figures keeps its row and says that they are missing."""
    row = ReportRow("silent", 1, 1, 1, 1, None, None, 12, 12)
    shown = Page(build_report(replace(quickstart, rows=(row,)))).text
    assert "1 silent missing missing 12 of 12" in shown


def test_run_without_candidates_still_has_a_report(quickstart: ReportData) -> None:
    """Nothing ranked is a sentence, not an empty table."""
    shown = Page(build_report(replace(quickstart, rows=(), queries=()))).text
    assert "No candidate has been ranked." in shown


def test_every_status_has_words() -> None:
    """A new status cannot appear in reports under its bare name."""
    assert set(STATUS_TEXT) == set(Status) - {Status.OK}


def test_wide_bounds_of_an_ok_answer_are_kept(quickstart: ReportData) -> None:
    """An answer is stored as a bare number only when its bounds could not be seen."""
    answers = (
        ReportAnswer(0.8, 0.8, 0.8, "ok"),
        ReportAnswer(0.8, 0.7, 0.9, "ok"),
        ReportAnswer(0.812345, None, None, "ok"),
    )
    response = ReportResponse("a", "text", None, None, answers)
    query = ReportQuery("q", "text", (), None, None, ("x", "y", "z"), (response,))
    embedded = Page(build_report(replace(quickstart, queries=(query,)))).embedded
    stored = embedded["queries"][0]["responses"][0]["answers"]
    assert stored == [0.8, [0.8, 0.7, 0.9, "ok"], 0.8123]


@pytest.mark.parametrize("number", [float("nan"), float("inf")])
def test_probability_that_is_no_number_is_refused(quickstart: ReportData, number: float) -> None:
    """A broken figure stops the report and names the response it belongs to."""
    response = ReportResponse("a", "t", None, None, (ReportAnswer(number, None, None, "ok"),))
    query = ReportQuery("q", "t", (), None, None, ("x",), (response,))
    with pytest.raises(RocketEvalError, match="the response of 'a' to query 'q'"):
        build_report(replace(quickstart, queries=(query,)))


def test_open_ended_rating_is_shown_but_nan_is_refused(quickstart: ReportData) -> None:
    """A candidate that never lost has no upper end; a rating that is NaN is a fault."""
    row = quickstart.rows[0]
    endless = replace(row, rating=Interval(1500, 1400, float("inf")))
    assert "1400-\N{INFINITY}" in Page(build_report(replace(quickstart, rows=(endless,)))).text
    broken = replace(row, rating=Interval(1500, float("nan"), 1600))
    with pytest.raises(RocketEvalError, match="candidate 'careful'"):
        build_report(replace(quickstart, rows=(broken,)))

"""The report is one self-contained file that shows missing data and runs no embedded text."""

from __future__ import annotations

import gzip
import json
import re
from base64 import b64decode, b64encode
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from importlib import resources
from typing import Any

import pytest

from rocketeval.errors import RocketEvalError
from rocketeval.report import page as module
from rocketeval.report.blocks import plain
from rocketeval.report.model import RankedLine, RunLine, RunsHead
from rocketeval.report.page import embedded_page, served_page

from .conftest import SURE, MakeSource, made_up, made_up_head

HOSTILE = (
    "</script><script>alert(1)</script>",
    "</noscript><script>alert(1)</script>",
    "<!--<script>",
    "]]><svg onload=alert(1)>",
    '"><img src=x onerror="alert(1)">',
    "' onmouseover='alert(1)",
    "javascript:alert(1)",
    "{{head}} {{script}} {{policy}}",
    r"\u003cscript\u003e \1 \g<0>",
    "line\u2028separator\u2029paragraph",
    "nul\x00 bell\x07 escape\x1b",
    "\u202eright to left",
    "&lt;b&gt; &amp;quot;",
    "http://example.org/x.js",
    "日本語 😀",
)

QUERY_BLOCKS = ("query-0", "query-1", "query-2")


class Page(HTMLParser):
    """The parsed elements of a page, and the text of its scripts and styles."""

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
        return " ".join(" ".join(self.words).split())

    @property
    def scripts(self) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == "script"]

    @property
    def head(self) -> Any:
        return json.loads(self.raw["script"][0])

    def block(self, name: str) -> Any:
        places = [attributes.get("id") for attributes in self.scripts]
        packed = b64decode(self.raw["script"][places.index(f"block-{name}")])
        return json.loads(gzip.decompress(packed))

    @property
    def policy(self) -> dict[str, str]:
        content = next(
            attributes["content"] or ""
            for tag, attributes in self.elements
            if tag == "meta" and "http-equiv" in attributes
        )
        return dict(part.split(" ", 1) for part in content.split("; "))


@pytest.mark.parametrize("word", HOSTILE)
def test_hostile_text_changes_no_markup(word: str) -> None:
    """A page with hostile text has the same elements and attributes as a harmless one."""
    assert Page(embedded_page(made_up(word))).skeleton == Page(embedded_page(made_up())).skeleton


@pytest.mark.parametrize("word", HOSTILE)
def test_head_and_blocks_round_trip(word: str) -> None:
    """The script reads the exact text of the run."""
    page = Page(embedded_page(made_up(word)))
    expected = plain(replace(made_up_head(word), blocks="embedded"))
    assert page.head == json.loads(json.dumps(expected))
    assert page.block("queries")["id"] == [word] * 3
    assert page.block("query-1")["text"] == word
    assert page.block("query-1")["texts"][0].startswith(word)


@pytest.mark.parametrize("word", HOSTILE)
def test_embedded_json_has_no_html_characters(word: str) -> None:
    """Nothing in the head can close its element, open a comment or end a line of script."""
    head = Page(embedded_page(made_up(word))).raw["script"][0]
    assert not re.search("[<>&\u2028\u2029]", head)


def test_lone_surrogates_are_replaced() -> None:
    """Text that UTF-8 cannot encode does not stop the report."""
    page = Page(embedded_page(made_up("a\ud800b")).encode().decode())
    assert page.head["run"] == "a\N{REPLACEMENT CHARACTER}b"
    assert page.block("query-0")["text"] == "a\N{REPLACEMENT CHARACTER}b"


def test_blocks_come_after_the_script(make_source: MakeSource) -> None:
    """The first screen renders while the browser still reads the blocks."""
    scripts = Page(embedded_page(make_source())).scripts
    assert scripts[0] == {"type": "application/json", "id": "head"}
    assert scripts[1] == {}
    names = [script.get("id") for script in scripts[2:]]
    assert names == [
        f"block-{name}"
        for name in ("queries", "scores", "pairs", "answers", "items", *QUERY_BLOCKS)
    ] + ["third-party"]
    assert {script.get("type") for script in scripts[2:-1]} == {"application/octet-stream"}


def test_policy_allows_only_the_inlined_script_and_style(make_source: MakeSource) -> None:
    """The hashes in the policy match the content of the page."""
    page = Page(embedded_page(make_source()))
    styles = json.loads(
        resources.files("rocketeval.report").joinpath("page/style-hashes.json").read_text()
    )
    extra = [f"'{style}'" for style in styles]
    assert all(re.fullmatch(r"'sha256-[A-Za-z0-9+/]{43}='", style) for style in extra)
    assert page.policy == {
        "default-src": "'none'",
        "script-src": quoted_hash(page.raw["script"][1]),
        "style-src": " ".join([quoted_hash(page.raw["style"][0]), *extra]),
        "img-src": "data: blob:",
        "base-uri": "'none'",
        "form-action": "'none'",
    }


def quoted_hash(source: str) -> str:
    return f"'sha256-{b64encode(sha256(source.encode()).digest()).decode()}'"


def test_a_served_page_connects_only_to_its_server(make_source: MakeSource) -> None:
    """It has no blocks and fetches them."""
    page = Page(served_page(make_source().head, "report"))
    assert page.policy["connect-src"] == "'self'"
    assert page.head["blocks"] == "served"
    assert len(page.scripts) == 2
    assert ("body", {"data-page": "report"}) in page.elements


@pytest.mark.parametrize("word", ["harmless", *HOSTILE])
def test_the_list_of_runs_is_a_page(word: str) -> None:
    """It embeds its head and is readable without scripts."""
    line = RunLine(
        name=word,
        at=word,
        benchmark=word,
        created=word,
        state="finished",
        why="",
        judge=word,
        method=word,
        scorer=word,
        queries=3,
        candidates=2,
        done=6,
        total=6,
        seconds=None,
        prompt_tokens=0,
        cost=None,
        currency="",
        trust=None,
        ranking=(RankedLine(word, SURE, None),),
    )
    page = Page(served_page(RunsHead(word, word, word, (line,)), "runs"))
    assert ("body", {"data-page": "runs"}) in page.elements
    assert page.head["runs"][0]["name"] == word
    assert " ".join(word.split()) in " ".join(page.text.replace("\x1f", " ").split())


def test_nothing_is_loaded(make_source: MakeSource) -> None:
    """No attribute refers to anything outside the file, and there are no style attributes."""
    page = Page(embedded_page(make_source()))
    addresses = {
        value
        for _, attributes in page.elements
        for name, value in attributes.items()
        if name in {"src", "href", "srcset", "action", "poster", "data"}
    }
    assert all(value is not None and value.startswith("data:") for value in addresses)
    assert not [tag for tag, attributes in page.elements if "style" in attributes]
    assert not re.search(r"url\((?!\s*['\"]?data:)|@import", page.raw["style"][0])


def test_script_and_style_cannot_end_their_elements() -> None:
    """The files contain no closing tag of a script or a style."""
    folder = resources.files("rocketeval.report").joinpath("page")
    assert not re.search("</script|<!--", folder.joinpath("app.js").read_text("utf-8"), re.I)
    assert "</style" not in folder.joinpath("app.css").read_text("utf-8").lower()


def test_the_page_is_reproducible(make_source: MakeSource) -> None:
    """Two reports of one run are equal to the byte."""
    assert embedded_page(make_source()) == embedded_page(make_source())


def test_leaderboard_reads_without_scripts(make_source: MakeSource) -> None:
    """Ranks, ratings, scores with intervals and missing data are in the markup."""
    shown = Page(embedded_page(make_source("solid"))).text
    assert "1 (1 to 2) solid 5 (4 to 6) 5.00 (4.00 to 6.00) 1 of 9" in shown
    assert "not ranked solid missing missing 9 of 9" in shown
    assert "Missing data 2 solid" in shown


def test_run_without_candidates_has_a_page() -> None:
    """It shows a sentence instead of an empty table."""
    head = replace(made_up_head("run"), candidates=())
    assert "No candidate is ranked" in Page(served_page(head, "report")).text


def test_a_missing_bundle_is_an_error_with_advice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A checkout may lack the built page."""
    elsewhere = resources.files("rocketeval.prompts")
    monkeypatch.setattr(module.resources, "files", lambda _: elsewhere)
    with pytest.raises(RocketEvalError, match="missing from this installation"):
        served_page(made_up_head("run"), "report")

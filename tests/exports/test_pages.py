"""Markdown and LaTeX tables stay valid with any name."""

from __future__ import annotations

import html
import re
from pathlib import Path

import pytest

import rocketeval
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.exports import display as latex
from rocketeval.exports import display as markdown
from rocketeval.exports.display import TextTable
from support.make import make_config, write_benchmark

SPECIALS = "\\{}$&#%_^~<>|`[]*\"'-"


def table(name: str) -> TextTable:
    """Return a table with the name in every text cell."""
    return TextTable(
        title=name,
        label="x",
        heads=("Name", "Figure"),
        numeric=(False, True),
        rows=((name, "-0.12 (-0.30 to 0.05)"), ("b", "3 (1\N{EN DASH}4)")),
        notes=(name,),
    )


def braces(source: str) -> int:
    """Return the number of open groups at the end; fail on an unmatched closing brace."""
    depth = 0
    for sign in re.findall(r"\\\\.|\\.|[{}]|%.*", re.sub(r"^%.*$", "", source, flags=re.M)):
        assert not sign.startswith("%"), "a comment swallows the rest of the line"
        depth += {"{": 1, "}": -1}.get(sign, 0)
        assert depth >= 0
    return depth


@pytest.mark.parametrize("name", [*SPECIALS, SPECIALS, SPECIALS * 2, "a\nb\x1b", r"\input{x}"])
def test_latex_stays_valid(name: str) -> None:
    """Braces balance, special characters are escaped, and each row has all its cells."""
    source = latex.latex(table(name))
    assert braces(source) == 0
    body = source.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
    assert len(body) == 2
    for line in body:
        assert len(re.findall(r"(?<!\\)&", line)) == 1
        assert line.endswith(r" \\")
        assert not line.startswith(("[", "*"))
    assert source.count("\\end{table}") == 1


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\\", r"\textbackslash{}"),
        ("a_b", r"a\_b"),
        ("5%", r"5\%"),
        ("{x}", r"\{x\}"),
        ("~^", r"\textasciitilde{}\textasciicircum{}"),
        ("--", "-{}-"),
        ("gpt-4", "gpt-4"),
        ("<|>", r"\textless{}\textbar{}\textgreater{}"),
        ("$&#", r"\$\&\#"),
        ("[a]", "{[}a{]}"),
        ("a\x00b", "a?b"),
    ],
)
def test_latex_escapes(text: str, expected: str) -> None:
    """Every special character is printed literally."""
    assert latex.escape_latex(text) == expected


def test_latex_numbers_have_minus_signs() -> None:
    """Not hyphens; a range has a dash."""
    source = latex.latex(table("a"))
    assert "$-$0.12 ($-$0.30 to 0.05)" in source
    assert "3 (1--4)" in source


@pytest.mark.parametrize(
    "name", [*SPECIALS, SPECIALS * 2, "a|b\nc", "<script>x</script>", "![i](http://e.x)", "@me"]
)
def test_markdown_stays_a_table(name: str) -> None:
    """Each row has all its cells; HTML, links and line breaks are text."""
    page = markdown.markdown(table(name))
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    assert len(rows) == 4
    for row in rows:
        assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 3
    shown = page.replace("<!-- -->", "")
    assert not re.search(r"[<>]", shown)
    cell = rows[2].removeprefix("| ").split(" | -0.12")[0].replace("<!-- -->", "")
    plain = html.unescape(re.sub(r"\\([!-/:-@\[-`{-~])", r"\1", cell))
    assert plain == name.replace("\n", " ")


def test_markdown_makes_no_links() -> None:
    """URLs and @names do not become links."""
    escaped = markdown.escape_markdown("see www.evil.example, https://evil.example and @somebody")
    assert "www.evil" not in escaped
    assert "https://" not in escaped
    assert "@somebody" not in escaped


def test_counts_of_one_are_singular(tmp_path: Path) -> None:
    """A ranking over one query says "1 query"."""
    folder = write_benchmark(tmp_path / "benchmark")
    for path in (*folder.glob("*.jsonl"), *folder.glob("responses/*.jsonl")):
        path.write_text(path.read_text().splitlines()[0] + "\n")
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine())
    for what in ("ranking", "audit"):
        rocketeval.Run(config).export("markdown", tmp_path / f"{what}.md", what=what)
    assert (tmp_path / "ranking.md").read_text().startswith("**Ranking over 1 query, judged by")
    assert "| 1 vote |" in (tmp_path / "audit.md").read_text()

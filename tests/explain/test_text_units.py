"""Splitting of responses into sentences, list items, code blocks and tables."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rocketeval.explain.text_units import MOST_UNITS, split_text, without


def _units(text: str) -> list[str]:
    return [piece.text.strip() for piece in split_text(text)[0] if piece.unit]


@pytest.mark.parametrize(
    ("text", "units"),
    [
        ("Rest it. Use ice!", ["Rest it.", "Use ice!"]),
        ("Hello Dr. Smith. It costs 3.5 USD.", ["Hello Dr. Smith.", "It costs 3.5 USD."]),
        ("See e.g. Rome. Go.", ["See e.g. Rome.", "Go."]),
        (
            "Really?! \u201cYes.\u201d He left\u2026 Then.",
            ["Really?!", "\u201cYes.\u201d", "He left\u2026", "Then."],
        ),
        ("**Do this.** Not that.", ["**Do this.**", "Not that."]),
        (
            "\u4f60\u597d\u3002\u8d70\u5427\uff01\u597d\u3002",
            ["\u4f60\u597d\u3002", "\u8d70\u5427\uff01", "\u597d\u3002"],
        ),
        ("It ends\nhere. And\nthere.", ["It ends\nhere.", "And\nthere."]),
        ("An old pond\nA frog jumps in\nSplash", ["An old pond", "A frog jumps in", "Splash"]),
    ],
)
def test_prose_is_split_into_sentences(text: str, units: list[str]) -> None:
    """Abbreviations, numbers, quotes, other scripts, wrapped lines and verse."""
    assert _units(text) == units


def test_blocks_are_units() -> None:
    """A list item with several sentences, a heading, a table, a formula and a quote stay whole."""
    table = "| a | b |\n|---|:-:|\n| 1. Yes. | 2 |"
    blocks = [
        "# Title. Not two.",
        "Before the list:",
        "1. First. With more.\n   And a further line.",
        "2. Second.",
        "- nested",
        table,
        "$$\nx = 1. Y\n$$",
        "> One. Two.\n> Three.",
        "    indented. Code",
    ]
    text = "\n".join(blocks[:5]) + "\n\n" + "\n\n".join(blocks[5:])
    assert _units(text) == [block.strip() for block in blocks]


def test_code_is_split_at_blank_lines_within_its_fences() -> None:
    """The fences stay; a block without blank lines is one unit with its fences."""
    code = "Run:\n```python\na = 1. B\nb = 2\n\nc = 3\n```\nDone."
    pieces, _ = split_text(code)
    assert _units(code) == ["Run:", "a = 1. B\nb = 2", "c = 3", "Done."]
    place = next(at for at, piece in enumerate(pieces) if piece.text.startswith("c = 3"))
    assert without(pieces, place) == "Run:\n```python\na = 1. B\nb = 2\n\n```\nDone."
    assert _units("```\na. B\n```") == ["```\na. B\n```"]
    assert _units("~~~\nnot closed. B") == ["~~~\nnot closed. B"]


def test_long_texts_are_asked_in_blocks_of_neighbors() -> None:
    """As many blocks as allowed, of about the same number of sentences; fences are not parted."""
    text = " ".join(f"Sentence {number} ends here." for number in range(101))
    pieces, units = split_text(text)
    sizes = [piece.text.count("ends") for piece in pieces]
    assert (units, len(pieces), sum(sizes)) == (101, MOST_UNITS, 101)
    assert max(sizes) - min(sizes) <= 1
    code = "```\n" + "\n\n".join(f"line {number}" for number in range(60)) + "\n```\n"
    blocks = [piece.text for piece in split_text(code + text)[0] if piece.unit]
    assert all(block.count("```") in (0, 2) for block in blocks)


def test_leaving_out_the_last_sentence_leaves_no_blanks() -> None:
    pieces, _ = split_text("One. Two.")
    assert [without(pieces, place) for place in (0, 1)] == ["Two.", "One."]
    assert without(split_text("Only.")[0], 0) == ""


@given(st.text(alphabet=st.sampled_from("aB1 .!?\n`~|-*>#$\\[]\u3002\u0964\t("), max_size=200))
def test_pieces_are_the_text(text: str) -> None:
    """Whatever the text, nothing is lost, and only blanks have no unit."""
    pieces, units = split_text(text, most=5)
    assert "".join(piece.text for piece in pieces) == text
    assert sum(piece.unit for piece in pieces) <= 5
    assert (units == 0) == (not text.strip())


@pytest.mark.parametrize("text", ["." * 50_000 + "x", "|" + " " * 50_000 + "x", "\\[\n" * 3_000])
def test_hostile_texts_are_split_in_linear_time(text: str) -> None:
    """They would take minutes with a pattern that backtracks."""
    assert split_text(text)[1] >= 1

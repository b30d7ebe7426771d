"""Splitting of a response into units that can be left out: sentences, list items, code, tables.

Units never overlap, and all pieces in order are the text. What is between units is never left out:
blank lines, and the fences around code that is split.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

MOST_UNITS = 40
"""Units of one response; neighbors of longer ones are joined."""
SHORT_LINE = 60
"""Wrapped text has longer lines: a shorter one ends its unit if a capital letter follows."""
MOST_FORMULA_LINES = 100


@dataclass(frozen=True, slots=True)
class TextPiece:
    """A part of a text."""

    text: str
    unit: bool
    """Whether it can be left out."""


Span = tuple[int, int]
"""Start and end of a unit."""


def split_text(text: str, most: int = MOST_UNITS) -> tuple[tuple[TextPiece, ...], int]:
    """Return the pieces of a text with at most `most` units, and the number of units before that.

    >>> pieces, units = split_text("Rest it. Use ice, e.g. a pack.\\n\\n- Call a doctor.")
    >>> [piece.text for piece in pieces if piece.unit], units
    (['Rest it. ', 'Use ice, e.g. a pack.\\n', '- Call a doctor.'], 3)
    """
    spans = list(_units(text))
    count = len(spans)
    if count > most:
        # Joined units must not contain one fence of a block without the other.
        spans = _joined(list(_units(text, whole_code=True)), most)
    return tuple(_pieces(text, spans)), count


def without(pieces: Sequence[TextPiece], place: int) -> str:
    """Return the text without the piece at `place`.

    >>> without(split_text("One. Two. Three.")[0], 2)
    'One. Two.'
    """
    rest = "".join(piece.text for at, piece in enumerate(pieces) if at != place)
    # Without the last unit, the blanks before it would be left at the end.
    kept = pieces[-1].text if pieces else ""
    return rest if kept[-1:].isspace() else rest.rstrip()


def _joined(spans: Sequence[Span], most: int) -> list[Span]:
    """Join neighbors into at most `most` spans with about the same number of units."""
    if len(spans) <= most:
        return list(spans)
    cuts = [round(place * len(spans) / most) for place in range(most + 1)]
    return [(spans[first][0], spans[last - 1][1]) for first, last in pairwise(cuts)]


def _pieces(text: str, spans: Iterable[Span]) -> Iterator[TextPiece]:
    at = 0
    for start, end in spans:
        if start > at:
            yield TextPiece(text[at:start], unit=False)
        yield TextPiece(text[start:end], unit=True)
        at = end
    if at < len(text):
        yield TextPiece(text[at:], unit=False)


@dataclass(frozen=True, slots=True)
class _Line:
    start: int
    end: int
    text: str
    """Without its line break."""

    @property
    def blank(self) -> bool:
        return not self.text.strip()


_FENCE = re.compile(r" {0,3}(?:[-*+>] +|\d+[.)] +)?(`{3,}|~{3,})")
_LIST = re.compile(r"\s*(?:[-*+\u2022]|\(?\d{1,3}[.)]|\(?[A-Za-z][.)])\s+\S")
_HEADING = re.compile(r" {0,3}(?:#{1,6}\s|\*\*[^*]+\*\*:?\s*$)")
_QUOTE = re.compile(r" {0,3}>")
_INDENTED = re.compile(r"(?: {4}|\t)")
_MATH = ((re.compile(r"\s*\$\$"), "$$"), (re.compile(r"\s*\\\["), "\\]"))


def _units(text: str, *, whole_code: bool = False) -> Iterator[Span]:
    """Yield all units; with `whole_code`, a fenced block is always one unit."""
    lines = list(_lines(text))
    at = 0
    while at < len(lines):
        if lines[at].blank:
            at += 1
            continue
        end, spans = _block(text, lines, at)
        fenced = whole_code and _FENCE.match(lines[at].text)
        yield from [_span(lines, at, end)] if fenced else spans
        at = end


def _lines(text: str) -> Iterator[_Line]:
    start = 0
    for line in text.splitlines(keepends=True):
        yield _Line(start, start + len(line), line.rstrip("\r\n"))
        start += len(line)


def _block(text: str, lines: Sequence[_Line], at: int) -> tuple[int, list[Span]]:
    """Return the line after the block that starts at a line, and the units of the block."""
    line = lines[at]
    fence = _FENCE.match(line.text)
    if fence:
        return _code(lines, at, fence[1])
    for opening, closing in _MATH:
        found = opening.match(line.text)
        if found:
            end = _closing_line(lines, at, closing, found.end())
            return end, [_span(lines, at, end)]
    if _HEADING.match(line.text):
        return at + 1, [_span(lines, at, at + 1)]
    if _is_table(lines, at):
        return _whole(lines, at, lambda one: "|" in one)
    if _QUOTE.match(line.text):
        return _whole(lines, at, lambda one: _QUOTE.match(one) is not None)
    if _LIST.match(line.text):
        end = _end_of_entry(lines, at)
        return end, [_span(lines, at, end)]
    if _INDENTED.match(line.text):
        return _whole(lines, at, lambda one: _INDENTED.match(one) is not None)
    end = at + 1
    while end < len(lines) and not lines[end].blank and not _starts_block(lines, end):
        end += 1
    return end, list(_sentences(text, lines[at:end]))


def _starts_block(lines: Sequence[_Line], at: int) -> bool:
    text = lines[at].text
    starts = (_FENCE, _HEADING, _QUOTE, _LIST, *(opening for opening, _ in _MATH))
    return any(start.match(text) for start in starts) or _is_table(lines, at)


def _span(lines: Sequence[_Line], first: int, end: int) -> Span:
    return lines[first].start, lines[end - 1].end


def _whole(
    lines: Sequence[_Line], at: int, belongs: Callable[[str], bool]
) -> tuple[int, list[Span]]:
    """Return the following lines that belong together as one unit."""
    end = at + 1
    while end < len(lines) and not lines[end].blank and belongs(lines[end].text):
        end += 1
    return end, [_span(lines, at, end)]


def _is_table(lines: Sequence[_Line], at: int) -> bool:
    if "|" not in lines[at].text or at + 1 == len(lines):
        return False
    ruler = lines[at + 1].text
    return "-" in ruler and not ruler.strip(" \t|:-")


def _closing_line(lines: Sequence[_Line], at: int, mark: str, inside: int) -> int:
    """Return the line after the one that closes a block; a block without an end is one line."""
    if mark in lines[at].text[inside:]:
        return at + 1
    following = range(at + 1, min(len(lines), at + MOST_FORMULA_LINES))
    return next((n + 1 for n in following if mark in lines[n].text), at + 1)


def _code(lines: Sequence[_Line], at: int, fence: str) -> tuple[int, list[Span]]:
    """Return a fenced block: one unit, or its parts between blank lines."""
    closing = re.compile(rf"\s*{re.escape(fence)}{re.escape(fence[0])}*\s*$")
    close = next((n for n in range(at + 1, len(lines)) if closing.match(lines[n].text)), None)
    end = len(lines) if close is None else close + 1
    inner = range(at + 1, end if close is None else close)
    parts: list[Span] = []
    first = None
    for n in [*inner, None]:
        if n is not None and not lines[n].blank:
            first = n if first is None else first
        elif first is not None:
            parts.append(_span(lines, first, inner.stop if n is None else n))
            first = None
    return end, parts if len(parts) > 1 else [_span(lines, at, end)]


def _end_of_entry(lines: Sequence[_Line], at: int) -> int:
    """Return the line after a list entry, with its indented lines, without nested entries."""
    end = at + 1
    while end < len(lines):
        text = lines[end].text
        if lines[end].blank or _LIST.match(text) or _FENCE.match(text.lstrip()):
            break
        if not text[:1].isspace() and _starts_block(lines, end):
            break
        end += 1
    return end


_CLOSERS = "\"'\u2019\u201d)\\]\u00bb*_`"
_END = re.compile(
    rf"(?:(?<![.!?\u2026])[.!?\u2026]+[{_CLOSERS}]*(?=\s)|[\u3002\uff01\uff1f\u0964\u06d4\u061f\u1362]+"
    rf"[{_CLOSERS}\u300d\u300f]*)\s*"
)
"""The end of a sentence with the blanks after it; some scripts write none."""
_OPENERS = "\"'\u2018\u201c(\\[\u00ab*_`#\u00bf\u00a1"
_CONTINUES = re.compile(rf"[{_OPENERS}]*[^\W\d_]")
_SHORT = re.compile(
    r"(?:^|[\s(\"'*_])(?:e\.g|i\.e|cf|vs|etc|approx|ca|al|Dr|Mr|Mrs|Ms|Prof|St|Sr|Jr|No|Nos|Fig|"
    r"Eq|Sec|Ch|Vol|pp|p|Inc|Ltd|Co|Corp|dept|est|min|max|[A-Z]|(?:[A-Za-z]\.)+[A-Za-z])\.$",
    re.IGNORECASE,
)
"""Abbreviations, initials and acronyms, which end in a period within a sentence."""


def _sentences(text: str, lines: Sequence[_Line]) -> Iterator[Span]:
    """Yield the sentences of a paragraph, each with the blanks after it."""
    start, stop = lines[0].start, lines[-1].end
    ends = {match.end() for match in _END.finditer(text, start, stop) if _ends(text, match, start)}
    ends |= {one.end for one, after in pairwise(lines) if _is_own_line(one, after)}
    for end in sorted({*ends, stop}):
        if end > start:
            yield start, end
            start = end


def _ends(text: str, end: re.Match[str], start: int) -> bool:
    mark = end[0].rstrip()
    if not mark[0].isascii():
        return True
    after = _CONTINUES.match(text, end.end())
    if after is not None and after[0][-1].islower():
        return False
    before = text[max(start, end.start() - 20) : end.start() + 1]
    return mark[0] != "." or mark.startswith("..") or _SHORT.search(before) is None


def _is_own_line(line: _Line, after: _Line) -> bool:
    """Return whether a line is a unit of its own, such as a verse, and not part of wrapped text."""
    begins = _CONTINUES.match(after.text.lstrip())
    return len(line.text) < SHORT_LINE and begins is not None and begins[0][-1].isupper()

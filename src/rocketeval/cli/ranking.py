"""Ranking tables: ratings with intervals, and brackets around tied candidates."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from rocketeval.cli.progress_text import Marks, marks_for, shortened
from rocketeval.cli.text import make_console, rank_text, say, screen_width
from rocketeval.text import count_of, figure, join_words, percentage, printable

if TYPE_CHECKING:
    from rocketeval.ranking.rank import RankedCandidate, Ranking
    from rocketeval.records import Interval


SHORTEST_NAME = 12
"""Minimum columns for a name; with fewer, names go on separate lines."""
DRAWN_FROM = 120
"""Minimum terminal width for drawing intervals next to the figures."""
LONGEST_DRAWING = 48
SHORTEST_DRAWING = 20
GAP = "  "
MOST_PAIRS = 3


def show_ranking(
    ranking: Ranking,
    title: str = "Ranking",
    *,
    brief: bool = False,
    scale: tuple[float, float] | None = None,
    doubt: str = "",
) -> None:
    """Print the ranking, then which candidates are tied.

    `brief` explains the brackets instead of listing every tie. `scale` is that of the scores, if
    known. `doubt` says why the judge's scores prove nothing, if so.
    """
    from rich.text import Text

    from rocketeval.ranking.summary import separation_in_words

    console = make_console()
    marks = marks_for(console.encoding)
    over = f"{title} over {count_of(ranking.queries, 'query', 'queries')}"
    console.print(over, style="bold", highlight=False)
    lines = ranking_lines(ranking, screen_width(), marks)
    for number, line in enumerate(lines):
        style = "" if number else "dim"
        console.print(Text(line, style=style, no_wrap=True, overflow="ignore"), crop=False)
    notes = [*_brief_words(ranking, doubt)] if brief else separation_in_words(ranking.rows, doubt)
    for sentence in (*notes, *_oddities(ranking), *([doubt] if doubt else [])):
        say(console, sentence)
    for how in _made_how(ranking, scale):
        console.print(how, style="dim", markup=False, highlight=False)


def ranking_lines(ranking: Ranking, width: int | None, marks: Marks) -> list[str]:
    """Return a header and one line per candidate; a `width` of None means unlimited.

    Figures are never cut. If space is short, names are cut in the middle or moved to separate
    lines. A line exceeds `width` only if its figures alone do.
    """
    from rich.cells import cell_len

    rows = ranking.rows
    brackets = list(_brackets(rows, marks))
    ranks = _column("rank", [rank_text(row) for row in rows], left=True)
    figures = [
        _column("rating", [figure(row.rating, ".0f") for row in rows]),
        _column("mean score", [figure(row.mean_score, ".2f") for row in rows]),
    ]
    if any(row.missing for row in rows):
        figures.append(_column("missing", [str(row.missing) for row in rows]))
    names = [printable(row.candidate) for row in rows]
    longest = max(map(cell_len, ["candidate", *names]))
    taken = sum(len(column[0]) + len(GAP) for column in (ranks, *figures)) + 2
    room = longest if width is None else min(longest, width - taken)
    apart = room < min(SHORTEST_NAME, longest)
    shown = ["candidate", *(shortened(name, room, marks.cut) for name in names)]
    drawn = _drawings(rows, 0 if width is None else width - taken - room - len(GAP), width, marks)
    lines = []
    for number in range(len(rows) + 1):
        cells = [ranks[number]]
        if not apart:
            cells.append(shown[number] + " " * (room - cell_len(shown[number])))
        cells += [column[number] for column in figures]
        if drawn:
            cells.append(drawn[number])
        if apart and number and width is not None:
            name = shortened(names[number - 1], width - 2, marks.cut)
            lines.append(f"{brackets[number - 1][0]} {name}")
        bracket = brackets[number - 1][1 if apart else 0] if number else " "
        lines.append(f"{bracket} {GAP.join(cells)}".rstrip())
    return lines


def _column(title: str, cells: Sequence[str], *, left: bool = False) -> list[str]:
    wide = max(map(len, [title, *cells]))
    return [f"{cell:<{wide}}" if left else f"{cell:>{wide}}" for cell in (title, *cells)]


def _brackets(rows: Sequence[RankedCandidate], marks: Marks) -> Iterator[tuple[str, str]]:
    """Yield the bracket mark of each row, and of its second line if it has one."""
    for _, members in groupby(rows, key=lambda row: row.group):
        last = len(list(members)) - 1
        for place in range(last + 1):
            if not last:
                yield " ", " "
            elif place == 0:
                yield marks.top, marks.middle
            elif place < last:
                yield marks.middle, marks.middle
            else:
                yield marks.bottom, " "


def _drawings(
    rows: Sequence[RankedCandidate], room: int, width: int | None, marks: Marks
) -> list[str]:
    """Return a scale and each rating's interval drawn on it; [] if there is no room."""
    cells = min(LONGEST_DRAWING, room)
    ends = [end for row in rows for end in _known(row.rating)]
    if width is None or width < DRAWN_FROM or cells < SHORTEST_DRAWING or len(set(ends)) < 2:
        return []
    low, high = min(ends), max(ends)
    scale = f"{low:.0f}{f'{high:.0f}':>{cells - len(f'{low:.0f}')}}"
    return [scale, *(_drawn(row.rating, low, high, cells, marks) for row in rows)]


def _known(rating: Interval) -> list[float]:
    return [end for end in (rating.low, rating.value, rating.high) if math.isfinite(end)]


def _drawn(rating: Interval, low: float, high: float, cells: int, marks: Marks) -> str:
    def place(value: float) -> int:
        return round((value - low) / (high - low) * (cells - 1))

    known = [place(end) for end in _known(rating)]
    drawing = [" "] * cells
    if len(known) == 3 and known[0] < known[2]:
        drawing[known[0] : known[2] + 1] = marks.line * (known[2] - known[0] + 1)
        drawing[known[0]], drawing[known[2]] = marks.left, marks.right
    if math.isfinite(rating.value):
        drawing[place(rating.value)] = marks.point
    return "".join(drawing).rstrip()


def _brief_words(ranking: Ranking, doubt: str) -> Iterator[str]:
    from rocketeval.ranking.summary import contradicted_ranks, every_step, is_tied, too_few_in_words

    rows = ranking.rows
    if few := too_few_in_words(ranking):
        yield few
        return
    groups = [row.group for row in rows]
    if len(set(groups)) < len(rows):
        yield "Candidates in a bracket are statistically tied with the first one in it."
    elif len(rows) > 1 and all(row.beats_next for row in rows[:-1]):
        yield every_step(doubt)
    unclear = [
        f"{one.candidate} and {two.candidate}"
        for one, two in pairwise(rows)
        if one.group != two.group and is_tied(one, two)
    ]
    if unclear:
        yield f"Also tied: {join_words(unclear, most=MOST_PAIRS)}."
    yield from contradicted_ranks(rows, MOST_PAIRS)


def _oddities(ranking: Ranking) -> Iterator[str]:
    for name in ranking.unranked:
        yield f"Not ranked, no score: {name}"
    if ranking.islands > 1:
        yield f"{ranking.islands} sets of candidates share no queries: do not compare them."


def _made_how(ranking: Ranking, scale: tuple[float, float] | None) -> Iterator[str]:
    from rocketeval.ranking.summary import RANK_INTERVALS, order_in_words

    if not ranking.rows:
        return
    zero = f"mean {ranking.anchor_rating:g}"
    if ranking.anchor is not None:
        zero = f"{printable(ranking.anchor)} fixed at {ranking.anchor_rating:g}"
    elif ranking.islands > 1:
        zero += " per set"
    scores = "" if scale is None else f" Mean scores from {scale[0]:g} to {scale[1]:g}."
    yield f"rating: Bradley-Terry, on the Elo scale, {zero}.{scores}"
    yield from order_in_words(ranking)
    if any(_is_bounded(row.rating) or _is_bounded(row.mean_score) for row in ranking.rows):
        resamples = f"{ranking.bootstrap} resamples of the queries"
        yield f"Ranges are {percentage(ranking.level)} intervals from {resamples}."
        yield RANK_INTERVALS[ranking.rank_intervals]


def _is_bounded(found: Interval) -> bool:
    return math.isfinite(found.low) and math.isfinite(found.high) and found.low < found.high

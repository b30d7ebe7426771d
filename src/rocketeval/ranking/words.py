"""What a ranking does not settle, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from rocketeval.names import listed
from rocketeval.ranking.rank import RankedCandidate

MOST_SENTENCES = 12
MOST_NAMES = 8


def separation_in_words(rows: Sequence[RankedCandidate]) -> list[str]:
    """Sentences that name the candidates that cannot be told apart, best first.

    Of long rankings only the top is put into words; the last sentence says what was left out.
    """
    sentences = list(_sentences(rows))
    if not sentences:
        return ["Every candidate is told apart from the next."] if len(rows) > 1 else []
    left = len(sentences) - MOST_SENTENCES
    if left <= 0:
        return sentences
    more = "sentence" if left == 1 else "sentences"
    return [*sentences[:MOST_SENTENCES], f"{left:,} more {more} like these are left out."]


def _sentences(rows: Sequence[RankedCandidate]) -> Iterator[str]:
    """For each group its members, then its last and the next one's first if nothing parts them."""
    groups = [list(members) for _, members in groupby(rows, key=lambda row: row.group)]
    for members, following in zip(groups, [*groups[1:], []], strict=False):
        first, *others = (row.candidate for row in members)
        if others:
            names = listed(others, most=MOST_NAMES)
            yield f"Group {members[0].group}: {names} cannot be told apart from {first}."
        if following and not members[-1].beats_next:
            yield (
                f"{members[-1].candidate} and {following[0].candidate} stand in different groups, "
                "yet cannot be told apart from each other."
            )

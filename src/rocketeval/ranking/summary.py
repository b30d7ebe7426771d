"""A ranking in sentences and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any, Protocol

import pyarrow as pa

from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval
from rocketeval.store.schema import table_schema
from rocketeval.text import csv_text, join_words

MOST_SENTENCES = 12
MOST_NAMES = 8
MOST_IN_CONCLUSION = 3
"""Maximum number of candidates named in the conclusion, besides the leader."""


def conclusion_in_words(ranking: Ranking, doubt: str = "") -> str:
    """Return who leads and whether significantly, in one sentence; "" without ranked candidates.

    `doubt` says why the judge's scores prove nothing, if so. Then nobody leads.
    """
    rows = ranking.rows
    if not rows:
        return ""
    first = rows[0]
    if len(rows) == 1:
        return f"{first.candidate} is the only candidate with a score."
    if ranking.islands > 1:
        return (
            f"The candidates fall into {ranking.islands:,} sets that share no queries: "
            "ranks cannot be compared across these sets."
        )
    if doubt:
        return doubt
    if ranking.stopped:
        return " ".join(ranking.stopped[:2])
    level = [row.candidate for row in rows if row.rank == first.rank]
    if len(level) > 1:
        return f"{_joined(level)} share first place."
    alike = [row.candidate for row in rows[1:] if row.group == first.group]
    if alike:
        return f"{first.candidate} leads, but is statistically tied with {_joined(alike)}."
    if first.rank_high == 1 and len(rows) > 2:
        return f"{first.candidate} is significantly better than all {len(rows) - 1:,} others."
    return f"{first.candidate} is significantly better than {rows[1].candidate}."


def _joined(names: Sequence[str]) -> str:
    """Return the names as a list in words; only the first of many."""
    if 1 < len(names) <= MOST_IN_CONCLUSION:
        return f"{', '.join(names[:-1])} and {names[-1]}"
    return join_words(names, most=MOST_IN_CONCLUSION)


class TiedRow(Protocol):
    """A row of a ranking that may be tied with others."""

    @property
    def candidate(self) -> str:
        """The candidate's name."""
        ...

    @property
    def group(self) -> int:
        """The number of its group; its members are tied with the first of them."""
        ...

    @property
    def beats_next(self) -> bool | None:
        """Whether it is significantly better than the next row."""
        ...


def separation_in_words(rows: Sequence[TiedRow], doubt: str = "") -> list[str]:
    """Return sentences that name tied candidates, best first; `doubt` as above.

    A long ranking is cut; the last sentence then says how many sentences are left out.
    """
    sentences = list(_sentences(rows))
    if not sentences:
        return [every_step(doubt)] if len(rows) > 1 else []
    left = len(sentences) - MOST_SENTENCES
    if left <= 0:
        return sentences
    more = "sentence" if left == 1 else "sentences"
    return [*sentences[:MOST_SENTENCES], f"{left:,} more {more} like these left out."]


RANK_INTERVALS = {
    "simultaneous": "Rank intervals hold for all candidates at once.",
    "pairwise": "Each rank interval holds on its own, not for all candidates at once.",
}
"""What the rank intervals of a ranking promise."""


def every_step(doubt: str) -> str:
    """Return the sentence on a ranking without ties."""
    if doubt:
        return "Every candidate scores significantly higher than the next."
    return "Every candidate is significantly better than the next."


def _sentences(rows: Sequence[TiedRow]) -> Iterator[str]:
    """Yield the members of each group, then ties between neighbors of different groups."""
    groups = [list(members) for _, members in groupby(rows, key=lambda row: row.group)]
    for members, following in zip(groups, [*groups[1:], []], strict=False):
        first, *others = (row.candidate for row in members)
        if others:
            names = join_words(others, most=MOST_NAMES)
            tied = "is tied" if len(others) == 1 else "are tied"
            yield f"Group {members[0].group}: {names} {tied} with {first}."
        if following and not members[-1].beats_next:
            yield (
                f"{members[-1].candidate} and {following[0].candidate} are also tied, although "
                "they are in different groups."
            )


RANKING = table_schema(
    ("rank rank_low rank_high", pa.int64()),
    ("candidate", pa.string()),
    ("rating rating_low rating_high mean_score mean_score_low mean_score_high", pa.float64()),
    ("queries missing group", pa.int64()),
)


def ranking_table(ranking: Ranking) -> pa.Table:
    """Return one row per ranked candidate; an unknown bound is null."""
    rows = [
        (
            row.rank,
            row.rank_low,
            row.rank_high,
            row.candidate,
            *_known(row.rating),
            *_known(row.mean_score),
            row.queries,
            row.missing,
            row.group,
        )
        for row in ranking.rows
    ]
    return table_of_rows(rows, RANKING)


def ranking_csv(ranking: Ranking) -> str:
    """Return the ranking as CSV, as saved in every run."""
    return "".join(csv_text(RANKING.names, [ranking_table(ranking)]))


def _known(figure: Interval) -> list[float | None]:
    return [None if math.isnan(x) else x for x in (figure.value, figure.low, figure.high)]


def table_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return the rows as a table of this schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)

"""A ranking in sentences and as a table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from typing import Any, Protocol

import pyarrow as pa

from rocketeval.ranking.rank import RankedCandidate, Ranking
from rocketeval.records import Interval
from rocketeval.stats.bootstrap import least_queries
from rocketeval.store.schema import table_schema
from rocketeval.text import TOO_FEW, csv_text, join_words

MOST_SENTENCES = 12
MOST_NAMES = 8
MOST_IN_CONCLUSION = 3
"""Maximum number of candidates named in the conclusion, besides the leader."""


def conclusion_in_words(ranking: Ranking, doubt: str = "") -> str:
    """Return who leads and whether significantly, in a sentence; "" without ranked candidates.

    If a lower-ranked candidate has a significantly higher mean score, the conclusion says so.
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
    if few := too_few_in_words(ranking):
        return few
    disagreement = _disagreement(first)
    if ranking.stopped:
        return " ".join([*ranking.stopped[:2], *disagreement])
    level = [row for row in rows if row.rank == first.rank]
    if len(level) > 1:
        return f"{_joined([row.candidate for row in level])} share first place{_though(level)}."
    alike = [row.candidate for row in rows[1:] if row.group == first.group]
    if disagreement:
        tied = [f"{first.candidate} is statistically tied with {_joined(alike)}."] if alike else []
        return " ".join([*disagreement, *tied])
    if alike:
        return f"{first.candidate} leads, but is statistically tied with {_joined(alike)}."
    if _beats_all(ranking):
        return f"{first.candidate} is significantly better than all {len(rows) - 1:,} others."
    return f"{first.candidate} is significantly better than {rows[1].candidate}."


def too_few_in_words(ranking: Ranking) -> str:
    """Return a sentence if the queries are too few to test any difference; else "".

    Then neither ratings nor mean scores have intervals, and each island is one group. An anchor's
    rating always has an interval. Equal scores may have none with any number of queries.
    """
    rows = ranking.rows
    rated = all(not math.isnan(row.rating.low) for row in rows)
    if len(rows) < 2 or rated or any(not math.isnan(row.mean_score.low) for row in rows):
        return ""
    enough = ranking.queries >= least_queries(ranking.level)
    same = len({row.mean_score.value for row in rows}) == 1
    apart = len({row.group for row in rows}) > len({row.island for row in rows})
    if apart or (enough and (same or ranking.stopped)):
        return ""
    if enough:
        return "Too few shared queries or clusters to compare the candidates."
    return f"{TOO_FEW.capitalize()} to compare the candidates: {ranking.queries:,}."


def _disagreement(first: RankedCandidate) -> list[str]:
    """Return a sentence if others have a significantly higher mean score than the first row."""
    if not first.outscored_by:
        return []
    higher = _higher_means(first.outscored_by)
    return [f"{first.candidate} is first by wins, but {higher}: the two ways to rank disagree."]


def _though(level: Sequence[RankedCandidate]) -> str:
    """Return how mean scores contradict a shared first place; "" if they do not."""
    names = {row.candidate for row in level}
    higher = {name for row in level for name in row.outscored_by}
    if not higher and len({row.group for row in level}) == 1:
        return ""
    if len(level) > 2 or not higher <= names:
        return " by wins, but not by mean score"
    best = level[1] if higher else level[0]
    return f" by wins, but {_higher_means([best.candidate])}"


def _higher_means(names: Sequence[str]) -> str:
    means, are = ("mean score", "is") if len(names) == 1 else ("mean scores", "are")
    return f"the {means} of {_joined(names)} {are} significantly higher"


def _beats_all(ranking: Ranking) -> bool:
    """Return whether the first row is significantly better than each of several others."""
    first, *others = ranking.rows
    if first.rank_high > 1 or len(others) < 2:
        return False
    # Pairwise rank intervals are narrower than the tests of all pairs allow.
    tests, level = ranking.tests, ranking.level
    names = [row.candidate for row in others]
    return tests is None or not any(tests.tied(first.candidate, name, level) for name in names)


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

    @property
    def outscored_by(self) -> Sequence[str]:
        """Candidates of later rows whose mean score is significantly higher."""
        ...


def separation_in_words(rows: Sequence[TiedRow], doubt: str = "") -> list[str]:
    """Return sentences that name ties, and ranks that mean scores contradict; `doubt` as above.

    A long ranking is cut; the last sentence then says how many sentences are left out.
    """
    islands = _by_island(rows)
    sentences = [sentence for members in islands for sentence in _sentences(members)]
    if not sentences:
        compared = any(len(members) > 1 for members in islands)
        return [every_step(doubt, islands=len(islands))] if compared else []
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


def every_step(doubt: str, islands: int = 1) -> str:
    """Return the sentence on a ranking without ties."""
    following = "the next" if islands == 1 else "the next that shares queries with it"
    if doubt:
        return f"Every candidate scores significantly higher than {following}."
    return f"Every candidate is significantly better than {following}."


def _island(row: TiedRow) -> int:
    """Return the number of a row's island; other rankings compare all candidates."""
    return row.island if isinstance(row, RankedCandidate) else 1


def _by_island(rows: Sequence[TiedRow]) -> list[list[TiedRow]]:
    """Return the rows of each island, best first."""
    found: dict[int, list[TiedRow]] = {}
    for row in rows:
        found.setdefault(_island(row), []).append(row)
    return list(found.values())


def _sentences(rows: Sequence[TiedRow]) -> Iterator[str]:
    """Yield each group's ties, the ranks that mean scores contradict, and ties with the next.

    The rows are of one island.
    """
    groups = [list(members) for _, members in groupby(rows, key=lambda row: row.group)]
    for members, following in zip(groups, [*groups[1:], []], strict=False):
        first, *others = (row.candidate for row in members)
        if others:
            names = join_words(others, most=MOST_NAMES)
            tied = "is tied" if len(others) == 1 else "are tied"
            yield f"Group {members[0].group}: {names} {tied} with {first}."
        yield from contradicted_ranks(members, len(members))
        if following and is_tied(members[-1], following[0]):
            yield (
                f"{members[-1].candidate} and {following[0].candidate} are also tied, although "
                "they are in different groups."
            )


def is_tied(row: TiedRow, following: TiedRow) -> bool:
    """Return whether a row is tied with the next one; not if they are of different islands."""
    if row.beats_next is not False or _island(row) != _island(following):
        return False
    return following.candidate not in row.outscored_by


def contradicted_ranks(rows: Sequence[TiedRow], most: int = MOST_SENTENCES) -> list[str]:
    """Return a sentence for each row above candidates with a significantly higher mean score.

    After `most` of them, a sentence says how many rows are left out.
    """
    sentences = [
        f"{row.candidate} is ranked above {join_words(row.outscored_by, most=MOST_NAMES)}, but "
        + (
            f"the mean score of {row.outscored_by[0]} is significantly higher."
            if len(row.outscored_by) == 1
            else "their mean scores are significantly higher."
        )
        for row in rows
        if row.outscored_by
    ]
    left = len(sentences) - most
    if left <= 0:
        return sentences
    return [*sentences[:most], f"Mean scores contradict {left:,} more of the ranks."]


def order_in_words(ranking: Ranking) -> list[str]:
    """Return a sentence if the order by mean score is not that of the ranks; else nothing."""
    means = [row.mean_score.value for row in ranking.rows]
    if any(one < two for one, two in pairwise(means)):
        return ["Ranked by rating; the order by mean score differs."]
    return []


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
            *interval_cells(row.rating),
            *interval_cells(row.mean_score),
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


def interval_cells(figure: Interval) -> list[float | None]:
    """Return the cells of a figure and its interval in a table: None instead of NaN."""
    return [None if math.isnan(x) else x for x in (figure.value, figure.low, figure.high)]


def table_of_rows(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Return the rows as a table of this schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [pa.array(column, field.type) for column, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)

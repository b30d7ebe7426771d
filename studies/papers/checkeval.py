"""CheckEval Tables 11 and 13: dimension checklists compared with human ratings.

    python studies/papers/checkeval.py [--judge JUDGE] [--limit N] [--record]

Reads what checkeval_grade.py graded, and for CheckEval's own seed questions what grade.py graded. A
dimension's score is the share of yes (CheckEval's), or the mean of p_yes where items were asked
independently. Coefficients are means over articles or conversations (sample level). A query whose
scores or ratings are all equal has none; the number of queries that have one is in brackets. For
Topical-Chat the table also has coefficients over all responses (turn level, as in the paper). The
paper's rows of judges of 7 to 9 billion parameters are included. In the means over dimensions,
which have an interval, scores that are all equal count as 0.

CheckEval's own set is asked as published. Yes counts as the better answer throughout, even where
`rocketeval lint` says that it is the worse one (three questions of SummEval's).
"""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from checkeval_grade import ALONE, DIMENSIONS, TOGETHER, asked_together, checkeval_config
from dimensions import both_levels, items_of, mean, mean_over, ratings, within
from grade import STUDY_JUDGE
from runs import Graded, graded, judged, only_items, record, table

from rocketeval.grid import ScoreGrid
from rocketeval.records import Interval, Label
from rocketeval.text import figure

SHOWN = {"summeval": "SummEval", "topical_chat": "Topical-Chat"}
SETS = {
    "ours": "our seeds",
    "grown": "our seeds, grown",
    "official": "CheckEval's questions",
    "official_seeds": "CheckEval's seeds",
}
PROBABILITIES, COUNTED, WRITTEN = "alone, p_yes", "alone, counted", "together, counted"

PAPER: dict[str, dict[str, tuple[tuple[float, float], ...]]] = {
    "summeval": {
        "Llama3.1-8B": ((0.5045, 0.4048), (0.4561, 0.3887), (0.3040, 0.2654), (0.3933, 0.3168)),
        "Gemma2-9B": ((0.5777, 0.4876), (0.3979, 0.3450), (0.2798, 0.2358), (0.4590, 0.4003)),
        "Qwen2.5-7B": ((0.4068, 0.3398), (0.4214, 0.3800), (0.4598, 0.4226), (0.3768, 0.3183)),
    },
    "topical_chat": {
        "Llama3.1-8B": ((0.5046, 0.4986), (0.5200, 0.5069), (0.3972, 0.3934), (0.4050, 0.3876)),
        "Gemma2-9B": ((0.3943, 0.4232), (0.6520, 0.6588), (0.4167, 0.4136), (0.4971, 0.5137)),
        "Qwen2.5-7B": ((0.3704, 0.3840), (0.6329, 0.6266), (0.4712, 0.4247), (0.4489, 0.4486)),
    },
}
"""CheckEval's rows of small judges (Tables 11 and 13), by dimension in the order of DIMENSIONS:
Spearman and Kendall at sample level for SummEval, Spearman and Pearson at turn level for the other.
"""


@dataclass(frozen=True)
class Row:
    """The result of one way of asking one question set, by dimension."""

    questions: str
    how: str
    items: int
    """Number of questions in all dimensions together."""
    unread: int
    """Number of unreadable or missing answers."""
    asked: int
    grids: Mapping[str, ScoreGrid]

    @property
    def shown(self) -> str:
        """Return its name in tables."""
        return f"{SETS[self.questions]} ({self.items}), {self.how}"

    @property
    def queries(self) -> set[str]:
        """Return the queries it was asked about in every dimension."""
        return set.intersection(*(set(grid.query_ids) for grid in self.grids.values()))


def main() -> None:
    """Print one table per benchmark."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--judge", default=STUDY_JUDGE)
    parser.add_argument("--limit", type=int)
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    lines: list[str] = []
    content: dict[str, Any] = {}
    for study, shown in SHOWN.items():
        rows = list(found_rows(study, given.judge, given.limit))
        if not rows:
            raise SystemExit(f"No graded responses for {shown}: run checkeval_grade.py first.")
        labels = ratings(study, DIMENSIONS[study])
        figures = {row.shown: correlations(row, labels) for row in rows}
        overall = {row.shown: over_dimensions(row, labels) for row in rows}
        content[shown] = {"correlation": figures, "overall": overall, "unread": unread(rows)}
        lines += shown_within(study, figures)
        if study == "topical_chat":
            lines += shown_pooled(study, figures)
        lines += shown_overall(rows, overall, labels)
    record("checkeval", content, lines, keep=given.record)


def found_rows(study: str, judge: str, limit: int | None) -> Iterator[Row]:
    """Yield every graded question set and way of asking."""
    for questions in SETS:
        alone = alone_answers(study, questions, judge, limit)
        if alone is not None:
            each, places = alone
            yield make_row(questions, PROBABILITIES, places, each)
            yield make_row(questions, COUNTED, places, each, hard=True)
        if questions != "official_seeds":
            together = together_answers(study, questions, judge, limit)
            if together:
                places = {name: range(item_count(each)) for name, each in together.items()}
                yield make_row(questions, WRITTEN, places, together, hard=True)


def alone_answers(
    study: str, questions: str, judge: str, limit: int | None
) -> tuple[dict[str, Graded], dict[str, Sequence[int]]] | None:
    """Return the run that asked all items independently, and the positions of each dimension's."""
    names = DIMENSIONS[study]
    if questions == "official_seeds":
        own = graded(study, "checklist", judge, limit)
        places = {name: items_of(study, name) for name in names} if own else {}
    else:
        config = checkeval_config(study, questions, ALONE, names, judge, limit=limit)
        own = judged(config.run_path, judge, ALONE)
        places = {name: places_of(own, name) for name in names} if own else {}
    return None if own is None else (dict.fromkeys(names, own), places)


def together_answers(
    study: str, questions: str, judge: str, limit: int | None
) -> dict[str, Graded]:
    """Return the available runs that asked all questions of a dimension in one prompt."""
    found = {}
    for names in asked_together(study, TOGETHER):
        config = checkeval_config(study, questions, TOGETHER, names, judge, limit=limit)
        own = judged(config.run_path, judge, TOGETHER)
        if own is not None:
            found[names[0]] = own
    return found


def places_of(own: Graded, name: str) -> list[int]:
    """Return the positions of one dimension's items, by the prefix of their groups."""
    groups = next(iter(own.store.inputs.checklists().values())).groups or ()
    return [place for place, group in enumerate(groups) if group.startswith(f"{name}: ")]


def item_count(own: Graded) -> int:
    """Return the number of items per response."""
    return int(own.answers.items[0])


def make_row(
    questions: str,
    how: str,
    places: Mapping[str, Sequence[int]],
    answers: Mapping[str, Graded],
    *,
    hard: bool = False,
) -> Row:
    """Return a row of these answers."""
    given = [only_items(answers[name].answers, items).p_yes for name, items in places.items()]
    return Row(
        questions,
        how,
        items=sum(map(len, places.values())),
        unread=int(sum(np.isnan(each).sum() for each in given)),
        asked=sum(map(len, given)),
        grids={name: answers[name].grid(items, hard=hard) for name, items in places.items()},
    )


def correlations(row: Row, labels: Mapping[str, list[Label]]) -> dict[str, Any]:
    """Return coefficients by dimension, within queries and over all responses."""
    return {name: both_levels(grid, labels[name]) for name, grid in row.grids.items()}


def by_query(
    row: Row, labels: Mapping[str, list[Label]], names: Collection[str]
) -> dict[str, float]:
    """Return, for each query, the mean over dimensions of Spearman within it.

    Scores that are all equal do not order the responses and count as 0; otherwise a method that
    gives every response the same score would be judged by its few exceptions. A dimension in which
    the human ratings are all equal is left out.
    """
    values: dict[str, list[float]] = {}
    for name in names:
        grid = row.grids[name]
        result = within(grid, labels[name])
        for query in grid.query_ids:
            if rated_apart(query, labels[name]):
                values.setdefault(query, []).append(result.get(query, 0.0))
    return {query: float(np.mean(each)) for query, each in values.items()}


def rated_apart(query: str, labels: Sequence[Label]) -> bool:
    """Return whether the human ratings of a query's responses differ."""
    return len({label.value for label in labels if label.query_id == query}) > 1


def over_dimensions(row: Row, labels: Mapping[str, list[Label]]) -> Interval | None:
    """Return the mean over queries and dimensions of Spearman within a query."""
    return mean_of(list(by_query(row, labels, row.grids).values()))


def mean_of(values: Sequence[float]) -> Interval | None:
    """Return a mean over resampled queries; None without any."""
    return mean_over(values) if values else None


def unread(rows: Sequence[Row]) -> dict[str, dict[str, int]]:
    """Return the number of expected answers and of missing ones."""
    return {row.shown: {"answers": row.asked, "missing": row.unread} for row in rows}


def shown_within(study: str, figures: Mapping[str, Any]) -> list[str]:
    """Return Spearman / Kendall within queries, with the paper's rows for SummEval."""
    lines = [f"{SHOWN[study]}: Spearman / Kendall within queries [queries that have one]"]
    names = DIMENSIONS[study]
    rows = [
        coefficients(row, of_row, names, "within", "kendall") for row, of_row in figures.items()
    ]
    if study == "summeval":
        rows += paper_rows(study)
    return [*lines, *table(["", *DIMENSIONS[study], "mean"], rows), ""]


def shown_pooled(study: str, figures: Mapping[str, Any]) -> list[str]:
    """Return Spearman / Pearson over all responses, with the paper's rows."""
    lines = [f"{SHOWN[study]}: Spearman / Pearson over all responses"]
    names = DIMENSIONS[study]
    rows = [
        coefficients(row, of_row, names, "pooled", "pearson") for row, of_row in figures.items()
    ]
    return [
        *lines,
        *table(["", *DIMENSIONS[study], "mean"], [*rows, *paper_rows(study)]),
        "",
    ]


def coefficients(
    row: str, result: Mapping[str, Any], names: Sequence[str], where: str, second: str
) -> list[str]:
    """Return a row of two coefficients per dimension, and their means."""
    cells, firsts, seconds = [], [], []
    for name in names:
        if name not in result:
            cells.append("not asked")
            continue
        each = result[name]
        one, two = (value(each[where][kind]) for kind in ("spearman", second))
        firsts.append(one)
        seconds.append(two)
        number = f" [{each[where]['n']}]" if where == "within" else ""
        cells.append("-" if one is None else f"{one:.2f} / {two:.2f}{number}")
    known = any(value is not None for value in firsts)
    return [row, *cells, f"{mean(firsts):.2f} / {mean(seconds):.2f}" if known else "-"]


def paper_rows(study: str) -> list[list[str]]:
    """Return CheckEval's rows for its small judges."""
    rows = []
    for judge, pairs in PAPER[study].items():
        one, two = (float(np.mean(side)) for side in zip(*pairs, strict=True))
        cells = [f"{a:.2f} / {b:.2f}" for a, b in pairs]
        rows.append([f"paper, {judge}, together", *cells, f"{one:.2f} / {two:.2f}"])
    return rows


def shown_overall(
    rows: Sequence[Row], overall: Mapping[str, Interval | None], labels: Mapping[str, list[Label]]
) -> list[str]:
    """Return means over dimensions with intervals, and the difference from the first row."""
    cells = []
    for row in rows:
        first, own = (by_query(each, labels, row.grids) for each in (rows[0], row))
        both = [query for query in own if query in first]
        gap = "" if row is rows[0] else shown_mean(mean_of([own[q] - first[q] for q in both]))
        missing = f"{row.unread:,} of {row.asked:,}"
        result = shown_mean(overall[row.shown])
        cells.append([row.shown, str(len(row.queries)), result, gap, missing])
    head = ["mean Spearman, no order = 0", "queries", "mean", "vs. the first", "unread"]
    return [*table(head, cells), ""]


def shown_mean(result: Interval | None) -> str:
    """Return a mean with its interval."""
    return "-" if result is None else figure(result, ".2f")


def value(result: Mapping[str, float] | None) -> float | None:
    """Return a coefficient's value, if there is one."""
    return None if result is None else result["value"]


if __name__ == "__main__":
    main()

"""Tables for people: the ranking, the win matrix and the main figures of an audit, rounded."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rocketeval.errors import ExportError
from rocketeval.names import counted, listed
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval

MOST_COLUMNS = 30
"""Candidates of a win matrix that still fits a page."""
_RESTING = {
    "responses": ("response", "responses"),
    "per query": ("query", "queries"),
    "candidates": ("candidate", "candidates"),
}
"""What a correlation with labels rests on, by its level: one, many."""


@dataclass(frozen=True, slots=True)
class Display:
    """A table of texts that a format has yet to escape."""

    title: str
    label: str
    """A short plain name, to refer to the table by."""
    heads: tuple[str, ...]
    numeric: tuple[bool, ...]
    """Which columns hold figures: their minus is a sign, not a hyphen."""
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...]


def show_ranking(ranking: Ranking, judge: str) -> Display:
    """Return the leaderboard with intervals, rank ranges, groups and gaps."""
    percent = f"{100 * ranking.level:g} %"
    rows = tuple(
        (
            f"{row.rank}"
            if row.rank_low == row.rank_high
            else f"{row.rank} ({row.rank_low}\N{EN DASH}{row.rank_high})",
            f"{row.group}",
            row.candidate,
            _figure(row.rating, ".0f"),
            _figure(row.mean_score, ".2f"),
            f"{row.queries}",
            f"{row.missing}",
        )
        for row in ranking.rows
    )
    return Display(
        title=f"Ranking over {counted(ranking.queries, 'query', 'queries')}, judged by {judge}",
        label="ranking",
        heads=("Rank", "Group", "Candidate", "Rating", "Mean score", "Queries", "Missing"),
        numeric=(True, True, False, True, True, True, True),
        rows=rows,
        notes=tuple(_ranking_notes(ranking, percent)),
    )


def _ranking_notes(ranking: Ranking, percent: str) -> Iterator[str]:
    yield (
        f"In parentheses: {percent} intervals from {ranking.bootstrap} resamples of the queries, "
        f"and the ranks they allow. Scores closer than {ranking.tie_margin:g} tie."
    )
    yield "Candidates of one group cannot be told apart from its first."
    if ranking.anchor is not None:
        yield f"Ratings are differences to {ranking.anchor}, held at {ranking.anchor_rating:g}."
    if ranking.islands > 1:
        yield (
            f"{ranking.islands} sets of candidates share no query: "
            "their ratings do not compare with each other."
        )
    if ranking.unranked:
        yield f"Not ranked, without a score: {listed(ranking.unranked, most=20)}."


def show_wins(ranking: Ranking, judge: str) -> Display:
    """Return the win matrix in per cent; ExportError when it is too wide for a page."""
    if ranking.wins is None or len(ranking.wins.candidates) > MOST_COLUMNS:
        raise ExportError(
            f"A table of {len(ranking.rows)} candidates against each other fits no page: "
            f"{MOST_COLUMNS} do.",
            hint="Export --to csv --what wins, or --to matches.",
        )
    names = ranking.wins.candidates
    return Display(
        title=f"Queries won, in per cent, judged by {judge}",
        label="wins",
        heads=("", "Row beats column", *(str(n) for n in range(1, len(names) + 1))),
        numeric=(True, False, *(True for _ in names)),
        rows=tuple(
            (str(place), name, *(_percent(share) for share in shares))
            for place, (name, shares) in enumerate(
                zip(names, ranking.wins.shares, strict=True), start=1
            )
        ),
        notes=("Of the queries that both have a score on; ties count half.",),
    )


def show_audit(audit: Mapping[str, Any], judge: str) -> Display:
    """Return the agreement with votes, and the correlations with ratings and labels."""
    rows = tuple(_audit_rows(audit))
    if not rows:
        raise ExportError(
            "The audit has no figures to show: the run has neither votes, labels nor ratings.",
            hint="Give the benchmark gold of some kind, then run `rocketeval audit` again.",
        )
    return Display(
        title=f"Audit of the judge {judge}",
        label="audit",
        heads=("Figure", "Method", "Value", "Resting on"),
        numeric=(False, False, True, False),
        rows=rows,
        notes=(
            "In parentheses: intervals. Shares are of votes; a tie is a difference below "
            f"{audit['tie_margin']:g}.",
        ),
    )


def _audit_rows(audit: Mapping[str, Any]) -> Iterator[tuple[str, str, str, str]]:
    voters = audit["voters"]
    for shown, name, count, pairs in (
        ("Votes agreed with", "with_ties", "used", "pairs"),
        ("Votes agreed with, ties left out", "without_ties", "decisive", "decisive_pairs"),
    ):
        for method, found in audit["agreement"].items():
            if found[name] is not None:
                some = counted(found[count], "vote", "votes")
                yield shown, method, _read(found[name]), some
        if voters and voters[name] is not None:
            some = counted(voters[pairs], "pair of votes", "pairs of votes")
            yield shown, "another voter", _read(voters[name]), some
    ratings = audit["ratings"] or {}
    for coefficient in ("spearman", "kendall"):
        found = ratings.get(coefficient)
        if found is not None:
            yield (
                f"Reference ratings, {coefficient.capitalize()}",
                "judge",
                _coefficient(found),
                counted(ratings["n"], "candidate", "candidates"),
            )
    for part, methods in audit["labels"].items():
        yield from _label_rows(part, methods)


def _label_rows(
    part: str, methods: Mapping[str, Mapping[str, Any]]
) -> Iterator[tuple[str, str, str, str]]:
    for method, found in methods.items():
        for level, own in found["levels"].items():
            if own["spearman"] is not None:
                name = f"{part.capitalize()}, Spearman, {level}"
                resting = counted(own["n"], *_RESTING[level])
                yield name, method, _read(own["spearman"]), resting


def _coefficient(found: Mapping[str, Any]) -> str:
    own = found["interval"]
    return _read(own) if own else f"{found['value']:.2f} (p {found['p_value']:.2g})"


def _read(found: Mapping[str, float | None]) -> str:
    values = (found[name] for name in ("value", "low", "high"))
    return _figure(Interval(*(math.nan if value is None else value for value in values)), ".2f")


def _figure(interval: Interval, digits: str) -> str:
    """Return `value (low-high)`, with a word between bounds that have signs."""
    value, low, high = (
        _unsigned_zero(format(x, digits)) for x in (interval.value, interval.low, interval.high)
    )
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return f"{value} (unknown)"
    if low == high:
        return value
    joint = " to " if "-" in low + high else "\N{EN DASH}"
    return f"{value} ({low}{joint}{high})"


def _unsigned_zero(shown: str) -> str:
    return shown.removeprefix("-") if not shown.strip("-0.") else shown


def _percent(share: float | None) -> str:
    return "\N{EN DASH}" if share is None else f"{100 * share:.0f}"

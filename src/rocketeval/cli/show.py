"""What the command line prints: tables of figures with their intervals, and what is missing."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.audit.audit import Audit
from rocketeval.audit.correlation import Coefficient, Correlation
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Interval


def show_ranking(ranking: Ranking) -> None:
    """Print the leaderboard."""
    incomplete = any(row.missing for row in ranking.rows)
    table = _table(f"Ranking over {ranking.queries} queries")
    table.add_column("rank")
    table.add_column("group", justify="right")
    table.add_column("candidate", no_wrap=True, overflow="ellipsis")
    table.add_column("rating", justify="right", no_wrap=True)
    table.add_column("mean score", justify="right", no_wrap=True)
    if incomplete:
        table.add_column("missing", justify="right")
    for row in ranking.rows:
        sure = row.rank_low == row.rank_high
        table.add_row(
            str(row.rank) if sure else f"{row.rank} ({row.rank_low}-{row.rank_high})",
            str(row.group),
            Text(row.candidate),
            figure(row.rating, ".0f"),
            figure(row.mean_score, ".2f"),
            *([str(row.missing)] if incomplete else []),
        )
    console = Console()
    console.print(table)
    for name in ranking.unranked:
        console.print(f"not ranked, no score: {name}", markup=False)
    if ranking.islands > 1:
        console.print(f"{ranking.islands} sets of candidates share no query: do not compare them")
    console.print(
        f"Candidates in one group cannot be told apart. {ranking.level:.0%} intervals from "
        f"{ranking.bootstrap} resamples of the queries.",
        style="dim",
        highlight=False,
    )


def show_audit(audit: Audit) -> None:
    """Print how far people agree with the scores."""
    console = Console()
    if audit.agreement:
        votes = next(iter(audit.agreement.values()))
        title = f"Agreement with {votes.votes} votes"
        table = _table(title)
        table.add_column("method")
        table.add_column("with ties", justify="right")
        table.add_column("without ties", justify="right")
        for method, agreement in audit.agreement.items():
            table.add_row(method, share(agreement.with_ties), share(agreement.without_ties))
        if audit.voters:
            table.add_row(
                "another voter", share(audit.voters.with_ties), share(audit.voters.without_ties)
            )
        console.print(table)
        if votes.unusable:
            console.print(f"{votes.unusable} votes could not be used: a score is missing.")
    if audit.labels:
        pearson = audit.labels.pearson
        console.print(
            f"Labels: Pearson {figure(pearson, '.2f')} over {audit.labels.responses} responses"
            if pearson
            else f"Labels: {audit.labels.reason}",
            highlight=False,
        )
    if audit.ratings:
        console.print(f"Reference ratings: {_correlation(audit.ratings)}", highlight=False)
    if not (audit.agreement or audit.labels or audit.ratings):
        console.print("Nothing to audit against: the benchmark has no votes, labels or ratings.")


def show_gaps(stages: Mapping[str, Any]) -> int:
    """Print everything that is missing; return how many responses or queries that concerns."""
    console = Console(stderr=True)
    load, grade, score = (stages.get(name, {}) for name in ("load", "grade", "score"))
    gaps = {
        "queries have no checklist": len(stages.get("checklist", {}).get("failures", ())),
        "responses could not be judged; run it again to retry": grade.get("unfinished", 0),
        "responses have no score": score.get("without_score", 0),
        "answers are missing": score.get("missing_answers", 0),
    }
    for what, count in gaps.items():
        if count:
            console.print(f"{count} {what}", style="yellow", highlight=False)
    if load.get("empty_responses"):
        console.print(f"note: {load['empty_responses']} responses are empty", highlight=False)
    return sum(gaps.values())


def _table(title: str) -> Table:
    return Table(title=title, title_justify="left", box=None, pad_edge=False)


def figure(interval: Interval | None, digits: str) -> str:
    """Return `value (low to high)`, or a dash."""
    if interval is None:
        return "-"
    value, low, high = (format(x, digits) for x in (interval.value, interval.low, interval.high))
    if not (math.isfinite(interval.low) and math.isfinite(interval.high)):
        return f"{value} (unknown)"
    if low == high:
        return value
    joint = " to " if interval.low < 0 else "-"
    return f"{value} ({low}{joint}{high})"


def share(interval: Interval | None) -> str:
    """Return a share in percent, with its interval."""
    if interval is None:
        return "-"
    return figure(
        Interval(*(100 * x for x in (interval.value, interval.low, interval.high))), ".1f"
    )


def _correlation(found: Correlation) -> str:
    if found.spearman is None or found.kendall is None:
        return f"no coefficient ({found.reason})"
    return (
        f"Spearman {_coefficient(found.spearman)}, Kendall {_coefficient(found.kendall)}, "
        f"{found.n} candidates"
    )


def _coefficient(found: Coefficient) -> str:
    return f"{found.value:.2f} (p {found.p_value:.3f})"

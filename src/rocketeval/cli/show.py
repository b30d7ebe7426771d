"""What the command line prints: tables of figures with their intervals, and what is missing."""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.audit.audit import Audit
from rocketeval.audit.correlation import Coefficient, Correlation
from rocketeval.audit.label_correlation import LabelCorrelation
from rocketeval.audit.training import Refused
from rocketeval.cli.words import counted, printable
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.words import separation_in_words
from rocketeval.records import Interval

PIPE_WIDTH = 1000


def show_ranking(ranking: Ranking, title: str = "Ranking") -> None:
    """Print the leaderboard, and in words which candidates it cannot tell apart."""
    incomplete = any(row.missing for row in ranking.rows)
    table = make_table(f"{title} over {counted(ranking.queries, 'query', 'queries')}")
    table.add_column("rank", no_wrap=True)
    table.add_column("group", justify="right", no_wrap=True)
    table.add_column("candidate", overflow="fold")
    table.add_column("rating", justify="right", no_wrap=True)
    table.add_column("mean score", justify="right", no_wrap=True)
    if incomplete:
        table.add_column("missing", justify="right")
    for row in ranking.rows:
        sure = row.rank_low == row.rank_high
        table.add_row(
            str(row.rank) if sure else f"{row.rank} ({row.rank_low}-{row.rank_high})",
            str(row.group),
            Text(printable(row.candidate)),
            figure(row.rating, ".0f"),
            figure(row.mean_score, ".2f"),
            *([str(row.missing)] if incomplete else []),
        )
    console = make_console()
    console.print(table)
    for sentence in separation_in_words(ranking.rows):
        console.print(printable(sentence), markup=False, highlight=False)
    for name in ranking.unranked:
        console.print(f"not ranked, no score: {printable(name)}", markup=False)
    if ranking.islands > 1:
        console.print(f"{ranking.islands} sets of candidates share no query: do not compare them")
    anchored = (
        f" Ratings are differences to {printable(ranking.anchor)}, which is held at "
        f"{ranking.anchor_rating:g}."
        if ranking.anchor is not None
        else ""
    )
    console.print(
        f"{ranking.level:.0%} intervals from {ranking.bootstrap} resamples of the queries."
        + anchored,
        style="dim",
        markup=False,
        highlight=False,
    )


def show_audit(audit: Audit) -> None:
    """Print how far people agree with the scores."""
    console = make_console()
    if audit.agreement:
        votes = next(iter(audit.agreement.values()))
        whole = f" of {votes.votes}" if votes.unusable else ""
        title = f"Agreement with {votes.used}{whole} {'vote' if votes.votes == 1 else 'votes'}"
        table = make_table(title)
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
            console.print(
                f"{votes.unusable} votes could not be used: a score is missing, or a name unknown."
            )
    for part, methods in audit.labels.items():
        console.print(_label_table(part, methods))
    _show_refused(audit.refused)
    if audit.ratings:
        console.print(f"Reference ratings: {_correlation(audit.ratings)}", highlight=False)
    if not (audit.agreement or audit.labels or audit.ratings):
        console.print("Nothing to audit against: the benchmark has no votes, labels or ratings.")


def _label_table(part: str, methods: Mapping[str, LabelCorrelation]) -> Table:
    found = next(iter(methods.values()))
    table = make_table(f"Against {part} ({found.responses} responses)")
    for column in ("", "Pearson", "Spearman", "RMSE"):
        table.add_column(column)
    for method, row in methods.items():
        shown = [figure(value, ".2f") for value in (row.pearson, row.spearman, row.rmse)]
        table.add_row(method, *shown if row.reason is None else [f"none: {row.reason}"])
    return table


def _show_refused(refused: Refused) -> None:
    """Say loudly what the scores were not held against."""
    for count, what in ((refused.labels, "labels"), (refused.votes, "votes")):
        if count:
            Console(stderr=True).print(
                f"Refused: {count} {what} were learned from by the fit that made these scores. "
                "Holding the scores against them would flatter the scorer. Audit it on other "
                f"{what}, or fit one here: what it learns from is then scored out of fold.",
                style="red",
                highlight=False,
            )


def show_learned(score: Mapping[str, Any]) -> None:
    """Print what the scorer learned from and what was kept from it; nothing if it did not learn."""
    learned = score.get("learned") or {}
    console = make_console()
    if "fitted" in learned:
        labels, votes = learned["labels"], learned["votes"]
        gold = counted(labels, "label", "labels") if labels else counted(votes, "vote", "votes")
        held_out = ", ".join(map(printable, learned["held_out"][:5]))
        more = f", and {len(learned['held_out']) - 5} more" if len(learned["held_out"]) > 5 else ""
        kept = f"; held out: {held_out}{more}" if held_out else ""
        names = counted(len(learned["fitted"]), "candidate", "candidates")
        console.print(f"The scorer learned from {gold} on {names}{kept}.", highlight=False)
    if learned.get("queries_by_mean_in_a_fold"):
        some = counted(learned["queries_by_mean_in_a_fold"], "query has", "queries have")
        console.print(
            f"{some} enough gold for the whole fit, but not for every fold: some of the scores "
            "learned from are the mean's there.",
            highlight=False,
        )
    if learned.get("queries_by_mean"):
        reasons = "; ".join(f"{n} x {printable(why)}" for why, n in learned["reasons"].items())
        by_mean = counted(learned["queries_by_mean"], "query", "queries")
        console.print(f"Scored by the mean after all: {by_mean} ({reasons}).", highlight=False)


def show_gaps(stages: Mapping[str, Any]) -> int:
    """Print everything that is missing; return how many responses or queries that concerns."""
    console = Console(stderr=True)
    load, grade, score = (stages.get(name, {}) for name in ("load", "grade", "score"))
    lacking = list(stages.get("checklist", {}).get("failures", ()))
    named = f" ({', '.join(map(printable, lacking[:3]))}{', ...' * (len(lacking) > 3)})"
    gaps = {
        f"queries have no checklist{named}": len(lacking),
        "responses could not be judged; run it again to retry": grade.get("unfinished", 0),
        "responses have no score": score.get("without_score", 0),
        "answers are missing": score.get("missing_answers", 0),
    }
    for what, count in gaps.items():
        if count:
            console.print(f"{count} {what}", style="yellow", highlight=False, markup=False)
    absent = load.get("queries", 0) * load.get("candidates", 0) - load.get("responses", 0)
    for what, count in (("empty", load.get("empty_responses", 0)), ("absent", absent)):
        if count:
            word = "response is" if count == 1 else "responses are"
            console.print(f"note: {count} {word} {what}", highlight=False)
    return sum(gaps.values())


def make_console() -> Console:
    """Return a console that wraps for people and never for pipes."""
    return Console() if sys.stdout.isatty() else Console(width=PIPE_WIDTH)


def make_table(title: str) -> Table:
    """Return an empty table without lines."""
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

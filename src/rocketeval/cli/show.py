"""What the command line prints: tables of figures with their intervals, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.text import Text

from rocketeval.cli.tables import figure, make_console, make_table
from rocketeval.cli.words import counted, printable
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.words import separation_in_words


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

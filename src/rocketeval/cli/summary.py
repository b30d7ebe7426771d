"""What a finished run comes down to: who is best, how far to trust it, what it took, what next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rocketeval.audit.audit import Audit
from rocketeval.cli.missing import Missing, find_missing, missing_in_words
from rocketeval.cli.next_step import NextStep, Typed, next_step
from rocketeval.cli.progress_words import duration
from rocketeval.cli.show import show_learned
from rocketeval.cli.show_ranking import show_ranking
from rocketeval.cli.tables import show_pairs, show_whole
from rocketeval.cli.trust import trust_in_words
from rocketeval.cli.words import near
from rocketeval.cost import shown_money
from rocketeval.names import counted
from rocketeval.pipeline import Outcome
from rocketeval.ranking.rank import Ranking

TITLES = 9
"""Columns of the words at the left."""
NO_PRICE = "no price set"


@dataclass(frozen=True, slots=True)
class Summary:
    """Everything `run` has to say, as its JSON says it."""

    run: Path
    report: Path
    ranking: Ranking
    audit: Audit
    missing: Missing
    next: NextStep
    stages: Mapping[str, Any]


def summarise(outcome: Outcome, typed: Typed) -> Summary:
    """Return what a finished run comes down to."""
    missing = find_missing(outcome.stages)
    return Summary(
        run=outcome.path,
        report=outcome.report,
        ranking=outcome.ranking,
        audit=outcome.audit,
        missing=missing,
        next=next_step(outcome, missing, typed),
        stages=outcome.stages,
    )


def show_summary(summary: Summary) -> None:
    """Print the ranking, and a line or two about everything else."""
    show_learned(summary.stages["score"])
    show_ranking(summary.ranking, brief=True)
    click.echo()
    show_pairs(_pairs(summary), TITLES)
    show_whole("Report", near(summary.report), TITLES)
    show_pairs([("Next", summary.next.why)], TITLES)
    # A command that a terminal cannot show whole would be another one when it is copied.
    if summary.next.command.isprintable():
        show_whole("", summary.next.command, TITLES)


def _pairs(summary: Summary) -> Iterator[tuple[str, str]]:
    stages = summary.stages
    for title, lines in (
        ("Trust", trust_in_words(summary.audit)),
        ("Cost", _costs(stages)),
        ("Time", iter([_time(stages)])),
        ("Missing", missing_in_words(summary.missing, stages)),
    ):
        for number, line in enumerate(list(lines) or ["nothing"]):
            yield "" if number else title, line


def _costs(stages: Mapping[str, Any]) -> Iterator[str]:
    """Yield what author and judge used, beside the plan where there was one."""
    author, grade = stages["checklist"]["usage"], stages["grade"]
    if author["requests"]:
        yield f"author: {_use(author)}"
    judged, kept = grade["judged"], grade["finished_earlier"] + grade["from_cache"]
    paid = f"{kept:,} of {grade['tasks']:,} judgments were there, {grade['from_cache']:,} of them "
    paid += "from the cache"
    if not grade["usage"]["requests"]:
        yield f"nothing was asked: {paid}" if kept else "nothing was asked"
        return
    bill = grade["bill"]
    yield f"judge: {_use(grade['usage'])}"
    if bill:
        yield f"plan: {_planned(bill)}"
    if bill and bill["times_least"] is not None:
        yield f"it computed {bill['times_least']:.2f} times the least possible"
    if kept:
        yield f"{paid}: not paid for again; {counted(judged, 'is', 'are')} new"


def _use(usage: Mapping[str, Any], without_cost: str = NO_PRICE) -> str:
    parts = [counted(usage["requests"], "call", "calls")]
    if usage["prompt_tokens"]:
        parts.append(f"{usage['prompt_tokens']:,} prompt tokens")
    if usage["cost"] is None:
        parts.append(without_cost)
    else:
        parts.append(shown_money(usage["cost"], usage["currency"]))
    return ", ".join(parts)


def _planned(bill: Mapping[str, Any]) -> str:
    known = bill["tokens_known"]
    why = "made at another price" if bill.get("repriced", False) else NO_PRICE
    told = _use({**bill["plan"], "currency": bill["currency"]}, why)
    return told if known == "exact" else f"{told} (tokens {known})"


def _time(stages: Mapping[str, Any]) -> str:
    seconds = {name: facts["seconds"] for name, facts in stages.items() if "seconds" in facts}
    longest = max(seconds, key=lambda name: seconds[name])
    whole = sum(seconds.values())
    return f"{duration(whole)}, of which {longest} {duration(seconds[longest])}"

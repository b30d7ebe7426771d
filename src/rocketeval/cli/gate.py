"""`rocketeval gate`: compare a run with that of the base branch, for CI."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.compare import GATE_FAILED
from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import LEVEL, RUN_PATH, FiniteRange
from rocketeval.text import TOO_FEW, count_of, is_hash, printable, query_name, start_of

if TYPE_CHECKING:
    from rocketeval.gate.ci import GateOutcome

MOST_FALLS = 3
"""Queries with a lower score to print per candidate."""


@verb(
    examples=[
        ("rocketeval gate runs/head runs/base", "fail if a candidate scores significantly lower"),
        (
            "rocketeval gate runs/head runs/base --comment comment.md",
            "and write the comment for the pull request",
        ),
    ],
    exit_codes={**codes(2, 5), GATE_FAILED: "a candidate scores lower than in the base run"},
)
@click.argument("head", type=RUN_PATH)
@click.argument("base", type=RUN_PATH)
@option("--candidate", "candidates", multiple=True, help="Compare only this one; repeatable.")
@option(
    "--max-drop",
    type=FiniteRange(min=0),
    metavar="X",
    help="Also fail if the mean fell by more than X, significant or not.",
)
@option("--comment", type=click.Path(path_type=Path), help="File for the comment, in Markdown.")
@option("--report-url", metavar="URL", help="Link to the report in the comment.")
@LEVEL
def command(
    head: Path,
    base: Path,
    candidates: tuple[str, ...],
    max_drop: float | None,
    comment: Path | None,
    report_url: str | None,
    level: float,
) -> None:
    """Compare the run HEAD with the run BASE, candidate by candidate and query by query.

    Both are run directories of the same judge and scale. Exits with 7 if a candidate scores
    significantly lower than in BASE. Each candidate is tested without correction for their number.
    """
    from rocketeval.gate.baseline import shown_effect
    from rocketeval.gate.ci import compare_runs, gate_comment

    outcome = compare_runs(head, base, candidates=candidates, max_drop=max_drop, level=level)
    if comment is not None:
        comment.write_text(gate_comment(outcome, report_url), encoding="utf-8")
    for one in outcome.diff.candidates:
        click.echo(f"{printable(one.candidate)}: {one.verdict}, {shown_effect(one.comparison)}")
        for fall in one.falls[:MOST_FALLS]:
            worse = fall.worse_answers
            flipped = f", {count_of(worse, 'worse answer', 'worse answers')}" if worse else ""
            scores = f"{fall.before:.2f} -> {fall.now:.2f}"
            starts = {fall.query: start_of(fall.snippet)} if is_hash(fall.query) else None
            click.echo(f"  {printable(query_name(fall.query, starts))}: {scores}{flipped}")
        if len(one.falls) > MOST_FALLS:
            more = count_of(len(one.falls) - MOST_FALLS, "more query", "more queries")
            click.echo(f"  and {more} with a lower score")
    for note in outcome.diff.notes:
        click.echo(printable(note))
    for others, where in ((outcome.diff.new, "this run"), (outcome.diff.gone, "the baseline")):
        if others:
            click.echo(printable(f"Only in {where}, and not compared: {', '.join(others)}."))
    if outcome.failed:
        names = ", ".join(printable(one.candidate) for one in outcome.failed)
        click.echo(f"Gate failed: {names}.")
        raise SystemExit(GATE_FAILED)
    click.echo(printable(_passed(outcome)))


def _passed(outcome: GateOutcome) -> str:
    """Return the last line of a gate that did not fail; it says what was not tested."""
    lacking = f"this run lacks {outcome.lost}" if outcome.lost else ""
    if not outcome.could_fail:
        more = f" Also, {lacking}." if lacking else ""
        return f"Nothing was tested: {TOO_FEW}. Add queries, or use --max-drop.{more}"
    untested = f"{TOO_FEW} to test {outcome.untested}" if outcome.untested else ""
    reasons = " and ".join(filter(None, (lacking, untested)))
    return f"Gate passed, but {reasons}." if reasons else "Gate passed."

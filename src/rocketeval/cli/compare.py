"""The verbs `compare`, which tests two candidates, and `anchors`, a first look at new ones."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import LEVEL, RUN_PATH, SEEDS, FiniteRange, with_run
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.text import make_console, make_table, show_pairs, shown_path
from rocketeval.text import NO_INTERVAL, TOO_FEW, between, chance, count_of, percentage, printable

if TYPE_CHECKING:
    from rocketeval.compare.anchors import AnchorChoice, Placement
    from rocketeval.compare.pair import Comparison
    from rocketeval.pipeline import Run
    from rocketeval.records import Interval
    from rocketeval.stats.anchors import PredictionError


GATE_FAILED = 7
"""Exit code 7: the condition of --fail-if holds."""
COLORS = {"better": "green", "worse": "red"}


@verb(
    examples=[
        ("rocketeval compare NEW OLD", "fail if NEW is significantly worse"),
        ("rocketeval compare NEW OLD --fail-if not-better", "fail unless NEW is better"),
        (
            "rocketeval compare NEW OLD --fail-if maybe-worse --min-effect 0.2",
            "fail if it may be 0.2 worse",
        ),
    ],
    exit_codes={**codes(2, 5), 7: "the condition of --fail-if holds"},
)
@click.argument("first")
@click.argument("second")
@with_run
@option(
    "--min-effect",
    type=FiniteRange(min=0, min_open=True),
    metavar="X",
    help="Smallest mean difference that matters. The verdict is `equal enough` if the whole "
    "interval lies between -X and +X.",
)
@option(
    "--fail-if",
    type=click.Choice(["worse", "maybe-worse", "not-better", "never"]),
    default="worse",
    show_default=True,
    metavar="CONDITION",
    help="When to exit with code 7: worse; not-better (any verdict but better); maybe-worse (the "
    "interval reaches below -X; needs --min-effect); or never.",
)
@LEVEL
@with_output
def command(
    run: Run,
    first: str,
    second: str,
    min_effect: float | None,
    fail_if: str,
    level: float,
    output: Output,
) -> int:
    """Test whether candidate FIRST is better than SECOND.

    Compares the two query by query in CONFIG's scored run. The verdict is better, worse, equal
    enough (with --min-effect), can't tell or too few queries. Better and worse need an interval
    without zero and a p-value of at most 1 - LEVEL in a sign-flip permutation test; if the judge is
    unchecked, they are called higher and lower score. If the verdict is can't tell, the output
    estimates how many queries would be needed. Use the exit code as a gate in CI.
    """
    if fail_if == "maybe-worse" and min_effect is None:
        raise click.UsageError("--fail-if maybe-worse needs --min-effect.")
    found = run.compare(first, second, min_effect=min_effect, level=level)
    output.give(found, lambda: show_comparison(found))
    return GATE_FAILED if _fails(found, fail_if) else 0


def _fails(found: Comparison, fail_if: str) -> bool:
    from rocketeval.compare.pair import ComparisonVerdict

    failing = {
        "maybe-worse": found.may_be_worse,
        "worse": found.verdict is ComparisonVerdict.WORSE,
        "not-better": found.verdict is not ComparisonVerdict.BETTER,
    }
    return failing.get(fail_if, False)


def show_comparison(found: Comparison) -> None:
    """Print the conclusion, the figures and the notes."""
    console = make_console()
    console.print(printable(_conclusion(found)), style=COLORS.get(found.verdict), highlight=False)
    show_pairs(_lines(found), 12)
    for note in _notes(found):
        console.print(note, style="dim", highlight=False)


def _notes(found: Comparison) -> Iterator[str]:
    if math.isnan(found.effect.low):
        return
    if math.isnan(found.detectable):
        yield f"{percentage(found.level)} interval, exact: on other queries the scores may differ."
    else:
        yield f"{percentage(found.level)} interval from {found.bootstrap} resamples of the queries."


def _conclusion(found: Comparison) -> str:
    from rocketeval.compare.pair import DIGITS, ComparisonVerdict

    first, second, value = found.first, found.second, found.effect.value
    on = f"on {count_of(found.queries, 'query', 'queries')}"
    if found.verdict in (ComparisonVerdict.BETTER, ComparisonVerdict.WORSE):
        more = "higher" if value > 0 else "lower"
        mean = f"its mean score is {abs(value):.2g} {more} {on}"
        if found.doubt:
            return f"{first} scores significantly {more} than {second}: {mean}."
        return f"{first} is significantly {found.verdict} than {second}: {mean}."
    if found.verdict is ComparisonVerdict.EQUAL:
        margin = f"the mean scores differ by less than {found.min_effect:g} {on}"
        return f"{first} and {second} are equal enough: {margin}."
    if _too_few(found):
        few = f"{TOO_FEW.capitalize()} to compare {first} with {second}: {found.queries:,}"
        clusters = count_of(found.clusters, "cluster", "clusters")
        return f"{few} in {clusters}." if found.clusters < found.queries else f"{few}."
    if math.isnan(found.effect.low) and abs(value) < 10.0**-DIGITS:
        return f"{first} and {second} have the same mean score {on}: no interval, no verdict."
    if math.isnan(found.effect.low) and abs(value) <= (found.min_effect or 0.0):
        size = f"{_rounded(abs(value))} {'higher' if value > 0 else 'lower'}"
        within = "which is within the minimum effect and has no interval"
        return f"No verdict on {first}: its mean score is {size} than {second}'s {on}, {within}."
    return f"{first} and {second} are tied: no significant difference in mean score {on}."


def _too_few(found: Comparison) -> bool:
    from rocketeval.stats.bootstrap import least_queries

    return found.clusters < least_queries(found.level)


def _verdict(found: Comparison) -> str:
    """Return the verdict in words that agree with the conclusion."""
    if _too_few(found):
        return TOO_FEW
    if found.doubt:
        return {"better": "higher score", "worse": "lower score"}.get(found.verdict, found.verdict)
    return str(found.verdict)


def _lines(found: Comparison) -> Iterator[tuple[str, str]]:
    from rocketeval.compare.pair import ComparisonVerdict
    from rocketeval.stats.permutation import POWER

    yield "verdict", _verdict(found)
    p = f"{chance(found.p_value)} (sign-flip test)"
    yield "difference", f"{_effect(found.effect)} in mean score, {p}"
    both = count_of(found.queries, "query", "queries")
    left_out = f", {found.missing:,} left out because a score is missing" if found.missing else ""
    yield "queries", f"{both} with both scores{left_out}"
    outcome = f"{found.wins} won, {found.ties} tied, {found.losses} lost"
    yield "outcome", f"{outcome} (tie: difference below {found.tie_margin:g})"
    if math.isnan(found.effect.low):
        why = "The difference is the same on all queries: no interval."
        yield "", "Too few queries for an interval or a verdict." if _too_few(found) else why
    elif found.verdict is ComparisonVerdict.UNKNOWN:
        yield "needed", _needed(found)
    if found.unseen and found.verdict is ComparisonVerdict.UNKNOWN:
        yield (
            "",
            "Most differences are nearly zero. Rare large ones on other queries may change the "
            f"mean by up to {_rounded(found.unseen)}.",
        )
    if not math.isnan(found.detectable):
        difference = f"a difference of {_rounded(found.detectable)}"
        yield "power", f"{found.queries:,} queries detect {difference} with {POWER:.0%} power"
    sure = found.verdict in (ComparisonVerdict.BETTER, ComparisonVerdict.WORSE)
    if sure and found.tied_in_ranking:
        yield (
            "",
            "The ranking shows these two as tied: it corrects for testing all pairs, while this is "
            "one planned comparison.",
        )
    if found.contradicts_ranking:
        better, other = found.first, found.second
        if found.verdict is ComparisonVerdict.WORSE:
            better, other = other, better
        yield (
            "",
            f"The ranking places {other} above {better}: it counts wins, while this compares mean "
            "scores. The two ways to rank disagree.",
        )
    if found.doubt:
        yield "caution", found.doubt


def _needed(found: Comparison) -> str:
    if found.queries_needed is None:
        return "unknown: the observed difference is too close to zero for an estimate"
    more = max(found.queries_needed - found.queries, 0)
    if not more:
        return "a few more queries: interval and p-value disagree at this level"
    more = _two_digits(more)
    return (
        f"about {found.queries + more:,} queries ({more:,} more) to detect a difference of "
        f"{_rounded(abs(found.effect.value))}"
    )


def _effect(effect: Interval) -> str:
    if math.isnan(effect.low):
        return f"{effect.value:+.2g} ({NO_INTERVAL})"
    width = effect.high - effect.low
    # Show two significant digits of the interval's width.
    places = max(0, 1 - math.floor(math.log10(width))) if width > 0.0 else 2
    value, low, high = (f"{x:+.{places}f}" for x in (effect.value, effect.low, effect.high))
    return f"{value} ({between(low, high)})"


def _rounded(value: float) -> str:
    return f"{value:.2g}"


def _two_digits(number: int) -> int:
    """Round to two significant digits."""
    return int(float(f"{number:.2g}"))


@dataclass(frozen=True, slots=True)
class AnchorOutput:
    """The JSON document of `rocketeval anchors`."""

    anchors: AnchorChoice
    placed: tuple[Placement, ...]
    """Empty without --look."""


@verb(
    examples=[
        ("rocketeval anchors runs/all --out anchors.txt", "choose 20 queries"),
        ("rocketeval run new.yaml --queries anchors.txt", "grade a new candidate on these"),
        ("rocketeval anchors runs/all --look runs/new-anchors", "place the new candidate"),
    ],
    exit_codes=codes(2, 5),
)
@click.argument("run", type=RUN_PATH)
@option(
    "--count",
    type=click.IntRange(min=2),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of queries to choose.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="File for the query ids, one per line, for `run --queries`.",
)
@option(
    "--look",
    type=RUN_PATH,
    metavar="RUN",
    help="Run of a new candidate on the anchors; place it among those of the first run.",
)
@option("--seed", type=SEEDS, default=0, show_default=True, metavar="N", help="Seed of the choice.")
@with_output
def anchors(
    run: Path, count: int, out: Path | None, look: Path | None, seed: int, output: Output
) -> None:
    """Choose the queries of a run that best predict a candidate's mean score.

    RUN is a run directory (or its config) with at least five fully graded candidates. Grade a new
    candidate on the chosen queries only, then see with --look where it would rank. This is a first
    look: it gives an order without intervals. Grade all queries before you decide.
    """
    from rocketeval.compare.anchors import choose_queries, place_candidates, save_queries
    from rocketeval.judges.runs import open_run

    known = open_run(run)
    found = choose_queries(known.store, count, seed)
    if out is not None:
        save_queries(found, out)
    placed: tuple[Placement, ...] = ()
    if look is not None:
        new = open_run(look)
        placed = place_candidates(known.store, new.store, found, (known.config, new.config))
    output.give(AnchorOutput(found, placed), lambda: _show_anchors(found, placed, out))


def _show_anchors(found: AnchorChoice, placed: Sequence[Placement], out: Path | None) -> None:
    chosen = count_of(len(found.queries), "anchor", "anchors")
    names = count_of(len(found.candidates), "candidate", "candidates")
    click.echo(f"{chosen} of {found.of_queries:,} queries, chosen by the scores of {names}.")
    click.echo(f"A candidate left out is predicted within {_shown(found.anchors)};")
    click.echo(f"from as many random queries, within {_shown(found.random)}.")
    if placed:
        _show_order(placed)
    elif out is None:
        click.echo(printable(", ".join(found.queries)))
    if out is not None:
        click.echo(f"Written: {shown_path(out)}")


def _shown(error: PredictionError) -> str:
    rho = "unknown" if math.isnan(error.spearman) else f"{error.spearman:.2f}"
    return f"{error.mean_error:.2f} points on average (rank correlation {rho})"


def _show_order(placed: Sequence[Placement]) -> None:
    from rich.text import Text

    table = make_table("Order by anchor scores")
    for title in ("place", "candidate", ""):
        table.add_column(title, overflow="fold")
    for place, row in enumerate(placed, 1):
        table.add_row(str(place), Text(printable(row.candidate)), "new" if row.new else "")
    make_console().print(table)
    click.echo(
        "A first look: anchors give an order without intervals. Grade all queries before you "
        "decide between neighbors."
    )

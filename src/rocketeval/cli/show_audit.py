"""How far the scores agree with people, as the command line prints it: made for 80 columns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.audit.audit import Audit
from rocketeval.audit.categories import FEWEST_VOTES, CategoryAgreement
from rocketeval.audit.correlation import Coefficient, Correlation
from rocketeval.audit.figures import Agreement
from rocketeval.audit.label_correlation import CANDIDATES, PER_QUERY, RESPONSES, LabelCorrelation
from rocketeval.audit.margins import MarginAgreement
from rocketeval.audit.scorings import JUDGE
from rocketeval.audit.training import Refused
from rocketeval.cli.show_advice import show_advice
from rocketeval.cli.show_bias import show_bias
from rocketeval.cli.tables import figure, make_console, make_table, share
from rocketeval.cli.words import chance, printable
from rocketeval.names import counted, listed
from rocketeval.records import Interval

LEVELS = (RESPONSES, PER_QUERY, CANDIDATES)


def show_audit(audit: Audit, *, brief: bool = False) -> None:
    """Print how far people agree with the scores, and last what it means.

    `brief` leaves out what the sentences at the end rest on: categories, tie margins, bias.
    """
    console = make_console()
    if audit.agreement:
        _show_votes(console, audit, brief)
    for part, methods in audit.labels.items():
        _show_labels(console, part, methods)
    if audit.bias and not brief:
        show_bias(console, audit.bias)
    _show_refused(audit.refused)
    if audit.ratings:
        console.print(f"Reference ratings: {_correlation(audit.ratings)}", highlight=False)
    show_advice(console, "How far to trust this judge", audit.advice)


def _show_votes(console: Console, audit: Audit, brief: bool) -> None:
    votes = audit.agreement[JUDGE]
    console.print(_vote_table(audit, votes))
    if votes.unusable:
        unusable = counted(votes.unusable, "vote", "votes")
        console.print(f"{unusable} could not be used: a score is missing, or a name unknown.")
    if brief:
        return
    if len(audit.categories) > 1:
        console.print(_category_table(audit.categories))
        pooled = audit.categories[-1].pooled
        if pooled:
            names = printable(listed(pooled, most=10))
            _note(console, f"other: fewer than {FEWEST_VOTES} votes each: {names}.")
    if votes.used:
        console.print(_margin_table(audit.margins, audit.tie_margin))


def _vote_table(audit: Audit, votes: Agreement) -> Table:
    whole = f" of {votes.votes}" if votes.unusable else ""
    word = "vote" if votes.votes == 1 else "votes"
    table = make_table(f"Agreement with {votes.used}{whole} {word}")
    table.add_column("method")
    table.add_column("with ties", justify="right")
    table.add_column("without ties", justify="right")
    for method, found in audit.agreement.items():
        fewer = f" ({counted(found.used, 'vote', 'votes')})" if found.used < votes.used else ""
        table.add_row(f"{method}{fewer}", share(found.with_ties), share(found.without_ties))
    if audit.voters:
        table.add_row(
            "another voter", share(audit.voters.with_ties), share(audit.voters.without_ties)
        )
    return table


def _category_table(categories: Sequence[CategoryAgreement]) -> Table:
    table = make_table("By category, beside another voter")
    table.add_column("category", overflow="fold")
    for column in ("votes", "with ties", "voter", "without ties", "voter"):
        table.add_column(column, justify="right", no_wrap=True)
    for part in categories:
        judge, voters = part.agreement, part.voters
        table.add_row(
            Text(printable(part.category)),
            f"{judge.used:,}",
            _whole(judge.with_ties),
            _whole(voters.with_ties if voters else None),
            _whole(judge.without_ties),
            _whole(voters.without_ties if voters else None),
        )
    return table


def _margin_table(margins: Sequence[MarginAgreement], used: float) -> Table:
    table = make_table("By tie margin (ranking.tie_margin)")
    for column in ("margin", "with ties", "called a tie", ""):
        table.add_column(column, justify="left" if not column else "right", no_wrap=True)
    for row in margins:
        called = "-" if row.ties is None else f"{100 * row.ties:.1f}"
        mark = "used" if row.margin == used else ""
        table.add_row(f"{row.margin:g}", share(row.with_ties), called, mark)
    return table


def _show_labels(console: Console, part: str, methods: Mapping[str, LabelCorrelation]) -> None:
    judge = methods[JUDGE]
    console.print(_label_table(part, methods))
    distances = [
        f"{method} {figure(found.rmse, '.2f')}" for method, found in methods.items() if found.rmse
    ]
    if distances:
        _note(console, f"Distance from the label (RMSE): {', '.join(distances)}.")
    left_out = judge.levels[PER_QUERY].left_out
    if left_out:
        some = counted(left_out, "query is", "queries are")
        _note(console, f"Per query: {some} left out, scores or labels there are all the same.")
    reasons = {judge.levels[level].reason: level for level in LEVELS}
    for reason, level in reasons.items():
        if reason is not None:
            _note(console, f"No coefficient ({level}): {reason}.")


def _label_table(part: str, methods: Mapping[str, LabelCorrelation]) -> Table:
    judge = methods[JUDGE]
    table = make_table(f"Against {part} ({counted(judge.responses, 'response', 'responses')})")
    table.add_column("")
    for level in LEVELS:
        size = "" if level == RESPONSES else f" ({judge.levels[level].n})"
        table.add_column(level + size)
    for name in ("pearson", "spearman", "kendall"):
        table.add_row(f"{JUDGE}, {name.capitalize()}", *_at_levels(judge, name))
    for method, found in methods.items():
        if method != JUDGE:
            table.add_row(method, *_at_levels(found, "spearman"))
    if len(methods) > 1:
        table.caption = "Below the judge: Spearman of simpler scores."
        table.caption_justify = "left"
    return table


def _at_levels(found: LabelCorrelation, name: str) -> list[str]:
    # Three figures that all reach below zero still fit 80 columns with the shorter joint.
    shown = (figure(getattr(found.levels[level], name), ".2f") for level in LEVELS)
    return [text.replace(" to ", "..") for text in shown]


def _whole(interval: Interval | None) -> str:
    """Return a share in whole percent: votes of a category give no more digits."""
    if interval is None:
        return "-"
    return figure(
        Interval(*(100 * x for x in (interval.value, interval.low, interval.high))), ".0f"
    )


def _show_refused(refused: Refused) -> None:
    """Say loudly what the scores were not held against."""
    for count, what in ((refused.labels, "labels"), (refused.votes, "votes")):
        if count:
            make_console(stderr=True).print(
                f"Refused: {count} {what} were learned from by the fit that made these scores. "
                "Holding the scores against them would flatter the scorer. Audit it on other "
                f"{what}, or fit one here: what it learns from is then scored out of fold.",
                style="red",
                highlight=False,
            )


def _note(console: Console, sentence: str) -> None:
    console.print(sentence, style="dim", markup=False, highlight=False)


def _correlation(found: Correlation) -> str:
    if found.spearman is None or found.kendall is None:
        return f"no coefficient ({found.reason})"
    return (
        f"Spearman {_coefficient(found.spearman)}, Kendall {_coefficient(found.kendall)}, "
        f"{found.n} candidates"
    )


def _coefficient(found: Coefficient) -> str:
    bounds = found.interval
    reach = "" if bounds is None else f"{figure(bounds, '.2f').split('(')[-1].rstrip(')')}, "
    return f"{found.value:.2f} ({reach}{chance(found.p_value)})"

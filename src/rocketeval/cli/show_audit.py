"""How far the scores agree with people, as the command line prints it."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console
from rich.table import Table

from rocketeval.audit.audit import Audit
from rocketeval.audit.correlation import Coefficient, Correlation
from rocketeval.audit.label_correlation import LabelCorrelation
from rocketeval.audit.training import Refused
from rocketeval.cli.tables import figure, make_console, make_table, share
from rocketeval.cli.words import chance


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


def _correlation(found: Correlation) -> str:
    if found.spearman is None or found.kendall is None:
        return f"no coefficient ({found.reason})"
    return (
        f"Spearman {_coefficient(found.spearman)}, Kendall {_coefficient(found.kendall)}, "
        f"{found.n} candidates"
    )


def _coefficient(found: Coefficient) -> str:
    return f"{found.value:.2f} ({chance(found.p_value)})"

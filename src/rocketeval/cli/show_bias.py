"""What moves scores beside quality, as the command line prints it."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from rocketeval.audit.bias import Bias
from rocketeval.audit.length_bias import FEWEST_RESPONSES, LengthBias
from rocketeval.audit.self_preference import SelfPreference
from rocketeval.cli.tables import figure, make_table, share
from rocketeval.cli.words import printable
from rocketeval.names import counted, listed


def show_bias(console: Console, bias: Bias) -> None:
    """Print how far scores follow length and family, and what the figures rest on."""
    table = make_table("Beside quality: length and family, within a query")
    for column in ("", "figure", "on"):
        table.add_column(column, justify="right" if column == "figure" else "left", no_wrap=True)
    _add_length(table, bias.length)
    if bias.own_family is not None:
        _add_family(table, bias.own_family)
    if table.row_count:
        console.print(table)
        for note in _notes(bias):
            console.print(note, style="dim", markup=False, highlight=False)


def _add_length(table: Table, found: LengthBias) -> None:
    queries, labelled = (
        counted(count, "query", "queries") for count in (found.queries, found.gold_queries)
    )
    if found.scores is not None:
        table.add_row("score follows length, Spearman", figure(found.scores, ".2f"), queries)
    if found.excess is not None:
        beside = figure(found.scores_with_gold, ".2f")
        table.add_row("label follows length, Spearman", figure(found.gold, ".2f"), labelled)
        table.add_row("score of labelled responses", beside, labelled)
        table.add_row("score beyond label", figure(found.excess, ".2f"), labelled)
    if found.lost_to_longer is not None:
        lost = counted(found.lost, "vote", "votes")
        table.add_row("lost votes that the longer won, %", share(found.lost_to_longer), lost)


def _add_family(table: Table, found: SelfPreference) -> None:
    if found.preference is None:
        return
    queries = counted(found.queries, "query", "queries")
    table.add_row("own family, score beyond label", figure(found.preference, ".2f"), queries)
    if found.at_equal_gold is not None:
        table.add_row("own family at equal labels", figure(found.at_equal_gold, ".2f"), queries)


def _notes(bias: Bias) -> list[str]:
    notes = []
    if bias.queries_skipped:
        whole = bias.queries + bias.queries_skipped
        notes.append(f"Lengths were looked at on {bias.queries:,} of {whole:,} queries.")
    if bias.length.left_out:
        some = counted(bias.length.left_out, "query has", "queries have")
        notes.append(
            f"{some} fewer than {FEWEST_RESPONSES} scores, or all scores or lengths the same."
        )
    if bias.own_family is not None:
        names = printable(listed(bias.own_family.family, most=5))
        notes.append(
            f"Own family, by name: {names}. In standard deviations of a query's scores."
            if bias.own_family.preference
            else f"Own family, by name: {names}. No figure: {bias.own_family.reason}."
        )
    return notes

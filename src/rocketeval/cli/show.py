"""What a scorer learned, as the command line prints it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.cli.tables import make_console
from rocketeval.cli.words import printable
from rocketeval.names import counted


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
        console.print(
            f"The scorer learned from {gold} on {names}{kept}.", markup=False, highlight=False
        )
    if learned.get("queries_by_mean_in_a_fold"):
        some = counted(learned["queries_by_mean_in_a_fold"], "query has", "queries have")
        console.print(
            f"{some} enough gold for the whole fit, but not for every fold: some of the scores "
            "learned from are the mean's there.",
            markup=False,
            highlight=False,
        )
    if learned.get("queries_by_mean"):
        reasons = "; ".join(f"{n} x {printable(why)}" for why, n in learned["reasons"].items())
        by_mean = counted(learned["queries_by_mean"], "query", "queries")
        console.print(
            f"Scored by the mean after all: {by_mean} ({reasons}).", markup=False, highlight=False
        )

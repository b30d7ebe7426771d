"""Plan beside bill, after grading."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import click

from rocketeval.cli.words import clock
from rocketeval.cost import shown_money

NOT_TOLD = "not told"


def show_bill(found: Mapping[str, Any] | None) -> None:
    """Print what was expected beside what was used; nothing when no plan was made for it."""
    if found is None:
        return

    def amount(value: float) -> str:
        return shown_money(value, found["currency"])

    rows: list[tuple[str, str, Callable[[Any], str]]] = [
        ("calls", "requests", _count),
        ("prompt tokens", "prompt_tokens", _count),
        ("  computed", "computed_tokens", _count),
        ("completion tokens", "completion_tokens", _count),
        ("money", "cost", amount),
        ("time", "seconds", clock),
    ]
    lines = []
    for title, name, shown in rows:
        plan, bill = found["plan"][name], found["bill"][name]
        repriced = name == "cost" and found.get("repriced", False)
        if plan is not None or repriced or name not in ("cost", "seconds"):
            lines.append((title, _shown(plan, shown), _shown(bill, shown), _note(found, name)))
    wide = [max(len(line[column]) for line in lines) for column in (1, 2)]
    click.echo(f"{'Judging':19}{'plan':>{wide[0]}}   {'bill':>{wide[1]}}")
    for title, plan, bill, note in lines:
        click.echo(f"{title:19}{plan:>{wide[0]}}   {bill:>{wide[1]}}   {note}".rstrip())


def _note(found: Mapping[str, Any], name: str) -> str:
    if name == "prompt_tokens" and found["tokens_known"] != "exact":
        return f"the plan's are {found['tokens_known']}"
    if name == "cost" and found.get("repriced", False):
        return "the plan was made at another price"
    if name == "computed_tokens" and found["times_least"] is not None:
        return f"{found['times_least']:.2f} times the least possible"
    return ""


def _shown(value: float | None, shown: Callable[[Any], str]) -> str:
    return NOT_TOLD if value is None else shown(value)


def _count(value: int) -> str:
    return f"{value:,}"

"""What `rocketeval evolve` prints of the evaluator: figures, experts, perspectives, costs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table
from rich.text import Text

from rocketeval.cli.tables import figure, make_table, share
from rocketeval.cli.words import printable
from rocketeval.cost import shown_money
from rocketeval.evolve.described import DescribedExpert, DescribedPerspective
from rocketeval.evolve.perspective import Kind
from rocketeval.names import counted, listed
from rocketeval.records import Interval
from rocketeval.stages.evolve.cost import Cost, Load
from rocketeval.stages.evolve.evolution import Confidence, Evolution, Figures

TOP = 12
"""Perspectives that are shown; all are in the pool."""
WATCHED = 3
"""Perspectives that are named of what an expert looks at."""
MOST_CASES = 3
MEASURES = {"accuracy": "accuracy", "rho": "rank correlation"}


def show_evaluator(console: Console, found: Evolution) -> None:
    """Print how good it is, what it looks at, how sure it is and what it costs."""
    _show_figures(console, found.figures)
    say(console, f"The evaluator, with experts: {found.worth.words}")
    _show_experts(console, found)
    _show_perspectives(console, found)
    if found.confidence is not None:
        _show_confidence(console, found.confidence, found.held_out.cases)
    _show_cost(console, found.cost)


def say(console: Console, sentence: str) -> None:
    """Print a sentence as it is, whatever it quotes."""
    console.print(printable(sentence), markup=False, highlight=False)


def _show_figures(console: Console, found: Figures) -> None:
    over = f"{found.cases:,} held-out cases of {counted(found.queries, 'query', 'queries')}"
    measure = MEASURES[found.measure]
    paired = found.measure == "accuracy"
    first = make_table(f"On {over}" + (", in percent" if paired else ""))
    _columns(first, measure, "to without experts")
    shown = share if paired else _plain
    for arm in found.arms:
        first.add_row(_text(arm.name), shown(arm.figures[found.measure]), shown(arm.gain))
    console.print(first)
    others = {"f1": "macro-F1", "rho": "rho", "tau": "tau", "mse": "MSE"}
    names = [name for name in others if name != found.measure and name in found.arms[0].figures]
    second = make_table("Other figures of the same verdicts")
    _columns(second, *(others[name] for name in names))
    for arm in found.arms:
        second.add_row(_text(arm.name), *(_plain(arm.figures[name]) for name in names))
    console.print(second)
    say(console, f"The single prompt asks: {found.overall}")


def _show_experts(console: Console, found: Evolution) -> None:
    experts = found.evaluator["experts"]
    chosen = ", ".join(map(str, found.figures.experts))
    many = counted(len(experts), "expert", "experts")
    say(console, f"{many}; folds of the held-out cases chose {chosen}.")
    texts = {each["id"]: each["text"] for each in found.evaluator["perspectives"]}
    about = [each for each in found.evaluator["perspectives"] if each["kind"] == Kind.RESPONSE]
    if len(experts) > 1:
        for expert in experts:
            say(console, _expert(expert, about, texts))


def _expert(
    expert: DescribedExpert, about: Sequence[DescribedPerspective], texts: Mapping[str, str]
) -> str:
    traits = [
        f"{texts[each['perspective']]} yes of {each['share']:.0%} ({each['usual']:.0%} of all)"
        for each in expert["traits"]
        if each["share"] is not None and each["usual"] is not None
    ]
    order = sorted(range(len(about)), key=lambda place: -expert["attention"][place])
    looks = [f"{about[place]['text']} {expert['attention'][place]:.0%}" for place in order]
    cases = "" if expert["size"] is None else f" ({expert['size']:,.0f} cases)"
    told = f"  expert {expert['index'] + 1}{cases} judges queries by: {'; '.join(traits) or 'any'}"
    return f"{told}. It looks at: {'; '.join(looks[:WATCHED])}."


def _show_perspectives(console: Console, found: Evolution) -> None:
    every = sorted(found.evaluator["perspectives"], key=lambda each: -(each["importance"] or 0.0))
    mixed = len({each["form"] for each in every if each["kind"] == Kind.RESPONSE}) > 1
    by_kind = {kind: [each for each in every if each["kind"] == kind] for kind in Kind}
    for kind, title in ((Kind.RESPONSE, "about responses"), (Kind.QUERY, "about queries")):
        own = by_kind[kind]
        if not own:
            continue
        count = counted(len(own), "perspective", "perspectives")
        table = make_table(f"{count} {title}, the most important first")
        told = mixed and kind is Kind.RESPONSE
        for name in ("share", "stable", "origin", *(("answer",) if told else ()), "round"):
            words = name in ("origin", "answer")
            table.add_column(name, justify="left" if words else "right", no_wrap=True)
        table.add_column("question", overflow="fold")
        for each in own[:TOP]:
            table.add_row(
                _percent(each["importance"]),
                _percent(each["stability"]),
                each["origin"],
                *((each["form"],) if told else ()),
                str(each["round"]),
                _text(each["text"]),
            )
        console.print(table)
        if len(own) > TOP:
            say(console, f"and {len(own) - TOP:,} more, in the pool")


def _show_confidence(console: Console, found: Confidence, cases: int) -> None:
    table = make_table("How sure it is of a held-out pair, and how often it is right")
    for name in ("confidence", "cases", "of all", "right, in percent"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.rows:
        above = f">= {row.threshold:.2f}" if row.threshold else "all"
        table.add_row(above, f"{row.cases:,}", f"{row.coverage:.0%}", share(row.accuracy))
    console.print(table)
    if found.threshold is None:
        say(console, "No confidence is high enough to rely on: let a person look at every case.")
    elif not found.to_person:
        right = f"{found.target:.0%} of all cases"
        say(console, f"It is right in {right} at least: for that, none has to go to a person.")
    else:
        names = listed(found.to_person, most=MOST_CASES)
        some = f"{len(found.to_person):,} of {cases:,}"
        say(
            console,
            f"To be right in {found.target:.0%} of what it decides, cases with a confidence below "
            f"{found.threshold:.2f} go to a person: {some} ({names}).",
        )


def _show_cost(console: Console, cost: Cost) -> None:
    table = make_table(
        f"What a {cost.case} costs with {counted(cost.about_responses, 'question', 'questions')} "
        f"about responses and {cost.about_queries:,} about the query"
    )
    table.add_column("", no_wrap=True)
    priced = cost.alone.money is not None
    for name in ("calls", "prompt tokens", *(("money",) if priced else ())):
        table.add_column(name, justify="right", no_wrap=True)
    rows = (
        (f"a {cost.case} alone", cost.alone),
        ("on this benchmark", cost.here),
        ("a single prompt", cost.single),
    )
    for name, load in rows:
        table.add_row(name, *_load_cells(load, cost.currency))
    console.print(table)


def _load_cells(load: Load, currency: str) -> list[str]:
    tokens = "-" if load.prompt_tokens is None else f"{load.prompt_tokens:,.0f}"
    money = () if load.money is None else (shown_money(load.money, currency),)
    return [f"{load.calls:,.1f}", tokens, *money]


def _plain(found: Interval) -> str:
    if math.isnan(found.value):
        return "-"
    # Three figures that all reach below zero still fit 80 columns with the shorter joint.
    return figure(found, ".2f").replace(" to ", "..")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _columns(table: Table, *names: str) -> None:
    table.add_column("", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def _text(text: str) -> Text:
    return Text(printable(text))

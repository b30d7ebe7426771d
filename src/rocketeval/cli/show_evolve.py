"""What `rocketeval evolve` prints: rounds, figures, experts, perspectives, confidence and cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Console

from rocketeval.cli.show_evaluator import MEASURES, say, show_evaluator
from rocketeval.cli.tables import make_console, make_table
from rocketeval.cli.words import clock
from rocketeval.cost import shown_money
from rocketeval.evolve.perspective import Origin
from rocketeval.names import counted, listed
from rocketeval.stages.evolve.evolution import Evolution, PoolFacts
from rocketeval.stages.evolve.history import Measured, Round

ROUND_COLUMNS = (
    "round",
    "mistakes",
    "new",
    "dropped",
    "kept",
    "after",
    "questions\n+ requests",
    "time",
)


def show_evolution(found: Evolution) -> None:
    """Print everything an evolution found, but where its files are."""
    console = make_console()
    _show_split(console, found)
    _show_rounds(console, found)
    show_evaluator(console, found)
    _show_spent(console, found.spent)
    if found.missing:
        some = counted(found.missing, "answer is", "answers are")
        say(console, f"{some} missing; the usual answer to the same question stands for each.")
    if found.failed:
        some = counted(found.failed, "prompt", "prompts")
        say(console, f"{some} could not be answered; run it again to retry.")


def _show_split(console: Console, found: Evolution) -> None:
    one = "pair" if found.gold == "votes" else "response"
    seen, held_out = (
        f"{counted(part.cases, one, one + 's')} of {counted(part.queries, 'query', 'queries')}"
        for part in (found.seen, found.held_out)
    )
    say(console, f"Learned from {found.gold}. Seen: {seen}; held out: {held_out}.")
    pool = found.pool
    origins = ", ".join(f"{count:,} {origin}" for origin, count in pool.by_origin.items())
    say(console, f"Pool: {counted(pool.size, 'perspective', 'perspectives')} ({origins}).")
    if pool.people:
        new = f", {pool.new_people:,} of them since the last command" if pool.new_people else ""
        say(console, f"People added {pool.people:,}{new}.")
        used = sum(each["origin"] == Origin.PERSON for each in found.evaluator["perspectives"])
        say(console, f"Of what people added, {used:,} earned a place in the evaluator.")
        _show_late_people(console, pool)
    if pool.waiting:
        some = counted(pool.waiting, "more was", "more were")
        say(console, f"{some} added too late for this command: the next one goes on with all.")
    if pool.refused:
        say(console, f"Of the guidelines, not taken: {listed(pool.refused, most=3)}.")


def _show_late_people(console: Console, pool: PoolFacts) -> None:
    if pool.elsewhere:
        some = f"{pool.elsewhere:,} of them"
        say(console, f"{some} came with the number of a round that this run has not done.")
    late = pool.people - pool.people_before_figures
    if late > 0:
        some = "was" if late == 1 else "were"
        say(
            console,
            f"{late:,} of them {some} added after held-out figures were first shown: if anybody "
            "looked at held-out cases for that, the figures below are flattered.",
        )


def _show_rounds(console: Console, found: Evolution) -> None:
    measure = MEASURES[found.figures.measure]
    say(console, f"Beginning: {measure} {_measured(found.beginning)} on the seen cases.")
    if found.rounds:
        table = make_table(f"Rounds ({measure} on the seen cases, out of fold)")
        for name in ROUND_COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        for done in found.rounds:
            table.add_row(*_round_cells(done))
        console.print(table)
        say(console, "Questions are those to the judge, requests those to the optimizer.")
        say(console, "A little flattered: settings are chosen on all seen queries.")
        for done in found.rounds:
            for name, reason in done.failed.items():
                say(console, f"The optimizer brought nothing ({name}): {reason}")
    whose = f"after round {found.best_round}" if found.best_round else "of the beginning"
    say(console, f"No further round: {found.stopped}. Validation is best with the pool {whose}.")


def _round_cells(done: Round) -> list[str]:
    return [
        str(done.round),
        f"{done.mistakes:,}",
        f"{sum(done.proposed.values()):,}",
        f"{sum(done.dropped.values()):,}",
        f"{len(done.kept):,} of {done.pool:,}",
        _measured(done.after),
        f"{done.judge.get('questions', done.judge['requests']):,} + {done.optimizer['requests']:,}",
        clock(done.seconds),
    ]


def _show_spent(console: Console, spent: Mapping[str, Mapping[str, Any]]) -> None:
    parts = []
    for who, used in spent.items():
        if not used["requests"]:
            continue
        cost = used["cost"]
        money = "" if cost is None else f", {shown_money(cost, used['currency'])}"
        tokens = used["prompt_tokens"] + used["completion_tokens"]
        asked = f"{used['questions']:,} questions in " if "questions" in used else ""
        parts.append(f"{who} {asked}{used['requests']:,} requests, {tokens:,} tokens{money}")
    say(console, f"Over all commands: {'; '.join(parts) or 'nothing was asked'}.")


def _measured(found: Measured) -> str:
    return f"{found.value:.3f} +- {found.error:.3f}"

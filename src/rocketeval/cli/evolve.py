"""`rocketeval evolve`: the command and its output."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import with_settings
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import clock, make_console, make_table, near, say, show_pairs, show_whole
from rocketeval.text import count_of, figure, join_words, printable, share

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from rocketeval.cli.run import NextStep, Typed
    from rocketeval.config import RunConfig
    from rocketeval.evolve.history import JudgeUse, OutOfFoldFigure, Round, Spent
    from rocketeval.evolve.result import (
        CaseCost,
        DescribedExpert,
        DescribedPerspective,
        EvaluatorCost,
        Evolution,
        HeldOutFigures,
        PoolFacts,
        VerdictConfidence,
    )
    from rocketeval.records import Interval


TOP = 12
"""Number of perspectives to print; the pool file has all."""
TOP_OF_EXPERT = 3
"""Number of perspectives to name per expert."""
MOST_CASES = 3
MEASURES = {"accuracy": "accuracy", "rho": "rank correlation"}


def _show_summary(console: Console, found: Evolution) -> None:
    """Print how good the evaluator is, compared with what, and whether to use it."""
    from rocketeval.evolve.validate import WITH

    own = next(arm for arm in found.figures.arms if arm.name == WITH)
    value = own.figures[found.figures.measure]
    cases = _cases_of(found, found.held_out.cases)
    if found.figures.measure == "accuracy":
        percent, _, interval = share(value).partition(" (")
        sure = f" (95% interval {interval}" if interval else ""
        result = (
            f"The evaluator agrees with the {found.gold} on {percent}%{sure} of {cases} that it "
            "did not learn from."
        )
    else:
        result = (
            f"The evaluator's scores have a rank correlation of {_plain(value)} with the "
            f"{found.gold} on {cases} that it did not learn from."
        )
    advice = (
        "You can judge new responses with it."
        if found.worth.usable
        else f"Do not use it yet: it needs more {found.gold} or better perspectives."
    )
    say(console, f"{result} {found.worth.words} {advice}")


def _cases_of(found: Evolution, number: int) -> str:
    one = "pair" if found.gold == "votes" else "response"
    return count_of(number, one, one + "s")


def _show_figures(console: Console, found: HeldOutFigures, queries: int) -> None:
    """Print the table of all arms; some of the held-out queries may depend on each other."""
    over = f"{found.cases:,} held-out cases of {count_of(queries, 'query', 'queries')}"
    over += f" ({found.queries:,} independent)" if found.queries < queries else ""
    measure = MEASURES[found.measure]
    paired = found.measure == "accuracy"
    first = make_table(f"On {over}" + (", in percent" if paired else ""))
    _columns(first, measure, "vs. no experts")
    shown = share if paired else _plain
    for arm in found.arms:
        first.add_row(_text(arm.name), shown(arm.figures[found.measure]), shown(arm.gain))
    console.print(first)
    others = {"f1": "macro-F1", "rho": "rho", "tau": "tau", "mse": "MSE"}
    names = [name for name in others if name != found.measure and name in found.arms[0].figures]
    second = make_table("Other metrics of the same verdicts")
    _columns(second, *(others[name] for name in names))
    for arm in found.arms:
        second.add_row(_text(arm.name), *(_plain(arm.figures[name]) for name in names))
    console.print(second)
    say(console, f"The single prompt asks: {found.overall}")


def _show_experts(console: Console, found: Evolution) -> None:
    from rocketeval.evolve.perspective import PerspectiveKind

    experts = found.evaluator.experts
    chosen = ", ".join(map(str, found.figures.experts))
    many = count_of(len(experts), "expert", "experts")
    say(console, f"{many}; the cross-validation folds chose {chosen}.")
    texts = {each.id: each.text for each in found.evaluator.perspectives}
    about = [each for each in found.evaluator.perspectives if each.kind == PerspectiveKind.RESPONSE]
    if len(experts) > 1:
        for expert in experts:
            say(console, _expert(expert, about, texts))


def _expert(
    expert: DescribedExpert, about: Sequence[DescribedPerspective], texts: Mapping[str, str]
) -> str:
    traits = [
        f"{texts[each.perspective]} yes for {each.share:.0%} ({each.usual:.0%} overall)"
        for each in expert.traits
        if each.share is not None and each.usual is not None
    ]
    order = sorted(range(len(about)), key=lambda place: -expert.attention[place])
    weighed = [f"{about[place].text} {expert.attention[place]:.0%}" for place in order]
    cases = "" if expert.size is None else f" ({expert.size:,.0f} cases)"
    queries = "; ".join(traits) or "any"
    return (
        f"  expert {expert.index + 1}{cases} judges these queries: {queries}. "
        f"Most important questions: {'; '.join(weighed[:TOP_OF_EXPERT])}."
    )


def _show_perspectives(console: Console, found: Evolution) -> None:
    from rocketeval.evolve.perspective import PerspectiveKind

    every = sorted(found.evaluator.perspectives, key=lambda each: -(each.importance or 0.0))
    mixed = len({each.form for each in every if each.kind == PerspectiveKind.RESPONSE}) > 1
    by_kind = {kind: [each for each in every if each.kind == kind] for kind in PerspectiveKind}
    for kind, title in (
        (PerspectiveKind.RESPONSE, "about responses"),
        (PerspectiveKind.QUERY, "about queries"),
    ):
        own = by_kind[kind]
        if not own:
            continue
        count = count_of(len(own), "perspective", "perspectives")
        table = make_table(f"{count} {title}, most important first")
        with_form = mixed and kind is PerspectiveKind.RESPONSE
        optional = ("answer",) if with_form else ()
        for name in ("importance", "stability", "origin", *optional, "round"):
            words = name in ("origin", "answer")
            table.add_column(name, justify="left" if words else "right", no_wrap=True)
        table.add_column("question", overflow="fold")
        for each in own[:TOP]:
            table.add_row(
                _percent(each.importance),
                _percent(each.stability),
                each.origin,
                *((each.form,) if with_form else ()),
                str(each.round),
                _text(each.text),
            )
        console.print(table)
        if len(own) > TOP:
            say(console, f"{len(own) - TOP:,} more in the pool file")


def _show_confidence(console: Console, found: VerdictConfidence, cases: int) -> None:
    table = make_table("Accuracy by confidence, on held-out pairs")
    for name in ("confidence", "cases", "coverage", "accuracy (%)"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in found.rows:
        above = f">= {row.threshold:.2f}" if row.threshold else "all"
        table.add_row(above, f"{row.cases:,}", f"{row.coverage:.0%}", share(row.accuracy))
    console.print(table)
    if found.threshold is None:
        say(console, "No confidence threshold is accurate enough: have a person check every case.")
    elif not found.to_person:
        right = f"At least {found.target:.0%} of all its verdicts are right"
        say(console, f"{right}, so no case needs a person.")
    else:
        names = join_words(found.to_person, most=MOST_CASES)
        some = f"{len(found.to_person):,} of {cases:,}"
        say(
            console,
            f"For verdicts that are at least {found.target:.0%} right, send cases with a "
            f"confidence below {found.threshold:.2f} to a person: {some} ({names}).",
        )


def _show_cost(console: Console, cost: EvaluatorCost) -> None:
    table = make_table(
        f"Cost per {cost.case}: {count_of(cost.about_responses, 'question', 'questions')} "
        f"about responses, {cost.about_queries:,} about the query"
    )
    table.add_column("", no_wrap=True)
    priced = cost.alone.money is not None
    for name in ("calls", "prompt tokens", *(("cost",) if priced else ())):
        table.add_column(name, justify="right", no_wrap=True)
    rows = (
        (f"one {cost.case} on its own", cost.alone),
        ("mean on this benchmark", cost.here),
        ("single prompt instead", cost.single),
    )
    for name, load in rows:
        table.add_row(name, *_load_cells(load, cost.currency))
    console.print(table)


def _load_cells(load: CaseCost, currency: str) -> list[str]:
    from rocketeval.prices import shown_money

    tokens = "-" if load.prompt_tokens is None else f"{load.prompt_tokens:,.0f}"
    money = () if load.money is None else (shown_money(load.money, currency),)
    return [f"{load.calls:,.1f}", tokens, *money]


def _plain(found: Interval) -> str:
    if math.isnan(found.value):
        return "-"
    # With "..", three columns of negative intervals still fit in 80 characters.
    return figure(found, ".2f").replace(" to ", "..")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value:.0%}"


def _columns(table: Table, *names: str) -> None:
    table.add_column("", overflow="fold")
    for name in names:
        table.add_column(name, justify="right", no_wrap=True)


def _text(text: str) -> Text:
    from rich.text import Text

    return Text(printable(text))


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
    """Print the result, its certainty, how it came about and what it cost."""
    console = make_console()
    _show_summary(console, found)
    _show_figures(console, found.figures, found.held_out.queries)
    if found.confidence is not None:
        _show_confidence(console, found.confidence, found.held_out.cases)
    if found.missing:
        some = count_of(found.missing, "answer is", "answers are")
        say(console, f"{some} missing; the usual answer to the same question replaces each.")
    if found.failed:
        some = count_of(found.failed, "prompt", "prompts")
        say(console, f"{some} could not be answered; run the same command again to retry.")
    _show_experts(console, found)
    _show_perspectives(console, found)
    _show_split(console, found)
    _show_rounds(console, found)
    _show_cost(console, found.cost)
    _show_spent(console, found.spent)


def _show_split(console: Console, found: Evolution) -> None:
    from rocketeval.evolve.perspective import PerspectiveOrigin

    seen, held_out = (
        f"{_cases_of(found, part.cases)} of {count_of(part.queries, 'query', 'queries')}"
        for part in (found.seen, found.held_out)
    )
    say(console, f"Trained on {found.gold}: {seen}; held out: {held_out}.")
    pool = found.pool
    origins = ", ".join(f"{count:,} {origin}" for origin, count in pool.by_origin.items())
    say(console, f"Pool: {count_of(pool.size, 'perspective', 'perspectives')} ({origins}).")
    if pool.people:
        new = f", {pool.new_people:,} of them since the last command" if pool.new_people else ""
        used = sum(each.origin == PerspectiveOrigin.PERSON for each in found.evaluator.perspectives)
        say(console, f"People added {pool.people:,}{new}; the evaluator uses {used:,} of these.")
        _show_late_people(console, pool)
    if pool.waiting:
        some = count_of(pool.waiting, "more was", "more were")
        say(console, f"{some} added too late for this command; the next one will use all.")
    if pool.refused:
        say(console, f"Rejected from the guidelines: {join_words(pool.refused, most=3)}.")


def _show_late_people(console: Console, pool: PoolFacts) -> None:
    if pool.elsewhere:
        some = count_of(pool.elsewhere, "of them names", "of them name")
        say(console, f"{some} a round that this run has not done.")
    late = pool.people - pool.people_before_figures
    if late > 0:
        some = "was" if late == 1 else "were"
        say(
            console,
            f"{late:,} of them {some} added after held-out figures were first shown. If anyone "
            "looked at held-out cases to write them, the figures above are too optimistic.",
        )


def _show_rounds(console: Console, found: Evolution) -> None:
    measure = MEASURES[found.figures.measure]
    before = f"{measure} {_measured(found.beginning)}"
    say(console, f"Before the first round: {before} on the seen cases.")
    if found.rounds:
        table = make_table(f"Rounds (out-of-fold {measure} on the seen cases)")
        for name in ROUND_COLUMNS:
            table.add_column(name, justify="right", no_wrap=True)
        for done in found.rounds:
            table.add_row(*_round_cells(done))
        console.print(table)
        say(console, "Questions go to the judge, requests to the optimizer.")
        say(console, "Slightly optimistic: settings are chosen on all seen queries.")
        for done in found.rounds:
            for name, reason in done.failed.items():
                say(console, f"The optimizer proposed nothing ({name}): {reason}")
    best = f"The pool after round {found.best_round}" if found.best_round else "The initial pool"
    say(console, f"No further round: {found.stopped}. {best} has the best validation result.")


def _round_cells(done: Round) -> list[str]:
    return [
        str(done.round),
        f"{done.mistakes:,}",
        f"{sum(done.proposed.values()):,}",
        f"{sum(done.dropped.values()):,}",
        f"{len(done.kept):,} of {done.pool:,}",
        _measured(done.after),
        f"{_questions(done.judge):,} + {done.optimizer.requests:,}",
        clock(done.seconds),
    ]


def _questions(used: JudgeUse) -> int:
    return used.requests if used.questions is None else used.questions


def _show_spent(console: Console, spent: Spent) -> None:
    from rocketeval.prices import shown_money

    parts = []
    asked = f"{_questions(spent.judge):,} questions in "
    for who, used in ((f"judge {asked}", spent.judge), ("optimizer ", spent.optimizer)):
        if used.requests:
            money = "" if used.cost is None else f", {shown_money(used.cost, used.currency)}"
            tokens = used.prompt_tokens + used.completion_tokens
            parts.append(f"{who}{used.requests:,} requests, {tokens:,} tokens{money}")
    say(console, f"Over all commands: {'; '.join(parts) or 'no requests'}.")


def _measured(found: OutOfFoldFigure) -> str:
    return f"{found.value:.3f} +- {found.error:.3f}"


TITLES = 11
"""Width of the column before a path."""


@verb(
    examples=[
        ("rocketeval evolve", "train an evaluator, or continue"),
        ("rocketeval evolve --rounds 5 --out mine.npz", "five rounds in total"),
        ("rocketeval run --evaluator mine.npz", "grade with it"),
    ],
    exit_codes=codes(2, 3, 4, 5, 6, 130),
)
@partial(
    with_settings,
    limit="Use only the votes or labels of the first N queries, in a run named NAME-first-N.",
)
@option(
    "--rounds",
    type=click.IntRange(min=0),
    metavar="N",
    help="Total rounds, including those of earlier commands; overrides the config.",
)
@option(
    "--out",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Write the evaluator to FILE (.npz); default: in the run directory.",
)
@with_output
def command(settings: RunConfig, rounds: int | None, out: Path | None, output: Output) -> int:
    """Train an evaluator on votes or labels, to grade with it instead of checklists.

    An evaluator is a set of questions, called perspectives, and a model that predicts votes (which
    response is better) or labels (a score per response) from the judge's answers. The
    `evolve.optimizer` reads the cases that were judged wrongly and proposes new perspectives; those
    that help are kept. Some queries are held out to measure the evaluator.

    Every finished round is saved. Run the same command again to continue: it reads the perspectives
    that people added to evolve/pool.yaml, and reuses every answer.
    """
    from rocketeval.cli.progress import make_observer
    from rocketeval.cli.run import Typed
    from rocketeval.pipeline import Run

    if rounds is not None:
        evolve = settings.evolve.model_copy(update={"rounds": rounds})
        settings = settings.model_copy(update={"evolve": evolve})
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    found = run_with_signals(run, lambda: run.evolve(out))
    step = next_step(found, Typed.now(settings))
    output.give(found, lambda: _show(found, step))
    return INCOMPLETE if found.failed or found.missing else 0


def next_step(found: Evolution, typed: Typed) -> NextStep:
    """Return the command that judges with a usable evaluator, or else continues training."""
    from rocketeval.cli.run import NextStep

    if found.worth.usable:
        why = "Judge with the evaluator; its perspectives replace checklists."
        return NextStep(typed.of_work("run", "--evaluator", near(found.path)), why)
    missing = "" if found.optimizer else ", an `evolve.optimizer`"
    why = f"Continue once you have more votes or labels{missing} or your own perspectives."
    return NextStep(typed.of_work("evolve"), why)


def _show(found: Evolution, step: NextStep) -> None:
    show_evolution(found)
    show_whole("Evaluator", near(found.path), TITLES)
    show_whole("Pool", near(found.pool_path), TITLES)
    show_pairs([("Next", step.why)], TITLES)
    show_whole("", step.command, TITLES)

"""`rocketeval run --only STAGE`: one stage of a run, and what it prints."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.missing import unknown_in_words
from rocketeval.cli.output import Output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import clock, failed, make_console, make_table, printable, shown_path
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.pipeline import Run
    from rocketeval.store.manifest import (
        Bill,
        ChecklistFacts,
        Composition,
        GradeFacts,
        LearnedFacts,
        LoadFacts,
        RayFacts,
        RefusalCounts,
        ScoreFacts,
        SubDimensionCounts,
    )


STAGES = ("load", "checklist", "grade", "score", "rank", "report")
"""What `--only` takes, in the order of a run."""
VERBS_OF_THEIR_OWN = ("audit", "explain")
"""Stages that are verbs, because they have options."""
_NO_USE = {
    "load": ("on", "max_cost", "dry_run"),
    "checklist": ("on", "dry_run"),
    "grade": (),
    **dict.fromkeys(
        ("score", "rank", "report"),
        ("judge", "base_url", "on", "evaluator", "max_cost", "dry_run"),
    ),
}
"""Options of `run` that a stage has no use for."""


class StageName(click.Choice[str]):
    """A stage that `--only` runs; one that is a verb is answered with the verb."""

    def __init__(self) -> None:
        super().__init__(STAGES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the stage, or say where it is."""
        if value in VERBS_OF_THEIR_OWN:
            self.fail(f"that is `rocketeval {value}`.", param, ctx)
        return super().convert(value, param, ctx)


def refuse_unused(stage: str) -> None:
    """Raise UsageError if the command line has options that the stage has no use for."""
    ctx = click.get_current_context()
    given = [name for name in _NO_USE[stage] if ctx.params.get(name)]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--only {stage} has no use for {names}.")


def run_stage(stage: str, settings: RunConfig, output: Output) -> int:
    """Run one stage, print what it did, and return the exit code.

    Grading writes missing checklists first, and both load the benchmark: what they rest on may have
    changed. The stages after grading read what the run holds.
    """
    from rocketeval.cli.progress import make_observer
    from rocketeval.evolve.apply_setup import as_graded
    from rocketeval.pipeline import Run

    if stage in ("checklist", "grade"):
        run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    else:
        run = Run(settings if stage == "load" else as_graded(settings))
    return _RUNNERS[stage](run, output)


def _run_load(run: Run, output: Output) -> int:
    facts = run.load()
    output.give(facts, lambda: _show_loaded(facts))
    return 0


def _show_loaded(facts: LoadFacts) -> None:
    responses = count_of(facts.responses, "response", "responses")
    click.echo(
        f"{count_of(facts.queries, 'query', 'queries')}, "
        f"{count_of(facts.candidates, 'candidate', 'candidates')}, {responses}, "
        f"{facts.labels:,} labels, {facts.votes:,} votes"
    )


def _run_checklist(run: Run, output: Output) -> int:
    from rocketeval.store.codec import encode

    facts = run_with_signals(run, run.to_checklists)
    path = run.store.inputs.folder / "checklists.jsonl"
    output.give({**encode(facts), "path": path}, lambda: _show_written(run, facts))
    for query_id, reason in facts.failures.items():
        click.echo(printable(f"no checklist for {query_id}: {reason}"), err=True)
    for words in unknown_in_words(facts):
        click.echo(words, err=True)
    failed_steps = facts.composition.failed_steps if facts.composition else {}
    for step, reason in failed_steps.items():
        click.echo(printable(f"went on without {step}: {reason}"), err=True)
    return INCOMPLETE if facts.failures or failed_steps else 0


def _show_written(run: Run, facts: ChecklistFacts) -> None:
    composition, refusals = facts.composition, facts.refusals
    if composition is not None:
        show_composition(composition)
    for line in told_refusals(refusals, steps=composition is not None) if refusals else ():
        click.echo(line)
    path = run.store.inputs.folder / "checklists.jsonl"
    click.echo(f"{facts.checklists} checklists with {facts.items} items: {shown_path(path)}")
    provenance = shown_path(path.with_name("checklist_provenance.json"))
    if composition is not None:
        click.echo(f"Where each question is from: {provenance}")
    elif refusals is not None:
        click.echo(f"How each list came about: {provenance}")


def _run_grade(run: Run, output: Output) -> int:
    facts = run_with_signals(run, run.to_judgments)
    output.give(facts, lambda: _show_graded(facts))
    tell_unused(run.store.manifest().stages.checklist)
    for failure in run.store.failures()[:10]:
        click.echo(failed(failure), err=True)
    return INCOMPLETE if facts.unfinished or facts.responses_without_checklist else 0


def _show_graded(facts: GradeFacts) -> None:
    click.echo(
        f"{facts.judged} judged now, {facts.finished_earlier} earlier, "
        f"{facts.from_cache} from the cache, {facts.unfinished} left"
    )
    if facts.ray is not None:
        click.echo(on_ray(facts.ray))
    show_asked(facts)
    show_bill(facts.bill)


def _run_score(run: Run, output: Output) -> int:
    facts = run.score()
    output.give(facts, lambda: _show_scored(facts))
    tell_decided(facts)
    return INCOMPLETE if facts.without_score or facts.missing_answers else 0


def _show_scored(facts: ScoreFacts) -> None:
    click.echo(
        f"{facts.scores} scores, {facts.without_score} responses without one, "
        f"{facts.missing_answers} of {facts.answers} answers missing"
    )
    show_learned(facts.learned)


def _run_rank(run: Run, output: Output) -> int:
    from rocketeval.cli.ranking import show_ranking

    before = run.store.made_after("rank")
    ranking = run.rank()
    stale = [name for name in before if name not in run.store.made_after("rank")]
    output.give(ranking, lambda: show_ranking(ranking))
    if stale:
        click.echo(
            f"The ranking changed. Removed, because they are out of date: {', '.join(stale)}. "
            "`rocketeval run` writes them again.",
            err=True,
        )
    return 0


def _run_report(run: Run, output: Output) -> int:
    path = run.report()
    output.give({"report": path}, lambda: click.echo(f"Report: {shown_path(path)}"))
    return 0


_RUNNERS: dict[str, Callable[[Run, Output], int]] = {
    "load": _run_load,
    "checklist": _run_checklist,
    "grade": _run_grade,
    "score": _run_score,
    "rank": _run_rank,
    "report": _run_report,
}


NOT_TOLD = "not told"


def show_bill(found: Bill | None) -> None:
    """Print what was expected beside what was used; nothing when no plan was made for it."""
    from rocketeval.prices import shown_money

    if found is None:
        return

    def amount(value: float) -> str:
        return shown_money(value, found.currency)

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
        plan, bill = getattr(found.plan, name), getattr(found.bill, name)
        repriced = name == "cost" and found.repriced
        if plan is not None or repriced or name not in ("cost", "seconds"):
            lines.append((title, _shown(plan, shown), _shown(bill, shown), _note(found, name)))
    wide = [max(len(line[column]) for line in lines) for column in (1, 2)]
    click.echo(f"{'Judging':19}{'plan':>{wide[0]}}   {'bill':>{wide[1]}}")
    for title, plan, bill, note in lines:
        click.echo(f"{title:19}{plan:>{wide[0]}}   {bill:>{wide[1]}}   {note}".rstrip())


def _note(found: Bill, name: str) -> str:
    if name == "prompt_tokens" and found.tokens_known != "exact":
        return f"the plan's are {found.tokens_known}"
    if name == "cost" and found.repriced:
        return "the plan was made at another price"
    if name == "computed_tokens" and found.times_least is not None:
        return f"{found.times_least:.2f} times the least possible"
    return ""


def _shown(value: float | None, shown: Callable[[Any], str]) -> str:
    return NOT_TOLD if value is None else shown(value)


def _count(value: int) -> str:
    return f"{value:,}"


def on_ray(facts: RayFacts) -> str:
    """Return what a cluster did beyond its work: what was asked twice, and what was left out."""
    again = facts.asked_again
    told = f"On Ray ({facts.on}): {facts.asked:,} responses asked"
    if again:
        told += f", {again:,} of them again ({again / max(1, facts.asked):.1%})"
    if facts.duplicates:
        told += f", {facts.duplicates:,} double rows left out"
    if facts.torn:
        told += f", {facts.torn:,} torn files left out"
    return told


def show_learned(learned: LearnedFacts) -> None:
    """Print what the scorer learned from and what was kept from it; nothing if it did not learn."""
    console = make_console()
    if learned.fitted is not None:
        labels, votes, held_out = learned.labels, learned.votes or 0, learned.held_out or ()
        gold = count_of(labels, "label", "labels") if labels else count_of(votes, "vote", "votes")
        shown = ", ".join(map(printable, held_out[:5]))
        more = f", and {len(held_out) - 5} more" if len(held_out) > 5 else ""
        kept = f"; held out: {shown}{more}" if shown else ""
        names = count_of(len(learned.fitted), "candidate", "candidates")
        console.print(
            f"The scorer learned from {gold} on {names}{kept}.", markup=False, highlight=False
        )
    if learned.queries_by_mean_in_a_fold:
        some = count_of(learned.queries_by_mean_in_a_fold, "query has", "queries have")
        console.print(
            f"{some} enough gold for the whole fit, but not for every fold: some of the scores "
            "learned from are the mean's there.",
            markup=False,
            highlight=False,
        )
    if learned.queries_by_mean:
        whys = (learned.reasons or {}).items()
        reasons = "; ".join(f"{count} x {printable(why)}" for why, count in whys)
        by_mean = count_of(learned.queries_by_mean, "query", "queries")
        console.print(
            f"Scored by the mean after all: {by_mean} ({reasons}).", markup=False, highlight=False
        )


_WHY = {
    "duplicate": "the same words",
    "alignment": "yes not better",
    "dimension": "other dimension",
    "redundancy": "redundant",
}
"""Reasons as the table heads them; a reason that nothing was dropped for gets no column."""


def show_composition(composition: Composition) -> None:
    """Print a row for every sub-dimension, and all of them together."""
    from rich.text import Text

    rows = composition.counts
    dropped = {why: count for why in _WHY if (count := sum(row.dropped[why] for row in rows))}
    table = make_table("Questions by sub-dimension")
    table.add_column("dimension", overflow="fold")
    table.add_column("sub-dimension", overflow="fold")
    for title in ("seeds", "diversified", "elaborated", *(_WHY[why] for why in dropped), "kept"):
        table.add_column(title, justify="right")
    for row in rows:
        counts = (*_brought(row), *(row.dropped[why] for why in dropped), row.kept)
        names = (Text(printable(name)) for name in (row.dimension, row.sub_dimension))
        table.add_row(*names, *map(_figure, counts))
    sums = (sum(column) for column in zip(*map(_brought, rows), strict=True))
    kept = sum(row.kept for row in rows)
    table.add_row("all", "", *map(_figure, (*sums, *dropped.values(), kept)))
    make_console().print(table)
    if composition.steps:
        asked = count_of(composition.steps, "step", "steps")
        click.echo(f"{asked} of the author, {composition.reused_steps:,} paid for earlier")


def _brought(row: SubDimensionCounts) -> tuple[int, int, int]:
    return row.seeds, row.diversified, row.elaborated


def _figure(number: int) -> str:
    return f"{number:,}" if number else "-"


SHOWN_MISTAKES = 4


def told_refusals(refusals: RefusalCounts, *, steps: bool) -> Iterator[str]:
    """Yield how many lists were refused at first and the most frequent mistakes, in words."""
    one, many = ("step", "steps") if steps else ("list", "lists")
    if refusals.refused_at_first:
        mistakes = [
            f"{printable(mistake)} ({times:,})" for mistake, times in refusals.mistakes.items()
        ]
        others = len(mistakes) - SHOWN_MISTAKES
        shown = ", ".join(mistakes[:SHOWN_MISTAKES])
        more = f", and {count_of(others, 'other', 'others')}" if others > 0 else ""
        of = count_of(refusals.lists, one, many)
        yield f"{refusals.refused_at_first:,} of {of} refused at first: {shown}{more}"
    if refusals.untold:
        untold = count_of(refusals.untold, one, many)
        yield f"{untold} paid for by an earlier version, which did not keep what was refused"


def tell_unused(checklist: ChecklistFacts) -> None:
    """Say which sections of the config an evaluator has no use for, if there are any."""
    if checklist.not_used:
        named = ", ".join(f"`{name}`" for name in checklist.not_used)
        click.echo(f"The evaluator takes the place of {named}, which is not used.", err=True)


def tell_decided(score: ScoreFacts) -> None:
    """Say what a person should look at in an evaluator's decisions, if there is anything."""
    told = score.evaluator
    if told is None:
        return
    if not told.learned_from_known:
        click.echo(
            "The evaluator does not say what it learned from: no score is held against gold.",
            err=True,
        )
    one = "pair" if told.task == "pairs" else "response"
    if told.to_person:
        some = count_of(told.to_person, one, f"{one}s")
        click.echo(
            f"{some} of {told.decided:,} with a confidence below {told.threshold:g}: let a "
            "person decide.",
            err=True,
        )
    if told.clipped:
        some = count_of(told.clipped, "value", "values")
        click.echo(
            f"{some} of the evaluator outside of `scorer.scale`: the scores are at its ends.",
            err=True,
        )


def show_asked(grade: GradeFacts) -> None:
    """Print what each decision takes, of a run that was graded with an evaluator."""
    asked, told = grade.questions, grade.evaluator
    if asked is None or told is None:
        return
    one = "pair" if told.task == "pairs" else "response"
    click.echo(
        f"{count_of(asked.all, 'question', 'questions')} about "
        f"{count_of(asked.decided, one, one + 's')}: {asked.per_decision:.1f} each"
    )

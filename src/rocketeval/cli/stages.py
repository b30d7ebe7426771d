"""`rocketeval run --only STAGE`: run one stage and print its result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.output import Output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import clock, failed, make_console, make_table, shown_path
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.pipeline import Run
    from rocketeval.prices import PricedUsage
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
"""Values of `--only`, in the order of a run."""
STAGE_VERBS = ("audit", "explain")
"""Stages that are separate verbs, because they have options."""
MOST_NAMED = 3
"""Names to list; all are counted."""
_UNUSED = {
    "load": ("on", "max_cost", "dry_run"),
    "checklist": ("on", "dry_run"),
    "grade": (),
    **dict.fromkeys(
        ("score", "rank", "report"),
        ("judge", "base_url", "on", "evaluator", "max_cost", "dry_run"),
    ),
}
"""Options of `run` that do not apply to a stage."""


class StageName(click.Choice[str]):
    """A stage name for `--only`; for audit and explain, the error names the verb."""

    def __init__(self) -> None:
        super().__init__(STAGES)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the stage; fail with the verb's name if it is a verb."""
        if value in STAGE_VERBS:
            self.fail(f"use `rocketeval {value}`.", param, ctx)
        return super().convert(value, param, ctx)


def refuse_unused(stage: str) -> None:
    """Raise UsageError if the command line has options that do not apply to the stage."""
    ctx = click.get_current_context()
    given = [name for name in _UNUSED[stage] if ctx.params.get(name)]
    if given:
        names = ", ".join(f"--{name.replace('_', '-')}" for name in given)
        raise click.UsageError(f"--only {stage} does not use {names}.")


def run_stage(stage: str, settings: RunConfig, output: Output) -> int:
    """Run one stage, print its result, and return the exit code.

    `checklist` and `grade` load the benchmark again, and `grade` writes missing checklists first.
    Later stages read the files of the run.
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
        click.echo(printable(f"continued without {step}: {reason}"), err=True)
    return INCOMPLETE if facts.failures or failed_steps else 0


def _show_written(run: Run, facts: ChecklistFacts) -> None:
    composition, refusals = facts.composition, facts.refusals
    if composition is not None:
        show_composition(composition)
    for line in refusal_lines(refusals, steps=composition is not None) if refusals else ():
        click.echo(line)
    path = run.store.inputs.folder / "checklists.jsonl"
    click.echo(f"{facts.checklists} checklists with {facts.items} items: {shown_path(path)}")
    provenance = shown_path(path.with_name("checklist_provenance.json"))
    if composition is not None:
        click.echo(f"Origin of each question: {provenance}")
    elif refusals is not None:
        click.echo(f"Origin of each checklist: {provenance}")


def _run_grade(run: Run, output: Output) -> int:
    facts = run_with_signals(run, run.to_judgments)
    output.give(facts, lambda: _show_graded(facts))
    warn_unused(run.store.manifest().stages.checklist)
    for failure in run.store.failures()[:10]:
        click.echo(failed(failure), err=True)
    return INCOMPLETE if facts.unfinished or facts.responses_without_checklist else 0


def _show_graded(facts: GradeFacts) -> None:
    click.echo(
        f"{facts.judged} judged now, {facts.finished_earlier} earlier, "
        f"{facts.from_cache} reused from the cache, {facts.unfinished} left"
        + (f", {facts.not_needed} not needed" if facts.not_needed else "")
    )
    if facts.ray is not None:
        click.echo(on_ray(facts.ray))
    show_asked(facts)
    if facts.continuity is not None:
        click.echo(printable(f"Judge {facts.continuity.in_words}"))
    show_bill(facts.bill)
    if facts.bill is not None and facts.overhead.requests:
        click.echo(f"Besides the plan, {overhead_in_words(facts.overhead)}")


def overhead_in_words(overhead: PricedUsage) -> str:
    """Return the requests that checked the judge, with their cost if it has a price."""
    from rocketeval.prices import shown_money

    count = count_of(overhead.requests, "request", "requests")
    cost = overhead.cost
    paid = "" if cost is None else f" for {shown_money(cost, overhead.currency)}"
    return f"{count} checked the judge{paid} (probe and canaries)"


def _run_score(run: Run, output: Output) -> int:
    facts = run.score()
    output.give(facts, lambda: _show_scored(facts))
    warn_decisions(facts)
    return INCOMPLETE if facts.without_score or facts.missing_answers else 0


def _show_scored(facts: ScoreFacts) -> None:
    click.echo(
        f"{facts.scores} scores, {facts.without_score} responses without one, "
        f"{facts.missing_answers} of {facts.answers} answers missing"
    )
    show_learned(facts.learned)


def _run_rank(run: Run, output: Output) -> int:
    from rocketeval.audit.audit import Audit
    from rocketeval.audit.conclusion import doubt
    from rocketeval.cli.ranking import show_ranking

    before = run.store.made_after("rank")
    ranking = run.rank()
    stale = [name for name in before if name not in run.store.made_after("rank")]
    caution = doubt(run.store.read_if_made(Audit))
    output.give(
        ranking, lambda: show_ranking(ranking, scale=run.config.scorer.scale, doubt=caution)
    )
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


NOT_KNOWN = "unknown"


def show_bill(found: Bill | None) -> None:
    """Print planned and actual usage side by side; nothing if there was no plan."""
    from rocketeval.prices import shown_money

    if found is None:
        return

    def amount(value: float) -> str:
        return shown_money(value, found.currency)

    rows: list[tuple[str, str, Callable[[Any], str]]] = [
        ("requests", "requests", _count),
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
    titles = ("", "plan", "actual")
    wide = [max(len(cell[column]) for cell in (titles, *lines)) for column in (1, 2)]
    click.echo(f"{'Judging':19}{'plan':>{wide[0]}}   {'actual':>{wide[1]}}")
    for title, plan, bill, note in lines:
        click.echo(f"{title:19}{plan:>{wide[0]}}   {bill:>{wide[1]}}   {note}".rstrip())


def _note(found: Bill, name: str) -> str:
    if name == "prompt_tokens" and found.tokens_known != "exact":
        return f"plan: {found.tokens_known}"
    if name == "cost" and found.repriced:
        return "the plan was made at a different price"
    if name == "computed_tokens" and found.times_least is not None:
        return f"{found.times_least:.2f} times the minimum"
    return ""


def _shown(value: float | None, shown: Callable[[Any], str]) -> str:
    return NOT_KNOWN if value is None else shown(value)


def _count(value: int) -> str:
    return f"{value:,}"


def on_ray(facts: RayFacts) -> str:
    """Return a line on what a cluster judged, judged twice, and dropped."""
    again = facts.asked_again
    line = f"On Ray ({facts.on}): {facts.asked:,} responses judged"
    if again:
        line += f", {again:,} of them again ({again / max(1, facts.asked):.1%})"
    if facts.duplicates:
        line += f", {facts.duplicates:,} duplicate rows dropped"
    if facts.torn:
        line += f", {facts.torn:,} torn files dropped"
    return line


def show_learned(learned: LearnedFacts) -> None:
    """Print the training data and the held-out candidates of a learned scorer."""
    console = make_console()
    if learned.fitted is not None:
        labels, votes, held_out = learned.labels, learned.votes or 0, learned.held_out or ()
        data = count_of(labels, "label", "labels") if labels else count_of(votes, "vote", "votes")
        shown = ", ".join(map(printable, held_out[:5]))
        more = f", and {len(held_out) - 5} more" if len(held_out) > 5 else ""
        kept = f"; held out: {shown}{more}" if shown else ""
        names = count_of(len(learned.fitted), "candidate", "candidates")
        console.print(
            f"The scorer learned from {data} on {names}{kept}.", markup=False, highlight=False
        )
    if learned.queries_by_mean_in_a_fold:
        some = count_of(learned.queries_by_mean_in_a_fold, "query has", "queries have")
        console.print(
            f"{some} enough reference data for the full fit but not for every fold; there, some "
            "out-of-fold scores are plain means.",
            markup=False,
            highlight=False,
        )
    if learned.queries_by_mean:
        whys = (learned.reasons or {}).items()
        reasons = "; ".join(f"{count} x {printable(why)}" for why, count in whys)
        by_mean = count_of(learned.queries_by_mean, "query", "queries")
        console.print(
            f"Scored by the mean instead: {by_mean} ({reasons}).", markup=False, highlight=False
        )


_WHY = {
    "duplicate": "duplicate",
    "alignment": "yes not better",
    "dimension": "other dimension",
    "redundancy": "redundant",
}
"""Column headings of the reasons for dropping; unused reasons get no column."""


def show_composition(composition: Composition) -> None:
    """Print one row per sub-dimension, and the totals."""
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
        click.echo(f"{asked} of the author, {composition.reused_steps:,} reused")


def _brought(row: SubDimensionCounts) -> tuple[int, int, int]:
    return row.seeds, row.diversified, row.elaborated


def _figure(number: int) -> str:
    return f"{number:,}" if number else "-"


SHOWN_MISTAKES = 4


def refusal_lines(refusals: RefusalCounts, *, steps: bool) -> Iterator[str]:
    """Yield how many lists were refused at first, and the most frequent mistakes."""
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
        yield f"{untold} written by an earlier version, which did not record refusals"


def warn_unused(checklist: ChecklistFacts) -> None:
    """Warn about config sections that the evaluator replaces, if any."""
    if checklist.not_used:
        named = ", ".join(f"`{name}`" for name in checklist.not_used)
        click.echo(f"The evaluator replaces {named}.", err=True)


def warn_decisions(score: ScoreFacts) -> None:
    """Warn about decisions of an evaluator that a person should check, if any."""
    facts = score.evaluator
    if facts is None:
        return
    if not facts.learned_from_known:
        click.echo(
            "The evaluator does not record its training data, so its scores are not compared "
            "with reference data.",
            err=True,
        )
    one = "pair" if facts.task == "pairs" else "response"
    if facts.to_person:
        some = count_of(facts.to_person, one, f"{one}s")
        click.echo(
            f"{some} of {facts.decided:,} with a confidence below {facts.threshold:g}: let a "
            "person decide.",
            err=True,
        )
    if facts.clipped:
        some = count_of(facts.clipped, "value", "values")
        click.echo(
            f"{some} of the evaluator outside `scorer.scale`, clipped to its ends.",
            err=True,
        )


def show_asked(grade: GradeFacts) -> None:
    """Print the number of questions per decision of a run graded with an evaluator."""
    asked, evaluator = grade.questions, grade.evaluator
    if asked is None or evaluator is None:
        return
    one = "pair" if evaluator.task == "pairs" else "response"
    click.echo(
        f"{count_of(asked.all, 'question', 'questions')} about "
        f"{count_of(asked.decided, one, one + 's')}: {asked.per_decision:.1f} each"
    )


def unknown_in_words(checklist: ChecklistFacts) -> Iterator[str]:
    """Yield a line about ids in a checklist file that match no query, if any."""
    unknown = checklist.unknown
    if unknown:
        # Earlier versions stored all names and no count.
        count = len(unknown) if checklist.unknown_count is None else checklist.unknown_count
        named = ", ".join(_meant(*pair) for pair in list(unknown.items())[:MOST_NAMED])
        if count > MOST_NAMED:
            named += f" and {count - MOST_NAMED:,} more"
        some = count_of(count, "id", "ids")
        match = "matches" if count == 1 else "match"
        yield printable(f"{some} in the checklists {match} no query, ignored: {named}")


def _meant(name: str, nearest: str | None) -> str:
    return repr(name) if nearest is None else f"{name!r} (did you mean {nearest!r}?)"

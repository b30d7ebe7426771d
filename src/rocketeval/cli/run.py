"""`rocketeval run`, and its summary: ranking, trust, cost, missing data and next step."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.data_config import with_data
from rocketeval.cli.help import COST, codes, option, verb
from rocketeval.cli.options import (
    DEFAULT_CONFIG,
    override,
    with_evaluator,
    with_place,
    with_settings,
    with_until,
)
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.plan import show_dry_run
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.stages import (
    MOST_NAMED,
    StageName,
    overhead_in_words,
    refuse_unused,
    run_stage,
    show_learned,
    unknown_in_words,
    warn_decisions,
    warn_unused,
)
from rocketeval.cli.text import as_argument, near, show_pairs, show_whole
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rocketeval.audit.audit import Audit
    from rocketeval.config import RunConfig
    from rocketeval.pipeline import Outcome
    from rocketeval.prices import PricedUsage
    from rocketeval.ranking.rank import RankedCandidate, Ranking
    from rocketeval.records import Status
    from rocketeval.store.manifest import Bill, BillColumn, GradeFacts, Stages


PROGRAM = "rocketeval"
WANTED = "labels_wanted.jsonl"
REJECTED = " rejected it: "
"""Marks a failure of the author that a retry cannot fix."""
MANY_MISSING = 0.05
"""Share of missing answers above which the next step is to check the judge."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command to type next, and the reason."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class Typed:
    """The command line of this process, from which commands for the same run are made."""

    words: tuple[str, ...]
    """The whole command line after the program's name."""
    config: str | None
    """The config argument; None for the default."""
    name: str | None
    """The run's name if it differs from the config's."""
    judge: tuple[str, ...] = ()
    """Options that override the config's judge."""
    run: tuple[str, ...] = ()
    """Options that limit the run's queries, also if an earlier command did, or name the run."""

    @classmethod
    def now(cls, settings: RunConfig) -> Typed:
        """Return the command line of the current command, whose run has these `settings`."""
        from rocketeval.config import load_config

        given: Mapping[str, Any] = click.get_current_context().params
        config: Path = given["config"]
        written = load_config(config)

        def typed(*names: str) -> tuple[str, ...]:
            values = ((f"--{name}", given.get(name.replace("-", "_"))) for name in names)
            return tuple(word for name, value in values if value for word in (name, str(value)))

        return cls(
            words=tuple(sys.argv[1:]),
            config=None if config == DEFAULT_CONFIG else str(config),
            name=settings.name if written.name != settings.name else None,
            judge=typed("judge", "base-url"),
            run=_run_options(written, settings),
        )

    def of_judge(self, verb: str) -> str:
        """Return a command about the same judge."""
        return shlex.join([PROGRAM, *verb.split(), *self.judge, *self._place])

    def of_work(self, verb: str, *own: str) -> str:
        """Return a command that continues the same run with the same judge."""
        return shlex.join([PROGRAM, *verb.split(), *own, *self.run, *self.judge, *self._place])

    def of_run(self, verb: str, *own: str, names: Sequence[str] = ()) -> str:
        """Return a command about the same run; `names` may look like options."""
        options = [*own, *([] if self.name is None else ["--name", self.name])]
        places = [*names, *([] if self.config is None else [self.config])]
        dashes = ["--"] if any(place.startswith("-") for place in places) else []
        return shlex.join([PROGRAM, *verb.split(), *options, *dashes, *places])

    @property
    def _place(self) -> list[str]:
        return [] if self.config is None else [as_argument(Path(self.config))]


def _run_options(written: RunConfig, settings: RunConfig) -> tuple[str, ...]:
    """Return the options that make the run of `settings` from the config as it is `written`."""
    from rocketeval.config import load_config
    from rocketeval.resources import is_run

    path = settings.run_path
    runs = [settings, *([load_config(path)] if is_run(path) else [])]
    wanted: dict[str, Any] = {
        name: value
        for run in reversed(runs)
        for name in ("limit", "queries")
        if (value := getattr(run.benchmark, name)) not in (None, getattr(written.benchmark, name))
    }
    words = [(f"--{name}", near(Path(str(value)))) for name, value in wanted.items()]
    if override(written, name=None, **wanted).name != settings.name:
        words.append(("--name", settings.name))
    return tuple(word for pair in words for word in pair)


def next_step(outcome: Outcome, missing: Missing, typed: Typed) -> NextStep:
    """Return the most useful next command: retry, check the judge, label, compare or view."""
    grade, author = outcome.stages.grade, outcome.stages.checklist
    written = author.usage.requests or author.reused
    if missing.queries_without_checklist and not written and not missing.responses_not_judged:
        return NextStep(
            shlex.join([PROGRAM, *typed.words]), "Add the missing checklists, then run again:"
        )
    if missing.responses_not_judged > grade.rejected or missing.queries_without_checklist:
        reasons = author.failures.values()
        rejected = bool(reasons) and all(REJECTED in reason for reason in reasons)
        return NextStep(
            shlex.join([PROGRAM, *typed.words]),
            "Shorten the queries that the author rejected, or set an author with a larger "
            "context; then run again:"
            if rejected and not missing.responses_not_judged
            else "Retry what failed; finished work is reused:",
        )
    rows = outcome.ranking.rows
    answers = outcome.stages.score.answers
    if missing.answers_missing > MANY_MISSING * answers:
        return NextStep(typed.of_judge("doctor"), "Many answers are missing. Find out why:")
    if not outcome.audit.has_gold and rows:
        top = str(min(2, len(rows)))
        return NextStep(
            typed.of_run("labels next", "--top", top, "--out", WANTED),
            "Label a few responses to check the judge. Choose which:",
        )
    best = [row.candidate for row in rows[:2]]
    contradicted = len(best) == 2 and best[1] in rows[0].outscored_by
    unclear = len(best) == 2 and rows[0].beats_next is False and not contradicted
    worth_comparing = (unclear or contradicted) and _is_measured(*rows[:2])
    if worth_comparing and all(name.isprintable() for name in best):
        return NextStep(
            typed.of_run("compare", names=best),
            "Wins and mean scores order the top two differently. See how large the difference is:"
            if contradicted
            else "The top two are tied. See how large the difference is:",
        )
    return NextStep(shlex.join([PROGRAM, "view", as_argument(outcome.path)]), _look(rows, unclear))


def _is_measured(one: RankedCandidate, other: RankedCandidate) -> bool:
    """Return whether comparing the two would give an interval and a difference."""
    # Equal scores on all queries have no interval, and can still be compared with others.
    bounded = any(math.isfinite(row.mean_score.low) for row in (one, other))
    return bounded and one.mean_score.value != other.mean_score.value


def _look(rows: Sequence[RankedCandidate], unclear: bool) -> str:
    view = "View every answer in a browser:"
    if not unclear or _is_measured(*rows[:2]):
        return view
    if rows[0].mean_score.value == rows[1].mean_score.value:
        return f"The top two have the same mean score. {view}"
    return f"Too few queries to separate the top two: add some. {view}"


TITLES = 9
"""Width of the title column."""
NO_PRICE = "no price set"


@dataclass(frozen=True, slots=True)
class Summary:
    """The result of `run`, in the form of its JSON document."""

    run: Path
    report: Path
    verdict: str
    """The conclusion in a sentence: who leads, or why nobody does."""
    ranking: Ranking
    audit: Audit
    missing: Missing
    next: NextStep
    stages: Stages


def summarize(outcome: Outcome, typed: Typed) -> Summary:
    """Return the summary of a finished run."""
    from rocketeval.audit.conclusion import doubt
    from rocketeval.ranking.summary import conclusion_in_words

    missing = find_missing(outcome.stages)
    return Summary(
        run=outcome.path,
        report=outcome.report,
        verdict=conclusion_in_words(outcome.ranking, doubt(outcome.audit)),
        ranking=outcome.ranking,
        audit=outcome.audit,
        missing=missing,
        next=next_step(outcome, missing, typed),
        stages=outcome.stages,
    )


def show_summary(summary: Summary, config: RunConfig) -> None:
    """Print the ranking, then trust, cost, time, missing data and the next step."""
    from rocketeval.audit.conclusion import doubt
    from rocketeval.cli.ranking import show_ranking

    show_learned(summary.stages.score.learned)
    show_ranking(summary.ranking, brief=True, scale=config.scorer.scale, doubt=doubt(summary.audit))
    click.echo()
    if config.judge.engine == "recorded":
        show_pairs([("Judge", f"{config.judge.model}: recorded answers, no model ran")], TITLES)
    show_pairs(_pairs(summary), TITLES)
    show_whole("Report", near(summary.report), TITLES)
    show_pairs([("Next", summary.next.why)], TITLES)
    # A command with control characters would change when it is copied.
    if summary.next.command.isprintable():
        show_whole("", summary.next.command, TITLES)


def _pairs(summary: Summary) -> Iterator[tuple[str, str]]:
    from rocketeval.audit.conclusion import in_brief

    stages = summary.stages
    for title, lines in (
        *([("Stopped", iter(summary.ranking.stopped))] if summary.ranking.stopped else []),
        ("Trust", in_brief(summary.audit)),
        ("Cost", _costs(stages)),
        ("Time", iter([_time(stages)])),
        ("Missing", missing_in_words(summary.missing, stages)),
    ):
        for number, line in enumerate(list(lines) or ["nothing"]):
            yield "" if number else title, line
    if stages.grade.continuity is not None:
        yield "Judge", printable(stages.grade.continuity.in_words)
    for number, line in enumerate(notes_of(stages)):
        yield "" if number else "Check", line


def _costs(stages: Stages) -> Iterator[str]:
    """Yield what the author and the judge used, and the plan if there was one."""
    author, grade, bill = stages.checklist.usage, stages.grade, stages.grade.bill
    if author.requests:
        yield f"author: {_use(author, author.currency)}"
    kept = grade.finished_earlier + grade.from_cache
    reused = f"{kept:,} of {grade.tasks:,} judgments reused, {grade.from_cache:,} of them from "
    reused += "the cache"
    if grade.precision_unknown:
        yield (
            f"{grade.precision_unknown:,} judgments in the cache do not record the judge's "
            "precision; they count as this judge's"
        )
    if not grade.usage.requests:
        yield f"no requests: {reused}" if kept else "no requests"
        return
    yield f"judge: {_use(grade.usage, grade.usage.currency)}"
    if grade.overhead.requests:
        yield f"of these, {overhead_in_words(grade.overhead)}{'; not in the plan' if bill else ''}"
    if grade.ray is not None:
        yield "not counted: the requests with which each Ray worker checks its judge"
    if bill:
        yield f"plan: {_planned(bill)}"
    if bill and bill.times_least is not None:
        yield f"computed tokens: {bill.times_least:.2f} times the minimum"
    if kept:
        yield f"{reused}; {grade.judged:,} new"
    if grade.graded_ahead:
        made = count_of(grade.graded_ahead, "judgment was", "judgments were")
        yield f"{made} made while a look waited for its last answers, and not used"


def _use(usage: PricedUsage | BillColumn, currency: str, without_cost: str = NO_PRICE) -> str:
    from rocketeval.prices import shown_money

    parts = [count_of(usage.requests or 0, "request", "requests")]
    if usage.prompt_tokens:
        parts.append(f"{usage.prompt_tokens:,} prompt tokens")
    parts.append(without_cost if usage.cost is None else shown_money(usage.cost, currency))
    return ", ".join(parts)


def _planned(bill: Bill) -> str:
    why = "made at a different price" if bill.repriced else NO_PRICE
    plan = _use(bill.plan, bill.currency, why)
    return plan if bill.tokens_known == "exact" else f"{plan} (tokens {bill.tokens_known})"


def _time(stages: Stages) -> str:
    from rocketeval.cli.progress_text import duration, retries_in_words

    facts = stages.made().items()
    seconds = {name: own.seconds for name, own in facts if own.seconds is not None}
    longest = max(seconds, key=lambda name: seconds[name])
    whole = sum(seconds.values())
    times = f"{duration(whole)}, of which {longest} {duration(seconds[longest])}"
    again = stages.grade.retries
    return f"{times}; {retries_in_words(sum(again.values()), again)}" if again else times


@verb(
    examples=[
        ("rocketeval run", "all of rocketeval.yaml"),
        ("rocketeval run answers.csv --judge M", "rank what a file holds"),
        ("rocketeval run my.yaml --limit 20", "a trial on 20 queries"),
        ("rocketeval run --until best", "stop when the best candidate is known"),
        ("rocketeval run --only grade --on ray", "grade on a Ray cluster, then stop"),
        ("rocketeval run --only rank --json", "rank again, print JSON"),
    ],
    exit_codes=codes(2, 3, 4, 5, 6, 130),
)
@with_data
@with_settings
@with_place
@with_evaluator
@with_until
@option(
    "--only",
    type=StageName(),
    metavar="STAGE",
    help="Run one stage: load, checklist, grade, score, rank or report. The stages audit and "
    "explain have verbs of their own.",
)
@option(
    "--dry-run",
    is_flag=True,
    section=COST,
    help="Show what the run would do; contact no server, write nothing.",
)
@with_output
def command(settings: RunConfig, only: str | None, dry_run: bool, output: Output) -> int:
    """Grade, score and rank the benchmark of CONFIG, and write a report.

    CONFIG is rocketeval.yaml unless you name another file. It may also be a run directory, or data:
    a file or folder that `rocketeval import` reads. Then the format and the mapping are printed,
    and a config is written that you can edit. The stages are load, checklist, grade,
    score, rank, audit, explain and report. Finished judgments are reused: after Ctrl-C or a crash,
    the same command continues where it stopped.

    --only STAGE runs a single stage. `grade` also loads the benchmark and writes missing
    checklists; `score`, `rank` and `report` use the results that the run already has.
    """
    from rocketeval.cli.progress import make_observer
    from rocketeval.pipeline import Run

    if only is not None:
        refuse_unused(only)
    if dry_run:
        show_dry_run(settings, output)
        return 0
    if only is not None:
        return run_stage(only, settings, output)
    run = Run(settings, observer=make_observer(settings, quiet=output.quiet))
    # The config may change or be removed while the run lasts.
    typed = Typed.now(settings)
    summary = summarize(run_with_signals(run, run.all), typed)
    output.give(summary, lambda: show_summary(summary, settings))
    warn_unused(summary.stages.checklist)
    warn_decisions(summary.stages.score)
    if output.silent:
        gaps = replace(summary.missing, responses_empty=0, responses_absent=0)
        for line in missing_in_words(gaps, summary.stages):
            click.echo(line, err=True)
    return INCOMPLETE if summary.missing.gaps else 0


@dataclass(frozen=True, slots=True)
class Missing:
    """Counts of missing, empty and absent data of a run."""

    queries_without_checklist: int
    responses_not_judged: int
    """Running again retries them."""
    responses_without_score: int
    """Includes the responses that were not judged."""
    answers_missing: int
    responses_empty: int
    """Responses without text; they are judged."""
    responses_absent: int
    """Responses that a candidate lacks to queries that others answered."""

    @property
    def gaps(self) -> int:
        """The total of missing checklists, judgments, scores and answers."""
        return (
            self.queries_without_checklist
            + self.responses_not_judged
            + self.responses_without_score
            + self.answers_missing
        )


def find_missing(stages: Stages) -> Missing:
    """Return the counts of missing data from the stages of a run."""
    return Missing(
        queries_without_checklist=len(stages.checklist.failures),
        responses_not_judged=_unjudged(stages.grade),
        responses_without_score=stages.score.without_score - stages.grade.not_needed,
        answers_missing=stages.score.missing_answers,
        responses_empty=stages.load.empty_responses,
        responses_absent=stages.load.absent_responses,
    )


def missing_in_words(missing: Missing, stages: Stages) -> Iterator[str]:
    """Yield one line per kind of missing data."""
    waiting = stages.grade.responses_without_checklist
    if missing.queries_without_checklist:
        lacking = list(stages.checklist.failures)
        names = ", ".join(map(printable, lacking[:MOST_NAMED]))
        more = ", ..." * (len(lacking) > MOST_NAMED)
        some = count_of(len(lacking), "query has", "queries have")
        so = f": {count_of(waiting, 'response is', 'responses are')} not judged" if waiting else ""
        yield f"{some} no checklist ({names}{more}){so}"
    rejected = min(missing.responses_not_judged, stages.grade.rejected)
    if rejected:
        some = count_of(rejected, "response was", "responses were")
        named = "; ".join(map(printable, stages.grade.rejected_named))
        more = "; ..." * (rejected > len(stages.grade.rejected_named))
        yield f"{some} rejected by the judge's server: {named}{more}"
        yield (
            "a retry will not help: serve the judge with a larger context, or shorten or remove "
            "these responses"
        )
    if missing.responses_not_judged > rejected:
        some = count_of(missing.responses_not_judged - rejected, "response", "responses")
        yield f"{some} could not be judged; run it again to retry"
    unscored = missing.responses_without_score - missing.responses_not_judged - waiting
    if unscored > 0:
        yield f"{count_of(unscored, 'judged response has', 'judged responses have')} no score"
    if missing.answers_missing:
        some = (
            f"{missing.answers_missing:,} of {count_of(stages.score.answers, 'answer', 'answers')}"
        )
        yield f"{some} missing{_why(stages.score.statuses)}"
    if missing.responses_empty:
        yield f"{count_of(missing.responses_empty, 'response is', 'responses are')} empty"
    if missing.responses_absent:
        yield f"{count_of(missing.responses_absent, 'response is', 'responses are')} absent"
    yield from unknown_in_words(stages.checklist)


def notes_of(stages: Stages) -> Iterator[str]:
    """Yield one line per oddity that was accepted."""
    yield from map(printable, (*stages.load.notes, *stages.checklist.notes))


def _unjudged(grade: GradeFacts) -> int:
    # Earlier versions counted identical responses once.
    found = grade.responses_unfinished
    return grade.unfinished if found is None else found


def _why(statuses: Mapping[str, int]) -> str:
    from rocketeval.cli.progress_text import MISSING

    whys = [
        f"{count:,} {why}" for status, why in MISSING.items() if (count := _count(statuses, status))
    ]
    return f": {', '.join(whys)}" if whys else ""


def _count(statuses: Mapping[str, int], status: Status) -> int:
    return statuses.get(status.value, 0)

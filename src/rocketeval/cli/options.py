"""Options that several verbs share; the verb gets a config or a run made from them.

Options that say whose mean label is meant, shared by `estimate` and `advise`.
`--evaluator FILE`, and what is said of a run that is judged with one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.text import printable
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rocketeval.compare.stage import LabelScope
    from rocketeval.config import RunConfig
    from rocketeval.pipeline import Run
    from rocketeval.stats.prediction_powered import LabelTarget
    from rocketeval.store.manifest import ChecklistFacts, GradeFacts, ScoreFacts


Verb = Callable[..., Any]


class FiniteRange(click.FloatRange):
    """A range of numbers, of which `nan` and `inf` are none."""

    name = "number"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Return the number, or refuse what is not one."""
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{number} is no finite number.", param, ctx)
        return number


DEFAULT_CONFIG = Path("rocketeval.yaml")
_CONFIG = click.argument("config", type=click.Path(path_type=Path), default=DEFAULT_CONFIG)
_NAME = click.option("--name", help="Name of the run; overrides the config's.")
LEVEL = click.option(
    "--level",
    type=click.FloatRange(0.5, 0.999),
    default=0.95,
    show_default=True,
    help="Confidence level of the intervals.",
)
"""For verbs that say how sure something is."""
_OVERRIDES = (
    click.option(
        "--limit",
        type=click.IntRange(min=1),
        help="Use only the first N queries, in a run named NAME-first-N.",
    ),
    click.option("--judge", help="Judge model; overrides the config's."),
    click.option("--base-url", help="The judge's endpoint; overrides the config's."),
)
_ON = click.option(
    "--on",
    metavar="PLACE",
    help="Where to judge: local, ray (started here, or at $RAY_ADDRESS), ray://head:10001, "
    "head:6379; overrides the config's.",
)
_SPENDING = (
    click.option(
        "--max-cost",
        type=FiniteRange(min=0, min_open=True),
        metavar="MONEY",
        help="Stop before judge and author or optimizer together cost more; needs their prices.",
    ),
)


def with_run(verb: Verb) -> Verb:
    """Give the verb the run that CONFIG and --name describe."""

    @wraps(verb)
    def command(config: Path, name: str | None, **own: Any) -> Any:
        from rocketeval.config import load_config
        from rocketeval.evolve.apply_setup import as_graded
        from rocketeval.pipeline import Run

        return verb(Run(as_graded(_override(load_config(config), name=name))), **own)

    return _CONFIG(_NAME(command))


def with_settings(verb: Verb) -> Verb:
    """Give a verb that spends money the config, with what the command line says in its place."""

    @wraps(verb)
    def command(settings: RunConfig, max_cost: float | None, **own: Any) -> Any:
        given = {} if max_cost is None else {"max_cost": max_cost}
        return verb(settings.model_copy(update=given), **own)

    wrapped: Verb = command
    for option in reversed(_SPENDING):
        wrapped = option(wrapped)
    return with_config(wrapped)


def with_place(verb: Verb) -> Verb:
    """Let the command line say where judging runs; the verb's settings hold it."""

    @wraps(verb)
    def command(settings: RunConfig, on: str | None, **own: Any) -> Any:
        if on is not None:
            given = {"cluster": None if on == "local" else on}
            place = settings.distributed.model_copy(update=given)
            settings = settings.model_copy(update={"distributed": place})
        return verb(settings, **own)

    return _ON(command)


def with_config(verb: Verb) -> Verb:
    """Give the verb the config, with what stands on the command line in its place."""

    @wraps(verb)
    def command(
        config: Path,
        name: str | None,
        limit: int | None,
        judge: str | None,
        base_url: str | None,
        **own: Any,
    ) -> Any:
        from rocketeval.config import load_config

        settings = _override(
            load_config(config), name=name, limit=limit, judge=judge, base_url=base_url
        )
        return verb(settings, **own)

    wrapped: Verb = command
    for option in reversed((_CONFIG, _NAME, *_OVERRIDES)):
        wrapped = option(wrapped)
    return wrapped


def _override(
    config: RunConfig,
    *,
    name: str | None,
    limit: int | None = None,
    judge: str | None = None,
    base_url: str | None = None,
) -> RunConfig:
    from rocketeval.prices import with_prices

    def given(**values: Any) -> dict[str, Any]:
        return {key: value for key, value in values.items() if value is not None}

    changed = config.model_copy(
        update={
            "benchmark": config.benchmark.model_copy(update=given(limit=limit)),
            "judge": config.judge.model_copy(update=given(model=judge, base_url=base_url)),
            # A trial on a few queries must not take the place of the whole run's files.
            "name": name or (config.name if limit is None else f"{config.name}-first-{limit}"),
        }
    )
    return with_prices(changed)


def with_choice(strata: int) -> Callable[[Verb], Verb]:
    """Give the verb a `choice`; `strata` is the number of groups when none is given."""

    options = (
        click.option("--candidate", "candidates", multiple=True, metavar="NAME", help=_CANDIDATE),
        click.option("--against", metavar="NAME", help="The difference to this candidate."),
        click.option("--top", type=click.IntRange(min=1), metavar="K", help=_TOP),
        click.option(
            "--strata",
            type=click.IntRange(min=1),
            default=strata,
            show_default=True,
            help="Groups of queries by score; the same number for advise and estimate.",
        ),
        click.option("--by-category", is_flag=True, help="Keep categories apart in these groups."),
    )

    def decorate(verb: Verb) -> Verb:
        @wraps(verb)
        def command(
            run: Run,
            candidates: tuple[str, ...],
            against: str | None,
            top: int | None,
            strata: int,
            by_category: bool,
            **own: Any,
        ) -> Any:
            from rocketeval.compare.stage import LabelScope

            return verb(run, LabelScope(candidates, top, against, strata, by_category), **own)

        wrapped: Verb = command
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def describe_choice(candidate: str, against: str | None) -> str:
    """Return who is meant, for a terminal."""
    return printable(candidate if against is None else f"{candidate} - {against}")


def same_choice(choice: LabelScope, target: LabelTarget) -> list[str]:
    """Return the options with which another verb means the same target."""
    words = [word for name in target.candidates for word in ("--candidate", name)]
    if choice.against is not None:
        words += ["--against", choice.against]
    words += ["--strata", str(choice.strata)]
    return words + ["--by-category"] * choice.by_category


_CANDIDATE = "Whose mean label; several are labelled on the same queries."
_TOP = "The K best of the ranking, instead of names."

_OPTION = click.option(
    "--evaluator",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Judge with an evaluator that `rocketeval evolve` made; overrides the config's.",
)


def with_evaluator(verb: Verb) -> Verb:
    """Let the command line name an evaluator; the verb's settings hold it."""

    @wraps(verb)
    def command(settings: RunConfig, evaluator: Path | None, **own: Any) -> Any:
        if evaluator is not None:
            settings = settings.model_copy(update={"evaluator": evaluator.absolute()})
        return verb(settings, **own)

    return _OPTION(command)


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

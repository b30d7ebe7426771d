"""`--evaluator FILE`, and what is said of a run that is judged with one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any

import click

from rocketeval.config import RunConfig
from rocketeval.names import counted

Verb = Callable[..., Any]
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


def tell_unused(checklist: Mapping[str, Any]) -> None:
    """Say which sections of the config an evaluator has no use for, if there are any."""
    sections = checklist.get("not_used")
    if sections:
        named = ", ".join(f"`{name}`" for name in sections)
        click.echo(f"The evaluator takes the place of {named}, which is not used.", err=True)


def tell_decided(score: Mapping[str, Any]) -> None:
    """Say what a person should look at in an evaluator's decisions, if there is anything."""
    told = score.get("evaluator")
    if told is None:
        return
    if not told["learned_from_known"]:
        click.echo(
            "The evaluator does not say what it learned from: no score is held against gold.",
            err=True,
        )
    one = "pair" if told["task"] == "pairs" else "response"
    if told["to_person"]:
        some = counted(told["to_person"], one, f"{one}s")
        click.echo(
            f"{some} of {told['decided']:,} with a confidence below {told['threshold']:g}: let a "
            "person decide.",
            err=True,
        )
    if told["clipped"]:
        some = counted(told["clipped"], "value", "values")
        click.echo(
            f"{some} of the evaluator outside of `scorer.scale`: the scores are at its ends.",
            err=True,
        )


def show_asked(grade: Mapping[str, Any]) -> None:
    """Print what each decision takes, of a run that was graded with an evaluator."""
    if "evaluator" not in grade:
        return
    asked, told = grade["questions"], grade["evaluator"]
    one = "pair" if told["task"] == "pairs" else "response"
    click.echo(
        f"{counted(asked['all'], 'question', 'questions')} about "
        f"{counted(asked['decided'], one, one + 's')}: {asked['per_decision']:.1f} each"
    )

"""Options that say whose mean label is meant, shared by `estimate` and `advise`."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import click

from rocketeval.certainty.sample import Target
from rocketeval.cli.words import printable
from rocketeval.pipeline import Run
from rocketeval.stages.certainty import Choice

Verb = Callable[..., Any]


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
            return verb(run, Choice(candidates, top, against, strata, by_category), **own)

        wrapped: Verb = command
        for option in reversed(options):
            wrapped = option(wrapped)
        return wrapped

    return decorate


def told(candidate: str, against: str | None) -> str:
    """Return who is meant, for a terminal."""
    return printable(candidate if against is None else f"{candidate} - {against}")


def same_choice(choice: Choice, target: Target) -> list[str]:
    """Return the options with which another verb means the same target."""
    words = [word for name in target.candidates for word in ("--candidate", name)]
    if choice.against is not None:
        words += ["--against", choice.against]
    words += ["--strata", str(choice.strata)]
    return words + ["--by-category"] * choice.by_category


_CANDIDATE = "Whose mean label; several are labelled on the same queries."
_TOP = "The K best of the ranking, instead of names."

"""The command to type next, chosen by what a run found."""

from __future__ import annotations

import math
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from rocketeval.cli.missing import Missing
from rocketeval.cli.options import DEFAULT_CONFIG
from rocketeval.cli.trust import is_audited
from rocketeval.cli.words import as_argument
from rocketeval.config import RunConfig, load_config
from rocketeval.pipeline import Outcome
from rocketeval.ranking.rank import RankedCandidate

PROGRAM = "rocketeval"
WANTED = "labels_wanted.jsonl"
MANY_MISSING = 0.05
"""Share of missing answers from which the judge is looked at before anything else."""


@dataclass(frozen=True, slots=True)
class NextStep:
    """A command, ready to be typed, and why."""

    command: str
    why: str


@dataclass(frozen=True, slots=True)
class Typed:
    """What the user typed, so that the next command means the same run."""

    words: tuple[str, ...]
    """The whole command line after the program's name."""
    config: str | None
    """The config as it was given; None for the default."""
    name: str | None
    """The run's name, where the command line gave it another than the config."""
    judge: tuple[str, ...] = ()
    """The options that name another judge than the config's."""
    run: tuple[str, ...] = ()
    """The options that name another run than the config's, or part of its queries."""

    @classmethod
    def now(cls, settings: RunConfig) -> Typed:
        """Return what the command at work, whose run has these `settings`, was called with."""
        given: Mapping[str, Any] = click.get_current_context().params
        config: Path = given["config"]
        renamed = load_config(config).name != settings.name

        def typed(*names: str) -> tuple[str, ...]:
            values = ((f"--{name}", given.get(name.replace("-", "_"))) for name in names)
            return tuple(word for name, value in values if value for word in (name, str(value)))

        return cls(
            words=tuple(sys.argv[1:]),
            config=None if config == DEFAULT_CONFIG else str(config),
            name=settings.name if renamed else None,
            judge=typed("judge", "base-url"),
            run=typed("limit", "name"),
        )

    def of_judge(self, verb: str) -> str:
        """Return a command about the same judge."""
        return shlex.join([PROGRAM, verb, *self.judge, *self._place])

    def of_work(self, verb: str, *own: str) -> str:
        """Return a command that goes on judging in the same run, with the same judge."""
        return shlex.join([PROGRAM, verb, *own, *self.run, *self.judge, *self._place])

    def of_run(self, verb: str, *own: str, names: Sequence[str] = ()) -> str:
        """Return a command about the same run; `names` are words that may look like options."""
        options = [*own, *([] if self.name is None else ["--name", self.name])]
        places = [*names, *([] if self.config is None else [self.config])]
        dashes = ["--"] if any(place.startswith("-") for place in places) else []
        return shlex.join([PROGRAM, verb, *options, *dashes, *places])

    @property
    def _place(self) -> list[str]:
        return [] if self.config is None else [as_argument(Path(self.config))]


def next_step(outcome: Outcome, missing: Missing, typed: Typed) -> NextStep:
    """Return what helps most now: finish, find out about the judge, separate the best, or look."""
    if missing.responses_not_judged or missing.queries_without_checklist:
        return NextStep(
            shlex.join([PROGRAM, *typed.words]),
            "tries again what failed; nothing is paid for twice",
        )
    rows = outcome.ranking.rows
    answers = outcome.stages.get("score", {}).get("answers", 0)
    if missing.answers_missing > MANY_MISSING * answers:
        return NextStep(
            typed.of_judge("doctor"), "many answers are missing: says what is wrong with the judge"
        )
    if not is_audited(outcome.audit) and rows:
        top = str(min(2, len(rows)))
        return NextStep(
            typed.of_run("advise", "--top", top, "--out", WANTED),
            "chooses which responses to label, so that the judge can be checked",
        )
    best = [row.candidate for row in rows[:2]]
    unclear = len(best) == 2 and rows[0].beats_next is False
    if unclear and _is_measured(*rows[:2]) and all(name.isprintable() for name in best):
        return NextStep(
            typed.of_run("compare", names=best),
            "the two best are not told apart: says how far apart, and how sure",
        )
    return NextStep(shlex.join([PROGRAM, "view", as_argument(outcome.path)]), _look(rows, unclear))


def _is_measured(one: RankedCandidate, other: RankedCandidate) -> bool:
    """Whether a comparison of the two would say more than that there is nothing to say."""
    bounded = all(math.isfinite(row.mean_score.low) for row in (one, other))
    return bounded and one.mean_score.value != other.mean_score.value


def _look(rows: Sequence[RankedCandidate], unclear: bool) -> str:
    shows = "shows every answer in the browser"
    if not unclear or _is_measured(*rows[:2]):
        return shows
    if rows[0].mean_score.value == rows[1].mean_score.value:
        return f"the two best have the same mean score: {shows}"
    return f"too few queries to tell the best apart, add some; meanwhile: {shows}"

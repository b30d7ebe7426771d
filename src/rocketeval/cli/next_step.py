"""The command to type next, chosen by what a run found."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from rocketeval.cli.missing import Missing
from rocketeval.cli.trust import is_audited
from rocketeval.pipeline import Outcome

PROGRAM = "rocketeval"
WANTED = "labels_wanted.jsonl"


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

    def of_run(self, verb: str, *own: str, names: Sequence[str] = ()) -> str:
        """Return a command about the same run; `names` are words that may look like options."""
        options = [*own, *([] if self.name is None else ["--name", self.name])]
        places = [*names, *([] if self.config is None else [self.config])]
        dashes = ["--"] if any(place.startswith("-") for place in places) else []
        return shlex.join([PROGRAM, verb, *options, *dashes, *places])


def next_step(outcome: Outcome, missing: Missing, typed: Typed) -> NextStep:
    """Return what helps most now: finish, find out about the judge, separate the best, or look."""
    if missing.responses_not_judged or missing.queries_without_checklist:
        return NextStep(
            shlex.join([PROGRAM, *typed.words]),
            "tries again what failed; nothing is paid for twice",
        )
    rows = outcome.ranking.rows
    if not is_audited(outcome.audit) and rows:
        top = str(min(2, len(rows)))
        return NextStep(
            typed.of_run("advise", "--top", top, "--out", WANTED),
            "chooses which responses to label, so that the judge can be checked",
        )
    best = [row.candidate for row in rows[:2]]
    if len(best) == 2 and rows[0].beats_next is False and all(name.isprintable() for name in best):
        return NextStep(
            typed.of_run("compare", names=best),
            "the two best are not told apart: says how many queries it would take",
        )
    return NextStep(
        shlex.join([PROGRAM, "view", _shown(outcome.path)]), "shows every answer in the browser"
    )


def _shown(path: Path) -> str:
    """Return a path that cannot be taken for an option."""
    text = str(path)
    return f"./{text}" if text.startswith("-") else text

"""What all scorers for other frameworks share: the grader, and a grade in words."""

from __future__ import annotations

import atexit
import os
from collections.abc import Iterable, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TypeAlias

from rocketeval.api import Judge
from rocketeval.benchmarks.messages import RowError, is_messages, read_turns, split_turns
from rocketeval.checklists.checklist_file import read_checklist_file
from rocketeval.checklists.simple import GENERAL_ITEMS
from rocketeval.engines.base import Engine
from rocketeval.errors import ConfigError
from rocketeval.grader import Grader, Items, ResponseGrade
from rocketeval.records import Checklist, Turn

FILES = (".yaml", ".yml", ".json", ".jsonl", ".csv", ".txt")
"""Endings of the name of a checklist file."""
JudgeChoice: TypeAlias = str | Judge | Engine | Grader | None
"""A model name, a judge, an engine or a grader; None for $ROCKETEVAL_JUDGE."""


def open_grader(
    judge: JudgeChoice = None, base_url: str | None = None, answers: Path | str | None = None
) -> Grader:
    """Return a grader; the same settings give the same one, with one pool of connections.

    Settings that are not given come from $ROCKETEVAL_JUDGE, $ROCKETEVAL_BASE_URL,
    $ROCKETEVAL_ANSWERS (the file of judged answers) and $ROCKETEVAL_OFFLINE.
    """
    if isinstance(judge, Grader):
        return judge
    chosen = judge or os.environ.get("ROCKETEVAL_JUDGE")
    if not chosen:
        raise ConfigError(
            "No judge is given.", hint="Give `judge`, or set $ROCKETEVAL_JUDGE to a model name."
        )
    file = answers or os.environ.get("ROCKETEVAL_ANSWERS") or None
    path = None if file is None else str(file)
    if isinstance(chosen, str):
        return _named(chosen, base_url or os.environ.get("ROCKETEVAL_BASE_URL"), path, _offline())
    grader = Grader(chosen, base_url, answers=path, offline=_offline())
    atexit.register(grader.close)
    return grader


@cache
def _named(model: str, base_url: str | None, answers: str | None, offline: bool) -> Grader:
    grader = Grader(model, base_url, answers=answers, offline=offline)
    atexit.register(grader.close)
    return grader


def _offline() -> bool:
    return os.environ.get("ROCKETEVAL_OFFLINE", "") not in ("", "0")


def checklist_for(own: object, default: Items | str | None) -> Items:
    """Return a case's own checklist, else the default; a text has one item per line.

    Without any, the packaged checklist for all queries is used. The default may be the path of a
    checklist file. A case may not name a file: cases may come from strangers.
    """
    blank = own is None or (isinstance(own, str) and not own.strip())
    chosen = default if blank else own
    if chosen is None or chosen == "general":
        return GENERAL_ITEMS
    if isinstance(chosen, Checklist):
        return chosen
    if isinstance(chosen, str):
        chosen = [line.strip() for line in chosen.splitlines() if line.strip()]
        if len(chosen) == 1 and _names_file(chosen[0]):
            if not blank:
                raise ConfigError(
                    f"The checklist of a case is the path of a file: {chosen[0]!r}.",
                    hint="Give the items, or name the file as the checklist of the scorer.",
                )
            return _checklist_in(Path(chosen[0].removeprefix("file://")).absolute())
    if not isinstance(chosen, Sequence):
        raise ConfigError("A checklist is a list of items.", hint='Such as ["Is it correct?"].')
    if not chosen:
        raise ConfigError(
            "A checklist has no items.",
            hint='Add some, or leave `checklist` out. "general" means the packaged general items.',
        )
    return chosen


def _names_file(line: str) -> bool:
    """Return whether a line is the path of a checklist file, not an item about one.

    A relative path with spaces needs `file://`.

    >>> [_names_file(line) for line in ("my/items.csv", "/My files/a.yaml", "Is it a .csv")]
    [True, True, False]
    """
    path = line.startswith("file://") or Path(line).is_absolute() or len(line.split()) == 1
    return path and line.lower().endswith(FILES)


@cache
def _checklist_in(path: Path) -> Checklist:
    """Return the checklist for all queries in a file."""
    file = read_checklist_file(path)
    if file.for_all is None or file.queries:
        raise ConfigError(
            f"{path} has checklists by query id, but a scorer knows no ids.",
            hint="Keep only `for_all` in the file, and give each case its own `checklist`.",
        )
    return file.for_all.checklist("query")


def asked_in(prompt: str | Iterable[object]) -> tuple[str, tuple[Turn, ...]]:
    """Return the query of a prompt, a text or chat messages, and the turns before it.

    >>> asked_in([{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"}])
    ('Hi', (Turn(role='system', content='Be brief.'),))
    """
    if isinstance(prompt, str):
        return prompt, ()
    try:
        found = split_turns(*read_turns(list(prompt), "prompt"))
    except RowError as error:
        raise ConfigError(f"The prompt: {error.kind} ({error.detail}).", hint=error.hint) from None
    return found.query, found.history


def asked_or_text(value: object, text: str) -> tuple[str, tuple[Turn, ...]]:
    """Return the query of a value that holds chat messages; otherwise the text is the query.

    Messages without one of the user, such as a system message only, are no conversation.
    """
    if is_messages(value):
        with suppress(ConfigError):
            return asked_in(value)  # type: ignore[arg-type]
    return text, ()


def explain_grade(graded: ResponseGrade) -> str:
    """Return the score and its items in words, the failed ones first."""
    if graded.score is None:
        head = "no item has an answer"
    else:
        passed = sum(item.passed is True for item in graded.items)
        head = f"score {graded.score:.2f}: {passed} of {len(graded.items)} items passed"
    if tuple(item.text for item in graded.items) == GENERAL_ITEMS:
        head += " (the packaged general items)"
    lines = [f"failed ({item.shown_answer}): {item.title}" for item in graded.failed]
    lines += [f"unanswered ({item.shown_answer}): {item.title}" for item in graded.unanswered]
    return "\n".join([head, *lines])

"""The page about what changed since a baseline run."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.compare.pair import ComparisonVerdict
from rocketeval.errors import ConfigError
from rocketeval.judges.runs import JudgedRun
from rocketeval.records import Answer, Checklist, Interval, Status
from rocketeval.report.run_diff import (
    FLIPPED,
    BestChange,
    CandidateDiff,
    ResponseChange,
    RunDiff,
    diff_runs,
    flipped,
)
from rocketeval.scoring.read_answers import read_judgment
from rocketeval.scoring.rubric import GradedItem
from rocketeval.store.run import RunStore
from rocketeval.text import TOO_FEW, join_words

MOST_CHANGES = 1000
"""Changed responses on the page, those with the largest differences."""
MOST_FLIPS = 200
"""Queries with another best response on the page."""
MOST_NAMED = 5


@dataclass(frozen=True, slots=True)
class CandidateLine:
    """One candidate of the page about changes."""

    candidate: str
    verdict: str
    mood: str
    """"worse", "better" or empty."""
    effect: Interval
    p_value: float
    before: float
    now: float
    worse: int
    """Queries on which its score fell by the tie margin or more."""
    same: int
    better: int
    queries: int
    rewritten: int
    """Responses with another text."""
    worse_answers: int
    """Answers that flipped to no, or to yes for a penalty."""
    better_answers: int


@dataclass(frozen=True, slots=True)
class DiffPage:
    """What the page about changes shows."""

    base: str
    """Name of the baseline run."""
    created: str
    judge: str
    refused: str
    """Why the two runs cannot be compared; empty if they can."""
    conclusion: str = ""
    candidates: tuple[CandidateLine, ...] = ()
    """Those that got worse first."""
    changes: tuple[ResponseChange, ...] = ()
    """The largest fall first."""
    left_out: int = 0
    """Changed responses that are left out."""
    best: tuple[BestChange, ...] = ()
    best_left_out: int = 0
    notes: tuple[str, ...] = ()
    tie_margin: float = 0.0
    flipped: float = FLIPPED


def diff_page(head: JudgedRun, base: JudgedRun) -> DiffPage:
    """Return the page about what changed since `base`, or about why that cannot be said."""
    manifest = base.store.manifest()
    judge = manifest.judge.name if manifest.judge else ""
    page = DiffPage(base.store.path.name, manifest.created, judge, "")
    try:
        found = diff_runs(head, base)
    except ConfigError as error:
        return replace(page, refused=f"{error.message} {error.hint}".strip())
    lines = sorted(map(_line, found.candidates), key=lambda one: one.effect.value)
    every = [change for one in found.candidates for change in one.changes]
    kept = sorted(every, key=lambda one: -abs(one.now - one.before))[:MOST_CHANGES]
    return replace(
        page,
        conclusion=_conclusion(found),
        candidates=tuple(lines),
        changes=tuple(sorted(kept, key=lambda one: one.now - one.before)),
        left_out=len(every) - len(kept),
        best=tuple(islice(found.best, MOST_FLIPS)),
        best_left_out=max(0, len(found.best) - MOST_FLIPS),
        notes=(*_about_candidates(found), *found.notes),
        tie_margin=head.config.ranking.tie_margin,
    )


def _line(one: CandidateDiff) -> CandidateLine:
    found = one.comparison
    worse, better = ComparisonVerdict.WORSE, ComparisonVerdict.BETTER
    return CandidateLine(
        candidate=one.candidate,
        verdict=one.verdict,
        mood=str(found.verdict) if found.verdict in (worse, better) else "",
        effect=found.effect,
        p_value=found.p_value,
        before=one.before,
        now=one.now,
        worse=found.losses,
        same=found.ties,
        better=found.wins,
        queries=found.queries,
        rewritten=sum(change.rewritten for change in one.changes),
        worse_answers=sum(change.worse_answers for change in one.changes),
        better_answers=sum(change.better_answers for change in one.changes),
    )


def _conclusion(found: RunDiff) -> str:
    """Return the verdicts on all candidates in a sentence or two."""
    said = []
    for verdict, how in (ComparisonVerdict.WORSE, "lower"), (ComparisonVerdict.BETTER, "higher"):
        names = [one.candidate for one in found.candidates if one.comparison.verdict is verdict]
        if names:
            verb = "scores" if len(names) == 1 else "score"
            said.append(f"{join_words(names, most=MOST_NAMED)} {verb} significantly {how}.")
    tested = [one.candidate for one in found.candidates if one.tested]
    if tested and not said:
        one, many = f"{tested[0]} does not score", f"None of {len(tested)} candidates scores"
        said.append(f"{one if len(tested) == 1 else many} significantly higher or lower.")
    untested = [one.candidate for one in found.candidates if not one.tested]
    if untested:
        said.append(f"{TOO_FEW.capitalize()} to test {join_words(untested, most=MOST_NAMED)}.")
    return " ".join(said)


def _about_candidates(found: RunDiff) -> Iterator[str]:
    for names, where in ((found.new, "this run"), (found.gone, "the baseline")):
        if names:
            shown = join_words(names, most=MOST_NAMED)
            yield f"Only in {where}, and not compared: {shown}."
    if found.new or found.gone:
        yield "Ratings depend on all candidates of a run, so only mean scores are compared."


@dataclass(frozen=True, slots=True)
class AnswerChange:
    """An item and its answers in both runs."""

    text: str
    before: float | None
    now: float | None
    flipped: str
    """"worse" or "better" if the answer flipped; otherwise empty."""


@dataclass(frozen=True, slots=True)
class ResponseDiff:
    """One response in both runs."""

    query: str
    text: str
    """The query."""
    candidate: str
    before: str | None
    """The response in the baseline."""
    now: str | None
    items: tuple[AnswerChange, ...]


def response_diff(
    head: JudgedRun, base: JudgedRun, query: str, candidate: str
) -> ResponseDiff | None:
    """Return one response in both runs; None if this run does not have it."""
    asked = head.store.inputs.queries.get(query)
    checklist = head.store.inputs.checklists().get(query)
    if asked is None or checklist is None:
        return None
    texts = [_text_of(run.store, query, candidate) for run in (head, base)]
    now, before = (_answers(run.store, query, candidate) for run in (head, base))
    if len(now) != len(checklist.items) or len(before) != len(now):
        now = before = (Answer(Status.ERROR),) * len(checklist.items)
    return ResponseDiff(
        query,
        asked.text,
        candidate,
        texts[1],
        texts[0],
        tuple(_answer_changes(_graded_items(checklist, before), _graded_items(checklist, now))),
    )


def _text_of(store: RunStore, query: str, candidate: str) -> str | None:
    found = (one for one in store.inputs.responses_to([query]) if one.candidate == candidate)
    return next((one.text for one in found), None)


def _answers(store: RunStore, query: str, candidate: str) -> tuple[Answer, ...]:
    """Return the answers of one response; empty if it was not judged."""
    found = read_judgment(store, query, candidate)
    return () if found is None else found.answers


def _graded_items(checklist: Checklist, answers: Sequence[Answer]) -> list[GradedItem]:
    rows = zip(checklist.items, checklist.every_detail, answers, strict=True)
    return [GradedItem(*row) for row in rows]


def _answer_changes(before: list[GradedItem], now: list[GradedItem]) -> Iterator[AnswerChange]:
    found = flipped(_values(before), _values(now)).tolist()
    for was, is_now, flip in zip(before, now, found, strict=True):
        yield AnswerChange(is_now.title, _known(was), _known(is_now), _FLIPS[flip])


def _values(items: list[GradedItem]) -> Floats:
    """Return what the items contribute; NaN if unanswered, or if the item does not apply."""
    return np.array([math.nan if one.not_applicable else one.value for one in items], np.float64)


_FLIPS = {-1: "worse", 0: "", 1: "better"}


def _known(item: GradedItem) -> float | None:
    p_yes = item.answer.p_yes
    return None if p_yes is None else round(p_yes, 4)

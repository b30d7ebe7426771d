"""The run's own judgments, from what the judge said on the evaluator's sheets.

Whatever reads a run, such as its report or an export, finds one judgment a response, with one
answer a perspective. Where the judge saw two responses at once, a response's answer is the mean
over its opponents of how far it was preferred.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from rocketeval.evolve.cases import Case
from rocketeval.evolve.perspective import Kind, Perspective
from rocketeval.evolve.sheets import Sheet
from rocketeval.grading.schedule import cells
from rocketeval.hashing import content_hash
from rocketeval.prompts.perspectives import pair_name
from rocketeval.records import Answer, JudgeFingerprint, Judgment, Status
from rocketeval.stages.answers import AnswerReader
from rocketeval.stages.evaluate.given import FOLDER, Given
from rocketeval.store.run import DERIVED, RunStore

Row = tuple[str, str]
"""A query and a candidate, or the names of two."""


@dataclass(frozen=True)
class SheetRun:
    """A sheet about responses that was put to the judge."""

    sheet: Sheet
    perspectives: tuple[Perspective, ...]
    judge: JudgeFingerprint
    judged: Mapping[Row, Judgment]
    """What was shown and judged."""


def read_sheets(store: RunStore, given: Given) -> list[SheetRun]:
    """Return the evaluator's sheets about responses, as far as they are judged."""
    found = []
    for sheet, perspectives in given.sheets.items():
        if perspectives[0].kind is Kind.RESPONSE:
            inside = store.inside(FOLDER, sheet.name)
            judged = dict(_judged(inside))
            found.append(SheetRun(sheet, tuple(perspectives), inside.judge(), judged))
    return found


def derived_judge(sheets: Sequence[SheetRun]) -> JudgeFingerprint:
    """Return the fingerprint of a judge that was asked on these sheets."""
    parts = sorted((one.sheet.name, one.judge.template, one.judge.readout) for one in sheets)
    template = content_hash([[name, template] for name, template, _ in parts]).hex()
    readout = content_hash([[name, readout] for name, _, readout in parts]).hex()
    return replace(sheets[0].judge, template=f"{DERIVED}{template}", readout=readout)


def derive_judgments(
    store: RunStore, given: Given, sheets: Sequence[SheetRun], cases: Iterable[Case]
) -> Iterator[Judgment]:
    """Yield one judgment for each response that was judged on every sheet, in the run's order.

    `cases` is what the judge was asked about. Responses with the same text share a judgment.
    """
    shown: dict[Row, list[tuple[str, bool]]] = {}
    for case in cases:
        names = case.candidates
        name = pair_name(*names) if len(names) == 2 else names[0]
        for place, candidate in enumerate(case.candidates):
            shown.setdefault((case.query_id, candidate), []).append((name, place == 0))
    order = [each.id for each in given.evaluator.about_responses]
    done: set[bytes] = set()
    for cell in cells(store.inputs, derived_judge(sheets).digest):
        views = shown.get((cell.query_id, cell.candidate), [])
        found = [_answers(one, cell.query_id, views) for one in sheets]
        if cell.key is None or cell.key in done or not all(found):
            continue
        done.add(cell.key)
        answers = {name: answer for each in found for name, answer in each.items()}
        yield Judgment(
            cell.key,
            cell.query_id,
            cell.candidate,
            tuple(answers[name] for name in order),
            neutralised=_neutralised(sheets, cell.query_id, views),
        )


def _judged(inside: RunStore) -> Iterator[tuple[Row, Judgment]]:
    part = AnswerReader(inside).whole()
    keys = part.keys.to_pylist()
    judgments = inside.judgments_of({key for key in keys if key})
    names = zip(part.answers.query_ids, part.answers.candidates, strict=True)
    for row, key in zip(names, keys, strict=True):
        if key in judgments:
            yield row, judgments[key]


def _answers(one: SheetRun, query_id: str, views: Sequence[tuple[str, bool]]) -> dict[str, Answer]:
    """Return a response's answers by perspective; nothing if no judge has seen it.

    `views` is what it was shown as, and whether it stood first.
    """
    seen = [
        (one.judged[query_id, name].answers, first)
        for name, first in views
        if (query_id, name) in one.judged
    ]
    if not seen:
        return {}
    if not one.sheet.signed:
        return {each.id: seen[0][0][place] for place, each in enumerate(one.perspectives)}
    return {
        each.id: _mean([(answers[place], first) for answers, first in seen])
        for place, each in enumerate(one.perspectives)
    }


def _mean(seen: Sequence[tuple[Answer, bool]]) -> Answer:
    """Return how far a response was preferred over its opponents.

    >>> _mean([(Answer(Status.OK, 0.75), True), (Answer(Status.OK, 0.75), False)]).p_yes
    0.5
    """
    own = [
        answer.p_yes if first else 1.0 - answer.p_yes
        for answer, first in seen
        if answer.p_yes is not None
    ]
    return Answer(Status.OK, sum(own) / len(own)) if own else Answer(seen[0][0].status)


def _neutralised(
    sheets: Sequence[SheetRun], query_id: str, views: Sequence[tuple[str, bool]]
) -> int:
    """The most that had to be disarmed in one prompt: every sheet shows the same text."""
    return max(
        one.judged[query_id, name].neutralised
        for one in sheets
        for name, _ in views
        if (query_id, name) in one.judged
    )

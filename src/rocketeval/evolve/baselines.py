"""Simpler ways to judge, for an evaluator to be held against: one prompt, or a mean of answers."""

from __future__ import annotations

import numpy as np

from rocketeval.errors import BenchmarkError
from rocketeval.evolve.cases import CaseTable, Floats
from rocketeval.evolve.cuts import Cuts, Line
from rocketeval.evolve.missing import filled, medians

SINGLE = "single prompt"
SINGLE_FITTED = {
    "pairs": "single prompt, cut points learned",
    "scores": "single prompt, line fitted",
}
"""What is learned of one prompt: two cut points between verdicts, or a line to the labels."""
SINGLE_PROMPTS = (SINGLE, *SINGLE_FITTED.values())
MEAN = "mean of perspectives"
COMMONEST = "always the commonest verdict"


def single_outcomes(seen: CaseTable, new: CaseTable, overall: str) -> dict[str, Floats]:
    """Return what one prompt says about new cases, as it is and with what the cases seen teach.

    A missing answer is filled with the median of the cases seen.
    """
    place = _place(seen, overall)
    before, now = _filled(seen, new)
    one, asked = before[:, place], now[:, place]
    fitted = SINGLE_FITTED[seen.task]
    return {SINGLE: _unlearned(asked, seen), fitted: _fitted(one, asked, seen)}


def commonest_outcome(seen: CaseTable, new: CaseTable) -> Floats:
    """Return the verdict that most of the pairs seen have, for every new case."""
    verdicts, counts = np.unique(seen.gold, return_counts=True)
    return np.full(len(new), verdicts[counts.argmax()])


def mean_outcome(seen: CaseTable, new: CaseTable) -> Floats:
    """Return what the mean of all answers says about new cases, gaps filled likewise."""
    before, now = _filled(seen, new)
    return _fitted(before.mean(axis=1), now.mean(axis=1), seen)


def _filled(seen: CaseTable, new: CaseTable) -> tuple[Floats, Floats]:
    fill = medians(seen.answers)
    return filled(seen.answers, fill), filled(new.answers, fill)


def _unlearned(asked: Floats, seen: CaseTable) -> Floats:
    """The sign of the answer; of labels, the answer stretched to the labels seen."""
    return np.sign(asked) if seen.pairs else Line.across(seen.gold).labels(asked)


def _fitted(numbers: Floats, asked: Floats, seen: CaseTable) -> Floats:
    if seen.pairs:
        return Cuts.learn(numbers, seen.gold).verdicts(asked)
    return Line.learn(numbers, seen.gold).labels(asked)


def _place(table: CaseTable, overall: str) -> int:
    ids = [each.id for each in table.about_responses]
    if overall not in ids:
        raise BenchmarkError(
            f"The overall perspective {overall!r} is not among the {len(ids)} about responses.",
            hint="Ask the judge about it too, or leave the single prompt out of the comparison.",
        )
    return ids.index(overall)

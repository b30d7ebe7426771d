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
MEAN = "mean of perspectives"


def simple_outcomes(seen: CaseTable, new: CaseTable, overall: str | None) -> dict[str, Floats]:
    """Return what each simple way says about new cases, by name, having learned from those seen.

    A missing answer is filled with the median of the cases seen.
    """
    fill = medians(seen.answers)
    before, now = filled(seen.answers, fill), filled(new.answers, fill)
    outcomes = {}
    if overall is not None:
        place = _place(seen, overall)
        one, asked = before[:, place], now[:, place]
        outcomes[SINGLE] = _unlearned(asked, seen)
        outcomes[SINGLE_FITTED["pairs" if seen.pairs else "scores"]] = _fitted(one, asked, seen)
    outcomes[MEAN] = _fitted(before.mean(axis=1), now.mean(axis=1), seen)
    return outcomes


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

"""LLM-Rubric: GPT-3.5's distributions over four answers to nine questions about dialogues.

The rubric is one query, dialogues are the responses, questions are the items. An item's `p_yes` is
the expected answer, or the probability of the two upper answers, on 0..1. The label is the human
answer to Q0, overall satisfaction.
"""

from __future__ import annotations

import csv
import gzip
from collections import defaultdict
from pathlib import Path

import numpy as np

from stage3.design import NEVER_HELD_OUT, Design, Floats, folds_by, table

SCALE = (1.0, 4.0)
QUESTIONS = ("Q0", "Q1", "Q2", "Q3", "Q4", "Q5", "Q6", "Q7", "Q8")
PUBLISHED = (
    "Published (README of microsoft/LLM-Rubric at 03718a0, real dialogues): expected Q0 RMSE "
    "0.918676, Pearson 0.177301, Spearman 0.086675, Kendall 0.065928; most likely Q0 RMSE "
    "1.201643, Pearson 0.140091; their network, trained on the synthetic dialogues with parameters "
    "for each annotator: Pearson 0.313, Spearman 0.368, Kendall 0.291."
)
ANCHOR = {"RMSE": 0.918676, "Pearson": 0.177301, "Spearman": 0.086675, "Kendall": 0.065928}
"""The source's figures for expected Q0 on the real dialogues."""

_HUMANS = {
    "real": "human_judges_real_convs_FIXED_ANON.tsv.gz",
    "synth": "human_judges_synth_all_FIXED_ANON.tsv.gz",
}
_ANSWERS = np.arange(1.0, 5.0)


def load(folder: Path, folds: int, seed: int) -> list[Design]:
    """Return the designs: real, synthetic, and trained on synthetic but scored on real."""
    designs = []
    for title, upper in (("expected answer", False), ("upper two answers", True)):
        real, synth = _part(folder, "real", upper), _part(folder, "synth", upper)
        designs += [
            _design(f"real dialogues, {title}", real, folds, seed),
            _design(f"synthetic dialogues, {title}", synth, folds, seed),
            _transfer(f"learned on synthetic, scored on real, {title}", synth, real),
        ]
    return designs


def expected_q0(design: Design) -> Floats:
    """Return the expected answer to Q0, the source's baseline."""
    low, high = SCALE
    answers = design.answers.p_yes.reshape(len(design.answers), len(QUESTIONS))
    return low + (high - low) * answers[:, QUESTIONS.index("Q0")]


Part = tuple[list[str], Floats, Floats]


def _part(folder: Path, part: str, upper: bool) -> Part:
    """Return dialogues, answers and labels; a label of 0 means `not applicable` and is dropped."""
    given: dict[str, list[float]] = defaultdict(list)
    for row in _rows(folder / _HUMANS[part]):
        if float(row["Q0"]) > 0:
            given[row["text_id"]].append(float(row["Q0"]))
    answers: dict[str, dict[str, float]] = defaultdict(dict)
    for row in _rows(folder / f"gpt-3.5-turbo-16k_{part}_evaluations_FIXED.tsv.gz"):
        chances = np.array([float(row[f"answer{number}_prob"]) for number in range(1, 5)])
        expected = float((chances @ _ANSWERS - 1.0) / 3.0)
        value = float(chances[2:].sum()) if upper else expected
        answers[row["text_id"]][row["criterion"]] = min(max(value, 0.0), 1.0)
    dialogues = sorted(answers.keys() & given.keys())
    p_yes = np.array([[answers[name][item] for item in QUESTIONS] for name in dialogues])
    return dialogues, p_yes, np.array([float(np.mean(given[name])) for name in dialogues])


def _rows(path: Path) -> list[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8") as stream:
        return list(csv.DictReader(stream, delimiter="\t"))


def _design(name: str, part: Part, folds: int, seed: int) -> Design:
    dialogues, p_yes, labels = part
    answers = table(["rubric"] * len(dialogues), dialogues, p_yes)
    held = folds_by(dialogues, folds, seed)
    return Design(name, answers, labels, SCALE, held, dialogues, "dialogues")


def _transfer(name: str, learned: Part, scored: Part) -> Design:
    names = [*learned[0], *scored[0]]
    answers = table(["rubric"] * len(names), names, np.concatenate([learned[1], scored[1]]))
    held = np.array([NEVER_HELD_OUT] * len(learned[0]) + [0] * len(scored[0]), dtype=np.int64)
    labels = np.concatenate([learned[2], scored[2]])
    return Design(name, answers, labels, SCALE, held, names, "dialogues")

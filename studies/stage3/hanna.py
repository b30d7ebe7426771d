"""HANNA: ratings of 96 story prompts x 11 systems by five small judges and three people.

Six criteria in four wordings of the prompt are the 24 items of a judge's checklist; a rating of
1..5 becomes 0..1. The label is the human mean over the criteria (or over one of them, if only its
own items are used). Judges' ratings come in thirds and reach below 1, so they seem to be means over
repeats in which an unreadable one counts as 0 or less; a rating below 1 counts as missing.
"""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from stage3.design import Design, Floats, folds_by, table

SCALE = (1.0, 5.0)
CRITERIA = ("RE", "CH", "EM", "SU", "EG", "CX")
SYSTEM_FOLDS = 4
"""Two or three systems are held out together, because one system has no order."""
PUBLISHED = (
    "Published: the README of the data states no figures for these judges. For scale, it says that "
    "people agree little: single-rater alpha -0.06 to 0.28."
)


def load(folder: Path, folds: int, seed: int, quick: bool) -> list[Design]:
    """Return, for each judge, one checklist for all stories and one forest for each prompt."""
    rows = _rows(folder / "hanna_scores.jsonl.gz")
    if quick:
        rows = [row for row in rows if row["story"] < 24]
    judges = sorted(rows[0]["judges"])
    designs = []
    for judge in judges[:1] if quick else judges:
        designs += [
            _pooled(f"{judge}, all stories, folds of prompts", rows, [judge], folds, seed),
            _by_prompt(f"{judge}, each prompt by itself, folds of systems", rows, [judge], seed),
        ]
    designs.append(_pooled("all five judges, folds of prompts", rows, judges, folds, seed))
    for criterion in () if quick else CRITERIA:
        name = f"criterion {criterion}, all five judges, folds of prompts"
        designs.append(_pooled(name, rows, judges, folds, seed, (criterion,)))
    return designs


def missing(folder: Path) -> tuple[int, int]:
    """Return the number of missing ratings, and of all ratings."""
    rows = _rows(folder / "hanna_scores.jsonl.gz")
    p_yes = np.concatenate([_answers(rows, [judge]) for judge in rows[0]["judges"]])
    return int(np.isnan(p_yes).sum()), p_yes.size


def _rows(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path, "rb") as stream:
        rows = [orjson.loads(line) for line in stream]
    return sorted(rows, key=lambda row: (row["story"], row["system"]))


def _answers(
    rows: Sequence[dict[str, Any]], judges: Sequence[str], criteria: Sequence[str] = CRITERIA
) -> Floats:
    ratings = np.array(
        [
            [value for judge in judges for name in criteria for value in row["judges"][judge][name]]
            for row in rows
        ]
    )
    low, high = SCALE
    return np.where(ratings < low, np.nan, (ratings - low) / (high - low))


def _labels(rows: Sequence[dict[str, Any]], criteria: Sequence[str] = CRITERIA) -> Floats:
    return np.array([np.mean([row["human_mean"][name] for name in criteria]) for row in rows])


def _pooled(
    name: str,
    rows: Sequence[dict[str, Any]],
    judges: Sequence[str],
    folds: int,
    seed: int,
    criteria: Sequence[str] = CRITERIA,
) -> Design:
    """Return all stories as responses to one query; one fit learns from all other prompts."""
    systems = [row["system"] for row in rows]
    prompts = [f"prompt {row['story']:02}" for row in rows]
    stories = [f"{prompt} {system}" for prompt, system in zip(prompts, systems, strict=True)]
    answers = table(["story"] * len(rows), stories, _answers(rows, judges, criteria))
    held = folds_by(prompts, folds, seed)
    return Design(name, answers, _labels(rows, criteria), SCALE, held, prompts, "prompts", systems)


def _by_prompt(
    name: str, rows: Sequence[dict[str, Any]], judges: Sequence[str], seed: int
) -> Design:
    """Return one query per prompt; fits to the other systems' labels score a few at a time."""
    systems = [row["system"] for row in rows]
    prompts = [f"prompt {row['story']:02}" for row in rows]
    answers = table(prompts, systems, _answers(rows, judges))
    held = folds_by(systems, SYSTEM_FOLDS, seed)
    return Design(name, answers, _labels(rows), SCALE, held, prompts, "prompts")

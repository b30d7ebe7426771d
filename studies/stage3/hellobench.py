"""HelloBench: GPT-4o's answers to checklists, 23 models on 647 prompts, with human-fitted weights.

The data has no human scores, only the item weights that were fitted to them, per category. So no
supervised fit can be compared with human scores here. The study measures how far the plain mean
agrees with the weighted score. As a distillation, it also checks whether a scorer can recover the
weighted score from a few of its values.
"""

from __future__ import annotations

import gzip
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import orjson

from rocketeval.records import Interval
from rocketeval.stats.bootstrap import interval
from stage3.design import Design, Floats, folds_by, table
from stage3.figures import LEVEL

SCALE = (0.0, 100.0)
PUBLISHED = (
    "The weights are the source's (human_regression_weights.json); its human scores are not in the "
    "data, so nothing here is agreement with people."
)


@dataclass(frozen=True)
class Judged:
    """One response: its answers, and the weights of its category."""

    model: str
    task: str
    prompt: str
    answers: Floats
    weights: Floats
    """Summing to 100."""

    @property
    def weighted(self) -> float:
        """Return the source's score, 0..100."""
        return min(float(self.answers @ self.weights), SCALE[1])


def load(folder: Path) -> tuple[list[Judged], int]:
    """Return the responses, and the number without weights (their category is unknown)."""
    weights = orjson.loads((folder / "human_regression_weights.json").read_bytes())
    by_category = weights["REGRESSION_DICT"]
    found, left_out = [], 0
    with gzip.open(folder / "gpt4o_checklist_judgements.jsonl.gz", "rb") as stream:
        for line in stream:
            row = orjson.loads(line)
            own = by_category.get(row["category"], ())
            if len(own) != len(row["scores"]):
                left_out += 1
                continue
            answers = np.array(row["scores"])
            prompt = f"{row['task']}/{row['id']}"
            found.append(Judged(row["model"], row["task"], prompt, answers, np.array(own)))
    return found, left_out


def agreement(rows: Sequence[Judged], times: int, seed: int) -> dict[str, Interval]:
    """Return Spearman's correlation over models of plain and weighted means, by task and overall.

    Only prompts that every model answered are used; prompts are resampled.
    """
    models = sorted({row.model for row in rows})
    found = {}
    for task in ["all tasks", *sorted({row.task for row in rows})]:
        chosen = [row for row in rows if task in ("all tasks", row.task)]
        plain, weighted = _grid(chosen, models)
        random = np.random.default_rng(seed)
        picks = random.integers(len(plain), size=(times, len(plain)))
        draws = np.array([_spearman(plain[pick], weighted[pick]) for pick in picks])
        value = _spearman(plain, weighted)
        found[f"{task} ({len(plain)} prompts)"] = interval(
            value, draws, queries=len(plain), level=LEVEL
        )
    return found


def distillation(rows: Sequence[Judged], prompts: int, folds: int, seed: int) -> Design:
    """Return a design whose labels are the weighted scores, a function of the same answers."""
    by_prompt: dict[str, list[Judged]] = defaultdict(list)
    for row in rows:
        by_prompt[row.prompt].append(row)
    names = sorted(by_prompt)
    kept = sorted(np.random.default_rng(seed).permutation(len(names))[:prompts])
    chosen = [
        row for place in kept for row in sorted(by_prompt[names[place]], key=lambda r: r.model)
    ]
    models, ids = [row.model for row in chosen], [row.prompt for row in chosen]
    answers = table(ids, models, [row.answers for row in chosen])
    labels = np.array([row.weighted for row in chosen])
    name = f"distillation of the weighted score, {len(kept)} prompts, folds of models"
    return Design(name, answers, labels, SCALE, folds_by(models, folds, seed), ids, "prompts")


def _grid(rows: Sequence[Judged], models: Sequence[str]) -> tuple[Floats, Floats]:
    by_prompt: dict[str, dict[str, Judged]] = defaultdict(dict)
    for row in rows:
        by_prompt[row.prompt][row.model] = row
    whole = [by_prompt[name] for name in sorted(by_prompt) if len(by_prompt[name]) == len(models)]
    plain = np.array([[cells[model].answers.mean() for model in models] for cells in whole])
    weighted = np.array([[cells[model].weighted for model in models] for cells in whole])
    return plain, weighted


def _spearman(plain: Floats, weighted: Floats) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(plain.mean(axis=0), weighted.mean(axis=0)).statistic)

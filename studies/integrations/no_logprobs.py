"""Do the intervals of sampled judges cover? A simulation with known probabilities.

    python studies/integrations/no_logprobs.py > studies/integrations/recorded/no_logprobs.txt

`coverage` or `scale` as an argument prints one table only.

Each of 2,000 responses per row has items with known probabilities of yes (mostly near 0 or 1, as
real judges answer), some with weights and penalties. Written answers are drawn from them, counted
by the engine's own code, and scored by the grader's own code. The true score uses the known
probabilities.

The second table calibrates judges whose written answers are not drawn with their probabilities:
they write at another temperature, with a bias, or each item deviates. A scale is fitted on 40 items
answered both ways, then 20 new items are read with and without it.
"""

from __future__ import annotations

import math
import sys
from functools import cache

import numpy as np

from rocketeval.engines.sampled import count_answers, fit_scale
from rocketeval.errors import ConfigError
from rocketeval.items import AnswerLabels, ItemDetail
from rocketeval.records import Answer, Status
from rocketeval.scoring.rubric import GradedItem, score_of

RESPONSES = 2000
FITS, FITTED_ON, NEW, SAMPLES = 1000, 40, 20, 8
LABELS = AnswerLabels(("Yes", "No"))


@cache
def written(yes: int, samples: int) -> Answer:
    """Return the answer that some written yes and no give."""
    return count_answers(["Yes"] * yes + ["No"] * (samples - yes), LABELS)


def covers(answer: Answer, p: float) -> bool:
    """Return whether the interval of an answer contains a probability."""
    return (answer.p_low or 0.0) <= p <= (answer.p_high or 0.0)


def simulate_scale(
    samples: int, temperature: float, bias: float, scatter: float, seed: int
) -> tuple[int, list[float]]:
    """Return the fits that failed; coverage and mean error with a scale, and both without."""
    rng = np.random.default_rng(seed)
    failed, rows = 0, []
    for _ in range(FITS):
        truth = np.clip(rng.beta(0.4, 0.4, FITTED_ON + NEW), 0.001, 0.999)
        odds = np.log(truth / (1 - truth)) / temperature + bias
        odds += rng.normal(0.0, scatter, len(truth)) if scatter else 0.0
        counts = rng.binomial(samples, 1 / (1 + np.exp(-odds)))
        plain = [written(int(yes), samples) for yes in counts]
        exact = [Answer(Status.OK, p, p, p, 1.0) for p in map(float, truth)]
        try:
            scale = fit_scale(plain[:FITTED_ON], exact[:FITTED_ON], samples)
        except ConfigError:
            failed += 1
            continue
        known = {answer: scale.applied(answer) for answer in plain}
        for answer, p in zip(plain[FITTED_ON:], truth[FITTED_ON:], strict=True):
            scaled = known[answer]
            errors = [abs((each.p_yes or 0.0) - p) for each in (scaled, answer)]
            rows.append((covers(scaled, p), errors[0], covers(answer, p), errors[1]))
    return failed, [float(value) for value in np.mean(rows, axis=0)] if rows else [math.nan] * 4


def simulate(items: int, samples: int, weighted: bool, seed: int) -> tuple[float, float, float]:
    """Return the coverage of items and of scores, and the mean width of the score's interval."""
    rng = np.random.default_rng(seed)
    item_hits = score_hits = 0
    widths = []
    for _ in range(RESPONSES):
        truth = rng.beta(0.4, 0.4, items)
        weights = rng.choice([1.0, 2.0, -1.0], items) if weighted else np.ones(items)
        counts = rng.binomial(samples, truth)
        answers = [written(int(yes), samples) for yes in counts]
        graded = [
            GradedItem("item", ItemDetail(float(weight)), answer)
            for weight, answer in zip(weights, answers, strict=True)
        ]
        _, low, high = score_of(graded)
        assert low is not None
        assert high is not None
        sizes = np.abs(weights)
        true_score = float((sizes * np.where(weights < 0, 1 - truth, truth)).sum() / sizes.sum())
        score_hits += low <= true_score <= high
        widths.append(high - low)
        item_hits += sum(covers(answer, p) for answer, p in zip(answers, truth, strict=True))
    return item_hits / (RESPONSES * items), score_hits / RESPONSES, float(np.mean(widths))


def print_coverage() -> None:
    """Print how often intervals of sampled judges cover."""
    print(f"{RESPONSES:,} responses per row; nominal coverage 95%")
    print("items  weighted  samples  items covered  scores covered  mean width of the score")
    for items in (1, 4, 8):
        for weighted in (False, True):
            for samples in (1, 4, 8, 32):
                found = simulate(items, samples, weighted, seed=items * 100 + samples)
                own, score, width = found
                print(
                    f"{items:5d}  {'yes' if weighted else 'no':8s}  {samples:7d}  {own:13.3f}  "
                    f"{score:14.3f}  {width:23.2f}"
                )


def print_scale() -> None:
    """Print what a fitted scale changes."""
    print(f"{FITS:,} fits per row on {FITTED_ON} items answered both ways, {NEW} new items each")
    print("samples  temperature  bias  scatter  no fit  covered  error  covered, error without")
    for temperature, bias, scatter in ((1, 0, 0), (0.5, 0, 0), (1, -1, 0), (0.7, 0.5, 0.5)):
        failed, figures = simulate_scale(SAMPLES, temperature, bias, scatter, seed=SAMPLES)
        covered, error, plain, plain_error = figures
        print(
            f"{SAMPLES:7d}  {temperature:11g}  {bias:4g}  {scatter:7g}  {failed:6d}  "
            f"{covered:7.3f}  {error:5.3f}  {plain:7.3f}  {plain_error:12.3f}"
        )


if __name__ == "__main__":
    chosen = sys.argv[1:] or ["coverage", "scale"]
    if "coverage" in chosen:
        print_coverage()
    if len(chosen) > 1:
        print()
    if "scale" in chosen:
        print_scale()

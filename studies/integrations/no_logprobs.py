"""Do the intervals of sampled judges cover? A simulation with known probabilities.

    python studies/integrations/no_logprobs.py > studies/integrations/recorded/no_logprobs.txt

Each of 2,000 responses per row has items with known probabilities of yes (mostly near 0 or 1, as
real judges answer), some with weights and penalties. Written answers are drawn from them, counted
by the engine's own code, and scored by the grader's own code. The true score uses the known
probabilities.
"""

from __future__ import annotations

import numpy as np

from rocketeval.engines.sampled import count_answers
from rocketeval.items import AnswerLabels, ItemDetail
from rocketeval.scoring.rubric import GradedItem, score_of

RESPONSES = 2000
LABELS = AnswerLabels(("Yes", "No"))


def simulate(items: int, samples: int, weighted: bool, seed: int) -> tuple[float, float, float]:
    """Return the coverage of items and of scores, and the mean width of the score's interval."""
    rng = np.random.default_rng(seed)
    item_hits = score_hits = 0
    widths = []
    for _ in range(RESPONSES):
        truth = rng.beta(0.4, 0.4, items)
        weights = rng.choice([1.0, 2.0, -1.0], items) if weighted else np.ones(items)
        counts = rng.binomial(samples, truth)
        answers = [
            count_answers(["Yes"] * int(yes) + ["No"] * (samples - int(yes)), LABELS)
            for yes in counts
        ]
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
        item_hits += sum(
            (answer.p_low or 0.0) <= p <= (answer.p_high or 0.0)
            for answer, p in zip(answers, truth, strict=True)
        )
    return item_hits / (RESPONSES * items), score_hits / RESPONSES, float(np.mean(widths))


def main() -> None:
    """Print the table."""
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


if __name__ == "__main__":
    main()

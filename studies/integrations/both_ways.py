"""One judge asked both ways: how many written answers match one readout of log-probabilities?

    rocketeval run studies/integrations/sampled_judge.yaml
    python studies/judgments.py studies/integrations/sampled_judge.yaml \\
        studies/integrations/recorded/sampled_judge.parquet
    python studies/integrations/both_ways.py > studies/integrations/recorded/both_ways.txt

The last command reads stored judgments only, and needs no server. The judge wrote 32 answers per
item at temperature 1; its probabilities for the same items are those of the MT-Bench study. What
fewer answers would have said is computed exactly: n answers drawn from the 32 without replacement
have hypergeometric counts. Pairs are two responses to one query whose scores by log-probabilities
differ; a pair keeps its order if the mean of the written answers differs in the same direction.
The interval of an item is that of the engine (Clopper-Pearson); the row `scaled` reads all 32
answers through a scale that is fitted on the other half of the responses.
"""

from __future__ import annotations

import argparse
from itertools import combinations
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from numpy.typing import NDArray
from scipy.stats import hypergeom

from rocketeval.engines.sampled import binomial_interval, fit_scale
from rocketeval.records import Answer, Status

HERE = Path(__file__).parent
SAMPLED = HERE / "recorded" / "sampled_judge.parquet"
EXACT = HERE.parent / "mt_bench" / "recorded" / "judgments" / "first_turn_float32.parquet"
ASKED = 32
COUNTS = (1, 2, 4, 8, 16, 32)
DRAWS = 400
Floats = NDArray[np.float64]
Cell = tuple[str, str]


def read(path: Path) -> dict[Cell, list[float | None]]:
    """Return the stored probabilities by query and candidate."""
    columns = (pq.read_table(path)[name].to_pylist() for name in ("query_id", "candidate", "p_yes"))
    return {(query, candidate): values for query, candidate, values in zip(*columns, strict=True)}


def shared(
    sampled: dict[Cell, list[float | None]], exact: dict[Cell, list[float | None]]
) -> dict[Cell, tuple[Floats, Floats]]:
    """Return shares of yes and probabilities of the items that have both."""
    found = {}
    for cell, shares in sampled.items():
        pairs = [
            (share, p)
            for share, p in zip(shares, exact[cell], strict=True)
            if share is not None and p is not None
        ]
        if pairs:
            found[cell] = tuple(np.array(pairs, dtype=np.float64).T)
    return found


def item_error(share: float, p: float, count: int) -> tuple[float, float]:
    """Return the expected absolute error of `count` written answers, and how often they cover."""
    yes = np.arange(count + 1)
    chance = hypergeom.pmf(yes, ASKED, round(share * ASKED), count)
    ends = [binomial_interval(int(one), count) for one in yes]
    covers = np.array([low <= p <= high for low, high in ends])
    return float(chance @ np.abs(yes / count - p)), float(chance @ covers)


def drawn_scores(
    found: dict[Cell, tuple[Floats, Floats]], count: int, dice: np.random.Generator
) -> dict[Cell, Floats]:
    """Return scores of the responses by `count` written answers per item, for many draws."""
    return {
        cell: dice.hypergeometric(
            np.rint(shares * ASKED).astype(int),
            ASKED - np.rint(shares * ASKED).astype(int),
            count,
            size=(DRAWS, len(shares)),
        ).mean(axis=1)
        / count
        for cell, (shares, _) in found.items()
    }


def kept_order(found: dict[Cell, tuple[Floats, Floats]], scores: dict[Cell, Floats]) -> float:
    """Return the share of pairs whose order is that of the log-probabilities; ties count half."""
    kept = [
        (1 + np.sign((scores[one] - scores[two]) * (found[one][1].mean() - found[two][1].mean())))
        / 2
        for one, two in combinations(found, 2)
        if one[0] == two[0] and found[one][1].mean() != found[two][1].mean()
    ]
    return float(np.mean(kept))


def scaled(found: dict[Cell, tuple[Floats, Floats]]) -> tuple[float, float, float]:
    """Return error, coverage and slope of all answers on a scale that others were fitted to."""
    responses = sorted(found)
    errors, covers, slopes = [], [], []
    for half in (0, 1):
        fitted, tested = (
            [
                (share, p)
                for cell, values in found.items()
                if (responses.index(cell) % 2 == half) is own
                for share, p in zip(*values, strict=True)
            ]
            for own in (True, False)
        )
        written = [answer_of(share) for share, _ in fitted]
        scale = fit_scale(written, [Answer(Status.OK, p) for _, p in fitted], ASKED)
        slopes.append(scale.slope)
        for share, p in tested:
            answer = scale.applied(answer_of(share))
            assert answer.p_yes is not None
            assert answer.p_low is not None
            assert answer.p_high is not None
            errors.append(abs(answer.p_yes - p))
            covers.append(answer.p_low <= p <= answer.p_high)
    return float(np.mean(errors)), float(np.mean(covers)), float(np.mean(slopes))


def answer_of(share: float) -> Answer:
    """Return the answer that the engine makes of a share of all written answers."""
    low, high = binomial_interval(round(share * ASKED), ASKED)
    return Answer(Status.SAMPLED, share, low, high, 1.0)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--sampled", type=Path, default=SAMPLED)
    parser.add_argument("--exact", type=Path, default=EXACT)
    given = parser.parse_args()
    sampled = read(given.sampled)
    found = shared(sampled, read(given.exact))
    shares, known = (np.concatenate([pair[side] for pair in found.values()]) for side in (0, 1))
    unread = sum(share is None for values in sampled.values() for share in values)
    queries = len({query for query, _ in found})
    print(f"{queries} queries, {len(found)} responses, {len(known)} items; unreadable: {unread}")
    print(f"mean of p_yes {known.mean():.3f}, of the share of written yes {shares.mean():.3f}")
    print("answers  error of an item  covered  error of a score  pairs in the same order")
    for count in COUNTS:
        rows = [item_error(share, p, count) for share, p in zip(shares, known, strict=True)]
        error, covered = np.mean(rows, axis=0)
        scores = drawn_scores(found, count, np.random.default_rng(count))
        off = np.mean([np.abs(scores[cell] - p.mean()) for cell, (_, p) in found.items()])
        order = kept_order(found, scores)
        print(f"{count:7d}  {error:16.3f}  {covered:7.3f}  {off:16.3f}  {order:23.3f}")
    error, covered, slope = scaled(found)
    print(f" scaled  {error:16.3f}  {covered:7.3f}  (slope {slope:.2f} in log-odds)")


if __name__ == "__main__":
    main()

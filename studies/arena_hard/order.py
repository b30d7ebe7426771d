"""RocketEval Tables 3, 6 and Fig. 6: does the judge order candidates as the arena does?

    python studies/papers/prepare.py
    studies/judges/serve_vllm.sh qwen2.5-coder-1.5b-int8 8000 &
    rocketeval run studies/arena_hard/checklist.yaml --only grade
    python studies/judgments.py studies/arena_hard/checklist.yaml \
        studies/arena_hard/recorded/judgments/checklist.parquet     # the other configs the same
    python studies/arena_hard/order.py [--record]

The last command reads stored judgments and the shared data, and asks no judge. The arena's ratings
are the paper's own lists: 12 candidates for testing and 10 for training. Nothing is trained here,
so all 22 are informative. Only prompts with all 22 candidates judged count. Intervals resample the
prompts: they show how much the order depends on the prompts, not on the candidates.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))
import judgments  # noqa: E402

from rocketeval.arrays import Bools, Floats  # noqa: E402
from rocketeval.records import Interval  # noqa: E402
from rocketeval.scoring.answers import AnswerTable  # noqa: E402
from rocketeval.scoring.mean import HardMeanScorer, MeanScorer  # noqa: E402
from rocketeval.stats.bootstrap import interval, resample_queries  # noqa: E402
from rocketeval.text import figure  # noqa: E402

RECORDED = HERE / "recorded"
STORED = RECORDED / "judgments"
DATA = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", HERE.parents[2] / "shared" / "data"))
CHECKLIST, COUNTED, LENGTH = (
    "checklist, mean of p_yes",
    "checklist, yes counted",
    "response length",
)
OTHERS = {"direct": "Direct", "checklist_0.5b": "checklist, 0.5B judge"}
"""Other ways by the names of their config and their stored judgments; they may lack prompts."""
SIZES = (5, 10, 20, 40, 80, 120)
"""Numbers of prompts for the question how many are enough."""
TIMES = 200
"""Draws of that many prompts, and splits into halves."""
RESAMPLES = 1_000
WIDTH, CELL = 28, 26
ELO = "arena rating"
LIMITS = ("with the arena", "reliability", "unlimited prompts", "gained by them", "then missing")
"""With the arena; of two such sets of prompts; with the arena, estimated for unlimited prompts; how
much they would add; and how much is missing to 1 even then."""


@dataclass(frozen=True)
class Arena:
    """Scores by prompt and candidate for every way to score, and the arena's ratings."""

    prompts: tuple[str, ...]
    candidates: tuple[str, ...]
    scores: Mapping[str, Floats]
    """Prompt x candidate, by way to score; higher is better."""
    ratings: Floats
    tested: Bools
    """True for the paper's 12 test candidates."""

    @classmethod
    def read(cls, stored: Path = STORED, data: Path = DATA) -> Arena:
        """Return the stored judgments of complete prompts, with lengths and ratings."""
        lists = json.loads((data / "rocketeval" / "rankings.json").read_text())["arena-hard"]
        elo = {row["name"]: row["rating"] for part in ("test", "train") for row in lists[part]}
        names = tuple(elo)
        answers = judgments.read(stored / "checklist.parquet")
        cells = {
            CHECKLIST: _cells(answers, MeanScorer().predict(answers)),
            COUNTED: _cells(answers, HardMeanScorer().predict(answers)),
            LENGTH: _lengths(data / "arena_hard_v0.1" / "answers_rocketeval22.jsonl.gz"),
        }
        for file, way in OTHERS.items():
            if (stored / f"{file}.parquet").exists():
                found = judgments.read(stored / f"{file}.parquet")
                cells[way] = _cells(found, MeanScorer().predict(found))
        judged = cells[CHECKLIST]
        prompts = tuple(
            prompt
            for prompt in dict.fromkeys(answers.query_ids)
            if all((prompt, name) in judged for name in names)
        )
        scores = {
            way: np.array([[found.get((p, n), np.nan) for n in names] for p in prompts])
            for way, found in cells.items()
        }
        tested = {row["name"] for row in lists["test"]}
        return cls(
            prompts,
            names,
            scores,
            np.array(list(elo.values())),
            np.array([name in tested for name in names]),
        )

    @property
    def partial(self) -> list[str]:
        """The ways to score that lack some of the prompts."""
        return [way for way, rows in self.scores.items() if not np.isfinite(rows).all()]

    @property
    def whole(self) -> Arena:
        """The same with only the ways to score that have all prompts."""
        partial = self.partial
        return self.of([way for way in self.scores if way not in partial])

    def with_partial(self, way: str) -> Arena:
        """Return the checklist, a way that lacks prompts, and length, on the prompts it has."""
        here = np.isfinite(self.scores[way]).all(axis=1)
        return self.of([CHECKLIST, way, LENGTH]).only(here)

    def only(self, prompts: Bools) -> Arena:
        """Return the same for some prompts."""
        kept = tuple(p for p, keep in zip(self.prompts, prompts, strict=True) if keep)
        return replace(
            self, prompts=kept, scores={way: rows[prompts] for way, rows in self.scores.items()}
        )

    def of(self, ways: Sequence[str]) -> Arena:
        """Return the same with only these ways to score."""
        return replace(self, scores={way: self.scores[way] for way in ways})


@dataclass(frozen=True)
class Order:
    """How one way to score orders the candidates, against the arena."""

    spearman: Interval
    kendall: Interval
    from_checklist: Interval
    """Spearman minus that of the checklist's mean, on the same prompts."""


def _cells(answers: AnswerTable, scores: Floats) -> dict[tuple[str, str], float]:
    cells = zip(answers.query_ids, answers.candidates, strict=True)
    return dict(zip(cells, scores.tolist(), strict=True))


def _lengths(path: Path) -> dict[tuple[str, str], float]:
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = map(json.loads, lines)
        return {(row["question_id"], row["model"]): float(len(row["answer"])) for row in rows}


def means(scores: Floats, weights: Floats) -> Floats:
    """Return the mean score of each candidate under each row of prompt weights."""
    here = np.isfinite(scores)
    return np.asarray((weights @ np.where(here, scores, 0.0)) / (weights @ here), dtype=float)


def overall(scores: Floats) -> Floats:
    """Return the mean score of each candidate."""
    return means(scores, np.ones(len(scores)))


def spearman(rows: Floats, ratings: Floats) -> Floats:
    """Return Spearman's coefficient of each row with the ratings."""
    ranks = rankdata(rows, axis=-1)
    ranks -= ranks.mean(axis=-1, keepdims=True)
    wanted = rankdata(ratings) - (len(ratings) + 1) / 2
    return np.asarray(ranks @ wanted / np.sqrt((ranks**2).sum(-1) * (wanted**2).sum()))


def pearson(one: Floats, other: Floats) -> float:
    """Return Pearson's coefficient."""
    return float(np.asarray(np.corrcoef(one, other))[0, 1])


def kendall(rows: Floats, ratings: Floats) -> Floats:
    """Return Kendall's coefficient (tau-b) of each row with the ratings."""
    one, two = np.triu_indices(len(ratings), 1)
    signs = np.sign(rows[..., one] - rows[..., two])
    wanted = np.sign(ratings[one] - ratings[two])
    return np.asarray(signs @ wanted / np.sqrt((signs**2).sum(-1) * (wanted**2).sum()))


def orders(arena: Arena, *, tested: bool) -> dict[str, Order]:
    """Return the coefficients of every way to score, on the 12 test candidates or all."""
    columns = arena.tested if tested else np.ones(len(arena.candidates), dtype=bool)
    count, ratings = len(arena.prompts), arena.ratings[columns]
    drawn = np.concatenate(list(resample_queries(count, RESAMPLES, 0)))
    weights = np.vstack([np.ones(count), drawn])

    def both(way: str) -> tuple[Floats, Floats]:
        rows = means(arena.scores[way][:, columns], weights)
        return spearman(rows, ratings), kendall(rows, ratings)

    def bounded(draws: Floats) -> Interval:
        return interval(float(draws[0]), draws[1:], queries=count, level=0.95)

    found = {way: both(way) for way in arena.scores}
    checklist = found[CHECKLIST][0]
    return {
        way: Order(bounded(rho), bounded(tau), bounded(rho - checklist))
        for way, (rho, tau) in found.items()
    }


def by_prompts(arena: Arena, way: str) -> dict[int, tuple[float, float]]:
    """Return the mean and 5% quantile of Spearman over draws of k prompts, all candidates."""
    rng = np.random.default_rng(0)
    count = len(arena.prompts)
    found = {}
    for size in sorted({*(k for k in SIZES if k < count), count}):
        picks = np.argsort(rng.random((TIMES, count)), axis=1)[:, :size]
        weights = np.zeros((TIMES, count))
        np.put_along_axis(weights, picks, 1.0, axis=1)
        rho = spearman(means(arena.scores[way], weights), arena.ratings)
        found[size] = (float(rho.mean()), float(np.quantile(rho, 0.05)))
    return found


def reliability(arena: Arena, way: str) -> float:
    """Return how well the mean scores of two sets of this many prompts correlate, estimated.

    The prompts are split into halves many times; Spearman-Brown's formula extends the mean
    correlation of the halves to the whole.
    """
    rng = np.random.default_rng(1)
    count = len(arena.prompts)
    found = []
    for _ in range(TIMES):
        half = np.zeros(count)
        half[rng.permutation(count)[: count // 2]] = 1.0
        rows = means(arena.scores[way], np.vstack([half, 1.0 - half]))
        found.append(pearson(rows[0], rows[1]))
    halves = float(np.mean(found))
    return 2 * halves / (1 + halves)


def unlimited(arena: Arena, way: str) -> float:
    """Return Pearson's correlation with the arena, estimated for unlimited prompts."""
    return with_arena(arena, way) / float(np.sqrt(reliability(arena, way)))


@dataclass(frozen=True)
class Limits:
    """The correlation with the arena for unlimited prompts, and what is missing, roughly."""

    unlimited: Interval
    gained: Interval
    """How much unlimited prompts would add."""
    missing: Interval
    """1 minus the correlation for unlimited prompts."""


def limits(arena: Arena, way: str) -> Limits:
    """Return what limits the correlation, with 95% intervals from leaving out one prompt at a time.

    For the intervals, reliability is Cronbach's alpha, the mean over all halves, which needs no
    random splits.
    """
    scores = arena.scores[way]
    count = len(scores)
    without = [scores[np.arange(count) != left_out] for left_out in range(count)]
    now = np.array([pearson(overall(rows), arena.ratings) for rows in without])
    later = now / np.sqrt([alpha(rows) for rows in without])

    def around(value: float, left_out: Floats) -> Interval:
        spread = ((left_out - left_out.mean()) ** 2).sum()
        error = 1.96 * float(np.sqrt((count - 1) / count * spread))
        return Interval(value, value - error, value + error)

    value = unlimited(arena, way)
    return Limits(
        around(value, later),
        around(value - with_arena(arena, way), later - now),
        around(1.0 - value, later),
    )


def alpha(scores: Floats) -> float:
    """Return Cronbach's alpha of prompts as items and candidates as cases."""
    count = len(scores)
    total = float(np.nansum(scores, axis=0).var(ddof=1))
    return count / (count - 1) * (1.0 - float(np.nanvar(scores, axis=1, ddof=1).sum()) / total)


def with_arena(arena: Arena, way: str) -> float:
    """Return Pearson's correlation of mean scores with the arena."""
    return pearson(overall(arena.scores[way]), arena.ratings)


def section(arena: Arena) -> list[str]:
    """Return the coefficients of every way to score as text."""
    head = ["Spearman", "from checklist", "Kendall"]
    lines = [
        f"{len(arena.prompts)} prompts, {len(arena.candidates)} candidates",
        row("", [f"{part}, {what}" for part in ("12 test", "all 22") for what in head]),
    ]
    parts = [orders(arena, tested=True), orders(arena, tested=False)]
    for way in arena.scores:
        cells = []
        for one in (part[way] for part in parts):
            apart = "" if way == CHECKLIST else figure(one.from_checklist, "+.2f")
            cells += [figure(one.spearman, ".2f"), apart, figure(one.kendall, ".2f")]
        lines.append(row(way, cells))
    return lines


def row(name: str, cells: Sequence[str]) -> str:
    """Return one line of a table."""
    return (name.ljust(WIDTH) + "".join(cell.ljust(CELL) for cell in cells)).rstrip()


def lines_of(arena: Arena) -> list[str]:
    """Return the whole study as text."""
    lines = section(arena.whole)
    for way in arena.partial:
        lines += ["", f"Prompts graded by {way!r} too:", *section(arena.with_partial(way))]
    lines += ["", "Spearman by number of prompts, all 22; mean and 5% quantile over 200 draws"]
    found = {way: by_prompts(arena, way) for way in (CHECKLIST, COUNTED, LENGTH)}
    sizes = list(found[CHECKLIST])
    lines.append(row("prompts", [str(size) for size in sizes]))
    for way, values in found.items():
        lines.append(row(way, [f"{values[size][0]:.2f} ({values[size][1]:.2f})" for size in sizes]))
    lines += ["", "Pearson's correlation of mean scores, all 22", row("", LIMITS)]
    for way in found:
        figures = (with_arena(arena, way), reliability(arena, way))
        limit = limits(arena, way)
        bounds = [
            f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f})"
            for one in (limit.unlimited, limit.gained, limit.missing)
        ]
        lines.append(row(way, [*(f"{each:.2f}" for each in figures), *bounds]))
    lines += ["", "Spearman between the orders of all 22 candidates (Fig. 6)"]
    everyone = [*arena.scores, ELO]
    lines.append(row("", everyone))
    for way in everyone:
        lines.append(row(way, [f"{between(arena, way, other):.2f}" for other in everyone]))
    return lines


def between(arena: Arena, way: str, other: str) -> float:
    """Return Spearman's coefficient of two orders, on the prompts that both have."""
    here = np.ones(len(arena.prompts), dtype=bool)
    for each in (way, other):
        if each != ELO:
            here &= np.isfinite(arena.scores[each]).all(axis=1)
    one, two = (
        arena.ratings[None] if each == ELO else overall(arena.scores[each][here])[None]
        for each in (way, other)
    )
    return float(spearman(one, two[0])[0])


def figures_of(arena: Arena) -> dict[str, Any]:
    """Return what other pages quote, for order.json."""
    whole = arena.whole
    parts = {"12 test": orders(whole, tested=True), "all 22": orders(whole, tested=False)}
    return {
        "prompts": len(arena.prompts),
        "orders": {
            part: {way: asdict(one) for way, one in found.items()} for part, found in parts.items()
        },
        "partial": {
            way: {
                "prompts": len(arena.with_partial(way).prompts),
                "12 test": asdict(orders(arena.with_partial(way), tested=True)[way]),
                "all 22": asdict(orders(arena.with_partial(way), tested=False)[way]),
            }
            for way in arena.partial
        },
        "reliability": reliability(arena, CHECKLIST),
        "limits": asdict(limits(arena, CHECKLIST)),
        "mean by prompts": {
            size: value for size, (value, _) in by_prompts(arena, CHECKLIST).items()
        },
    }


def apart(scores: Floats, ratings: Floats) -> list[float]:
    """Return how far to move each label up, in points, so that neighbors are legible."""
    points = 270.0 / np.ptp(ratings)
    moved = np.zeros(len(scores))
    order = np.argsort(ratings)
    for place, one in enumerate(order):
        below = [each for each in order[:place] if abs(scores[each] - scores[one]) < 0.2]
        needed = [ratings[each] * points + moved[each] + 7.0 for each in below]
        moved[one] = max([0.0, *(height - ratings[one] * points for height in needed)])
    return moved.tolist()


def draw(arena: Arena) -> None:
    """Write order.svg: mean scores and ratings, and Spearman by number of prompts."""
    from charts import pyplot, save

    picture, (left, right) = pyplot.subplots(1, 2, figsize=(11, 5))
    scores = overall(arena.scores[CHECKLIST])
    for part, color, label in (
        (arena.tested, "#2a6f97", "test"),
        (~arena.tested, "#e07a5f", "train"),
    ):
        left.scatter(scores[part], arena.ratings[part], color=color, label=f"{label} candidates")
    edge = scores.min() + 0.75 * np.ptp(scores)
    for name, score, rating, height in zip(
        arena.candidates, scores, arena.ratings, apart(scores, arena.ratings), strict=True
    ):
        side, shift = ("right", -5) if score > edge else ("left", 5)
        left.annotate(
            name,
            (score, rating),
            fontsize=6,
            ha=side,
            va="center",
            xytext=(shift, height),
            textcoords="offset points",
        )
    left.set_xlabel(f"mean score by the 1.5B judge, {len(arena.prompts)} prompts")
    left.set_ylabel("Arena rating")
    left.legend(frameon=False, fontsize=8)
    for way, color in ((CHECKLIST, "#2a6f97"), (COUNTED, "#e07a5f"), (LENGTH, "#808080")):
        found = by_prompts(arena, way)
        means_of = [value for value, _ in found.values()]
        right.plot(list(found), means_of, "o-", color=color, label=way)
        right.fill_between(
            list(found), [low for _, low in found.values()], means_of, color=color, alpha=0.15
        )
    right.set_xlabel("prompts; the area reaches down to the 5% quantile")
    right.set_ylabel("Spearman with the arena, 22 candidates")
    right.legend(frameon=False, fontsize=8, loc="lower right")
    save(picture, RECORDED / "order.svg")


def main() -> None:
    """Print the study; with --record, write it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    arena = Arena.read()
    text = "\n".join(lines_of(arena)) + "\n"
    print(text, end="")
    if given.record:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / "order.txt").write_text(text, encoding="utf-8")
        content = json.dumps(figures_of(arena), indent=1) + "\n"
        (RECORDED / "order.json").write_text(content, encoding="utf-8")
        draw(arena)


if __name__ == "__main__":
    main()

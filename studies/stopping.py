"""Simulate early stopping where the truth is known, and replay it on recorded score grids.

    python studies/stopping.py [--quick] [--workers 2] [--record]
    python studies/stopping.py --choose [--record]
    python studies/stopping.py --grids FOLDER [--record]
    python studies/stopping.py --row "beats:0 5 x 1000 equal" --times 20000 [--record]

Every row repeats one setting with the product's race. `error` is how often a decision is false:
`best`, `top`: a set is decided that is not the best one, or that separates equal candidates.
`beats`: any candidate is called better or worse than the old one and is not. `within`: the order
places a candidate above one that is better by more than DELTA. `interval`: any interval of a mean
misses the true mean. At most 5% passes; `near` is above by less than two Monte Carlo errors.
`peeking` is the same race if every look tests at 1.96. `decided` is how often a race ends with a
decision, `share` the judgments it used, `queries` those of the candidates that stayed longest.

Scores are a candidate's effect + a query's ease + noise of standard deviation 1 in some shape:
plain; skewed (rounded to half points, piled up at 10); lopsided (every second candidate has
exponential losses, every other one normal noise); failures (every second candidate loses 2.5
points on a tenth of the queries); turns (two correlated queries per conversation); missing (a tenth
of the scores); rare failures (5% of the queries, almost no other noise: a known limit).
`--choose` compares the bound's shapes with a confidence sequence. `--grids` replays races on
recorded scores, 20 orders each, and compares the decision with the full grid's. `--row` repeats
rows of the table with new seeds, because a row picked for its high error is high partly by chance.
`--record` writes studies/recorded/stopping.txt, stopping_choice.txt, stopping_grids.txt or
stopping_row.txt; so far all but the second exist.
"""

from __future__ import annotations

import argparse
import gzip
import math
import sys
import zlib
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import orjson
from judgments import read as read_stored
from numpy.typing import NDArray

from rocketeval._version import __version__
from rocketeval.goal import parse_goal
from rocketeval.scoring.mean import MeanScorer
from rocketeval.stats.sequential import Bounds, plan_looks
from rocketeval.stopping.race import Race, RaceOrder, draw_order

Floats = NDArray[np.float64]
RECORDED = Path(__file__).with_name("recorded")
OWN = Path(__file__).parent / "mt_bench" / "recorded" / "judgments" / "first_turn_float32.parquet"
"""Stored answers of the 1.5B judge to the first turn of MT-Bench."""
TIMES = 1_000
ORDERS = 20


class Peeking(Bounds):
    """Test at 1.96 at every look."""

    def at(self, look: int, error: float) -> float:
        """Return 1.96."""
        return 1.959964


class ConfidenceSequence(Bounds):
    """Bound of an asymptotic confidence sequence (a normal mixture, tightest near 60 queries)."""

    def at(self, look: int, error: float) -> float:
        """Return the bound at this number of queries, valid at any number."""
        scaled = self.looks[look] / 60.0
        inside = 1.0 + math.sqrt(scaled + 1.0) / (2.0 * error)
        return math.sqrt(2.0 * (scaled + 1.0) / scaled * math.log(inside))


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    goal: str
    candidates: int
    queries: int
    field: str
    shape: str = "plain"
    limit: bool = False
    """Whether the row shows a known limit, and may fail."""

    @property
    def title(self) -> str:
        """The row's title."""
        return f"{self.goal:12} {self.candidates:3} x {self.queries:<5} {self.field:6} {self.shape}"


SHAPES = ("plain", "skewed", "lopsided", "failures", "turns", "missing")


def settings() -> Iterator[Setting]:
    """Yield the rows of the table."""
    for queries in (50, 200, 1000):
        for candidates in (5, 20, 50):
            for field in ("equal", "near", "clear"):
                yield Setting("best", candidates, queries, field)
    for shape in SHAPES[1:]:
        for candidates, queries in ((5, 50), (5, 200), (20, 200), (20, 1000)):
            yield Setting("best", candidates, queries, "near", shape)
    yield Setting("best", 20, 1000, "close")
    for shape in SHAPES:
        for candidates, queries in ((2, 200), (5, 1000)):
            yield Setting("beats:0", candidates, queries, "equal", shape)
    yield Setting("beats:0", 2, 1000, "close")
    yield Setting("beats:0", 20, 1000, "even")
    yield Setting("top:3", 20, 200, "equal")
    for shape in ("plain", "turns"):
        yield Setting("top:3", 20, 1000, "even", shape)
    for shape in ("plain", "lopsided"):
        yield Setting("within:0.3sd", 20, 1000, "even", shape)
    yield Setting("within:0.15", 5, 200, "even", "turns")
    for shape in ("plain", "lopsided", "turns"):
        yield Setting("interval:0.5", 10, 1000, "even", shape)
    yield Setting("beats:0", 2, 200, "equal", "rare failures", limit=True)
    yield Setting("beats:0", 2, 1000, "equal", "rare failures", limit=True)


def effects_of(setting: Setting) -> Floats:
    """Return the candidates' true effects."""
    others = setting.candidates - 1
    if setting.field == "equal":
        return np.zeros(others + 1)
    if setting.field == "clear":
        return np.r_[0.8, np.linspace(0.0, -0.8, others)]
    if setting.field == "near":
        return np.r_[0.0, 0.0, np.linspace(-0.2, -1.0, others - 1)]
    if setting.field == "close":
        return np.r_[0.15, np.linspace(0.0, -1.0, others)]
    return np.linspace(0.5, -0.5, others + 1)


def draw(setting: Setting, rng: np.random.Generator) -> tuple[Floats, RaceOrder]:
    """Draw the scores of one benchmark, in the order they are graded."""
    shape, effects = setting.shape, effects_of(setting)
    size = (setting.queries, setting.candidates)
    noise, second = rng.normal(size=size), np.arange(setting.candidates) % 2 == 1
    clusters = np.arange(setting.queries)
    if shape == "turns":
        clusters = clusters // 2
        shared = rng.normal(size=size)[clusters]
        noise = math.sqrt(0.6) * shared + math.sqrt(0.4) * noise
    if shape == "lopsided":
        noise = np.where(second, 1.0 - rng.exponential(size=size), noise)
    if shape == "failures":
        noise = np.where(second, 0.6 * noise + _failures(rng, size, 0.1, 2.5), noise)
    if shape == "rare failures":
        noise = np.where(second, _failures(rng, size, 0.05, 3.0), 0.3 * noise)
    scores = rng.normal(size=(setting.queries, 1)) + effects + noise
    if shape == "skewed":
        scores = np.clip(np.round(2 * (9 - np.exp(-0.7 * scores))) / 2, 1, 10)
    if shape == "missing":
        scores[rng.random(size) < 0.1] = np.nan
    return scores, RaceOrder(np.arange(setting.queries), clusters)


def _failures(
    rng: np.random.Generator, size: tuple[int, int], chance: float, loss: float
) -> Floats:
    """Return noise with mean 0: a large loss sometimes, a small gain otherwise."""
    return np.where(rng.random(size) < chance, -loss * (1 - chance), loss * chance)


def is_false(race: Race, effects: Floats) -> bool:
    """Return whether a race that ended decided something false."""
    kind = race.goal.kind
    if kind == "beats":
        above, below = race.better[:, 0], race.better[0]
        return bool(
            (above & (effects <= effects[0])).any() or (below & (effects >= effects[0])).any()
        )
    if kind == "interval":
        found = [race.interval(column) for column in range(len(effects))]
        return any(
            not one.low <= true <= one.high for one, true in zip(found, effects, strict=True)
        )
    if race.ending != "decided":
        return False
    if kind == "within":
        margin = race.goal.size * (math.sqrt(2.0) if race.goal.in_sd else 1.0)
        order = effects[race.placed()]
        worst = np.maximum.accumulate(order[::-1])[::-1] - order
        return bool(worst.max() > margin + 1e-9)
    return bool(effects[race.winners].min() <= effects[~race.winners].max())


def repetition(setting: Setting, bounds: Bounds, seed: int) -> tuple[float, float, float, float]:
    """Return whether one race errs, whether it decides, its share of judgments, its queries."""
    rng = np.random.default_rng((zlib.crc32(setting.title.encode()), seed))
    scores, order = draw(setting, rng)
    race = Race(
        parse_goal(setting.goal), list(map(str, range(setting.candidates))), order, bounds=bounds
    )
    while race.ending is None:
        race.advance(scores)
    lengths = race.lengths()
    false, decided = is_false(race, effects_of(setting)), race.ending == "decided"
    return (
        float(false),
        float(decided),
        float(lengths.mean() / setting.queries),
        float(lengths.max()),
    )


def measure(
    setting: Setting, bounds: Bounds, times: int, pool: ProcessPoolExecutor, start: int = 0
) -> Floats:
    """Return the means of the four figures over repetitions, with seeds from `start`."""
    seeds = range(start, start + times)
    done = pool.map(partial(repetition, setting, bounds), seeds, chunksize=max(1, times // 8))
    return np.array(list(done)).mean(axis=0)


def looks_of(setting: Setting) -> tuple[int, ...]:
    """Return the planned looks."""
    return plan_looks(setting.queries // 2 if setting.shape == "turns" else setting.queries)


def simulate(times: int, pool: ProcessPoolExecutor, before: list[str]) -> Iterator[str]:
    """Yield the table of simulations, after the lines of a table that was interrupted."""
    yield f"rocketeval {__version__}; {times:,} repetitions per row; error in percent, nominal 5"
    yield f"{'':52} {'error':>6} {'':5} {'decided':>7} {'share':>6} {'queries':>7} {'peeking':>8}"
    known, worst = {line[:52]: line for line in before if "+-" in line}, 0.0
    for setting in settings():
        row = known.get(f"{setting.title:52}")
        if row is not None:
            worst = max(worst, 0.0 if setting.limit else float(row[52:59]) / 100)
            yield row
            continue
        looks = looks_of(setting)
        error, decided, share, queries = measure(setting, Bounds(looks), times, pool)
        naive = measure(setting, Peeking(looks), times, pool)[0]
        spread = 100 * math.sqrt(error * (1 - error) / times)
        mark = "ok" if error <= 0.05 else "near" if 100 * error - 5 < 2 * spread else "FAIL"
        if setting.limit:
            mark = "known limit"
        else:
            worst = max(worst, error)
        yield (
            f"{setting.title:52} {100 * error:6.1f} +-{spread:3.1f} {100 * decided:6.0f}% "
            f"{share:6.3f} {queries:7.0f} {100 * naive:8.1f}  {mark}"
        )
    yield f"worst error outside known limits: {100 * worst:.1f}%"


def repeat(words: str, times: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Yield the error of the rows whose title has these words, with seeds the table has not."""
    yield f"rocketeval {__version__}; {times:,} new repetitions per row; error %, nominal 5"
    chosen = [each for each in settings() if set(words.split()) <= set(each.title.split())]
    errors = []
    for setting in chosen:
        errors.append(measure(setting, Bounds(looks_of(setting)), times, pool, TIMES)[0])
        yield f"{setting.title:52} {_with_spread(errors[-1], times)}"
    pooled, whole = float(np.mean(errors)), times * len(errors)
    yield f"{f'pooled over {len(errors)} rows':52} {_with_spread(pooled, whole)}"


def _with_spread(error: float, times: int) -> str:
    return f"{100 * error:6.2f} +-{100 * math.sqrt(error * (1 - error) / times):5.2f}"


def choose(times: int, pool: ProcessPoolExecutor) -> Iterator[str]:
    """Yield a comparison of bounds: error in percent / decided in percent / share of judgments."""
    names = ["shape 0", "0.25", "0.4", "0.45", "0.5", "sequence", "peeking"]
    yield f"rocketeval {__version__}; {times:,} repetitions; error % / decided % / share judged"
    yield f"{'':42}" + "".join(f"{name:>16}" for name in names)
    for setting in (
        Setting("best", 20, 1000, "clear"),
        Setting("best", 50, 1000, "clear"),
        Setting("best", 20, 1000, "close"),
        Setting("best", 20, 1000, "near"),
        Setting("beats:0", 2, 200, "equal"),
        Setting("beats:0", 2, 200, "equal", "lopsided"),
        Setting("beats:0", 2, 1000, "close"),
        Setting("within:0.3sd", 20, 1000, "even"),
    ):
        looks = looks_of(setting)
        bounds = [Bounds(looks, shape) for shape in (0.0, 0.25, 0.4, 0.45, 0.5)]
        row = f"{setting.title:42}"
        for each in (*bounds, ConfidenceSequence(looks), Peeking(looks)):
            error, decided, share, _ = measure(setting, each, times, pool)
            row += f" {100 * error:4.1f}/{100 * decided:3.0f}/{share:.3f}"
        yield row


@dataclass(frozen=True)
class Grid:
    """Recorded scores."""

    name: str
    candidates: tuple[str, ...]
    scores: Floats
    clusters: NDArray[np.int64]
    categories: tuple[str, ...]


def read_grids(folder: Path) -> Iterator[Grid]:
    """Yield the recorded grids that the folder has."""
    path = folder / "alpacaeval" / "gpt4turbo_weighted_preferences_60models.jsonl.gz"
    if path.exists():
        rows = _lines(path)
        values = np.array([row["p_win_vs_gpt4_1106_preview"] for row in rows], dtype=float).T
        yield _grid("AlpacaEval", [row["model"] for row in rows], values)
    path = folder / "wildbench" / "scores.jsonl.gz"
    if path.exists():
        rows = [row for row in _lines(path) if "turbo" in row["judge"]]
        yield _table("WildBench", [(row["session_id"], row["model"], row["score"]) for row in rows])
    path = folder / "arena_bench_v1" / "gpt4_scores.jsonl.gz"
    if path.exists():
        rows = _lines(path)
        yield _table(
            "arena-bench", [(row["question_id"], row["model"], row["score"]) for row in rows]
        )
    path = folder / "mt_bench" / "gpt4_single_scores.jsonl.gz"
    if path.exists():
        rows = [row for row in _lines(path) if row["score"] is not None and row["score"] >= 0]
        cells = [((row["question_id"], row["turn"]), row["model"], row["score"]) for row in rows]
        yield _table("MT-Bench", cells, turns=True)
    answers = read_stored(OWN)
    scores = MeanScorer().predict(answers)
    yield _table(
        "1.5B judge", list(zip(answers.query_ids, answers.candidates, scores, strict=True))
    )


def _lines(path: Path) -> list[dict]:
    with gzip.open(path) as file:
        return [orjson.loads(line) for line in file]


def _table(name: str, cells: list[tuple], *, turns: bool = False) -> Grid:
    queries = {query: row for row, query in enumerate(sorted({cell[0] for cell in cells}))}
    models = {model: column for column, model in enumerate(sorted({cell[1] for cell in cells}))}
    scores = np.full((len(queries), len(models)), np.nan)
    for query, model, score in cells:
        scores[queries[query], models[model]] = math.nan if score is None else float(score)
    groups = [query[0] if turns else query for query in queries]
    return _grid(name, list(models), scores, groups)


def _grid(name: str, models: list[str], scores: Floats, groups: list | None = None) -> Grid:
    kept = np.isfinite(scores).mean(axis=1) > 0.9
    few = np.isfinite(scores[kept]).mean(axis=0) > 0.95
    numbers = (
        np.arange(len(scores)) if groups is None else np.unique(groups, return_inverse=True)[1]
    )
    clusters = np.unique(numbers[kept], return_inverse=True)[1]
    names = tuple(model for model, own in zip(models, few, strict=True) if own)
    return Grid(name, names, scores[np.ix_(kept, few)], clusters, ("",) * int(kept.sum()))


def replay(grid: Grid) -> Iterator[str]:
    """Yield a row per goal: share of judgments, and agreement with the full grid."""
    means = np.nanmean(grid.scores, axis=0)
    order = np.argsort(-means)
    spread = math.sqrt(float(np.nanvar(grid.scores, axis=0).mean()))
    middle = grid.candidates[order[len(order) // 2]]
    places = {len(order) // 2 - 1: None, max(0, len(order) // 2 - 4): None, 0: None}
    rivals = order[list(places)]
    goals = [("best", None), ("top:3", None), ("within:0.3sd", None)]
    goals += [
        (f"beats:{middle}", [rival, order[len(order) // 2]]) for rival in dict.fromkeys(rivals)
    ]
    for goal, columns in goals:
        chosen = np.arange(len(means)) if columns is None else np.array(columns)
        names = [grid.candidates[column] for column in chosen]
        shares, queries, decided, same = [], [], 0, 0
        for seed in range(ORDERS):
            drawn = draw_order(grid.clusters, grid.categories, seed)
            race = Race(parse_goal(goal), names, drawn)
            scores = grid.scores[np.ix_(drawn.rows, chosen)]
            while race.ending is None:
                race.advance(scores)
            lengths = race.lengths()
            shares.append(lengths.mean() / len(scores))
            queries.append(lengths.max())
            decided += race.ending == "decided"
            same += race.ending == "decided" and _agrees(race, means[chosen], spread)
        label = goal if columns is None else f"{names[0]} beats {middle}"
        yield (
            f"{grid.name:12} {len(names):3} x {len(grid.scores):<5} {label[:44]:44} "
            f"{np.mean(shares):6.3f} {np.mean(queries):7.0f} "
            f"{decided:4}/{ORDERS} {same:4}/{decided}"
        )


def _agrees(race: Race, means: Floats, spread: float) -> bool:
    """Return whether a decision is what the means of the full grid say."""
    if race.goal.kind == "beats":
        return bool(race.better[0, 1] == (means[0] > means[1]))
    if race.goal.kind == "within":
        order = means[race.placed()]
        return bool(
            (np.maximum.accumulate(order[::-1])[::-1] - order).max() <= race.goal.size * spread
        )
    return bool(means[race.winners].min() >= means[~race.winners].max())


def grids(folder: Path) -> Iterator[str]:
    """Yield the table of recorded grids."""
    yield f"rocketeval {__version__}; {ORDERS} orders each; `same`: the full grid's means agree"
    yield f"{'':70} {'share':>6} {'queries':>7} {'decided':>7} {'same':>7}"
    for grid in read_grids(folder):
        yield from replay(grid)


def main() -> None:
    """Print a table, and keep it with `--record`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a twentieth of the repetitions")
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--grids", type=Path)
    parser.add_argument("--row", help="repeat the rows whose title has these words")
    parser.add_argument("--times", type=int, help="repetitions per row")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--go-on", type=Path, help="a table that was interrupted")
    parser.add_argument("--record", action="store_true")
    args = parser.parse_args()
    before = args.go_on.read_text("utf-8").splitlines() if args.go_on else []
    times = args.times or (TIMES // 20 if args.quick else TIMES)
    lines = []
    with ProcessPoolExecutor(args.workers) as pool:
        name, rows = "stopping", simulate(times, pool, before)
        if args.grids:
            name, rows = "stopping_grids", grids(args.grids)
        elif args.choose:
            name, rows = "stopping_choice", choose(times, pool)
        elif args.row:
            name, rows = "stopping_row", repeat(args.row, times, pool)
        for line in rows:
            print(line, flush=True)
            lines.append(line)
    if args.record:
        (RECORDED / f"{name}.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    sys.exit(any(line.endswith("FAIL") for line in lines))


if __name__ == "__main__":
    main()

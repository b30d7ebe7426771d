"""The draw of a cascade: which responses a strong judge grades after a cheap one graded all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from rocketeval.arrays import Bools, Floats
from rocketeval.config import RunConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grading.work import foresee_checklists
from rocketeval.grid import GridBuilder, ScoreGrid
from rocketeval.judges.runs import (
    JudgedRun,
    common_grids,
    refuse_other_responses,
    refuse_other_scales,
)
from rocketeval.prices import WITHOUT_LLM
from rocketeval.ranking.summary import table_of_rows
from rocketeval.scoring.answers import AnswerTable, sum_rows
from rocketeval.scoring.base import learns_from_run
from rocketeval.scoring.read_answers import AnswerReader
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.bootstrap import least_queries
from rocketeval.stats.two_phase import TwoPhaseSample, inclusion_probabilities, query_numbers
from rocketeval.stopping.race import RaceResult
from rocketeval.store.files import read_json, refuse_inside_run, write_bytes, write_json
from rocketeval.store.schema import table_schema
from rocketeval.text import csv_text

Cell = tuple[str, str]
LEVEL = 0.95


@dataclass(frozen=True, slots=True, eq=False)
class Draw:
    """The responses that the strong judge grades, drawn before it is asked."""

    cheap: ScoreGrid
    """Complete for all responses; NaN where there is none."""
    given: ScoreGrid
    """The cheap judge's scores without filled gaps."""
    probabilities: Floats
    numbers: Floats
    share: float
    seed: int

    @property
    def drawn(self) -> Bools:
        """Return which responses are drawn."""
        return self._sample(self.cheap.scores).drawn

    def cells(self) -> set[Cell]:
        """Return query and candidate of every drawn response."""
        queries, names = self.cheap.query_ids, self.cheap.candidates
        return {(queries[row], names[column]) for row, column in np.argwhere(self.drawn).tolist()}

    def sample(self, strong: ScoreGrid) -> TwoPhaseSample:
        """Return the sample with the strong judge's scores of drawn responses."""
        scores = np.full(self.cheap.scores.shape, np.nan)
        rows = {name: row for row, name in enumerate(self.cheap.query_ids)}
        columns = [self.cheap.candidates.index(name) for name in strong.candidates]
        scores[np.ix_([rows[name] for name in strong.query_ids], columns)] = strong.scores
        return self._sample(scores)

    def _sample(self, scores: Floats) -> TwoPhaseSample:
        return TwoPhaseSample(
            cheap=self.cheap.scores,
            better=scores,
            probabilities=self.probabilities,
            numbers=self.numbers,
            clusters=self.cheap.places(),
        )


def check_cascade(cheap: JudgedRun, strong: RunConfig, share: float) -> None:
    """Raise ConfigError, before anything is spent, if two runs cannot be a cascade."""
    if not 0.0 < share <= 1.0:
        raise ConfigError(f"Invalid share: {share:g}.", hint="Use one such as 0.3.")
    if cheap.store.path.resolve() == strong.run_path.resolve():
        raise ConfigError(
            f"{cheap.store.path} is given as both judges' run.",
            hint="Give the strong judge a config with another `name` and `judge`.",
        )
    if cheap.config.evaluator is not None or strong.evaluator is not None:
        raise ConfigError("A cascade needs judges that answer checklists, not an evaluator.")
    race = cheap.store.read_if_made(RaceResult)
    if (race is not None and race.stopped_early) or strong.until is not None:
        raise ConfigError(
            "A run that stops early has no score of every response.",
            hint="Grade the cheap run with --until all, and drop `until` from the strong one.",
        )
    if strong.distributed.cluster is not None:
        raise ConfigError(
            "The strong judge of a cascade grades on one machine, but its config names a cluster.",
            hint="Drop `distributed` from its config.",
        )
    if learns_from_run(strong.scorer):
        raise ConfigError(
            f"The strong judge's scorer {strong.scorer.kind!r} learns from a whole run, and a "
            "cascade grades a part.",
            hint="Use `scorer.kind: mean`, or a saved scorer in `scorer.fitted`.",
        )


async def check_checklists(cheap: JudgedRun, strong: JudgedRun) -> None:
    """Raise ConfigError if an author would have to write checklists for the strong judge."""
    if strong.config.author.kind in WITHOUT_LLM:
        return
    queries = strong.store.inputs.queries.values()
    unwritten = (await foresee_checklists(strong.store, strong.config, queries)).unwritten
    if unwritten:
        raise ConfigError(
            f"The strong judge has no checklists for {len(unwritten)} queries, and new ones would "
            "differ from the cheap judge's.",
            hint="Use the same author and the same `cache` in both configs, or write the cheap "
            "run's checklists to a file (`rocketeval checklist`) and read it with "
            f"`author.kind: file`. The cheap run is {cheap.store.path}.",
        )


def draw_responses(cheap: JudgedRun, strong: JudgedRun, share: float, seed: int) -> Draw:
    """Draw the responses for the strong judge, whose run is loaded and has its checklists."""
    refuse_other_scales([cheap, strong])
    own = read_grid(cheap.store)
    common = common_grids([own, _empty_grid(strong)])
    if common.queries_left_out or common.candidates_left_out:
        raise BenchmarkError(
            f"{cheap.store.path} and {strong.store.path} have different benchmarks: "
            f"{common.queries_left_out} queries and {len(common.candidates_left_out)} candidates "
            "are in only one of them.",
            hint="Use the same `benchmark` section in both configs.",
        )
    refuse_other_responses([cheap, strong], common)
    _refuse_other_checklists(cheap, strong)
    given, responses = common.grids
    there = ~np.isnan(responses.scores)
    uncertainty = _uncertainty(cheap, given)
    filled = _filled(given, there)
    if np.isnan(filled).all():
        raise BenchmarkError(
            f"{cheap.store.path} has no scores.", hint="Grade it first: `rocketeval run`."
        )
    unknown = there & np.isnan(uncertainty)
    uncertainty[unknown] = np.nanmax(uncertainty, initial=0.0)
    uncertainty[~there] = np.nan
    probabilities = inclusion_probabilities(uncertainty, share)
    _refuse_few(probabilities, given.candidates, share)
    return Draw(
        cheap=given.with_scores(filled),
        given=given,
        probabilities=probabilities,
        numbers=query_numbers(given.query_ids, seed),
        share=share,
        seed=seed,
    )


def _empty_grid(run: JudgedRun) -> ScoreGrid:
    """Return a grid with 0 for each response that can be judged."""
    judged = run.store.inputs.checklists()
    heads = [head for head in run.store.inputs.heads() if head.query_id in judged]
    return ScoreGrid.from_columns(
        [head.query_id for head in heads], [head.candidate for head in heads], [0.0] * len(heads)
    )


def _refuse_other_checklists(cheap: JudgedRun, strong: JudgedRun) -> None:
    theirs, ours = cheap.store.inputs.checklists(), strong.store.inputs.checklists()
    for query_id, made in ours.items():
        if query_id not in theirs or theirs[query_id].content_hash != made.content_hash:
            raise BenchmarkError(
                f"Query {query_id!r} has another checklist in {strong.store.path} than in "
                f"{cheap.store.path}.",
                hint="A cascade needs the same checklists: use the same `author` and `method`.",
            )


_ROUNDING = 1e-9


def _refuse_few(probabilities: Floats, candidates: Sequence[str], share: float) -> None:
    """Raise ConfigError if too few responses of a candidate would be drawn for an interval."""
    expected, least = np.nansum(probabilities, axis=0), least_queries(LEVEL)
    place = int(expected.argmin())
    if expected[place] < least - _ROUNDING:
        raise ConfigError(
            f"A share of {share:g} draws about {_below(expected[place], least)} responses of "
            f"{candidates[place]!r}, and an interval needs {least}.",
            hint=f"Use --share {min(1.0, share * least / expected[place]) + 0.005:.2f} or more."
            if share < 1.0
            else "Add queries.",
        )


def _below(number: float, limit: int) -> str:
    """Format a number below a limit, with as many digits as show that it is below.

    >>> _below(4.26, 6), _below(5.98, 6), _below(5.99999, 6)
    ('4.3', '5.98', '5.999')
    """
    digits = next((each for each in (1, 2, 3) if float(f"{number:.{each}f}") < limit), None)
    return f"{number:.{digits}f}" if digits else f"{limit - 0.001:.3f}"


def _uncertainty(run: JudgedRun, grid: ScoreGrid) -> Floats:
    """Return the standard deviation of each score if its items were independent yes/no draws."""
    builder = GridBuilder()
    low, high = run.config.scorer.scale
    for part in AnswerReader(run.store).parts():
        table = part.answers
        spread = (high - low) * mean_spread(table)
        queries, names = table.query_ids, table.candidates
        builder.add(pa.array(queries, pa.string()), pa.array(names, pa.string()), spread)
    found = builder.grid()
    rows = {name: row for row, name in enumerate(found.query_ids)}
    columns = [found.candidates.index(name) for name in grid.candidates]
    return np.array(found.scores[np.ix_([rows[name] for name in grid.query_ids], columns)])


def mean_spread(table: AnswerTable) -> Floats:
    """Return the standard deviation of each response's mean answer, items drawn independently."""
    answered = ~np.isnan(table.p_yes)
    weights = np.where(answered, table.item_weights, 0.0)
    p_yes = np.clip(np.where(answered, table.p_yes, 0.0), 0.0, 1.0)
    total = sum_rows(weights, table.offsets)
    squares = sum_rows(weights**2 * p_yes * (1.0 - p_yes), table.offsets)
    spread = np.full(len(total), np.nan)
    np.divide(np.sqrt(squares), total, out=spread, where=total > 0.0)
    return spread


def _filled(grid: ScoreGrid, there: Bools) -> Floats:
    """Return the scores with the candidate's mean where one is missing; NaN without a response."""
    scores = grid.scores
    overall = float(np.nanmean(scores)) if (~np.isnan(scores)).any() else math.nan
    means = np.array(list(grid.mean_by_candidate().values()))
    gaps = np.where(np.isnan(means), overall, means)
    return np.where(there, np.where(np.isnan(scores), gaps, scores), np.nan)


_DRAW = table_schema(
    ("query_id candidate", pa.string()), ("probability", pa.float64()), ("drawn", pa.bool_())
)


def save_draw(draw: Draw, folder: Path) -> None:
    """Write draw.csv and draw.json; raise ConfigError if the folder has a draw of another seed.

    They are written before the strong judge is asked.
    """
    refuse_inside_run(folder)
    facts = folder / "draw.json"
    if facts.exists() and read_json(facts).get("seed") != draw.seed:
        raise ConfigError(
            f"{folder} has a draw with seed {read_json(facts).get('seed')}, not {draw.seed}.",
            hint="Choosing among several draws makes intervals invalid. Keep the seed, or use "
            "another folder for another cascade.",
        )
    queries, names, drawn = draw.cheap.query_ids, draw.cheap.candidates, draw.drawn
    there = np.argwhere(~np.isnan(draw.cheap.scores)).tolist()
    rows = [
        (queries[row], names[column], round(float(draw.probabilities[row, column]), 6), yes)
        for row, column in there
        for yes in [bool(drawn[row, column])]
    ]
    table = table_of_rows(rows, _DRAW)
    write_bytes(folder / "draw.csv", "".join(csv_text(_DRAW.names, [table])).encode())
    write_json(facts, {"seed": draw.seed, "share": draw.share, "drawn": int(drawn.sum())})

"""The head of a report: all data of its first screen.

Leaderboard, costs, notes, means by item group, missing data, and the evaluator that judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from pathlib import Path

from rocketeval._version import __version__
from rocketeval.arrays import Ints
from rocketeval.audit.conclusion import doubt
from rocketeval.config import RunConfig
from rocketeval.evolve.result import EvaluatorInRun
from rocketeval.explain.groups import GroupScore, groups_are
from rocketeval.explain.stage import Explanation
from rocketeval.grid import ScoreGrid
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.stage import clipping_scale
from rocketeval.ranking.summary import (
    RANK_INTERVALS,
    conclusion_in_words,
    separation_in_words,
)
from rocketeval.records import Checklist, Interval, model_name
from rocketeval.report.blocks import json_bytes, packed, plain
from rocketeval.report.cells import ResponseGrid, quantiles, weighing
from rocketeval.report.content import label_grid
from rocketeval.report.figures import curves, figures, tables
from rocketeval.report.findings import Findings, losses, sizes
from rocketeval.report.method_notes import answer_kinds, notes, score_is
from rocketeval.report.model import (
    Candidate,
    Explained,
    GroupMeans,
    LostItem,
    ReportHead,
    RunFile,
    StageCost,
)
from rocketeval.report.slices import SliceMeans, slice_fields, slice_means, slices_in_words
from rocketeval.report.trust import number, share, trust
from rocketeval.scoring.learning import mean_by_candidate
from rocketeval.scoring.read_answers import answers_yes_or_no, rubric_of
from rocketeval.scoring.rubric import Rubric, answers_are
from rocketeval.store.manifest import StageFacts, Stages
from rocketeval.store.run import RunStore
from rocketeval.text import LABELS_NEXT, count_of


def candidates(
    ranking: Ranking, store: RunStore, labels: Mapping[str, float], cells: ResponseGrid
) -> Iterator[Candidate]:
    """Yield the leaderboard rows: ranked candidates first, best first."""
    ratings = {rating.candidate: rating.value for rating in store.inputs.ratings()}
    spreads = dict(zip(cells.candidates, quantiles(cells.scores), strict=True))
    for row in ranking.rows:
        yield Candidate(
            name=row.candidate,
            rank=row.rank,
            rank_low=row.rank_low,
            rank_high=row.rank_high,
            group=row.group,
            beats_next=row.beats_next,
            rating=row.rating,
            score=row.mean_score,
            queries=row.queries,
            missing=row.missing,
            label=labels.get(row.candidate),
            reference=ratings.get(row.candidate),
            quantiles=spreads.get(row.candidate),
        )
    queries = len(cells.query_ids)
    for name in ranking.unranked:
        label, reference = labels.get(name), ratings.get(name)
        yield Candidate(name, missing=queries, label=label, reference=reference)


STAGES = ("load", "checklist", "grade", "score", "rank", "audit", "explain")
"""Stages that finish before the report is written."""


def costs(stages: Stages) -> tuple[StageCost, ...]:
    """Return time, requests, tokens and cost of every stage."""
    made = stages.made()
    return tuple(_cost(stage, made[stage]) for stage in STAGES if stage in made)


def cost_notes(stages: Stages) -> tuple[tuple[str, str], ...]:
    """Return notes on the cost figures, and whether the judge stayed the same."""
    earlier = stages.grade.finished_earlier + stages.grade.from_cache
    found = (
        ("reused judgments", earlier),
        ("reused checklists", stages.checklist.reused),
        ("prompt tokens cached by the server", stages.grade.paid.cached_tokens),
        ("requests that checked the judge", stages.grade.overhead_of_run.requests),
    )
    notes = [(name, f"{count:,}") for name, count in found if count]
    if earlier:
        notes.append(("time counts", "the last call of each stage, without reused judgments"))
    if stages.grade.ray is not None:
        notes.append(("not counted", "requests with which each Ray worker checks its judge"))
    if stages.grade.continuity is not None:
        notes.append(("judge", stages.grade.continuity.in_words))
    return tuple(notes)


def _cost(stage: str, facts: StageFacts) -> StageCost:
    usage = facts.paid
    return StageCost(
        stage=stage,
        seconds=facts.seconds,
        requests=usage.requests,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        cost=usage.cost,
        currency=usage.currency,
    )


MOST_CANDIDATES = 200
"""Number of candidates with group means on the page, best first."""
_DIGITS = 4


def group_means(explain: Explanation | None, ranked: Sequence[str]) -> tuple[GroupMeans, ...]:
    """Return the group means of the top candidates; empty without groups or an explanation.

    Candidates without a rank are left out, because their gaps would look like measurements.
    """
    shown = ranked[:MOST_CANDIDATES]
    if not shown or explain is None:
        return ()
    return tuple(_means(found, shown) for found in explain.groups)


def _means(found: GroupScore, shown: Sequence[str]) -> GroupMeans:
    own = {row.candidate: row for row in found.candidates}
    rows = [own.get(name) for name in shown]
    return GroupMeans(
        name=found.group,
        dimension=found.dimension,
        whole=found.whole,
        queries=found.queries,
        means=tuple(None if row is None else _short(row.mean) for row in rows),
        missing=tuple(0 if row is None else row.missing for row in rows),
    )


def _short(known: Interval | None) -> Interval | None:
    if known is None:
        return None
    return Interval(*(round(end, _DIGITS) for end in (known.value, known.low, known.high)))


_UNITS = {"pairs": ("pair", "pairs"), "responses": ("response", "responses")}


def evaluator_in_words(found: EvaluatorInRun | None) -> str:
    """Describe the evaluator, its training data and its accuracy; empty without an evaluator."""
    if found is None:
        return ""
    kinds = [each.kind for each in found.perspectives]
    return (
        "An evolved evaluator judged this run: "
        f"{count_of(kinds.count('response'), 'perspective', 'perspectives')} on the response, "
        f"{kinds.count('query'):,} on the query, "
        f"{count_of(len(found.experts), 'expert', 'experts')}{_evaluator_learned(found)}."
        f"{_how_right(found)}"
    )


def evaluator_blocks(found: EvaluatorInRun | None) -> dict[str, bytes]:
    """Return the evaluator block by its name; empty without an evaluator."""
    if found is None:
        return {}
    names = sorted(field.name for field in fields(found))
    block = {name: _plain(getattr(found, name), f"the evaluator's {name}") for name in names}
    return {"evaluator": packed(json_bytes(block))}


def _plain(value: object, owner: str) -> object:
    """Return JSON-ready data; raise an error that names the owner of a non-finite number."""
    if isinstance(value, tuple):
        return [_plain(each, owner) for each in value]
    if is_dataclass(value) and not isinstance(value, Interval):
        names = [field.name for field in fields(value)]
        return {name: _plain(getattr(value, name), f"{owner}, {name}") for name in names}
    return plain(value, owner)


def _evaluator_learned(found: EvaluatorInRun) -> str:
    origin = found.provenance
    if origin.cases is None:
        return ""
    source = f" from {origin.benchmark}" if origin.benchmark else ""
    return f", trained on {count_of(origin.cases, *_UNITS[found.decides])}{source}"


def _how_right(found: EvaluatorInRun) -> str:
    own = next((each.value for each in found.figures if each.own), None)
    if own is None:
        return ""
    shown = share if found.unit == "share" else number
    known = isfinite(own.low) and isfinite(own.high)
    reach = f" ({shown(own.low)} to {shown(own.high)})" if known else ""
    return f" Cross-validated {found.measure}: {shown(own.value)}{reach}."


MOST_WINS = 100
"""Number of candidates in the win table."""
MOST_EXPLAINED = 200
"""Number of candidates with lost items on the page."""
MOST_LOSSES = 5
"""Number of lost items per candidate."""

_JUDGE_LATER = ("judge", "fully identified after its first answer")
_SAYS_LITTLE = frozenset({"benchmark", "data", "dataset"})
_FILES = {
    "scores.parquet": "one row per response: its score and an ID that links to the judge's answers",
    "scores.jsonl": "the same as JSON lines",
    "ranking.csv": "the leaderboard, for spreadsheets",
    "ranking.json": "the leaderboard and the win rates of all pairs",
    "audit.json": "all audit figures",
    "explain.json": "the items on which each candidate loses or gains",
    "item_weights.json": "the learned weight of each item",
    "item_gold.json": "answers compared with reference answers",
    "reliability.json": "agreement with other judges",
    "methods.json": "grading methods compared",
    "evaluator.json": "the evolved evaluator and its confidence in this run",
    "preferences.jsonl": "the evaluator's preference and confidence for each pair",
    "evaluated.jsonl": "the evaluator's label and confidence for each response",
    "failures.jsonl": "failed judgments and their reasons",
    "inputs/queries.jsonl": "the queries",
    "inputs/checklists.jsonl": "the checklists",
    "inputs/labels.jsonl": "the labels",
    "inputs/votes.jsonl": "the votes",
    "inputs/ratings.jsonl": "reference ratings of candidates, such as an arena's Elo",
    "manifest.json": "provenance: hashes, versions, timings",
    "run.yaml": "the config",
}


def bare_head(
    config: RunConfig, findings: Findings, checklists: Mapping[str, Checklist], rubric: Rubric
) -> ReportHead:
    """Return the head of a run before its first judgment, without figures."""
    ranking = findings.ranking
    yes_no = answers_yes_or_no(config)
    scorer = findings.stages.score.scorer or config.scorer.kind
    lost, nothing_lost = losses(findings, yes_no=yes_no)
    weighed = weighing(findings, config)
    return ReportHead(
        run=config.name,
        benchmark=name_of_benchmark(config.benchmark.path, config.benchmark.kind),
        created=findings.manifest.created,
        finished="",
        made_with=f"RocketEval {__version__}",
        provisional="",
        conclusion="",
        islands=ranking.islands,
        weights=weighed.weights,
        learned_from=weighed.learned_from,
        judge=model_name(config.judge.engine, config.judge.model),
        judge_details=(_JUDGE_LATER,),
        author=_author_names(checklists),
        method=config.method.kind,
        scorer=scorer,
        score_is=score_is(scorer, rubric),
        scale=config.scorer.scale,
        answers_are=answers_are(rubric),
        yes_no=yes_no,
        level=ranking.level,
        rank_intervals=RANK_INTERVALS[ranking.rank_intervals],
        tie_margin=ranking.tie_margin,
        sizes=sizes(findings),
        losses=lost,
        nothing_lost=nothing_lost,
        candidates=tuple(Candidate(name, missing=ranking.queries) for name in ranking.unranked),
        groups_are=groups_are(config.scorer.kind, rubric),
    )


def make_head(
    store: RunStore, config: RunConfig, findings: Findings, cells: ResponseGrid, provisional: str
) -> ReportHead:
    """Return the head of a judged run's report."""
    audit, ranking, stages = findings.audit, findings.ranking, findings.stages
    made = stages.made()
    explain, judge = findings.explain, store.judge()
    given = store.inputs.labels()
    label_means = label_grid(cells, given)
    details = judge.parts
    places = _places(store, cells)
    checklists = store.inputs.checklists()
    rubric = rubric_of(config, checklists)
    slices = _slices(store, cells, ranking, places, clipping_scale(store, config))
    return replace(
        bare_head(config, findings, checklists, rubric),
        finished=max((made[name].finished for name in STAGES if name in made), default=""),
        provisional=provisional,
        conclusion="" if provisional else conclusion_in_words(ranking, doubt(audit)),
        judge=judge.name,
        judge_details=tuple({**details, "model": judge.name}.items()),
        candidates=tuple(candidates(ranking, store, mean_by_candidate(given), cells)),
        answer_kinds=answer_kinds(findings.scores, checklists) if rubric.mixed else (),
        separation=tuple(separation_in_words(ranking.rows, doubt(audit))),
        trust=trust(findings),
        advice=() if audit is None else tuple(map(_whole_command, audit.advice)),
        figures=() if audit is None else figures(audit),
        tables=() if audit is None else tables(audit),
        calibration=curves(
            cells, config, label_means, store.inputs.votes(), findings.item_gold, places=places
        ),
        costs=costs(stages),
        cost_notes=cost_notes(stages),
        wins=_wins(ranking),
        explained=() if explain is None else tuple(_explained(explain, cells)),
        notes=notes(ranking, stages.score, config, rubric),
        files=tuple(RunFile(*file) for file in _FILES.items() if (store.path / file[0]).is_file()),
        slices=slices,
        slice_notes=tuple(slices_in_words(slices, ranking.level)),
        groups=group_means(explain, [row.candidate for row in ranking.rows]),
        groups_left_out=0 if explain is None else explain.groups_left_out,
        evaluator=evaluator_in_words(findings.evaluator),
    )


def name_of_benchmark(path: Path, kind: str) -> str:
    """Return a benchmark's display name: its folder, with the parent if the folder is generic.

    >>> name_of_benchmark(Path("mt-bench/data"), "jsonl"), name_of_benchmark(Path("x"), "jsonl")
    ('mt-bench/data', 'x')
    """
    if path.name in _SAYS_LITTLE and path.parent.name:
        return f"{path.parent.name}/{path.name}"
    return path.name or kind


def _places(store: RunStore, cells: ResponseGrid) -> Ints:
    """Return the number of each query's cluster."""
    grid = ScoreGrid(cells.query_ids, cells.candidates, cells.scores)
    return grid.clustered(store.inputs.clusters()).places()


def _slices(
    store: RunStore,
    cells: ResponseGrid,
    ranking: Ranking,
    places: Ints,
    scale: tuple[float, float] | None,
) -> tuple[SliceMeans, ...]:
    queries = store.inputs.queries
    return slice_means(
        cells.scores,
        slice_fields([queries[name] for name in cells.query_ids]),
        places=places,
        times=ranking.bootstrap,
        seed=ranking.seed,
        level=ranking.level,
        scale=scale,
    )


def _author_names(checklists: Mapping[str, Checklist]) -> str:
    """Return the authors of the checklists as display names."""
    names = {made.author for made in checklists.values()}
    return ", ".join(sorted("the benchmark" if name == "imported" else name for name in names))


def _wins(ranking: Ranking) -> tuple[tuple[float | None, ...], ...]:
    if ranking.wins is None:
        return ()
    shares = ranking.wins.shares[:MOST_WINS]
    return tuple(
        tuple(None if share is None else round(share, 4) for share in row[:MOST_WINS])
        for row in shares
    )


def _whole_command(advice: str) -> str:
    """Return a sentence of the audit with the run in its command; a report has no terminal."""
    whole = "`rocketeval labels next --top 2 RUN`, with the directory of this run,"
    return advice.replace(LABELS_NEXT, whole)


def _explained(found: Explanation, cells: ResponseGrid) -> Iterator[Explained]:
    candidates = {name: place for place, name in enumerate(cells.candidates)}
    queries = {query: place for place, query in enumerate(cells.query_ids)}
    for one in found.candidates[:MOST_EXPLAINED]:
        if one.candidate not in candidates:
            continue
        yield Explained(
            candidate=candidates[one.candidate],
            points=None if one.overall is None else one.overall.points,
            losses=tuple(
                LostItem(
                    query=queries[loss.query_id],
                    item=loss.item,
                    text=loss.text,
                    p_yes=loss.p_yes,
                    neighbours_p_yes=loss.neighbours_p_yes,
                    points=loss.points,
                )
                for loss in one.losses[:MOST_LOSSES]
                if loss.query_id in queries
            ),
        )

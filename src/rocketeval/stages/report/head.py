"""The head of a report: everything its first screen shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rocketeval._version import __version__
from rocketeval.config import RunConfig
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.words import conclusion_in_words, separation_in_words
from rocketeval.records import Checklist
from rocketeval.report.data import (
    GRADE,
    PROBABILITY,
    CategoryMeans,
    Explained,
    LostItem,
    ReportHead,
    RunFile,
)
from rocketeval.scoring.labelled import mean_by_candidate
from rocketeval.stages.report.calibration import curves
from rocketeval.stages.report.candidates import candidates
from rocketeval.stages.report.cells import Cells
from rocketeval.stages.report.cost import STAGES, cost_notes, costs
from rocketeval.stages.report.evaluator import evaluator_in_words
from rocketeval.stages.report.figures import figures, read_interval, tables
from rocketeval.stages.report.findings import Findings
from rocketeval.stages.report.groups import group_means
from rocketeval.stages.report.labels import label_grid
from rocketeval.stages.report.losses import losses, sizes
from rocketeval.stages.report.notes import notes
from rocketeval.stages.report.spread import category_means
from rocketeval.stages.report.trust import trust
from rocketeval.stages.report.weights import weighing
from rocketeval.stages.yes_no import answers_yes_or_no
from rocketeval.store.run import RunStore

MOST_WINS = 100
"""Candidates in the table of wins."""
MOST_EXPLAINED = 200
"""Candidates whose losses are on the page."""
MOST_LOSSES = 5
"""Of each of them."""

_SAYS_LITTLE = frozenset({"benchmark", "data", "dataset"})
_FILES = {
    "scores.parquet": "one row a response: its score and the key of its judgment",
    "scores.jsonl": "the same as JSON lines",
    "ranking.csv": "the leaderboard for spreadsheets",
    "ranking.json": "the leaderboard, and who wins against whom",
    "audit.json": "every figure about trust",
    "explain.json": "where each candidate loses and gains",
    "item_weights.json": "what a scorer learned about each item",
    "item_gold.json": "answers held against gold answers",
    "reliability.json": "other judges beside this one",
    "methods.json": "ways to ask the judge, side by side",
    "evaluator.json": "the evolved evaluator that judged, and how sure it was here",
    "preferences.jsonl": "which of two responses the evaluator prefers, and how surely",
    "evaluated.jsonl": "the label that the evaluator gives each response, and how surely",
    "failures.jsonl": "what could not be judged, and why",
    "inputs/queries.jsonl": "the queries",
    "inputs/checklists.jsonl": "the checklists",
    "inputs/labels.jsonl": "the labels",
    "inputs/votes.jsonl": "the votes",
    "inputs/ratings.jsonl": "the reference ratings",
    "manifest.json": "who made what from what: hashes, versions, timings",
    "run.yaml": "the config",
}


def make_head(
    store: RunStore, config: RunConfig, findings: Findings, cells: Cells, provisional: str
) -> ReportHead:
    """Return the head of a run's report."""
    audit, ranking, stages = findings.audit, findings.ranking, findings.stages
    yes_no = answers_yes_or_no(config)
    lost, nothing_lost = losses(findings, yes_no=yes_no)
    weighed = weighing(findings, config)
    given = store.inputs.labels()
    gold = label_grid(cells, given)
    return ReportHead(
        run=config.name,
        benchmark=benchmark_name(config),
        created=findings.manifest.get("created", ""),
        finished=max((stages[s].get("finished", "") for s in STAGES if s in stages), default=""),
        made_with=f"RocketEval {__version__}",
        provisional=provisional,
        conclusion="" if provisional else conclusion_in_words(ranking),
        islands=ranking.islands,
        weights=weighed.weights,
        learned_from=weighed.learned_from,
        **_judge(store),
        author=author_names(store.inputs.checklists()),
        method=config.method.kind,
        scorer=stages.get("score", {}).get("scorer", config.scorer.kind),
        scale=config.scorer.scale,
        answers_are=PROBABILITY if yes_no else GRADE,
        yes_no=yes_no,
        level=ranking.level,
        tie_margin=ranking.tie_margin,
        sizes=sizes(findings),
        losses=lost,
        nothing_lost=nothing_lost,
        candidates=tuple(candidates(ranking, store, mean_by_candidate(given), cells)),
        separation=tuple(separation_in_words(ranking.rows)),
        trust=trust(findings),
        advice=() if audit is None else tuple(audit.get("advice", ())),
        figures=() if audit is None else figures(audit),
        tables=() if audit is None else tables(audit),
        calibration=curves(cells, config, gold, store.inputs.votes(), findings.item_gold),
        costs=costs(stages),
        cost_notes=cost_notes(stages),
        wins=_wins(ranking),
        explained=tuple(_explained(findings.explain, cells)),
        notes=notes(ranking, stages.get("score", {}), config.method.kind),
        files=tuple(_files(store)),
        categories=_categories(store, cells),
        groups=group_means(findings.explain, [row.candidate for row in ranking.rows]),
        groups_left_out=(findings.explain or {}).get("groups_left_out", 0),
        evaluator=evaluator_in_words(findings.evaluator),
    )


def benchmark_name(config: RunConfig) -> str:
    """Return what a reader would call it: its folder, with the one above where that says little."""
    return name_of_benchmark(config.benchmark.path, config.benchmark.kind)


def name_of_benchmark(path: Path, kind: str) -> str:
    """Return the same from its path and kind.

    >>> name_of_benchmark(Path("mt-bench/data"), "jsonl"), name_of_benchmark(Path("x"), "jsonl")
    ('mt-bench/data', 'x')
    """
    if path.name in _SAYS_LITTLE and path.parent.name:
        return f"{path.parent.name}/{path.name}"
    return path.name or kind


def _categories(store: RunStore, cells: Cells) -> tuple[CategoryMeans, ...]:
    queries = store.inputs.queries
    return category_means(cells.scores, [queries[name].category for name in cells.query_ids])


def _judge(store: RunStore) -> dict[str, Any]:
    judge = store.judge()
    details = {**asdict(judge), "digest": judge.digest.hex()}
    return {"judge": judge.model, "judge_details": tuple(details.items())}


def author_names(checklists: Mapping[str, Checklist]) -> str:
    """Return who wrote the checklists, as a reader would call them."""
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


def _explained(found: Mapping[str, Any] | None, cells: Cells) -> Iterator[Explained]:
    if found is None:
        return
    candidates = {name: place for place, name in enumerate(cells.candidates)}
    queries = {query: place for place, query in enumerate(cells.query_ids)}
    for one in found.get("candidates", ())[:MOST_EXPLAINED]:
        if one["candidate"] not in candidates:
            continue
        yield Explained(
            candidate=candidates[one["candidate"]],
            points=read_interval((one.get("overall") or {}).get("points")),
            losses=tuple(
                LostItem(
                    query=queries[loss["query_id"]],
                    item=loss["item"],
                    text=loss["text"],
                    p_yes=loss["p_yes"],
                    neighbours_p_yes=loss["neighbours_p_yes"],
                    points=loss["points"],
                )
                for loss in one.get("losses", ())[:MOST_LOSSES]
                if loss["query_id"] in queries
            ),
        )


def _files(store: RunStore) -> Iterator[RunFile]:
    for name, what in _FILES.items():
        if (store.path / name).is_file():
            yield RunFile(name, what)

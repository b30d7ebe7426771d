"""The head of a report: everything its first screen shows.

The leaderboard, costs, footnotes, means by group of items, losses, and the evaluator that judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from math import isfinite
from pathlib import Path

from rocketeval._version import __version__
from rocketeval.config import RunConfig
from rocketeval.evolve.result import EvaluatorInRun
from rocketeval.explain.groups import GroupScore
from rocketeval.explain.stage import Explanation
from rocketeval.grading.methods import YES_NO, kind_of
from rocketeval.ranking.rank import Ranking
from rocketeval.ranking.summary import conclusion_in_words, separation_in_words
from rocketeval.records import Checklist, Interval
from rocketeval.report.blocks import json_bytes, packed, plain
from rocketeval.report.cells import ResponseGrid, category_means, quantiles, weighing
from rocketeval.report.content import label_grid
from rocketeval.report.figures import curves, figures, tables
from rocketeval.report.findings import Findings, losses, sizes
from rocketeval.report.model import (
    GRADE,
    PROBABILITY,
    Candidate,
    CategoryMeans,
    Explained,
    GroupMeans,
    LostItem,
    ReportHead,
    RunFile,
    StageCost,
)
from rocketeval.report.trust import number, share, trust
from rocketeval.scoring.learning import mean_by_candidate
from rocketeval.scoring.read_answers import answers_yes_or_no
from rocketeval.store.manifest import LearnedFacts, ScoreFacts, StageFacts, Stages
from rocketeval.store.run import RunStore
from rocketeval.text import count_of


def candidates(
    ranking: Ranking, store: RunStore, labels: Mapping[str, float], cells: ResponseGrid
) -> Iterator[Candidate]:
    """Yield the lines of the leaderboard: ranked ones first, best first."""
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
"""Those that are over when a report is written."""


def costs(stages: Stages) -> tuple[StageCost, ...]:
    """Return seconds of every stage, and requests, tokens and money of those that ask a model."""
    made = stages.made()
    return tuple(_cost(stage, made[stage]) for stage in STAGES if stage in made)


def cost_notes(stages: Stages) -> tuple[tuple[str, str], ...]:
    """Return what the figures of a stage do not say."""
    earlier = stages.grade.finished_earlier + stages.grade.from_cache
    found = (
        ("judgments paid for earlier", earlier),
        ("checklists paid for earlier", stages.checklist.reused),
        ("prompt tokens the judge took from its cache", stages.grade.paid.cached_tokens),
    )
    notes = [(name, f"{count:,}") for name, count in found if count]
    if earlier:
        notes.append(
            ("seconds", "of the last call of each stage: judgments paid for earlier are not in it")
        )
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


_SCORERS = {
    "mean": "A score is the mean of its answers, on the label scale.",
    "hard": "A score is the share of items answered yes, on the label scale.",
    "extra_trees": "A score blends the mean of its answers with the query's own forest of extra "
    "trees, the more so the more evenly the query's labels spread over the scale.",
    "random_forest": "A score blends the mean of its answers with the query's own random forest, "
    "the more so the more evenly the query's labels spread over the scale.",
    "pooled_ridge": "A score is a regression over all queries, bent by each query's own labels.",
    "isotonic": "A score is the mean of its answers, bent onto the level of the labels.",
    "pooled_logistic": "A score follows what voters preferred on other queries.",
    "select": "A score is made by the scorer that did best in cross-validation.",
    "evaluator": "A score is the label that the evaluator predicts; where it decides pairs, the "
    "share of a query's other responses that it expects this one to beat, a tie counting half.",
}
_EVALUATED = (
    "An answer is read from the judge's log-probabilities: p(Yes) / (p(Yes) + p(No)), or the mean "
    "of its grades, from the worst (0) to the best (1). Where the judge sees two responses at "
    "once, it is the mean over the other responses to the query."
)


_YES_NO = "An item's answer is p(Yes) / (p(Yes) + p(No)), from the judge's log-probabilities."
_GRADES = (
    "An answer is the mean of the grades {low} to {high} by the judge's probabilities, as its "
    "place from the worst (0) to the best (1)."
)
_WRITTEN = {
    "cot": "An answer is the score that the judge wrote, as its place from 1 (0) to 10 (1).",
    "multi_item": "An item's answer is what the judge wrote: 1 for yes, 0 for no.",
    "perplexity": "An answer is the geometric mean of the probabilities of the response's tokens.",
}


def notes(ranking: Ranking, score: ScoreFacts, grading: str) -> tuple[str, ...]:
    """Return how the figures were made, in words; `grading` is the grading method's name."""
    scorer = score.scorer or "mean"
    level = f"{ranking.level:.0%}"
    anchor, rating = ranking.anchor, f"{ranking.anchor_rating:g}"
    placed = f"around {rating}" if anchor is None else f"with {anchor} held at {rating}"
    return (
        *(_answers(grading) if scorer != "evaluator" else [_EVALUATED]),
        _SCORERS.get(scorer, f"Scores are made by the scorer {scorer!r}."),
        *_learned(score.learned),
        "Ratings are a Bradley-Terry fit to all pairs of scores on each query, on the Elo scale "
        f"{placed}; scores closer than {ranking.tie_margin:g} are a tie.",
        f"Intervals hold {level} of {ranking.bootstrap} resamples of the queries.",
        "Candidates in one group cannot be told apart from the group's first.",
    )


def _answers(grading: str) -> list[str]:
    """Return what the judge was asked for, where that is not usual, and what an answer is."""
    kind = kind_of(grading)
    asked = [] if grading == "checklist" else [f"The judge was asked for {grading}: {kind.told}."]
    usual = _YES_NO if kind.labels == YES_NO else _GRADES
    return [*asked, _WRITTEN.get(grading, usual).format(low=kind.labels[-1], high=kind.labels[0])]


def _learned(learned: LearnedFacts) -> list[str]:
    """Return what the scorer learned from, and what was kept from it."""
    if learned.fitted is None:
        return []
    gold = f"{learned.labels} labels" if learned.labels else f"{learned.votes or 0} votes"
    held_out = ", ".join(learned.held_out or ())
    said = [
        f"The scorer learned from {gold} on {len(learned.fitted)} candidates; these were scored "
        "by fits that did not see their own gold."
    ]
    if held_out:
        said.append(f"Kept from it, to test it on: {held_out}.")
    if learned.queries_by_mean:
        said.append(f"{learned.queries_by_mean} queries had too little to learn from.")
    return said


MOST_CANDIDATES = 200
"""Candidates whose means by group are on the page: the first in the ranking."""
_DIGITS = 4


def group_means(explain: Explanation | None, ranked: Sequence[str]) -> tuple[GroupMeans, ...]:
    """Return the means of the first candidates; none without any, groups or an explanation.

    Who is not ranked has no means: a gap of theirs would look like one that was measured.
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
    """Return what judged, what it learned from and how right it is; empty without an evaluator."""
    if found is None:
        return ""
    kinds = [each.kind for each in found.perspectives]
    return (
        "An evolved evaluator decided here: "
        f"{count_of(kinds.count('response'), 'perspective', 'perspectives')} about the response, "
        f"{kinds.count('query'):,} about the query, "
        f"{count_of(len(found.experts), 'expert', 'experts')}{_evaluator_learned(found)}."
        f"{_how_right(found)}"
    )


def evaluator_blocks(found: EvaluatorInRun | None) -> dict[str, bytes]:
    """Return the block of the evaluator by its name; nothing without an evaluator."""
    if found is None:
        return {}
    names = sorted(field.name for field in fields(found))
    block = {name: _plain(getattr(found, name), f"the evaluator's {name}") for name in names}
    return {"evaluator": packed(json_bytes(block))}


def _plain(value: object, owner: str) -> object:
    """As the page takes it; what is no number is refused with the name of its owner."""
    if isinstance(value, tuple):
        return [_plain(each, owner) for each in value]
    if is_dataclass(value) and not isinstance(value, Interval):
        names = [field.name for field in fields(value)]
        return {name: _plain(getattr(value, name), f"{owner}, {name}") for name in names}
    return plain(value, owner)


def _evaluator_learned(found: EvaluatorInRun) -> str:
    told = found.provenance
    if told.cases is None:
        return ""
    of = f" of {told.benchmark}" if told.benchmark else ""
    return f", learned from {count_of(told.cases, *_UNITS[found.decides])}{of}"


def _how_right(found: EvaluatorInRun) -> str:
    own = next((each.value for each in found.figures if each.own), None)
    if own is None:
        return ""
    shown = share if found.unit == "share" else number
    known = isfinite(own.low) and isfinite(own.high)
    reach = f" ({shown(own.low)} to {shown(own.high)})" if known else ""
    return f" Cross-validated {found.measure}: {shown(own.value)}{reach}."


MOST_WINS = 100
"""Candidates in the table of wins."""
MOST_EXPLAINED = 200
"""Candidates whose losses are on the page."""
MOST_LOSSES = 5
"""Of each of them."""

_JUDGE_LATER = ("judge", "not known in full before its first answer")
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


def bare_head(
    config: RunConfig, findings: Findings, checklists: Mapping[str, Checklist]
) -> ReportHead:
    """Return the head of a run before its first judgment: what is to be judged, and no figure."""
    ranking = findings.ranking
    yes_no = answers_yes_or_no(config)
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
        judge=config.judge.model,
        judge_details=(_JUDGE_LATER,),
        author=_author_names(checklists),
        method=config.method.kind,
        scorer=findings.stages.score.scorer or config.scorer.kind,
        scale=config.scorer.scale,
        answers_are=PROBABILITY if yes_no else GRADE,
        yes_no=yes_no,
        level=ranking.level,
        tie_margin=ranking.tie_margin,
        sizes=sizes(findings),
        losses=lost,
        nothing_lost=nothing_lost,
        candidates=tuple(Candidate(name, missing=ranking.queries) for name in ranking.unranked),
    )


def make_head(
    store: RunStore, config: RunConfig, findings: Findings, cells: ResponseGrid, provisional: str
) -> ReportHead:
    """Return the head of a judged run's report."""
    audit, ranking, stages = findings.audit, findings.ranking, findings.stages
    made = stages.made()
    explain, judge = findings.explain, store.judge()
    given = store.inputs.labels()
    gold = label_grid(cells, given)
    details = judge.parts
    return replace(
        bare_head(config, findings, store.inputs.checklists()),
        finished=max((made[name].finished for name in STAGES if name in made), default=""),
        provisional=provisional,
        conclusion="" if provisional else conclusion_in_words(ranking),
        judge=judge.model,
        judge_details=tuple(details.items()),
        candidates=tuple(candidates(ranking, store, mean_by_candidate(given), cells)),
        separation=tuple(separation_in_words(ranking.rows)),
        trust=trust(findings),
        advice=() if audit is None else audit.advice,
        figures=() if audit is None else figures(audit),
        tables=() if audit is None else tables(audit),
        calibration=curves(cells, config, gold, store.inputs.votes(), findings.item_gold),
        costs=costs(stages),
        cost_notes=cost_notes(stages),
        wins=_wins(ranking),
        explained=() if explain is None else tuple(_explained(explain, cells)),
        notes=notes(ranking, stages.score, config.method.kind),
        files=tuple(RunFile(*file) for file in _FILES.items() if (store.path / file[0]).is_file()),
        categories=_categories(store, cells),
        groups=group_means(explain, [row.candidate for row in ranking.rows]),
        groups_left_out=0 if explain is None else explain.groups_left_out,
        evaluator=evaluator_in_words(findings.evaluator),
    )


def name_of_benchmark(path: Path, kind: str) -> str:
    """Return what a reader would call it: its folder, with the one above where that says little.

    >>> name_of_benchmark(Path("mt-bench/data"), "jsonl"), name_of_benchmark(Path("x"), "jsonl")
    ('mt-bench/data', 'x')
    """
    if path.name in _SAYS_LITTLE and path.parent.name:
        return f"{path.parent.name}/{path.name}"
    return path.name or kind


def _categories(store: RunStore, cells: ResponseGrid) -> tuple[CategoryMeans, ...]:
    queries = store.inputs.queries
    return category_means(cells.scores, [queries[name].category for name in cells.query_ids])


def _author_names(checklists: Mapping[str, Checklist]) -> str:
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

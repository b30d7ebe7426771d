"""The audit stage, and the comparison of grading methods.

Each method is graded in a run directory inside the audited run.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rocketeval.attack.measure import AttackReport
from rocketeval.audit.advice import advice
from rocketeval.audit.audit import Audit, MarkedAnswers, audit
from rocketeval.audit.bias import guess_family
from rocketeval.audit.methods import ExcludedMethod, MethodComparison, MethodGrades, compare_methods
from rocketeval.benchmarks.collected import CollectedLabels, WrongAnswer
from rocketeval.config import MethodConfig, RunConfig, ScorerConfig
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.grading.methods import YES_NO, kind_of
from rocketeval.grid import ScoreGrid
from rocketeval.hashing import content_hash
from rocketeval.ranking.rank import Ranking
from rocketeval.records import Basis, Gold
from rocketeval.scoring.base import Learner, create_scorer
from rocketeval.scoring.crossfit import Scored, score_answers
from rocketeval.scoring.read_answers import AnswerReader, answers_yes_or_no, read_answers
from rocketeval.scoring.split import gold_cells
from rocketeval.scoring.stage import read_grid
from rocketeval.stats.permutation import queries_needed
from rocketeval.store.run import RunStore

MOST_LENGTHS = 20_000
"""Above this many responses, length bias is measured on a sample of the queries."""


def audit_run(store: RunStore, config: RunConfig) -> Audit:
    """Audit the run, save the result and return it; an outdated report is removed."""
    inputs = store.inputs
    gold = Gold(inputs.labels(), inputs.votes(), inputs.ratings(), inputs.clusters())
    ratings = {row.candidate: row.rating.value for row in store.read(Ranking).rows}
    grid = read_grid(store)
    found = audit(
        grid,
        _rivals(store, config, gold, grid) if gold.votes or gold.labels else {},
        _lengths(store, gold, grid, config.ranking.seed),
        ratings,
        gold,
        _basis(store, gold),
        config.ranking,
        categories=_categories(store, gold),
        scale=config.scorer.scale,
        family=guess_family(store.judge().model, grid.candidates) or frozenset(),
    )
    attacks = store.read_if_made(AttackReport)
    warned = () if attacks is None else (f"Attacks: {attacks.sentence()}.",)
    marked = find_marked(store, config)
    said = () if marked is None else (marked.sentence(),)
    advised = (*advice(found, queries_needed), *warned, *said)
    found = replace(found, advice=advised, marked=marked)
    if store.save(found):
        store.drop_from("report")
    return found


def find_marked(store: RunStore, config: RunConfig) -> MarkedAnswers | None:
    """Compare the answers that people marked as wrong with the answers of this run's judge."""
    collected = config.benchmark.collected
    if collected is None or not collected.exists():
        return None
    records = [one for one in CollectedLabels(collected).records() if isinstance(one, WrongAnswer)]
    marks = {(one.query_id, one.candidate, one.text): one.p_yes for one in records}
    if not marks:
        return None
    wanted = {query for query, _, _ in marks} & set(store.inputs.queries)
    checklists, found = store.inputs.checklists(), dict[tuple[str, str, str], float]()
    for part in AnswerReader(store).parts(wanted) if wanted else ():
        answers = part.answers
        cells = zip(answers.query_ids, answers.candidates, strict=True)
        for row, (query, candidate) in enumerate(cells):
            values = answers.shown[answers.offsets[row] : answers.offsets[row + 1]].tolist()
            titles = checklists[query].titles if query in checklists else ()
            found |= {
                (query, candidate, title): value
                for title, value in zip(titles, values, strict=False)
                if value == value
            }
    both = [(was, found[mark]) for mark, was in marks.items() if mark in found and was is not None]
    return MarkedAnswers(
        answers=len(marks),
        repeated=sum((was >= 0.5) == (now >= 0.5) for was, now in both),
        gone=len(marks) - len(both),
        people=len({one.by for one in records}),
    )


def _lengths(
    store: RunStore, gold: Gold, grid: ScoreGrid, seed: int
) -> dict[tuple[str, str], float]:
    """Return response lengths in characters, for a sample of queries in a large run.

    Queries with reference data are always included.
    """
    lengths = store.inputs.lengths_of(_queries(gold) | _some_queries(grid, seed))
    return {cell: float(length) for cell, length in lengths.items()}


def _queries(gold: Gold) -> set[str]:
    """Return the queries with labels or votes."""
    return {vote.query_id for vote in gold.votes} | {label.query_id for label in gold.labels}


def _some_queries(grid: ScoreGrid, seed: int) -> set[str]:
    """Return a random sample of queries with about `MOST_LENGTHS` responses."""
    queries = len(grid.query_ids)
    room = MOST_LENGTHS * queries // max(1, grid.scores.size)
    if room >= queries:
        return set(grid.query_ids)
    drawn = np.random.default_rng(seed).choice(queries, size=max(1, room), replace=False)
    return {grid.query_ids[row] for row in drawn.tolist()}


def _categories(store: RunStore, gold: Gold) -> dict[str, str]:
    """Return categories by query id; empty without votes."""
    if not gold.votes:
        return {}
    queries = store.inputs.queries.values()
    return {query.id: query.category for query in queries if query.category}


def _rivals(
    store: RunStore, config: RunConfig, gold: Gold, grid: ScoreGrid
) -> dict[str, ScoreGrid]:
    """Score the queries with reference data by scorers simpler than the run's."""
    scorer = config.scorer
    own = scorer.kind if scorer.fitted is None and config.evaluator is None else None
    kinds = _SIMPLER if answers_yes_or_no(config) else _SIMPLER_GRADES
    scorers = {
        name: create_scorer(ScorerConfig(kind=kind, scale=scorer.scale, missing=scorer.missing))
        for name, kind in kinds.items()
        if kind != own
    }
    scores = {name: np.full(grid.scores.shape, np.nan) for name in scorers}
    rows = {query: row for row, query in enumerate(grid.query_ids)}
    columns = {candidate: column for column, candidate in enumerate(grid.candidates)}
    for part in AnswerReader(store).parts(_queries(gold)):
        own_rows = [rows[query] for query in part.answers.query_ids]
        own_columns = [columns[candidate] for candidate in part.answers.candidates]
        for name, simpler in scorers.items():
            scores[name][own_rows, own_columns] = simpler.predict(part.answers)
    return {name: grid.with_scores(own) for name, own in scores.items()}


def _basis(store: RunStore, gold: Gold) -> dict[tuple[str, str], Basis]:
    """Return the basis of the score of each response with reference data."""
    cells = gold_cells(gold)
    if not cells:
        return {}
    queries = pa.array(sorted({query_id for query_id, _ in cells}), pa.string())
    found: dict[tuple[str, str], Basis] = {}
    for batch in store.score_batches(["query_id", "candidate", "basis"]):
        chosen = batch.filter(pc.is_in(batch["query_id"], value_set=queries))
        columns = (chosen[name].to_pylist() for name in ("query_id", "candidate", "basis"))
        for query_id, candidate, basis in zip(*columns, strict=True):
            if (query_id, candidate) in cells:
                found[query_id, candidate] = Basis(basis)
    return found


_SIMPLER_GRADES = {"mean of answers": "mean"}
_SIMPLER = {**_SIMPLER_GRADES, "hard yes/no": "hard"}

LONGEST_NAME = 80
"""Maximum length of a method's folder name, without the hash suffix."""


@dataclass(frozen=True, slots=True)
class Variant:
    """A grading method and a scorer, as the user wrote them.

    >>> parse_variant("checklist+extra_trees:weight=none").scorer
    MethodConfig(kind='extra_trees', options={'weight': 'none'})
    """

    name: str
    method: MethodConfig
    scorer: MethodConfig
    """Kind and options of the scorer."""


def parse_variant(text: str) -> Variant:
    """Parse METHOD[:option=value...][+SCORER[:option=value...]].

    The default scorer is the mean of the answers.
    """
    graded, plus, scored = text.strip().partition("+")
    method = _part(graded, text)
    kind_of(method.kind)
    return Variant(text.strip(), method, _part(scored if plus else "mean", text))


def parse_variants(texts: Sequence[str]) -> list[Variant]:
    """Parse variants; raise ConfigError if there is none, or a duplicate."""
    variants = [parse_variant(text) for text in texts]
    names = [variant.name for variant in variants]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if twice or not variants:
        raise ConfigError(
            f"The method {twice[0]!r} is named twice." if twice else "No method is named.",
            hint="Give each method once, separated by commas.",
        )
    return variants


def method_config(config: RunConfig, variant: Variant) -> RunConfig:
    """Return the config of the run that grades with `variant`; `config` itself if it already does.

    Other methods get a folder inside the run directory and share its cache (the run directory if
    none is set), so that checklists are written once and all methods use the same. `with_method`
    makes the other changes, so that a run keeps its author.
    """
    if _is_own(config.method, variant.method):
        return config
    own, kind = kind_of(config.method.kind), kind_of(variant.method.kind)
    template = config.judge.template if kind.template == own.template else None
    judge = config.judge.model_copy(update={"labels": YES_NO, "template": template})
    return config.model_copy(
        update={
            "name": _folder(variant.method),
            "output": config.run_path / "methods",
            "cache": config.run_path if config.cache is None else config.cache,
            "method": variant.method,
            "judge": judge,
        }
    )


def variant_scorer(config: ScorerConfig, variant: Variant) -> ScorerConfig:
    """Return the run's scorer settings with the variant's kind and options.

    Raise ConfigError or ArtifactError for an unknown scorer, before any request is sent.
    """
    wanted = variant.scorer
    options = wanted.options
    if wanted.kind == config.kind and not options:
        options = config.options
    raw = config.model_dump() | {"kind": wanted.kind, "options": options, "fitted": None}
    scorer = ScorerConfig.model_validate(raw)
    create_scorer(scorer)
    return scorer


def check_references(store: RunStore, config: RunConfig) -> None:
    """Raise if the method shows reference responses and no query has one."""
    shown = kind_of(config.method.kind).reference
    if shown and not any(query.reference for query in store.inputs.queries.values()):
        raise BenchmarkError(
            f"No query has a reference response, which the method {config.method.kind!r} shows.",
            hint="Add a `reference` to some queries, or use the method direct.",
        )


def compare_variants(
    config: RunConfig,
    stores: Mapping[str, RunStore],
    variants: Sequence[Variant],
    refused: Mapping[Path, str] | None = None,
) -> MethodComparison:
    """Compare graded variants; `stores` holds each variant's run by name.

    `refused` holds the reasons why variants could not be graded, by run path.
    """
    why = {
        each.name: (refused or {})[stores[each.name].path]
        for each in variants
        if stores[each.name].path in (refused or {})
    }
    graded = {
        each.name: _graded(stores[each.name], config, each)
        for each in variants
        if each.name not in why
    }
    own = stores[next(iter(graded))].inputs
    gold = Gold(own.labels(), own.votes(), own.ratings(), own.clusters())
    lengths = {(head.query_id, head.candidate): float(head.length) for head in own.heads()}
    found = compare_methods(graded, lengths, gold, config.ranking)
    apart = (ExcludedMethod(name, reason) for name, reason in why.items())
    return replace(found, apart=(*found.apart, *apart))


def _graded(store: RunStore, config: RunConfig, variant: Variant) -> MethodGrades:
    """Return the variant's scores, all out-of-fold, so that all reference data can test them."""
    answers, _ = read_answers(store)
    gold = Gold(store.inputs.labels(), store.inputs.votes(), (), store.inputs.clusters())
    scored = score_answers(answers, gold, variant_scorer(config.scorer, variant))
    columns = (answers.query_ids, answers.candidates, scored.scores.tolist())
    return MethodGrades(
        grid=ScoreGrid.from_columns(*columns).clustered(gold.clusters),
        usage=store.ledger_usage(),
        unanswered=int((answers.items - answers.answered).sum()),
        unscored=int(np.isnan(scored.scores).sum()),
        unfinished=len(store.failures()),
        note=_left_to_mean(scored),
    )


def _left_to_mean(scored: Scored) -> str:
    """Return a note on queries for which a learning scorer had too little data; "" if none."""
    if not isinstance(scored.scorer, Learner):
        return ""
    reasons = scored.scorer.fallbacks()
    queries = len(reasons) + scored.fold_fallbacks
    if not queries:
        return ""
    why = f" ({Counter(reasons.values()).most_common(1)[0][0]})" if reasons else ""
    some = f"{queries:,} {'query has' if queries == 1 else 'queries have'}"
    return f"{some} too little data for the scorer{why} and use the mean of the answers instead"


def _is_own(own: MethodConfig, wanted: MethodConfig) -> bool:
    """Return whether two methods match; a wanted kind without options matches any options."""
    if own.kind != wanted.kind:
        return False
    kind = kind_of(own.kind)
    return not wanted.options or kind.parse(own) == kind.parse(wanted)


def _part(text: str, whole: str) -> MethodConfig:
    kind, *options = (part.strip() for part in text.split(":"))
    given: dict[str, str] = {}
    for option in options:
        name, equals, value = (part.strip() for part in option.partition("="))
        if not equals or not name or name in given:
            raise ConfigError(
                f"{option!r} in the method {whole!r} is "
                f"{'set twice' if name in given else 'not an option'}.",
                hint="Write METHOD:name=value, such as rubric:criterion=fluency.",
            )
        given[name] = value
    return MethodConfig(kind=kind, options={**given})


def _folder(method: MethodConfig) -> str:
    """Return a unique folder name for a method and its options."""
    parts = [method.kind, *(f"{name}={value}" for name, value in sorted(method.options.items()))]
    written = "_".join(parts)
    plain = re.sub(r"[^\w=.-]+", "-", written).strip(".-")[:LONGEST_NAME]
    return plain if plain == written else f"{plain}-{content_hash('method', parts).hex()[:8]}"

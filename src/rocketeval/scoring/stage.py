"""The score stage: a score for every response, or a counted missing one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from rocketeval.config import RunConfig, ScorerConfig, with_tie_margin
from rocketeval.errors import ArtifactError, ConfigError, StageMissing
from rocketeval.grid import GridBuilder, ScoreGrid
from rocketeval.hashing import content_hash
from rocketeval.records import Basis, Gold
from rocketeval.scoring.answers import AnswerTable, sum_rows
from rocketeval.scoring.artifact import Provenance, load_scorer, save_scorer
from rocketeval.scoring.base import Learner, Saveable, Scorer, create_scorer
from rocketeval.scoring.crossfit import Scored, score_answers, score_table, score_unlearned
from rocketeval.scoring.learning import refuse_off_scale
from rocketeval.scoring.read_answers import AnsweredPart, AnswerReader
from rocketeval.scoring.rubric import POINTS, not_applicable, score_bounds, widen
from rocketeval.scoring.split import gold_cells, split_gold
from rocketeval.store.checksums import hash_file
from rocketeval.store.ledger import live_files
from rocketeval.store.manifest import LearnedFacts, ScoreFacts
from rocketeval.store.run import RunStore


def check_learnable(store: RunStore, config: ScorerConfig) -> None:
    """Raise, before any request is sent, if the scorer cannot be fitted on the run's data."""
    if config.fitted is not None:
        load_scorer(config.fitted)
    elif isinstance(create_scorer(config), Learner):
        candidates = store.inputs.candidates()
        gold = Gold(store.inputs.labels(), store.inputs.votes(), (), store.inputs.clusters())
        refuse_off_scale(split_gold(gold, candidates, config).learned.labels, config.scale)


def keep_scorer(
    store: RunStore,
    config: ScorerConfig,
    scored: Scored,
    answers: AnswerTable,
    keys: pa.StringArray,
) -> None:
    """Save the fitted scorer in the run directory, if it learns."""
    if scored.split is None or not isinstance(scored.scorer, Saveable):
        return
    used = _learned_keys(scored.split.learned, answers, keys)
    # Use the run's creation time, so that scoring again writes the same bytes.
    created = store.manifest().created
    checklists = _checklist_hashes(store)
    provenance = Provenance.from_keys(store.judge(), used, checklists, created)
    save_scorer(scored.scorer, config, store.scorer_path, provenance=provenance)


@dataclass(frozen=True, slots=True)
class ItemWeights:
    """Learned item weights by query."""

    FILE: ClassVar[str] = "item_weights"
    COMMAND: ClassVar[str] = "run --only score"
    SCHEMA: ClassVar[int] = 1
    ROOT: ClassVar[str] = "by_query"

    by_query: Mapping[str, tuple[float, ...]]
    """Queries without learned weights are absent."""


def keep_weights(store: RunStore, scorer: Scorer | None) -> None:
    """Save the item weights of the run's queries, if the scorer learns."""
    if not isinstance(scorer, Learner):
        return
    asked = store.inputs.checklists()
    weights = scorer.item_weights()
    kept = {query: tuple(found.tolist()) for query, found in weights.items() if query in asked}
    store.save(ItemWeights(kept))


def item_weights(store: RunStore) -> Mapping[str, tuple[float, ...]]:
    """Return learned item weights by query; empty without a learning scorer."""
    found = store.read_if_made(ItemWeights)
    return {} if found is None else found.by_query


class SavedScorer:
    """The scorer from `scorer.fitted`; raises ArtifactError if it does not match the run."""

    def __init__(self, store: RunStore, config: ScorerConfig) -> None:
        assert config.fitted is not None
        loaded = load_scorer(config.fitted)
        loaded.provenance.check_judge(store.judge())
        loaded.provenance.check_checklists(_checklist_hashes(store))
        for setting in ("scale", "missing"):
            theirs, ours = getattr(loaded.config, setting), getattr(config, setting)
            if theirs != ours:
                raise ArtifactError(
                    f"{config.fitted} was fitted with `{setting}: {_written(theirs)}`, but the run "
                    f"has `{setting}: {_written(ours)}`.",
                    hint=f"Set `scorer.{setting}` to the value of the saved scorer.",
                )
        self._loaded = loaded

    @property
    def scorer(self) -> Scorer:
        """Return the loaded scorer."""
        return self._loaded.scorer

    def apply(self, answers: AnswerTable, keys: pa.StringArray) -> Scored:
        """Score the answers; scores of its training judgments are marked as fitted."""
        fitted = self._loaded.provenance.learned_from(keys.to_pylist())
        basis = tuple(Basis.FITTED if seen else Basis.UNSEEN for seen in fitted.tolist())
        scores = self.scorer.predict(answers)
        return Scored(scores, basis, self._loaded.config.kind, self.scorer, None)


def learned_facts(scored: Scored) -> LearnedFacts:
    """Return the training facts for the manifest."""
    facts, split = LearnedFacts(), scored.split
    if split is not None:
        facts = LearnedFacts(
            labels=len(split.learned.labels),
            votes=len(split.learned.votes),
            fitted=tuple(split.fitted),
            held_out=tuple(split.held_out),
        )
    if isinstance(scored.scorer, Learner):
        fallbacks = scored.scorer.fallbacks()
        facts = replace(
            facts,
            queries_by_mean=len(fallbacks),
            queries_by_mean_in_a_fold=scored.fold_fallbacks,
            reasons=dict(Counter(fallbacks.values()).most_common(5)),
        )
    return facts


def _written(setting: Any) -> str:
    """Return a setting as written in a config."""
    if isinstance(setting, tuple):
        return f"[{', '.join(f'{end:g}' for end in setting)}]"
    return str(setting)


def _checklist_hashes(store: RunStore) -> dict[str, str]:
    checklists = store.inputs.checklists()
    return {query_id: made.scoring_hash.hex() for query_id, made in checklists.items()}


def _learned_keys(gold: Gold, answers: AnswerTable, keys: pa.StringArray) -> list[str]:
    """Return the keys of the training judgments."""
    cells = gold_cells(gold)
    names = enumerate(zip(answers.query_ids, answers.candidates, strict=True))
    rows = pa.array([row for row, cell in names if cell in cells], pa.int64())
    return [key for key in keys.take(rows).to_pylist() if key]


def score_responses(
    store: RunStore, config: RunConfig, used: Collection[tuple[str, str]] | None = None
) -> ScoreFacts:
    """Score all responses, or those in `used`; write the scores and return their counts."""
    if not live_files(store.ledger_folder):
        raise StageMissing(
            f"{store.path} has no judgments to score.",
            hint="Run `rocketeval run --only grade` first.",
        )
    store.drop_from("score")
    reader = AnswerReader(store, used)
    tally = ScoreCounts(config.scorer.scale)
    store.save_scores(map(tally.count, _scored_parts(store, config.scorer, reader)))
    assert tally.last is not None
    return replace(tally.facts(reader), learned=learned_facts(tally.last))


def score_judged(store: RunStore, config: ScorerConfig, query_ids: Collection[str]) -> ScoreGrid:
    """Return the scores of some queries from the judgments so far; nothing is written."""
    saved = None if config.fitted is None else SavedScorer(store, config)
    scorer = create_scorer(config) if saved is None else saved.scorer
    builder = GridBuilder()
    for part in AnswerReader(store).parts(query_ids):
        if saved is None:
            scored = score_unlearned(part.answers, scorer, config)
        else:
            scored = saved.apply(part.answers, part.keys)
        queries, names = part.answers.query_ids, part.answers.candidates
        builder.add(pa.array(queries, pa.string()), pa.array(names, pa.string()), scored.scores)
    return builder.grid()


def read_grid(store: RunStore) -> ScoreGrid:
    """Return the run's scores as a grid of queries and candidates."""
    builder = GridBuilder()
    for batch in store.score_batches(["query_id", "candidate", "score"]):
        scores = batch["score"].to_numpy(zero_copy_only=False)
        builder.add(batch["query_id"], batch["candidate"], scores.astype(np.float64))
    return builder.grid().clustered(store.inputs.clusters())


def scorer_hash(config: RunConfig) -> str:
    """Return a hash of the settings that scores are made with.

    Only scores learned from votes depend on the tie margin.
    """
    scorer = with_tie_margin(config).scorer
    ignored = {"fitted"} if scorer.learn_from == "votes" else {"fitted", "tie_margin"}
    fitted = scorer.fitted
    file = "" if fitted is None else hash_file(fitted) if fitted.is_file() else str(fitted)
    return content_hash(scorer.model_dump(mode="json", exclude=ignored), file).hex()


def refuse_other_scorer(store: RunStore, config: RunConfig) -> None:
    """Raise ConfigError if the run's scores were made with other settings than the config's.

    The config's scale and margins would not be those of the scores.
    """
    made_with = store.manifest().stages.score.made_with
    if made_with and config.evaluator is None and made_with != scorer_hash(config):
        raise ConfigError(
            f"The scores of {store.path} were made with other settings of `scorer` than the config "
            "has.",
            hint="Run `rocketeval run --only score` with that config first; it asks no judge.",
        )


def scoring_change(was: RunConfig, now: RunConfig) -> str:
    """Return why the scores of two configs mean different things, as a predicate; empty if not."""
    if now.method != was.method:
        methods = f"{was.method.kind} -> {now.method.kind}"
        return f"has another grading method ({methods}) or other options of it"
    if now.scorer.scale != was.scorer.scale:
        return "scores on another scale"
    if scorer_hash(now) != scorer_hash(was):
        scorers = f"{was.scorer.kind} -> {now.scorer.kind}"
        return f"has another scorer ({scorers}) or other options of it"
    return ""


_Part = tuple[AnsweredPart, Scored]
BOUNDED = ("mean", POINTS)
"""Scorers whose scores have proven bounds if items are weighted."""


def _scored_parts(store: RunStore, config: ScorerConfig, reader: AnswerReader) -> Iterator[_Part]:
    """Yield parts of the run with their scores, at least one.

    A scorer that is fitted here gets all responses at once; any other scores each query separately.
    """
    scorer = None if config.fitted else create_scorer(config)
    if scorer is None:
        saved = SavedScorer(store, config)
        keep_weights(store, saved.scorer)
        for part in reader.parts():
            yield part, saved.apply(part.answers, part.keys)
    elif isinstance(scorer, Learner):
        part = reader.whole()
        gold = Gold(store.inputs.labels(), store.inputs.votes(), (), store.inputs.clusters())
        scored = score_answers(part.answers, gold, config)
        keep_scorer(store, config, scored, part.answers, part.keys)
        keep_weights(store, scored.scorer)
        yield part, scored
    else:
        for part in reader.parts():
            yield part, score_unlearned(part.answers, scorer, config)


@dataclass
class ScoreCounts:
    """Counts over all parts, for the manifest."""

    scale: tuple[float, float] = (1.0, 10.0)
    scores: int = 0
    without_score: int = 0
    answers: int = 0
    missing_answers: int = 0
    not_applicable: int = 0
    basis: Counter[str] = field(default_factory=Counter)
    last: Scored | None = None
    """The last part; any part has the facts on the fit."""

    def count(self, scored_part: _Part) -> pa.Table:
        """Count a part and return it as the table to write to disk."""
        part, self.last = scored_part
        answers, scores = part.answers, self.last.scores
        self.scores += int(np.isfinite(scores).sum())
        self.without_score += int(np.isnan(scores).sum())
        self.answers += int(answers.items.sum())
        self.missing_answers += int((answers.items - answers.answered).sum())
        self.not_applicable += not_applicable(answers.rubric)
        self.basis.update(self.last.counts())
        table = score_table(answers, self.last, part.keys)
        return table if part.bounds is None else self._with_bounds(table, part, self.last)

    def _with_bounds(self, table: pa.Table, part: AnsweredPart, scored: Scored) -> pa.Table:
        """Return the table with the applicable items, and bounds of scores that do not learn."""
        answers, columns = part.answers, part.answers.rubric
        assert columns is not None
        assert part.bounds is not None
        given = np.where(np.isnan(columns.values), 0.0, columns.applicable)
        table = table.append_column("applicable", pa.array(sum_rows(given, answers.offsets)))
        if scored.kind not in BOUNDED:
            return table
        low, high = score_bounds(scored.kind, columns, part.bounds, answers.offsets)
        start, end = self.scale
        unscored = np.isnan(scored.scores)
        low, high = (np.where(unscored, np.nan, start + (end - start) * s) for s in (low, high))
        low, high = widen(low, high, scored.scores)
        for name, side in (("score_low", low), ("score_high", high)):
            table = table.append_column(name, pa.array(side, from_pandas=True))
        return table

    def facts(self, reader: AnswerReader) -> ScoreFacts:
        """Return the totals after the last part."""
        assert self.last is not None
        return ScoreFacts(
            scores=self.scores,
            without_score=self.without_score,
            answers=self.answers,
            missing_answers=self.missing_answers,
            not_applicable=self.not_applicable,
            statuses=reader.statuses(),
            scorer=self.last.kind,
            basis=dict(sorted(self.basis.items())),
        )

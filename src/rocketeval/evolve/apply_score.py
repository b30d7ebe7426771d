"""Scoring with an evaluator: write its decisions and turn them into scores."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats
from rocketeval.config import RunConfig
from rocketeval.errors import StageMissing
from rocketeval.evolve.apply_setup import FOLDER, EvaluatorCases, GivenEvaluator, open_evaluator
from rocketeval.evolve.ask import AnswersTable, QuestionSetAnswers
from rocketeval.evolve.cases import Case, CaseTable, Task, query_groups
from rocketeval.evolve.describe import describe_evaluator
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.predictions import Predictions
from rocketeval.evolve.result import DescribedRun, EvaluatorInRun, Histogram
from rocketeval.records import Basis, Query
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import Scored
from rocketeval.scoring.read_answers import AnswerReader
from rocketeval.scoring.stage import ItemWeights, ScoreCounts
from rocketeval.store.manifest import DecisionFacts, LearnedFacts, ScoreFacts
from rocketeval.store.run import RunStore

AT_ONCE = 20_000
"""Number of cases per batch."""


@dataclass(frozen=True, eq=False)
class DecidedCases:
    """Cases with the evaluator's predictions."""

    cases: tuple[Case, ...]
    predictions: Predictions
    unanswered: int
    """Number of cases without any answer; these are not decided and not included."""


def decide(store: RunStore, given: GivenEvaluator) -> Iterator[DecidedCases]:
    """Yield all decisions of a graded run in at least one part."""
    _check_graded(store, given)
    answers = AnswersTable(
        given.asked,
        [
            QuestionSetAnswers.read(
                question_set, store.inside(FOLDER, question_set.name), perspectives
            )
            for question_set, perspectives in given.question_sets.items()
        ],
    )
    waiting: list[Case] = []
    for _, cases in EvaluatorCases.of(store.inputs, given.evaluator).decided():
        waiting += cases
        if len(waiting) >= AT_ONCE:
            yield _decide(answers, given, waiting)
            waiting = []
    yield _decide(answers, given, waiting)


def _decide(answers: AnswersTable, given: GivenEvaluator, cases: list[Case]) -> DecidedCases:
    evaluator, table = given.evaluator, answers.table(cases)
    answered = np.flatnonzero(np.isfinite(table.answers).any(axis=1))
    table = table.take(answered)
    traits = _columns(table, evaluator.about_queries)
    return DecidedCases(
        table.cases, evaluator.predict(table.answers, traits), len(cases) - len(answered)
    )


def _columns(table: CaseTable, wanted: tuple[Perspective, ...]) -> Floats:
    """Return the traits the evaluator needs; traits with zero weight are not asked and set to 0."""
    place = {each.id: number for number, each in enumerate(table.about_queries)}
    columns = [
        table.traits[:, place[each.id]] if each.id in place else np.zeros(len(table))
        for each in wanted
    ]
    return np.stack(columns, axis=1) if columns else np.zeros((len(table), 0))


def _check_graded(store: RunStore, given: GivenEvaluator) -> None:
    """Raise StageMissing unless the run was graded with exactly this evaluator."""
    graded = store.manifest().stages.grade.evaluator
    if graded is None or graded.hash != given.hash:
        raise StageMissing(
            f"{store.path} has not been graded with the current evaluator {given.path}.",
            hint="Run `rocketeval run --only grade` first; existing answers are reused.",
        )


BINS = 20
"""Number of bins in the confidence histogram."""
Row = tuple[str, str]
"""A query and a candidate."""


class DecisionCounts:
    """Running counts of decisions."""

    def __init__(self, experts: int, threshold: float | None) -> None:
        self.threshold = threshold
        self.cases = self.undecided = self.to_person = 0
        self.experts: dict[str, int] = {}
        """Index of the expert that judged each query."""
        self._experts = np.zeros(experts, dtype=np.int64)
        self._edges = np.arange(BINS + 1) / BINS
        self._bins: NDArray[np.int64] = np.zeros(BINS, dtype=np.int64)
        self._sums: defaultdict[Row, float] = defaultdict(float)
        self._counts: Counter[Row] = Counter()

    def add(self, part: DecidedCases) -> DecidedCases:
        """Count a part and return it."""
        predictions = part.predictions
        self.cases += len(predictions)
        self.undecided += part.unanswered
        self._experts += np.bincount(predictions.expert, minlength=len(self._experts))
        self._bins += np.histogram(predictions.confidence, self._edges)[0]
        if self.threshold is not None:
            self.to_person += int((predictions.confidence < self.threshold).sum())
        self.experts.update(
            zip((case.query_id for case in part.cases), predictions.expert.tolist(), strict=True)
        )
        for case, credits in zip(part.cases, _credits(part), strict=True):
            for candidate, credit in zip(case.candidates, credits, strict=True):
                self._sums[case.query_id, candidate] += credit
                self._counts[case.query_id, candidate] += 1
        return part

    def means(self, rows: Sequence[Row]) -> Floats:
        """Return each response's value, or for pairs its mean share of wins; NaN without any.

        A tie is half a win, and outcomes are weighted by probability.
        """
        return np.array(
            [self._sums[row] / self._counts[row] if self._counts[row] else np.nan for row in rows]
        )

    def run(self) -> DescribedRun:
        """Return the counts of this run."""
        return DescribedRun(
            cases=self.cases,
            by_expert=tuple(self._experts.tolist()),
            confidence=Histogram(tuple(self._edges.tolist()), tuple(self._bins.tolist())),
            threshold=self.threshold,
            to_person=self.to_person,
        )


def _credits(part: DecidedCases) -> list[tuple[float, ...]]:
    """Return each decision's value for the responses it is about."""
    predictions = part.predictions
    if predictions.probabilities is None:
        assert predictions.values is not None
        return [(value,) for value in predictions.values.tolist()]
    return [(a + tie / 2.0, b + tie / 2.0) for b, tie, a in predictions.probabilities.tolist()]


KIND = "evaluator"
"""Name of the scorer in the scores."""
_VERDICTS = {1.0: "a", 0.0: "tie", -1.0: "b"}


@dataclass(frozen=True, eq=False)
class EvaluatedScores:
    """The scores of a run by its evaluator."""

    scored: Scored
    """Scores in the order of the answers. FITTED if the evaluator learned from the query's
    reference data, or if it does not say what it learned from."""
    learned: LearnedFacts
    evaluator: DecisionFacts


def evaluate_responses(store: RunStore, config: RunConfig, answers: AnswerTable) -> EvaluatedScores:
    """Write the evaluator's decisions and return the resulting scores."""
    given = open_evaluator(config)
    evaluator, provenance = given.evaluator, given.evaluator.provenance
    counts = DecisionCounts(len(evaluator.experts), provenance.get("threshold"))
    parts = map(counts.add, decide(store, given))
    if evaluator.task == "pairs":
        store.save_rows("preferences", (row for part in parts for row in _preferences(part)))
    else:
        store.save_rows("evaluated", (row for part in parts for row in _values(part)))
    store.save(EvaluatorInRun(**vars(describe_evaluator(evaluator)), run=counts.run()))
    attention = [tuple(expert.attention.tolist()) for expert in evaluator.experts]
    weights = {query_id: attention[expert] for query_id, expert in counts.experts.items()}
    store.save(ItemWeights(weights))
    rows = list(zip(answers.query_ids, answers.candidates, strict=True))
    scores, clipped = _on_scale(counts.means(rows), evaluator.task, config.scorer.scale)
    basis = _basis(store.inputs.queries, given, answers.query_ids)
    learned = provenance.get("counts", {}).get("cases", 0)
    pairs = evaluator.task == "pairs"
    facts = DecisionFacts(
        **asdict(given.facts()),
        decided=counts.cases,
        undecided=counts.undecided,
        to_person=counts.to_person,
        threshold=counts.threshold,
        clipped=clipped,
        learned_from_known="learned_from" in provenance,
    )
    return EvaluatedScores(
        Scored(scores, basis, KIND, None, None),
        LearnedFacts(votes=learned) if pairs else LearnedFacts(labels=learned),
        facts,
    )


def _preferences(part: DecidedCases) -> Iterator[dict[str, Any]]:
    predictions = part.predictions
    assert predictions.probabilities is not None
    columns = (predictions.probabilities.tolist(), predictions.verdict.tolist(), *_sureness(part))
    for case, (b, tie, a), verdict, confidence, expert in zip(part.cases, *columns, strict=True):
        yield {
            "query_id": case.query_id,
            "candidate_a": case.candidates[0],
            "candidate_b": case.candidates[1],
            "p_a": a,
            "p_tie": tie,
            "p_b": b,
            "verdict": _VERDICTS[verdict],
            "confidence": confidence,
            "expert": expert,
        }


def _values(part: DecidedCases) -> Iterator[dict[str, Any]]:
    assert part.predictions.values is not None
    columns = (part.predictions.values.tolist(), *_sureness(part))
    for case, value, confidence, expert in zip(part.cases, *columns, strict=True):
        yield {
            "query_id": case.query_id,
            "candidate": case.candidates[0],
            "value": value,
            "confidence": confidence,
            "expert": expert,
        }


def _sureness(part: DecidedCases) -> tuple[list[float], list[int]]:
    return part.predictions.confidence.tolist(), part.predictions.expert.tolist()


def _on_scale(means: Floats, task: Task, scale: tuple[float, float]) -> tuple[Floats, int]:
    """Return scores on the label scale, and the number of values outside it.

    A share of wins is mapped onto the scale; a value already is on the scale of the labels it was
    learned from.
    """
    low, high = scale
    if task == "pairs":
        return low + (high - low) * means, 0
    return np.clip(means, low, high), int(((means < low) | (means > high)).sum())


def _basis(
    queries: Mapping[str, Query], given: GivenEvaluator, query_ids: Sequence[str]
) -> tuple[Basis, ...]:
    """Return the basis of each score; all are FITTED if the training queries are unknown.

    A query whose group has a training query is FITTED, such as the other turn of a conversation.
    """
    noted = given.evaluator.provenance.get("learned_from")
    if noted is None:
        return (Basis.FITTED,) * len(query_ids)
    learned, groups = set(noted), query_groups(queries.values())
    fitted = {
        groups[name] for name, query in queries.items() if query.content_hash.hex() in learned
    }
    return tuple(Basis.FITTED if groups[name] in fitted else Basis.UNSEEN for name in query_ids)


def score_with_evaluator(store: RunStore, config: RunConfig) -> ScoreFacts:
    """Write the scores from the evaluator's decisions, and return the counts."""
    store.drop_from("score")
    reader = AnswerReader(store)
    counts = ScoreCounts()
    part = reader.whole()
    evaluated = evaluate_responses(store, config, part.answers)
    store.save_scores([counts.count((part, evaluated.scored))])
    facts = counts.facts(reader)
    return replace(facts, learned=evaluated.learned, evaluator=evaluated.evaluator)

"""Setup of a run with an evaluator: checks, cases to decide, and perspectives to ask."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Self

from rocketeval.config import AuthorConfig, RunConfig, ScorerConfig
from rocketeval.errors import ArtifactError, BenchmarkError, ConfigError
from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.ask import by_question_set
from rocketeval.evolve.cases import Case, cases_from_votes, oriented
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.evolve.perspective import Perspective, QuestionSet
from rocketeval.evolve.rounds import SEEN
from rocketeval.evolve.stage import HELD_OUT
from rocketeval.grading.methods import YES_NO
from rocketeval.hashing import content_hash
from rocketeval.observer import Observer
from rocketeval.records import Checklist, JudgeFingerprint, Query, Vote
from rocketeval.store.inputs import Inputs
from rocketeval.store.manifest import ChecklistFacts, EvaluatorFacts
from rocketeval.store.run import RunStore

FOLDER = "evaluator"
"""Folder in the run with one inner run per question set."""
ANSWERED = (SEEN, HELD_OUT)
"""Folders where an evolution in the same run stored answers to the same questions."""
_ALSO_USED = {"scale", "tie_margin", "price"}
"""Settings of scorer and author that also apply with an evaluator, or cost nothing."""


@dataclass(frozen=True)
class GivenEvaluator:
    """An evaluator with its file path and hash."""

    path: Path
    evaluator: Evaluator
    hash: str
    """Hex hash of the file, to detect that the file changed between grading and scoring."""

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """Return the perspectives a judge must answer; see `Evaluator.asked`."""
        return self.evaluator.asked

    @property
    def question_sets(self) -> dict[QuestionSet, list[Perspective]]:
        """Return the perspectives of each question set."""
        return by_question_set(self.asked, self.evaluator.asking)

    def facts(self) -> EvaluatorFacts:
        """Return the evaluator's entry in the manifest."""
        evaluator = self.evaluator
        return EvaluatorFacts(
            file=str(self.path),
            hash=self.hash,
            task=evaluator.task,
            asking=evaluator.asking,
            about_responses=len(evaluator.about_responses),
            about_queries=len(self.asked) - len(evaluator.about_responses),
            experts=len(evaluator.experts),
        )


def open_evaluator(config: RunConfig) -> GivenEvaluator:
    """Return the evaluator that the config names; raise ArtifactError if it cannot be used."""
    path = config.evaluator
    assert path is not None
    evaluator = load_evaluator(path)
    return GivenEvaluator(path, evaluator, content_hash(path.read_bytes().hex()).hex())


def as_graded(config: RunConfig) -> RunConfig:
    """Return the config with the evaluator its run was graded with, unless it names one.

    So `--evaluator FILE` is needed only for `run --only grade`, not for later stages.
    """
    if config.evaluator is not None:
        return config
    graded = RunStore(config.run_path).manifest().stages.grade.evaluator
    return config.model_copy(update={"evaluator": Path(graded.file)}) if graded else config


def not_used(config: RunConfig) -> tuple[str, ...]:
    """Return the config sections with settings that an evaluator ignores."""
    sections = {
        "author": (config.author, AuthorConfig()),
        "scorer": (config.scorer, ScorerConfig()),
    }
    found = [
        name
        for name, (own, usual) in sections.items()
        if own.model_dump(exclude=_ALSO_USED) != usual.model_dump(exclude=_ALSO_USED)
    ]
    return (*found, *(["judge.template"] if config.judge.template is not None else []))


def check_usable(config: RunConfig, *, own_engine: bool) -> GivenEvaluator:
    """Return the evaluator; raise before any cost if the run cannot use it."""
    if config.distributed.cluster is not None:
        raise ConfigError(
            "A run with an evaluator cannot use Ray; it runs on this machine.",
            hint="Use --on local, or leave `distributed.cluster` out.",
        )
    if own_engine:
        raise ConfigError(
            "An evaluator needs one engine per question set; a single engine passed from Python "
            "cannot serve all of them.",
            hint="Let the run create its engines from the config.",
        )
    if config.method.kind != "checklist" or config.judge.labels != YES_NO:
        raise ConfigError(
            f"method.kind: {config.method.kind!r} conflicts with the evaluator's own prompts.",
            hint="Remove `method` and `judge.labels`, or the evaluator.",
        )
    given = open_evaluator(config)
    for question_set in given.question_sets:
        fitted = given.evaluator.judges.get(question_set.name)
        if fitted is not None:
            template = question_set.method().hash
            current = replace(fitted, model=config.judge.model, template=template)
            _refuse_changes(given.path, fitted, current)
    return given


def check_judge(given: GivenEvaluator, question_set: str, judge: JudgeFingerprint) -> None:
    """Raise ArtifactError unless the evaluator learned from this judge's answers."""
    fitted = given.evaluator.judges.get(question_set)
    if fitted is None:
        raise ArtifactError(
            f"{given.path} does not say which judge answered its question set {question_set!r}.",
            hint="Run `rocketeval evolve` again, or use an undamaged copy of the file.",
        )
    _refuse_changes(given.path, fitted, judge)


def _refuse_changes(path: Path, theirs: JudgeFingerprint, ours: JudgeFingerprint) -> None:
    changes = theirs.changes(ours).items()
    changed = [f"{name} {before!r} -> {now!r}" for name, (before, now) in changes]
    if changed:
        raise ArtifactError(
            f"{path} was fitted to another judge's answers ({', '.join(changed)}).",
            hint="Answers of two judges are not comparable: train an evaluator with this judge.",
        )


MOST_CANDIDATES = 20
"""Maximum responses per query when the judge sees every pair: 190 pairs."""


class EvaluatorCases:
    """All cases of a run, grouped by query; raises BenchmarkError if there are none."""

    def __init__(
        self,
        candidates: Mapping[str, Sequence[str]],
        queries: Iterable[Query],
        votes: Iterable[Vote],
        evaluator: Evaluator,
    ) -> None:
        self._candidates = candidates
        # Keep the order of training, so that its answers are reused.
        voted = oriented(cases_from_votes(votes), queries)
        self._voted = {(case.query_id, *case.candidates) for case in voted}
        self._evaluator = evaluator
        if not self.count():
            raise BenchmarkError(
                "This evaluator compares pairs, but no query has two responses.",
                hint="Add responses of another candidate, or use an evaluator of single responses "
                "(`evolve.gold: labels`).",
            )

    @classmethod
    def of(cls, inputs: Inputs, evaluator: Evaluator) -> Self:
        """Return the cases of a loaded run."""
        candidates: dict[str, list[str]] = {}
        for head in inputs.heads():
            candidates.setdefault(head.query_id, []).append(head.candidate)
        return cls(candidates, inputs.queries.values(), inputs.votes(), evaluator)

    def decided(self) -> Iterator[tuple[str, list[Case]]]:
        """Yield each query with its cases to decide: single responses, or all pairs."""
        for query_id, names in self._candidates.items():
            yield query_id, self._pairs(query_id) if self._pairwise else singles(query_id, names)

    def asked(self) -> list[Case]:
        """Return the cases to show the judge: pairs only if it sees two responses at once."""
        if self._evaluator.asking == "pairs":
            self._refuse_many()
            return [case for query_id in self._candidates for case in self._pairs(query_id)]
        return [
            case
            for query_id, names in self._candidates.items()
            for case in singles(query_id, names)
        ]

    def count(self) -> int:
        """Return the number of decisions."""
        sizes = (len(names) for names in self._candidates.values())
        return sum(size * (size - 1) // 2 if self._pairwise else size for size in sizes)

    @property
    def without_opponent(self) -> int:
        """Return the number of responses without another to compare with."""
        alone = sum(len(names) == 1 for names in self._candidates.values())
        return alone if self._pairwise else 0

    @property
    def _pairwise(self) -> bool:
        return self._evaluator.task == "pairs"

    def _pairs(self, query_id: str) -> list[Case]:
        return [
            Case(query_id, (b, a) if (query_id, b, a) in self._voted else (a, b), None)
            for a, b in combinations(self._candidates[query_id], 2)
        ]

    def _refuse_many(self) -> None:
        query_id, names = max(self._candidates.items(), key=lambda one: len(one[1]))
        if len(names) > MOST_CANDIDATES:
            pairs = len(names) * (len(names) - 1) // 2
            raise BenchmarkError(
                f"Query {query_id!r} has {len(names)} responses. This evaluator shows the judge "
                f"every pair of them, {pairs:,} in total.",
                hint=f"Choose at most {MOST_CANDIDATES} with `benchmark.candidates`, or train an "
                "evaluator with `evolve.asking: each`.",
            )


def singles(query_id: str, candidates: Sequence[str]) -> list[Case]:
    """Return one case per response to a query."""
    return [Case(query_id, (candidate,), None) for candidate in candidates]


AUTHOR = "evaluator"


def give_checklists(store: RunStore, given: GivenEvaluator, observer: Observer) -> ChecklistFacts:
    """Write the evaluator's perspectives as every query's checklist, and return the counts."""
    queries = store.inputs.queries
    observer.stage_began("checklist", len(queries))
    perspectives = given.evaluator.about_responses
    items, groups = item_texts(perspectives), tuple(each.origin.value for each in perspectives)
    made = [Checklist(query_id, items, AUTHOR, groups) for query_id in queries]
    if store.inputs.save_checklists(made):
        store.drop_from("attack")
    store.inputs.save_provenance(None)
    return ChecklistFacts(checklists=len(made), items=len(made) * len(items))


def item_texts(perspectives: Sequence[Perspective]) -> tuple[str, ...]:
    """Return each perspective's item text: its question, plus its format if two share a text.

    >>> from rocketeval.evolve.perspective import AnswerFormat
    >>> both = [Perspective("Is it kind?"), Perspective("Is it kind?", form=AnswerFormat.GRADED)]
    >>> item_texts(both)
    ('Is it kind? (choice)', 'Is it kind? (graded)')
    """
    asked = Counter(each.text for each in perspectives)
    return tuple(
        each.text if asked[each.text] == 1 else f"{each.text} ({each.form.value})"
        for each in perspectives
    )

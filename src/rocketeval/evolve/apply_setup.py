"""The evaluator that a run is given: what must suit it, what it asks and decides about."""

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
from rocketeval.evolve.cases import Case, cases_from_votes
from rocketeval.evolve.evaluator import Evaluator
from rocketeval.evolve.perspective import Perspective, QuestionSet
from rocketeval.evolve.rounds import SEEN
from rocketeval.evolve.stage import HELD_OUT
from rocketeval.grading.methods import YES_NO
from rocketeval.hashing import content_hash
from rocketeval.observer import Observer
from rocketeval.records import Checklist, JudgeFingerprint, Vote
from rocketeval.store.inputs import Inputs
from rocketeval.store.manifest import ChecklistFacts, EvaluatorFacts
from rocketeval.store.run import RunStore

FOLDER = "evaluator"
"""Where the run keeps what the judge said, a run inside the run for each question set."""
ANSWERED = (SEEN, HELD_OUT)
"""Where a run that evolved its evaluator has answers to the same questions."""
_ALSO_USED = {"scale", "tie_margin", "price"}
"""Settings of the scorer and the author that mean something with an evaluator, too, or cost
nothing."""


@dataclass(frozen=True)
class GivenEvaluator:
    """An evaluator as it was read."""

    path: Path
    evaluator: Evaluator
    hash: str
    """Hex hash of the file, so that scores are made by the evaluator that was asked."""

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """What a judge has to answer: of the questions about queries only what a router weighs."""
        return self.evaluator.asked

    @property
    def question_sets(self) -> dict[QuestionSet, list[Perspective]]:
        """The perspectives of each question set."""
        return by_question_set(self.asked, self.evaluator.asking)

    def facts(self) -> EvaluatorFacts:
        """Return what the manifest says of it."""
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
    """Return the evaluator that the config names; ArtifactError says why it cannot be used."""
    path = config.evaluator
    assert path is not None
    evaluator = load_evaluator(path)
    return GivenEvaluator(path, evaluator, content_hash(path.read_bytes().hex()).hex())


def as_graded(config: RunConfig) -> RunConfig:
    """Return the config with the evaluator that its run was graded with, if it names none.

    So `run --only grade --evaluator FILE` is told once, and the stages after it know.
    """
    if config.evaluator is not None:
        return config
    graded = RunStore(config.run_path).manifest().stages.grade.evaluator
    return config.model_copy(update={"evaluator": Path(graded.file)}) if graded else config


def not_used(config: RunConfig) -> tuple[str, ...]:
    """Return the sections that say something which an evaluator has no use for."""
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
    """Return the evaluator; raise, before anything is paid for, if the run cannot use it."""
    if config.distributed.cluster is not None:
        raise ConfigError(
            "A run with an evaluator is judged on this machine, not on Ray.",
            hint="Use --on local, or leave `distributed.cluster` out.",
        )
    if own_engine:
        raise ConfigError(
            "An evaluator asks in several ways, each with an engine of its own: one engine made "
            "in Python cannot be all of them.",
            hint="Let the run make its engines from the config.",
        )
    if config.method.kind != "checklist" or config.judge.labels != YES_NO:
        raise ConfigError(
            f"method.kind: {config.method.kind!r} asks in its own way, and an evaluator in its.",
            hint="Leave `method` and `judge.labels` out, or the evaluator.",
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
            f"{given.path} does not say which judge answered its sheet {question_set!r}.",
            hint="Evolve the evaluator again, or take an undamaged copy of the file.",
        )
    _refuse_changes(given.path, fitted, judge)


def _refuse_changes(path: Path, theirs: JudgeFingerprint, ours: JudgeFingerprint) -> None:
    changes = theirs.changes(ours).items()
    changed = [f"{name} {before!r} -> {now!r}" for name, (before, now) in changes]
    if changed:
        raise ArtifactError(
            f"{path} was fitted to another judge's answers ({', '.join(changed)}).",
            hint="Two judges' answers do not compare: evolve an evaluator with this judge.",
        )


MOST_CANDIDATES = 20
"""Responses to one query of which the judge is shown every two side by side: 190 pairs."""


class EvaluatorCases:
    """All cases of a run, query by query; BenchmarkError if there are none."""

    def __init__(
        self, candidates: Mapping[str, Sequence[str]], votes: Iterable[Vote], evaluator: Evaluator
    ) -> None:
        self._candidates = candidates
        # A pair that was voted on, and so perhaps learned from, is shown in the order of its vote:
        # what was asked before is not asked again the other way round.
        self._voted = {(case.query_id, *case.candidates) for case in cases_from_votes(votes)}
        self._evaluator = evaluator
        if not self.count():
            raise BenchmarkError(
                "No query has two responses, and this evaluator compares every two.",
                hint="Add responses of another candidate, or use an evaluator of single responses "
                "(`evolve.gold: labels`).",
            )

    @classmethod
    def of(cls, inputs: Inputs, evaluator: Evaluator) -> Self:
        """Return the cases of a run that is loaded."""
        candidates: dict[str, list[str]] = {}
        for head in inputs.heads():
            candidates.setdefault(head.query_id, []).append(head.candidate)
        return cls(candidates, inputs.votes(), evaluator)

    def decided(self) -> Iterator[tuple[str, list[Case]]]:
        """Yield each query with what is decided about its responses: one by one, or every two."""
        for query_id, names in self._candidates.items():
            yield query_id, self._pairs(query_id) if self._pairwise else singles(query_id, names)

    def asked(self) -> list[Case]:
        """Return what the judge is asked about: pairs only where it sees two at once."""
        if self._evaluator.asking == "pairs":
            self._refuse_many()
            return [case for query_id in self._candidates for case in self._pairs(query_id)]
        return [
            case
            for query_id, names in self._candidates.items()
            for case in singles(query_id, names)
        ]

    def count(self) -> int:
        """Return how many decisions there are."""
        sizes = (len(names) for names in self._candidates.values())
        return sum(size * (size - 1) // 2 if self._pairwise else size for size in sizes)

    @property
    def without_opponent(self) -> int:
        """How many responses have no other to be compared with."""
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
                f"Query {query_id!r} has {len(names)} responses: this evaluator shows the judge "
                f"every two of them, which makes {pairs:,} pairs.",
                hint=f"Choose at most {MOST_CANDIDATES} with `benchmark.candidates`, or evolve an "
                "evaluator with `evolve.asking: each`.",
            )


def singles(query_id: str, candidates: Sequence[str]) -> list[Case]:
    """Return a case for each response to a query."""
    return [Case(query_id, (candidate,), None) for candidate in candidates]


AUTHOR = "evaluator"


def give_checklists(store: RunStore, given: GivenEvaluator, observer: Observer) -> ChecklistFacts:
    """Write the evaluator's perspectives as every query's checklist; return counts."""
    queries = store.inputs.queries
    observer.stage_began("checklist", len(queries))
    perspectives = given.evaluator.about_responses
    items, groups = item_texts(perspectives), tuple(each.origin.value for each in perspectives)
    made = [Checklist(query_id, items, AUTHOR, groups) for query_id in queries]
    if store.inputs.save_checklists(made):
        store.drop_from("score")
    store.inputs.save_provenance(None)
    return ChecklistFacts(checklists=len(made), items=len(made) * len(items))


def item_texts(perspectives: Sequence[Perspective]) -> tuple[str, ...]:
    """Return what each perspective is called: its question, with its form where two ask the same.

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

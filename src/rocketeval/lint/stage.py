"""The lint stage: checks of the checklists of a run, a benchmark folder or a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.checklists.base import is_shared
from rocketeval.checklists.sources import (
    FoundChecklists,
    checklists_of_benchmark,
    checklists_of_path,
)
from rocketeval.config import RunConfig
from rocketeval.errors import StageMissing
from rocketeval.lint.answer_checks import (
    JudgedAnswers,
    item_behaviors,
    item_influences,
    ranking_without,
)
from rocketeval.lint.findings import ItemFinding
from rocketeval.lint.lint import SAYS_NOTHING, AnswerBehavior, Lint, answers_to, make_lint
from rocketeval.lint.static import StaticFindings, check_checklists, merge_shared
from rocketeval.records import Checklist, Query
from rocketeval.scoring.crossfit import align_answers
from rocketeval.scoring.learning import mean_by_response
from rocketeval.scoring.read_answers import answers_yes_or_no, read_answers
from rocketeval.store.run import RunStore

NOT_GRADED = "nothing has been graded yet"
NO_RUN = "there is no run"
NOT_YES_NO = "this run's judge gives grades, not yes/no answers"


@dataclass(frozen=True, slots=True)
class LintedRun:
    """The lint result of a run, with the inputs it was computed from."""

    lint: Lint
    checklists: Mapping[str, Checklist]
    queries: Mapping[str, Query]
    candidates: tuple[str, ...]
    """Candidate names, which items should not mention."""


def lint_run(store: RunStore, config: RunConfig) -> Lint:
    """Lint a run's checklists, by their text and the judge's answers.

    Before the run has checklists, those of its benchmark are checked.
    """
    try:
        return look_at_run(store, config).lint
    except StageMissing:
        benchmark = config.benchmark
        return _static_only(checklists_of_benchmark(benchmark, str(benchmark.path)))


def look_at_run(store: RunStore, config: RunConfig) -> LintedRun:
    """Lint a run and return its inputs, too; raise StageMissing before it has checklists."""
    checklists = store.inputs.checklists()
    queries = store.inputs.queries
    try:
        answers = read_judged(store) if answers_yes_or_no(config) else None
    except StageMissing:
        answers = None
    candidates = tuple(sorted(set(answers.table.candidates))) if answers else ()
    static = check_checklists(checklists.values(), queries, candidates)
    source, made = str(store.path), list(checklists.values())
    if answers is None or np.isnan(answers.table.p_yes).all():
        why = NOT_GRADED if answers_yes_or_no(config) else NOT_YES_NO
        lint = make_lint(source, made, static, no_behaviour=why, queries=queries)
    else:
        found, behaviour = _behaviour(store, config, answers, checklists, static)
        lint = make_lint(source, made, static, found, behaviour, queries=queries)
    return LintedRun(lint, checklists, queries, candidates)


def lint_path(path: Path) -> Lint:
    """Lint the checklists of a benchmark folder, a table or a JSON lines file."""
    return _static_only(checklists_of_path(path))


def read_judged(store: RunStore) -> JudgedAnswers:
    """Return the run's answers with mass and bounds; raise StageMissing before grading."""
    table, keys = read_answers(store)

    def column(name: str) -> Floats:
        # Read another column in place of p_yes, with the same layout.
        parts = (part.rename_columns(["key", "p_yes"]) for part in store.judgments(["key", name]))
        return align_answers(table.query_ids, table.candidates, keys, parts).p_yes

    return JudgedAnswers(table, column("mass"), column("p_high") - column("p_low"))


def _behaviour(
    store: RunStore,
    config: RunConfig,
    answers: JudgedAnswers,
    checklists: dict[str, Checklist],
    static: StaticFindings,
) -> tuple[list[ItemFinding], AnswerBehavior]:
    table = answers.table
    gold = mean_by_response(store.inputs.labels())
    responses = zip(table.query_ids, table.candidates, strict=True)
    labels = np.array([gold.get(response, np.nan) for response in responses], dtype=np.float64)
    looked_at = list(item_behaviors(answers, checklists, labels))
    found = [finding for _, findings in looked_at for finding in findings]
    flagged = [*static.findings, *found]
    if is_shared(checklists.values()):
        flagged, _ = merge_shared(flagged, list(checklists))
    nothing = answers_to(each for each in flagged if each.kind in SAYS_NOTHING)
    return found, AnswerBehavior(
        judge=store.judge().model,
        responses=len(table),
        items=len(looked_at),
        labels=int((~np.isnan(labels)).sum()),
        figures=tuple(figures for figures, _ in looked_at),
        influences=tuple(item_influences(table, config.scorer.scale)),
        without_dead_and_redundant=ranking_without(table, nothing),
        without_flagged=ranking_without(table, answers_to(flagged)),
    )


def _static_only(found: FoundChecklists) -> Lint:
    static = check_checklists(found.checklists, found.queries)
    return make_lint(
        found.source,
        list(found.checklists),
        static,
        no_behaviour=NO_RUN,
        queries=found.queries,
    )

"""scorers: which kind of scorer the run's gold speaks for."""

from __future__ import annotations

from collections.abc import Sequence

from rocketeval.audit.selection import ScorerComparison, compare_scorers
from rocketeval.config import RunConfig, ScorerConfig
from rocketeval.errors import BenchmarkError
from rocketeval.records import Gold
from rocketeval.scoring.base import Learner, create_scorer
from rocketeval.scoring.select import DEFAULTS
from rocketeval.scoring.split import split_gold
from rocketeval.stages.answers import read_answers
from rocketeval.store.run import RunStore


def compare_kinds(
    store: RunStore, config: RunConfig, among: Sequence[str] | None
) -> ScorerComparison:
    """Return how each kind of scorer does on the gold that scorers may learn from.

    Candidates held out for the audit stay out of it here too.
    """
    answers, _ = read_answers(store)
    gold = Gold(store.inputs.labels(), store.inputs.votes())
    _refuse_absent(gold, config.scorer.learn_from)
    scorer = _choice(config, among)
    learned = split_gold(gold, set(answers.candidates), scorer).learned
    return compare_scorers(scorer, answers, learned, config.ranking)


def _choice(config: RunConfig, among: Sequence[str] | None) -> ScorerConfig:
    """Return the config of a choice among the wanted kinds, the run's own with its options."""
    own = config.scorer
    if own.kind == "select" and among is None:
        return own
    kinds = list(among or DEFAULTS[own.learn_from])
    if among is None and own.kind not in kinds and isinstance(create_scorer(own), Learner):
        kinds.append(own.kind)
    settings = {own.kind: own.options} if own.kind in kinds else {}
    options = {"among": kinds, "settings": settings}
    return own.model_copy(update={"kind": "select", "options": options})


def _refuse_absent(gold: Gold, learn_from: str) -> None:
    found, other = (
        (gold.labels, gold.votes) if learn_from == "labels" else (gold.votes, gold.labels)
    )
    if found:
        return
    instead = "votes" if learn_from == "labels" else "labels"
    raise BenchmarkError(
        f"The run has no {learn_from}, so scorers cannot be compared on them.",
        hint=f"It has {len(other)} {instead}: set `scorer.learn_from: {instead}`."
        if other
        else f"Add {learn_from} to the benchmark and load it again.",
    )

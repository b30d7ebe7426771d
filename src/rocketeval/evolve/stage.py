"""The evolve stage: propose perspectives from wrongly judged cases, and fit an evaluator.

split -> begin -> rounds (ask, predict, propose, ask, select) -> held-out figures -> evaluator
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from rocketeval.budget import Budget
from rocketeval.config import EvolveConfig, PriceConfig, RunConfig
from rocketeval.engines.base import confirm_recorded, create_engine
from rocketeval.errors import ConfigError
from rocketeval.evolve.artifact import save_evaluator
from rocketeval.evolve.ask import JudgedCases, MakeEngine
from rocketeval.evolve.cases import Case, CaseTable, cases_from_votes, is_one_sided, stacked
from rocketeval.evolve.describe import describe_evaluator
from rocketeval.evolve.evaluator import Evaluator, fit_evaluator
from rocketeval.evolve.history import (
    CallLimit,
    CaseSplit,
    History,
    Round,
    SharedPool,
    Spending,
    best_round,
    learned_from,
    split_cases,
)
from rocketeval.evolve.perspective import (
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    Pool,
    formats_of,
)
from rocketeval.evolve.pool import seed_pool
from rocketeval.evolve.predictions import THRESHOLDS, confidence_table, threshold_for
from rocketeval.evolve.result import (
    EvaluatorCost,
    EvaluatorVerdict,
    Evolution,
    HeldOutFigures,
    PoolFacts,
    SplitPart,
    VerdictConfidence,
    count_cost,
    evaluator_verdict,
    figures_of,
    measured_use,
)
from rocketeval.evolve.rounds import (
    EvolveContext,
    EvolvedPool,
    GoOn,
    InitialPool,
    Rounds,
    make_initial_pool,
    people_in,
    proposed_elsewhere,
)
from rocketeval.evolve.select import weigh_perspectives
from rocketeval.evolve.validate import WITH, Validation, cross_validate
from rocketeval.observer import Observer
from rocketeval.prices import load_prices
from rocketeval.store.codec import encode
from rocketeval.store.run import RunStore
from rocketeval.text import count_of


def evolve_settings(config: RunConfig) -> EvolveConfig:
    """Return the effective settings; raise ConfigError if they are not usable.

    With labels, each response is asked about on its own. The optimizer's price defaults to the one
    in the price file.
    """
    settings = config.evolve
    if config.evaluator is not None:
        raise ConfigError(
            "The config names an `evaluator` to judge with; `evolve` makes a new one.",
            hint="Leave `evaluator` out of the config for this command.",
        )
    if config.distributed.cluster is not None:
        raise ConfigError(
            "`evolve` runs on this machine, not on a cluster.",
            hint="Leave `distributed.cluster` out of the config for this command.",
        )
    if settings.guidelines is not None and settings.optimizer is None:
        raise ConfigError(
            "`evolve.guidelines` needs an optimizer that turns them into questions.",
            hint="Set `evolve.optimizer`, or write the questions into a file of `evolve.seeds`.",
        )
    seed_pool(settings.seeds, formats_of(settings.answers))
    used: dict[str, Any] = {"price": _price(config)}
    if settings.gold == "labels":
        used["asking"] = "each"
    settings = settings.model_copy(update=used)
    _check_money(config, settings)
    return settings


def check_evolvable(config: RunConfig, path: Path | None, *, own_engine: bool) -> None:
    """Raise ConfigError for unusable settings before anything is written or paid for."""
    if own_engine:
        raise ConfigError(
            "Evolution needs one engine per question set, because their labels differ; a single "
            "engine was given.",
            hint="Leave `judge` out of the run, or pass a `make_engine` to `evolve`.",
        )
    evolve_settings(config)
    if path is not None and (path.is_dir() or path.suffix != ".npz"):
        raise ConfigError(
            f"The evaluator cannot be written to {path}: the file name must end in .npz."
        )


def _price(config: RunConfig) -> PriceConfig | None:
    section, price = config.evolve.optimizer, config.evolve.price
    if price is not None or section is None or config.prices is None:
        return price
    return load_prices(config.prices).price(section.model)


def _check_money(config: RunConfig, settings: EvolveConfig) -> None:
    """Raise ConfigError if `max_cost` cannot be enforced: no price, or two currencies."""
    if config.max_cost is None:
        return
    payees = [("judge", config.judge.model, "judge.price", config.judge.price)]
    if settings.optimizer is not None:
        payees.append(("optimizer", settings.optimizer.model, "evolve.price", settings.price))
    for role, model, setting, price in payees:
        if price is None:
            raise ConfigError(
                f"`max_cost` needs a price for the {role} {model!r}, which has none.",
                hint=f"Set `{setting}`, or add the model to the file that `prices` names.",
            )
    if len({price.currency for *_, price in payees if price}) > 1:
        raise ConfigError("`max_cost` cannot add up judge and optimizer: their currencies differ.")


HELD_OUT = "evolve/held_out"
"""Folder of the question sets on the held-out cases."""
OVERALL = "Is the response a good answer to the query as a whole?"
"""Text of the seed that asks for an overall judgment."""
TARGETS = (0.9, 0.8)
"""Target accuracies for a confidence threshold; the first reachable one is used."""


@dataclass(frozen=True, eq=False)
class ChosenSettings:
    """Choices made on the seen cases."""

    best_round: int
    kept: tuple[Perspective, ...]
    overall: Perspective
    """The single prompt that the evaluator is compared with."""

    @property
    def asked(self) -> tuple[Perspective, ...]:
        """Return the perspectives that the judge answers on held-out cases."""
        known = {each.id for each in self.kept}
        return self.kept if self.overall.id in known else (*self.kept, self.overall)


@dataclass(frozen=True, eq=False)
class FinalEvaluator:
    """An evaluator with its held-out figures."""

    chosen: ChosenSettings
    evaluator: Evaluator
    figures: HeldOutFigures
    verdict: EvaluatorVerdict
    confidence: VerdictConfidence | None
    cost: EvaluatorCost
    failed: int
    missing: int


async def finish_evolution(
    context: EvolveContext, split: CaseSplit, evolved: EvolvedPool
) -> FinalEvaluator:
    """Return the evaluator of the best round's pool, measured on the held-out cases."""
    settings = context.settings
    view = evolved.view
    chosen = await context.fit(choose, view.pool, view.table, view.kept, evolved.rounds, settings)
    asked = await context.ask(chosen.asked, split.held_out, HELD_OUT, "held out")
    context.observer.part_began("held out", 1, 1)
    context.observer.stage_entered("fit")
    return await context.fit(_measure, context, split, evolved, chosen, asked)


def choose(
    pool: Pool,
    table: CaseTable,
    kept: tuple[str, ...],
    rounds: tuple[Round, ...],
    settings: EvolveConfig,
) -> ChosenSettings:
    """Select perspectives from the best round's pool and from those people added.

    Questions about queries are kept up to the limit: each costs one question per query, and the
    seen queries are too few to rule it out.
    """
    best = best_round(rounds)
    there = Pool(
        each for each in pool if each.round <= best or each.origin is PerspectiveOrigin.PERSON
    )
    if len(there) < len(pool):
        standings = weigh_perspectives(table.narrow(each.id for each in there), settings)
        there = there.weigh(standings.by_id())
        kept = standings.keep(settings.most_about_responses, settings.most_about_queries)
    chosen = tuple(there[name] for name in kept)
    routing = [each for each in chosen if each.kind is PerspectiveKind.QUERY]
    others = [each for each in there.of(PerspectiveKind.QUERY) if each not in routing]
    chosen += tuple(others[: settings.most_about_queries - len(routing)])
    return ChosenSettings(best, chosen, _overall(there, chosen))


def _overall(pool: Pool, kept: tuple[Perspective, ...]) -> Perspective:
    """Return the perspective for an overall judgment; without one, the most important."""
    for each in pool.of(PerspectiveKind.RESPONSE):
        if each.text == OVERALL:
            return each
    about_responses = [each for each in kept if each.kind is PerspectiveKind.RESPONSE]
    return max(about_responses, key=lambda each: each.importance or 0.0)


def _measure(
    context: EvolveContext,
    split: CaseSplit,
    evolved: EvolvedPool,
    chosen: ChosenSettings,
    asked: JudgedCases,
) -> FinalEvaluator:
    settings, config = context.settings, context.config
    seen, held_out = evolved.view.asked, asked
    kept = [each.id for each in chosen.kept]
    validation = cross_validate(
        held_out.table,
        settings,
        learn_also=seen.table.narrow(each.id for each in chosen.asked),
        overall=chosen.overall.id,
        kept=kept,
    )
    whole = stacked(held_out.table.narrow(kept), seen.table.narrow(kept))
    evaluator = fit_evaluator(whole, settings)
    figures = figures_of(validation, chosen.overall.text)
    verdict = evaluator_verdict(figures).noting(_caveats(context, evolved.view.pool))
    confidence = _confidence(validation, held_out.table)
    used = measured_use(context.store, HELD_OUT, held_out.question_sets)
    cost = count_cost(
        evaluator.asked, chosen.overall, split.cases, settings.asking, used, config.judge.price
    )
    notes = {
        **_notes(context, split, evolved, evaluator, whole),
        "figures": {**encode(figures), "worth": verdict.words},
        "confidence": encode(confidence.rows) if confidence else [],
        "threshold": confidence.threshold if confidence else None,
        "cost": encode(cost),
    }
    judges = {**seen.judges, **held_out.judges}
    counts = evaluator.provenance["counts"]
    return FinalEvaluator(
        chosen,
        evaluator.documented(judges, notes),
        figures,
        verdict,
        confidence,
        cost,
        sum(facts.failed for one in (seen, held_out) for facts in one.question_sets.values()),
        counts["missing answers"] + counts["missing traits"],
    )


def _caveats(context: EvolveContext, pool: Pool) -> Iterator[str]:
    """Yield what else a reader of the held-out figures must know."""
    votes = context.store.inputs.votes() if context.settings.gold == "votes" else ()
    if is_one_sided(cases_from_votes(votes)):
        yield (
            "One side wins nearly all pairs of the votes, so the order of each pair was drawn at "
            "random."
        )
    seeds = proposed_elsewhere(pool)
    if seeds:
        some = count_of(seeds, "seed is", "seeds are")
        yield (
            f"{some} from rounds of another run; if those learned from queries that are held out "
            "here, the figures are too optimistic."
        )


def _confidence(validation: Validation, table: CaseTable) -> VerdictConfidence | None:
    predictions = validation.arms[WITH].predictions
    if predictions is None or predictions.probabilities is None:
        return None
    gold, query_ids = validation.gold, validation.query_ids
    for target in TARGETS:
        threshold = threshold_for(target, predictions, gold, query_ids)
        if threshold is not None:
            rows = confidence_table(predictions, gold, query_ids, sorted({*THRESHOLDS, threshold}))
            unsure = np.argsort(predictions.confidence, kind="stable").tolist()
            names = tuple(
                table.cases[validation.rows[place]].name
                for place in unsure
                if predictions.confidence[place] < threshold
            )
            return VerdictConfidence(rows, target, threshold, names)
    return VerdictConfidence(confidence_table(predictions, gold, query_ids), None, None, ())


def _notes(
    context: EvolveContext,
    split: CaseSplit,
    evolved: EvolvedPool,
    evaluator: Evaluator,
    whole: CaseTable,
) -> dict[str, Any]:
    """Return the provenance that the evaluator does not record itself."""
    expert = evaluator.predict_table(whole).expert
    used = {each.id for each in (*evaluator.about_responses, *evaluator.about_queries)}
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "benchmark": str(context.config.benchmark.path.name),
        "cases": len(whole),
        "learned_from": learned_from(context.store.inputs.queries, split.cases),
        "rounds": [encode(_brief(done)) for done in evolved.rounds],
        "cases by expert": np.bincount(expert, minlength=len(evaluator.experts)).tolist(),
        "ancestors": [_named(each) for each in _ancestors(evolved.view.pool, used)],
    }


def _brief(done: Round) -> Mapping[str, Any]:
    """Return the main fields of a round."""
    names = ("round", "pool", "mistakes", "proposed", "dropped", "before", "after")
    return {name: getattr(done, name) for name in names}


def _ancestors(pool: Pool, used: set[str]) -> list[Perspective]:
    """Return all unused ancestors of the perspectives in use."""
    by_id = {each.id: each for each in pool}
    found: dict[str, Perspective] = {}
    left = [parent for name in used if name in by_id for parent in by_id[name].parents]
    while left:
        name = left.pop()
        if name in by_id and name not in used and name not in found:
            found[name] = by_id[name]
            left += by_id[name].parents
    return [each for each in pool if each.id in found]


def _named(each: Perspective) -> dict[str, Any]:
    learned = ("importance", "stability")
    facts = {name: value for name, value in encode(each).items() if name not in learned}
    return {"id": each.id, **facts}


async def evolve_run(
    store: RunStore,
    config: RunConfig,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None,
    *,
    go_on: GoOn,
    path: Path | None = None,
    make_engine: MakeEngine = create_engine,
) -> Evolution:
    """Continue the evolution of a loaded run, write its evaluator, and return the result.

    `go_on` raises when the command was stopped or reached its cost limit. All answers are kept, so
    the next command continues from there.
    """
    settings = evolve_settings(config)
    split = split_cases(store.inputs, settings)
    history = History(store.evolve_folder / "rounds.jsonl")
    finished_rounds = len(history.read(split.digest))
    spending = Spending(store.evolve_folder / "spent.jsonl")
    shared = SharedPool(store.pool_path, settings.answers, history)
    limit = CallLimit(settings, split, spending)
    context = EvolveContext(
        store, config, settings, observer, stop, budget, go_on, make_engine, spending
    )
    optimizer = context.open_optimizer()
    try:
        initial = await make_initial_pool(context, optimizer, shared, limit, finished_rounds)
        rounds = Rounds(context, split, history, shared, limit, optimizer)
        evolved = await rounds.go_on(initial.pool)
        confirm_recorded(optimizer, everything=True)
    finally:
        if optimizer is not None:
            await optimizer.aclose()
    finished = await finish_evolution(context, split, evolved)
    path = path or store.evaluator_path
    save_evaluator(finished.evaluator, path)
    found = _evolution(context, split, initial, evolved, finished, path)
    store.save(found)
    return found


def _evolution(
    context: EvolveContext,
    split: CaseSplit,
    initial: InitialPool,
    evolved: EvolvedPool,
    finished: FinalEvaluator,
    path: Path,
) -> Evolution:
    settings, config, pool = context.settings, context.config, evolved.view.pool
    evaluator = finished.evaluator
    rounds = evolved.rounds
    return Evolution(
        created=evaluator.provenance["created"],
        benchmark=str(config.benchmark.path),
        gold=settings.gold,
        asking=settings.asking,
        judge=config.judge.model,
        optimizer=settings.optimizer.model if settings.optimizer else None,
        seen=_part(split.seen),
        held_out=_part(split.held_out),
        pool=PoolFacts(
            len(pool),
            people_in(pool),
            initial.new_people + evolved.joined,
            _people_before_figures(context.store, people_in(pool)),
            evolved.waiting,
            initial.elsewhere,
            dict(Counter(each.origin.value for each in pool)),
            len(evaluator.about_responses) + len(evaluator.about_queries),
            initial.refused,
            proposed_elsewhere(pool),
        ),
        beginning=rounds[0].before if rounds else evolved.view.measured,
        rounds=rounds,
        best_round=finished.chosen.best_round,
        stopped=evolved.stopped,
        figures=finished.figures,
        worth=finished.verdict,
        evaluator=describe_evaluator(evaluator),
        confidence=finished.confidence,
        cost=finished.cost,
        spent=context.spending.facts(config.judge.price, settings.price),
        failed=finished.failed,
        missing=finished.missing,
        path=path,
        pool_path=context.store.pool_path,
    )


def _people_before_figures(store: RunStore, people: int) -> int:
    """Return the number of perspectives people had added at the end of the first command."""
    earlier = store.read_if_made(Evolution)
    return people if earlier is None else earlier.pool.people_before_figures


def _part(cases: Sequence[Case]) -> SplitPart:
    return SplitPart(len(cases), len({case.query_id for case in cases}))

"""The two ways a run can judge: with checklists, or with a trained evaluator.

`pipeline.Run` delegates to its strategy what differs between them: checks, plan, checklists,
judgments and scores. Everything after the scores is the same for both.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from rocketeval.errors import ConfigError, used_as
from rocketeval.observer import Observer

if TYPE_CHECKING:
    from rocketeval.budget import Budget
    from rocketeval.config import AuthorConfig, RunConfig
    from rocketeval.engines.base import Engine
    from rocketeval.grading.work import GradingWork
    from rocketeval.store.manifest import ChecklistFacts, GradeFacts, Plan, ScoreFacts
    from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class RunContext:
    """The objects that every stage of a run uses."""

    store: RunStore
    config: RunConfig
    observer: Observer
    stop: asyncio.Event
    """Set when no new work may start."""
    budget: Budget | None
    engine: Engine | None
    """A judge created in Python; None if the config describes it."""
    contacted: list[Engine]
    """The judge, if it was contacted before checklists are written; grading reuses it."""
    author: AuthorConfig
    """The config's author, even if the strategy or the method needs none."""

    @property
    def given_config(self) -> RunConfig:
        """The config with its original author, which another method may need."""
        return self.config.model_copy(update={"author": self.author})


class Strategy(Protocol):
    """A way to judge a run."""

    def check_config(self) -> None:
        """Raise if a section of the config is wrong, before anything is written or spent."""

    def check_inputs(self) -> None:
        """Raise if the loaded benchmark does not suit the config."""

    def check_cluster(self) -> None:
        """Raise ConfigError if the run cannot be judged on a cluster."""

    async def plan(self, *, most_prompts: int | None, rate: float | None, probe: bool) -> Plan:
        """Return the size and the cost of the run; the judge may be contacted."""

    async def plan_offline(self, *, rate: float | None) -> Plan:
        """Return a plan without contacting a server or writing a file."""

    async def make_checklists(self, *, to_judge: bool) -> ChecklistFacts:
        """Give every query its checklist.

        With `to_judge`, grading follows, so the judge must be reachable before an author is paid.
        """

    async def grade(self, only: Collection[tuple[str, str]] | None = None) -> GradeFacts:
        """Let the judge answer every unanswered item, or those about the responses `only`."""

    def score(self) -> ScoreFacts:
        """Turn judgments into scores."""


def effective_config(config: RunConfig) -> RunConfig:
    """Return the config with the judge and author settings of its method or evaluator."""
    from rocketeval.config import AuthorConfig
    from rocketeval.grading.methods import with_method

    decided = with_method(config)
    if decided.evaluator is None:
        return decided
    # The evaluator has its own questions and needs no author.
    return decided.model_copy(update={"author": AuthorConfig()})


def choose_strategy(context: RunContext) -> Strategy:
    """Return the strategy for the config."""
    if context.config.evaluator is not None:
        return EvaluatorStrategy(context)
    return ChecklistStrategy(context)


class ChecklistStrategy:
    """The strategy with checklists by an author, answers by the judge and scores by a scorer."""

    def __init__(self, context: RunContext) -> None:
        self._run = context

    def check_config(self) -> None:
        """Check every section, and that the judge is the one of earlier grading."""
        from rocketeval.checklists.base import AUTHORS
        from rocketeval.engines.base import create_engine
        from rocketeval.grading.methods import create_method
        from rocketeval.prices import check_limit
        from rocketeval.scoring.base import create_scorer

        config, own_engine = self._run.config, self._run.engine is not None
        AUTHORS.get(config.author.kind)
        create_scorer(config.scorer)
        check_limit(config)
        method = create_method(config)
        if config.distributed.cluster is not None:
            from rocketeval.distributed.stage import check_cluster

            check_cluster(config, own_engine=own_engine)
        elif not own_engine:
            create_engine(config.judge)
        if not own_engine:
            self._run.store.refuse_other_judge(config.judge.model, method.hash)

    def check_inputs(self) -> None:
        """Check that the scorer can learn from the available labels and votes."""
        from rocketeval.scoring.stage import check_learnable

        check_learnable(self._run.store, self._run.config.scorer)
        if self._run.config.until is not None:
            from rocketeval.stopping.stage import check_until

            check_until(self._run.store, self._run.config)

    def check_cluster(self) -> None:
        """Allow any cluster."""

    async def plan(self, *, most_prompts: int | None, rate: float | None, probe: bool) -> Plan:
        """Count the remaining work, with the judge's tokenizer if it has one."""
        from rocketeval.grading.plan import make_plan

        run, engine = self._run, self._make_engine()
        try:
            with used_as("judge"):
                return await make_plan(
                    run.store, run.config, engine, most_prompts=most_prompts, rate=rate, probe=probe
                )
        finally:
            await engine.aclose()

    async def plan_offline(self, *, rate: float | None) -> Plan:
        """Estimate the tokens from the texts."""
        from rocketeval.grading.plan import make_plan

        return await make_plan(self._run.store, self._run.config, None, rate=rate)

    async def make_checklists(self, *, to_judge: bool) -> ChecklistFacts:
        """Let the author write missing checklists."""
        from rocketeval.checklists.stage import make_checklists

        run = self._run
        # On a cluster, the judge may be unreachable from here; the workers identify it.
        here = run.config.distributed.cluster is None
        contact = self._contact_judge if here else self._find_cluster
        with used_as("author"):
            return await make_checklists(
                run.store,
                run.config,
                run.observer,
                run.stop,
                run.budget,
                before_paying=contact if to_judge else None,
            )

    async def grade(self, only: Collection[tuple[str, str]] | None = None) -> GradeFacts:
        """Judge on this machine, or on the cluster that the config names.

        `only`: query and candidate of the responses to judge; then `until` is not used.
        """
        run = self._run
        if run.config.distributed.cluster is not None:
            from rocketeval.distributed.stage import grade_on_ray

            return await grade_on_ray(run.store, run.config, run.observer, run.stop)
        from rocketeval.grading.stage import ChosenResponses, grade_responses
        from rocketeval.stopping.stage import RacedWork, forget_race

        rounds: list[RacedWork | ChosenResponses] = []

        def choose_tasks(work: GradingWork) -> RacedWork | ChosenResponses:
            chosen = RacedWork(work, run.config) if only is None else ChosenResponses(work, only)
            rounds.append(chosen)
            return chosen

        everything = only is None and run.config.until is None
        if everything or only is not None:
            forget_race(run.store)
        contacted = bool(run.contacted)
        engine = run.contacted.pop() if contacted else self._make_engine()
        try:
            with used_as("judge"):
                facts = await grade_responses(
                    run.store,
                    run.config,
                    engine,
                    run.observer,
                    run.stop,
                    run.budget,
                    own_engine=run.engine is not None,
                    contacted=contacted,
                    make_rounds=None if everything else choose_tasks,
                )
                return rounds[-1].finish(facts) if rounds else facts
        finally:
            await engine.aclose()

    def score(self) -> ScoreFacts:
        """Score with the config's scorer."""
        from rocketeval.scoring.stage import score_responses
        from rocketeval.stopping.stage import used_responses

        used = used_responses(self._run.store)
        return score_responses(self._run.store, self._run.config, used)

    async def _contact_judge(self) -> None:
        from rocketeval.grading.stage import contact_judge

        run = self._run
        engine = self._make_engine()
        run.contacted.append(engine)
        with used_as("judge"):
            asked = await contact_judge(run.store, run.config, engine, run.observer, run.budget)
        if not asked:
            await run.contacted.pop().aclose()

    async def _find_cluster(self) -> None:
        from rocketeval.distributed.cluster import check_reachable

        cluster = self._run.config.distributed.cluster
        assert cluster is not None
        await asyncio.to_thread(check_reachable, cluster)

    def _make_engine(self) -> Engine:
        from rocketeval.engines.base import create_engine

        run = self._run
        return run.engine or create_engine(run.config.judge, run.store.engine_home("judge"))


class EvaluatorStrategy:
    """The strategy with an evaluator, whose perspectives are the checklist."""

    def __init__(self, context: RunContext) -> None:
        self._run = context

    def check_config(self) -> None:
        """Check that the evaluator fits the judge and the run."""
        from rocketeval.engines.base import create_engine
        from rocketeval.evolve.apply_setup import check_usable
        from rocketeval.prices import check_limit

        check_limit(self._run.config)
        if self._run.config.until is not None:
            raise ConfigError(
                "A run with an evaluator is judged as a whole and cannot stop early.",
                hint="Drop --until, or grade with checklists.",
            )
        check_usable(self._run.config, own_engine=self._run.engine is not None)
        create_engine(self._run.config.judge)
        self._run.store.check_derivable()

    def check_inputs(self) -> None:
        """Accept any benchmark, since nothing is learned."""

    def check_cluster(self) -> None:
        """Raise ConfigError, since an evaluator uses several engines."""
        raise ConfigError(
            "A run with an evaluator uses one machine, so there is no cluster to plan.",
            hint="Drop --cluster.",
        )

    async def plan(self, *, most_prompts: int | None, rate: float | None, probe: bool) -> Plan:
        """Add up the plans of all question sets."""
        from rocketeval.engines.base import create_engine
        from rocketeval.evolve.apply_grade import plan_with_evaluator
        from rocketeval.evolve.apply_setup import open_evaluator

        run = self._run
        return await plan_with_evaluator(
            run.store,
            run.config,
            open_evaluator(run.config),
            create_engine,
            most_prompts=most_prompts,
            rate=rate,
            probe=probe,
        )

    async def plan_offline(self, *, rate: float | None) -> Plan:
        """Add up the offline plans of all question sets."""
        from rocketeval.evolve.apply_grade import plan_with_evaluator
        from rocketeval.evolve.apply_setup import open_evaluator

        run, given = self._run, open_evaluator(self._run.config)
        return await plan_with_evaluator(run.store, run.config, given, None, rate=rate)

    async def make_checklists(self, *, to_judge: bool) -> ChecklistFacts:
        """Write the evaluator's perspectives as every query's checklist, at no cost."""
        from rocketeval.evolve.apply_setup import give_checklists, not_used, open_evaluator

        run = self._run
        facts = give_checklists(run.store, open_evaluator(run.config), run.observer)
        return replace(facts, not_used=not_used(run.given_config))

    async def grade(self, only: Collection[tuple[str, str]] | None = None) -> GradeFacts:
        """Ask the judge about the evaluator's perspectives, one question set after the other."""
        if only is not None:
            raise ConfigError("A run with an evaluator is judged as a whole, not in part.")
        from rocketeval.evolve.apply_grade import grade_with_evaluator
        from rocketeval.evolve.apply_setup import open_evaluator

        run, given = self._run, open_evaluator(self._run.config)
        return await grade_with_evaluator(
            run.store, run.config, given, run.observer, run.stop, run.budget
        )

    def score(self) -> ScoreFacts:
        """Turn the evaluator's decisions into scores."""
        from rocketeval.evolve.apply_score import score_with_evaluator

        return score_with_evaluator(self._run.store, self._run.config)

"""The walk of a run, one call a stage: a table of contents.

    load -> checklist -> grade -> score -> rank -> audit -> explain -> report

Every stage reads what earlier stages left in the run's store and leaves its own. Stages compute
with records; only the store touches run files, only engines touch the network.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from rocketeval.budget import Budget
from rocketeval.config import RunConfig, with_tie_margin
from rocketeval.engines.base import Engine, create_engine
from rocketeval.errors import (
    BenchmarkError,
    ChecklistError,
    ConfigError,
    EngineRefused,
    RocketEvalError,
    Stopped,
)
from rocketeval.exports.formats import make_request
from rocketeval.observer import Observer
from rocketeval.prices import currency, with_prices
from rocketeval.store.manifest import (
    MOST_PROMPTS,
    ChecklistFacts,
    EvolveFacts,
    GradeFacts,
    LoadFacts,
    Plan,
    ScoreFacts,
    StageFacts,
    Stages,
)
from rocketeval.store.run import RunStore
from rocketeval.strategy import RunContext, Strategy, choose_strategy, effective_config
from rocketeval.workers import GO_ON

if TYPE_CHECKING:
    from rocketeval.audit.audit import Audit
    from rocketeval.audit.compare_scorers import ScorerComparison
    from rocketeval.audit.item_gold import ItemGold
    from rocketeval.audit.methods import MethodComparison
    from rocketeval.capacity.model import Capacity, CapacityOptions
    from rocketeval.compare.labeling import Advice
    from rocketeval.compare.pair import Comparison
    from rocketeval.compare.stage import Estimates, LabelScope
    from rocketeval.evolve.ask import MakeEngine
    from rocketeval.evolve.result import Evolution
    from rocketeval.explain.candidate import CandidateExplanation
    from rocketeval.explain.stage import Explanation, QueryExplanation
    from rocketeval.exports.folder import Exported
    from rocketeval.judges.reliability import JudgeReliability
    from rocketeval.lint.lint import Lint
    from rocketeval.lint.rewrite import Fixes
    from rocketeval.ranking.rank import Ranking


FactsT = TypeVar("FactsT", bound=StageFacts)


@dataclass(frozen=True)
class Outcome:
    """What a finished run found."""

    path: Path
    """The run directory; everything below is also there as files."""
    ranking: Ranking
    audit: Audit
    report: Path
    """The page for people."""
    stages: Stages
    """What each stage did: counts, missing, cost, seconds."""


@dataclass
class _StageInProgress(Generic[FactsT]):
    facts: FactsT


class Run:
    """One run: a config, its directory, and the stages that fill it."""

    def __init__(
        self, config: RunConfig, *, observer: Observer | None = None, judge: Engine | None = None
    ) -> None:
        given = with_tie_margin(with_prices(config))
        self.config = effective_config(given)
        limit = config.max_cost
        self.budget = None if limit is None else Budget(limit, currency(self.config))
        """What may still be spent; None when the config sets no limit."""
        self.store = RunStore(config.run_path)
        self.observer = observer or Observer()
        self.stop = asyncio.Event()
        """Set it to start nothing more, and end what is in flight within seconds."""
        self.stoppable = False
        """Whether a stage is running that heeds `stop`."""
        self._judge = judge
        self._contacted: list[Engine] = []
        self._author = given.author
        self._within: Run | None = None

    async def all(self) -> Outcome:
        """Run every stage and return what was found; Stopped if it was asked to stop."""
        with self.store.locked():
            await self.to_judgments()
            self.score()
            ranking, audit = self.rank(), self.audit()
            self.explain()
            report = self.report()
            stages = self.store.manifest().stages
        return Outcome(self.store.path, ranking, audit, report, stages)

    async def to_checklists(self) -> ChecklistFacts:
        """Run the stages up to the checklists; return what the last of them did."""
        self.load()
        return await self.checklist()

    async def to_judgments(self) -> GradeFacts:
        """Run the stages up to grading; return what the last of them did."""
        self.load()
        return await self._judge_loaded()

    async def plan(
        self,
        *,
        most_prompts: int | None = MOST_PROMPTS,
        rate: float | None = None,
        probe: bool = False,
    ) -> Plan:
        """Return what the run would do and cost, and keep it beside the run for its bill."""
        self.check_config()
        with self.store.locked():
            plan = await self._strategy.plan(most_prompts=most_prompts, rate=rate, probe=probe)
            self.store.save_plan(plan)
        return plan

    async def plan_offline(self, *, rate: float | None = None) -> Plan:
        """Return the same as far as it is known without contacting or writing anything."""
        self.check_config()
        return await self._strategy.plan_offline(rate=rate)

    async def plan_cluster(
        self, plan: Plan, given: CapacityOptions | None = None, *, probed: bool = False
    ) -> Capacity:
        """Return what the planned run, and more of its kind, would take on many replicas.

        `probed`: the plan's own rate was measured just now, and goes before that of the run.
        """
        from rocketeval.capacity.model import CapacityOptions, plan_capacity
        from rocketeval.capacity.stage import measure

        self._strategy.check_cluster()
        measured = await measure(self.store, self.config, plan, probed=probed)
        return plan_capacity(given or CapacityOptions(), measured)

    def load(self) -> LoadFacts:
        """Snapshot the benchmark into the run, after a look at everything that can be wrong."""
        from rocketeval.audit.stage import check_references
        from rocketeval.benchmarks.load import load_inputs
        from rocketeval.ranking.stage import check_anchor

        self.check_config()
        with self._stage("load", LoadFacts()) as done:
            done.facts = load_inputs(self.store, self.config)
            check_anchor(self.store, self.config)
            self._strategy.check_inputs()
            check_references(self.store, self.config)
            self.store.freeze(self._as_given())
        return done.facts

    async def checklist(self, *, to_judge: bool = False) -> ChecklistFacts:
        """Give every query its checklist; `to_judge`: after a look at the judge, who is next."""
        with self._stage("checklist", ChecklistFacts()) as done, self._heeding_stop():
            done.facts = await self._strategy.make_checklists(to_judge=to_judge)
        self._raise_if_stopped(f"{done.facts.unwritten} checklists are not written")
        return done.facts

    def lint(self) -> Lint:
        """Say what is wrong with checklist items, by words and answers; writes nothing."""
        from rocketeval.lint.stage import lint_run

        return lint_run(self.store, self.config)

    async def propose_fixes(
        self,
        path: Path | None = None,
        *,
        kinds: Sequence[str] = (),
        query_id: str | None = None,
        force: bool = False,
    ) -> Fixes:
        """Let the author LLM propose other items for those that lint flags; the run stays as it is.

        All checklists, with what is proposed, are written to `path` (.yaml or .csv), ready for
        `author.kind: file`. `kinds` and `query_id` narrow what is rewritten. What was paid for is
        kept beside authored checklists, and never asked for again.
        """
        from rocketeval.lint.fix import check_fixable, propose_fixes

        author = check_fixable(self.store, self._as_given(), path, force=force)
        with self.store.locked(), self._heeding_stop():
            fixes = await propose_fixes(
                self.store,
                self._as_given(),
                author,
                self.observer,
                self.stop,
                self.budget,
                path=path,
                kinds=kinds,
                query_id=query_id,
            )
        if fixes.unasked:
            price = self._author.price
            left = f"{fixes.unasked} checklists are not rewritten"
            self._raise_if_stopped(left, price.currency if price else None)
        return fixes

    async def evolve(
        self, path: Path | None = None, *, make_engine: MakeEngine = create_engine
    ) -> Evolution:
        """Make an evaluator that learned from gold and from what it judged wrongly.

        It is written to `path`, or into the run. A later call goes on after the last round.
        `make_engine` makes the judge of each sheet, and the optimizer, from their sections.
        """
        from rocketeval.benchmarks.load import load_inputs
        from rocketeval.evolve.stage import check_evolvable, evolve_run

        check_evolvable(self.config, path, own_engine=self._judge is not None)
        with self.store.locked():
            # Not `load`: what is judged here is kept apart from the judgments of the run itself.
            with self._stage("load", LoadFacts()) as loaded:
                loaded.facts = load_inputs(self.store, self.config)
                self.store.freeze(self._as_given())
            with self._stage("evolve", EvolveFacts()) as done, self._heeding_stop():
                found = await evolve_run(
                    self.store,
                    self.config,
                    self.observer,
                    self.stop,
                    self.budget,
                    go_on=self._raise_if_stopped,
                    path=path,
                    make_engine=make_engine,
                )
                done.facts = EvolveFacts(rounds=len(found.rounds), path=str(found.path))
        return found

    async def grade(self) -> GradeFacts:
        """Let the judge answer every item that is still unanswered."""
        with self._stage("grade", GradeFacts()) as done, self._heeding_stop():
            done.facts = await self._strategy.grade()
        left, tasks = done.facts.unfinished, done.facts.tasks
        self._raise_if_stopped(f"{left} of {tasks} responses are not judged")
        return done.facts

    def score(self) -> ScoreFacts:
        """Turn judgments into scores."""
        with self._stage("score", ScoreFacts()) as done:
            done.facts = self._strategy.score()
        return done.facts

    def rank(self) -> Ranking:
        """Turn scores into ratings and ranks."""
        from rocketeval.ranking.stage import rank_candidates

        with self._stage("rank", StageFacts()):
            return rank_candidates(self.store, self.config)

    def audit(self) -> Audit:
        """Compare the scores with votes, labels and reference ratings."""
        from rocketeval.audit.stage import audit_run

        with self._stage("audit", StageFacts()):
            return audit_run(self.store, self.config)

    async def compare_methods(self, methods: Sequence[str]) -> MethodComparison:
        """Grade and score in every way named, and hold all of them against the same gold.

        Each is METHOD[:option=value...][+SCORER[:option=value...]], such as `direct` or
        `checklist+extra_trees`. What is graded already is not paid for again.
        """
        from rocketeval.audit.stage import (
            compare_variants,
            method_config,
            parse_variants,
            variant_scorer,
        )
        from rocketeval.scoring.stage import check_learnable

        variants = parse_variants(methods)
        given = self._as_given()
        runs = {each.name: self._inside(method_config(given, each)) for each in variants}
        scorers = {each.name: variant_scorer(self.config.scorer, each) for each in variants}
        for run in runs.values():
            run.check_config()
        with self.store.locked():
            distinct = {run.store.path: run for run in runs.values()}
            for run in distinct.values():
                run.load()
            for name, run in runs.items():
                check_learnable(run.store, scorers[name])
            refused = await self._grade_each(distinct)
            stores = {name: run.store for name, run in runs.items()}
            comparison = compare_variants(self.config, stores, variants, refused)
            self.store.save(comparison)
        return comparison

    def compare_judges(self, paths: Sequence[Path]) -> JudgeReliability:
        """Say how far this run's judge and those of other runs, by folder or config, agree."""
        from rocketeval.judges.reliability import compare_judges
        from rocketeval.judges.runs import JudgedRun, open_run

        with self.store.locked():
            runs = [JudgedRun(self.store, self.config), *map(open_run, paths)]
            found = compare_judges(runs, self.config.ranking)
            self.store.save(found)
        return found

    def hold_against_item_gold(self, path: Path) -> ItemGold:
        """Compare the judge's answers with gold answers to the same items, from a file of rows."""
        from rocketeval.audit.item_gold import compare_with_item_gold

        with self.store.locked():
            found = compare_with_item_gold(self.store, self.config, path)
            self.store.save(found)
        return found

    def explain(self) -> Explanation:
        """Say where each candidate loses against its neighbours in the ranking."""
        from rocketeval.explain.stage import explain_run

        with self._stage("explain", StageFacts()):
            return explain_run(self.store, self.config)

    def explain_candidate(self, candidate: str, most: int) -> CandidateExplanation:
        """Say where one candidate loses and gains, with as many items as wanted; writes nothing."""
        from rocketeval.explain.stage import explain_candidate

        return explain_candidate(self.store, self.config, candidate, most)

    def explain_query(self, query_id: str) -> QueryExplanation:
        """Say what each item of one query's checklist adds; writes nothing."""
        from rocketeval.explain.stage import explain_query

        return explain_query(self.store, self.config, query_id)

    def compare(
        self, first: str, second: str, *, min_effect: float | None = None, level: float = 0.95
    ) -> Comparison:
        """Say whether one candidate is better than another; writes nothing."""
        from rocketeval.compare.stage import compare_candidates

        return compare_candidates(self.store, self.config, first, second, min_effect, level)

    def estimate(self, choice: LabelScope, *, level: float = 0.95) -> Estimates:
        """Estimate mean labels from the labels there are and all scores; writes nothing."""
        from rocketeval.compare.stage import estimate_labels

        return estimate_labels(self.store, self.config, choice, level)

    def advise(
        self, choice: LabelScope, *, more: int = 20, seed: int = 0, level: float = 0.95
    ) -> Advice:
        """Choose what to label next, and say what it buys; writes nothing."""
        from rocketeval.compare.stage import advise_labels

        return advise_labels(self.store, choice, more, seed, level)

    def compare_scorers(self, among: Sequence[str] | None = None) -> ScorerComparison:
        """Say how kinds of scorers do on gold they have not seen; writes nothing."""
        from rocketeval.audit.compare_scorers import compare_kinds

        return compare_kinds(self.store, self.config, among)

    def report(self) -> Path:
        """Write report.html."""
        from rocketeval.report.stage import write_report

        with self._stage("report", StageFacts()):
            return write_report(self.store, self.config)

    def export(
        self,
        to: str | None,
        path: Path,
        *,
        what: str | None = None,
        force: bool = False,
        raw: bool = False,
        bom: bool = False,
    ) -> Exported:
        """Write what the run found to `path`, in one of `exports.formats.FORMATS`.

        Without `to`, the ending of `path` says which. `force` replaces what is there.
        """
        from rocketeval.exports.stage import export_run

        request = make_request(to, what, path, raw=raw, bom=bom)
        return export_run(self.store, self.config, request, path, force=force)

    def check_config(self) -> None:
        """Find a mistake in any section before anything is written or paid for."""
        self._strategy.check_config()

    async def _judge_loaded(self) -> GradeFacts:
        try:
            await self.checklist(to_judge=True)
            return await self.grade()
        finally:
            while self._contacted:
                await self._contacted.pop().aclose()

    @property
    def _strategy(self) -> Strategy:
        engines = (self._judge, self._contacted)
        context = RunContext(
            self.store, self.config, self.observer, self.stop, self.budget, *engines, self._author
        )
        return choose_strategy(context)

    def _as_given(self) -> RunConfig:
        """Return the config with its own author, also where the method asks something else.

        Another method, later, asks what that author writes.
        """
        return self.config.model_copy(update={"author": self._author})

    def _inside(self, config: RunConfig) -> Run:
        """Return the run of another config that spends, stops and reports with this one."""
        if config.run_path == self.store.path:
            return self
        run = Run(config, observer=self.observer, judge=self._judge)
        if self._judge is not None and run.config.judge.labels != self.config.judge.labels:
            raise ConfigError(
                f"The method {config.method.kind!r} asks for other answers than the given engine "
                "was made for.",
                hint="Let the run make its own engine from the config.",
            )
        run.budget, run.stop, run._within = self.budget, self.stop, self
        return run

    async def _grade_each(self, runs: Mapping[Path, Run]) -> dict[Path, str]:
        """Grade every run; return why some could not be, by their path.

        What this judge cannot do must not cost the other methods their comparison.
        """
        refused: dict[Path, RocketEvalError] = {}
        for number, (path, run) in enumerate(runs.items(), 1):
            method = run.config.method
            named = ":".join([method.kind, *(f"{k}={v}" for k, v in method.options.items())])
            self.observer.part_began(named, number, len(runs))
            try:
                await run._judge_loaded()
            except (BenchmarkError, ChecklistError, EngineRefused) as error:
                refused[path] = error
        if len(refused) == len(runs):
            raise next(iter(refused.values()))
        return {path: error.message for path, error in refused.items()}

    @contextmanager
    def _heeding_stop(self) -> Iterator[None]:
        whole = self._within or self
        whole.stoppable = True
        try:
            yield
        finally:
            whole.stoppable = False

    def _raise_if_stopped(self, left: str, currency: str | None = None) -> None:
        if self.stop.is_set():
            raise Stopped("Stopped before the end.", hint=GO_ON)
        if self.budget and self.budget.refused:
            raise self.budget.spent_out(left, currency)

    @contextmanager
    def _stage(self, name: str, facts: FactsT) -> Iterator[_StageInProgress[FactsT]]:
        """Time a stage and record its `facts`, which it replaces by what it did."""
        started = time.monotonic()
        self.observer.stage_entered(name)
        done = _StageInProgress(facts)
        with self.store.locked():
            yield done
            done.facts = replace(done.facts, seconds=round(time.monotonic() - started, 3))
            self.store.record_stage(name, done.facts)
        self.observer.stage_ended(name, done.facts)

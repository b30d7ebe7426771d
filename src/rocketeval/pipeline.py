"""The stages of a run, one method each.

    load -> checklist -> grade -> score -> rank -> audit -> explain -> report

Every stage reads the results of earlier stages from the run's store and saves its own. Stages work
on records; only the store accesses run files, and only engines access the network.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

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
from rocketeval.unchanged import FactsT, MadeFrom, StageInProgress
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
    from rocketeval.judges.cascade import Cascade
    from rocketeval.judges.reliability import JudgeReliability
    from rocketeval.lint.lint import Lint
    from rocketeval.lint.rewrite import Fixes
    from rocketeval.ranking.rank import Ranking


@dataclass(frozen=True)
class Outcome:
    """The result of a finished run."""

    path: Path
    """The run directory, which also holds everything below as files."""
    ranking: Ranking
    audit: Audit
    report: Path
    """Path of the HTML report."""
    stages: Stages
    """Facts about each stage: counts, missing data, cost, seconds."""


class Run:
    """One run: a config, its directory, and the stages that fill it."""

    def __init__(
        self, config: RunConfig, *, observer: Observer | None = None, judge: Engine | None = None
    ) -> None:
        given = with_tie_margin(with_prices(config))
        self.config = effective_config(given)
        limit = config.max_cost
        self.budget = None if limit is None else Budget(limit, currency(self.config))
        """The spending limit; None if the config sets none."""
        self.store = RunStore(config.run_path)
        self.observer = observer or Observer()
        self.stop = asyncio.Event()
        """Set it to start no more work and end work in flight within seconds."""
        self.stoppable = False
        """True while a stage runs that checks `stop`."""
        self._judge = judge
        self._contacted: list[Engine] = []
        self._author = given.author
        self._within: Run | None = None

    async def all(self) -> Outcome:
        """Run every stage and return the outcome; raise Stopped if `stop` was set.

        A stage after grading is left out if its files were made from the same inputs.
        """
        from rocketeval.audit.audit import Audit
        from rocketeval.ranking.rank import Ranking

        with self.store.locked():
            await self.to_judgments()
            kept = list(self._make_results())
            ranking, audit = self.store.read(Ranking), self.store.read(Audit)
            stages = self.store.manifest().stages
        no_time = {name: replace(getattr(stages, name), seconds=0.0) for name in kept}
        report = self.store.path / "report.html"
        return Outcome(self.store.path, ranking, audit, report, replace(stages, **no_time))

    async def to_checklists(self) -> ChecklistFacts:
        """Run the stages up to the checklists; return the facts of the last one."""
        self.load()
        return await self.checklist()

    async def to_judgments(self) -> GradeFacts:
        """Run the stages up to grading; return the facts of the last one."""
        self.load()
        return await self._judge_loaded()

    async def plan(
        self,
        *,
        most_prompts: int | None = MOST_PROMPTS,
        rate: float | None = None,
        probe: bool = False,
    ) -> Plan:
        """Return the plan of the run with its cost, and save it for comparison after the run."""
        self.check_config()
        with self.store.locked():
            plan = await self._strategy.plan(most_prompts=most_prompts, rate=rate, probe=probe)
            self.store.save_plan(plan)
        return plan

    async def plan_offline(self, *, rate: float | None = None) -> Plan:
        """Return a plan without contacting a server or writing a file."""
        self.check_config()
        return await self._strategy.plan_offline(rate=rate)

    async def plan_cluster(
        self, plan: Plan, given: CapacityOptions | None = None, *, probed: bool = False
    ) -> Capacity:
        """Estimate the planned run, and larger ones of its kind, on many replicas.

        `probed`: the plan's rate was just measured, and overrides the run's rate.
        """
        from rocketeval.capacity.model import CapacityOptions, plan_capacity
        from rocketeval.capacity.stage import measure

        self._strategy.check_cluster()
        measured = await measure(self.store, self.config, plan, probed=probed)
        return plan_capacity(given or CapacityOptions(), measured)

    def load(self) -> LoadFacts:
        """Check the config and the benchmark, and copy the benchmark into the run."""
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
        """Give every query its checklist; with `to_judge`, contact the judge first."""
        with self._stage("checklist", ChecklistFacts()) as done, self._heeding_stop():
            done.facts = await self._strategy.make_checklists(to_judge=to_judge)
        self._raise_if_stopped(f"{done.facts.unwritten} checklists are not written")
        return done.facts

    def lint(self) -> Lint:
        """Return the findings about checklist items and their answers; write nothing."""
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
        """Let the author LLM propose replacements for flagged items; the run is not changed.

        All checklists, with the proposals, are written to `path` (.yaml or .csv), ready for
        `author.kind: file`. `kinds` and `query_id` restrict what is rewritten. Proposals are saved
        with the authored checklists and reused.
        """
        from rocketeval.lint.fix import check_fixable, propose_fixes

        author = check_fixable(self.store, self._as_given(), path, force=force)
        with self.store.locked(), self._heeding_stop():
            context = (self.store, self._as_given(), author, self.observer, self.stop, self.budget)
            fixes = await propose_fixes(*context, path=path, kinds=kinds, query_id=query_id)
        if fixes.unasked:
            price = self._author.price
            left = f"{fixes.unasked} checklists are not rewritten"
            self._raise_if_stopped(left, price.currency if price else None)
        return fixes

    async def evolve(
        self, path: Path | None = None, *, make_engine: MakeEngine = create_engine
    ) -> Evolution:
        """Train an evaluator on reference data and on its own mistakes.

        It is written to `path`, or into the run. A later call continues after the last round.
        `make_engine` creates the judge of each question set, and the optimizer, from their configs.
        """
        from rocketeval.benchmarks.load import load_inputs
        from rocketeval.evolve.stage import check_evolvable, evolve_run

        check_evolvable(self.config, path, own_engine=self._judge is not None)
        with self.store.locked():
            # Not `load`: these judgments are kept separate from those of the run.
            with self._stage("load", LoadFacts()) as loaded:
                loaded.facts = load_inputs(self.store, self.config)
                self.store.freeze(self._as_given())
            with self._stage("evolve", EvolveFacts()) as done, self._heeding_stop():
                context = (self.store, self.config, self.observer, self.stop, self.budget)
                found = await evolve_run(
                    *context, go_on=self._raise_if_stopped, path=path, make_engine=make_engine
                )
                done.facts = EvolveFacts(rounds=len(found.rounds), path=str(found.path))
        return found

    async def grade(self, only: Collection[tuple[str, str]] | None = None) -> GradeFacts:
        """Let the judge answer every unanswered item, or those about the responses `only`."""
        with self._stage("grade", GradeFacts()) as done, self._heeding_stop():
            done.facts = await self._strategy.grade(only)
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
        """Grade and score with each method, and compare them on the same reference data.

        Each is METHOD[:option=value...][+SCORER[:option=value...]], such as `direct` or
        `checklist+extra_trees`. Finished judgments are reused.
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
        """Measure the agreement of this run's judge with those of other runs or configs."""
        from rocketeval.judges.reliability import compare_judges
        from rocketeval.judges.runs import JudgedRun, open_run

        with self.store.locked():
            runs = [JudgedRun(self.store, self.config), *map(open_run, paths)]
            found = compare_judges(runs, self.config.ranking)
            self.store.save(found)
        return found

    async def cascade(self, cheap: Path, out: Path, share: float = 0.3, seed: int = 0) -> Cascade:
        """Grade a drawn share, and estimate the full ranking with a `cheap` judge's run."""
        from rocketeval.judges import cascade, draw, runs

        first, own = runs.open_run(cheap), runs.JudgedRun(self.store, self.config)
        draw.check_cascade(first, self.config, share)
        with self.store.locked():
            self.load()
            await draw.check_checklists(first, own)
            await self.checklist()
            drawn = draw.draw_responses(first, own, share, seed)
            draw.save_draw(drawn, out)
            found = cascade.make_cascade(first, own, drawn, await self.grade(drawn.cells()))
        return cascade.save_cascade(found, out)

    def hold_against_item_gold(self, path: Path) -> ItemGold:
        """Compare the judge's answers with reference answers to the same items, from a file."""
        from rocketeval.audit.item_gold import compare_with_item_gold

        with self.store.locked():
            found = compare_with_item_gold(self.store, self.config, path)
            self.store.save(found)
        return found

    def explain(self) -> Explanation:
        """Find where each candidate loses points against its neighbors in the ranking."""
        from rocketeval.explain.stage import explain_run

        with self._stage("explain", StageFacts()):
            return explain_run(self.store, self.config)

    def explain_candidate(self, candidate: str, most: int) -> CandidateExplanation:
        """Return up to `most` losses and strengths of one candidate; write nothing."""
        from rocketeval.explain.stage import explain_candidate

        return explain_candidate(self.store, self.config, candidate, most)

    def explain_query(self, query_id: str) -> QueryExplanation:
        """Return what each item of one query's checklist contributes; write nothing."""
        from rocketeval.explain.stage import explain_query

        return explain_query(self.store, self.config, query_id)

    def compare(
        self, first: str, second: str, *, min_effect: float | None = None, level: float = 0.95
    ) -> Comparison:
        """Test whether one candidate is better than another; write nothing."""
        from rocketeval.audit.audit import Audit
        from rocketeval.audit.conclusion import doubt
        from rocketeval.compare.stage import compare_candidates

        found = compare_candidates(self.store, self.config, first, second, min_effect, level)
        return replace(found, doubt=doubt(self.store.read_if_made(Audit)))

    def estimate(self, choice: LabelScope, *, level: float = 0.95) -> Estimates:
        """Estimate mean labels from the available labels and all scores; write nothing."""
        from rocketeval.compare.stage import estimate_labels

        return estimate_labels(self.store, self.config, choice, level)

    def advise(
        self, choice: LabelScope, *, more: int = 20, seed: int = 0, level: float = 0.95
    ) -> Advice:
        """Choose responses to label next, and predict the gain; write nothing."""
        from rocketeval.compare.stage import advise_labels

        return advise_labels(self.store, choice, more, seed, level)

    def compare_scorers(self, among: Sequence[str] | None = None) -> ScorerComparison:
        """Compare kinds of scorers by cross-validation; write nothing."""
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
        """Write a table of the run to `path`, in one of `exports.formats.FORMATS`.

        Without `to`, the suffix of `path` determines the format. `force` replaces an existing file.
        """
        from rocketeval.exports.stage import export_run

        request = make_request(to, what, path, raw=raw, bom=bom)
        return export_run(self.store, self.config, request, path, force=force)

    def check_config(self) -> None:
        """Raise if a section has an error, before anything is written or spent."""
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
        """Return the config with its original author, even if the method does not use it.

        Another method may use that author's checklists later.
        """
        return self.config.model_copy(update={"author": self._author})

    def _inside(self, config: RunConfig) -> Run:
        """Return a run of another config that shares this one's budget, stop and observer."""
        if config.run_path == self.store.path:
            return self
        run = Run(config, observer=self.observer, judge=self._judge)
        if self._judge is not None and run.config.judge.labels != self.config.judge.labels:
            raise ConfigError(
                f"The method {config.method.kind!r} needs other answer labels than the given "
                "engine has.",
                hint="Let the run create its engine from the config.",
            )
        run.budget, run.stop, run._within = self.budget, self.stop, self
        return run

    async def _grade_each(self, runs: Mapping[Path, Run]) -> dict[Path, str]:
        """Grade every run; return the errors of failed ones by path.

        A method that this judge cannot do must not prevent comparing the others.
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

    def _make_results(self) -> Iterator[str]:
        """Do the stages after grading whose inputs or files changed; yield those left out."""
        for make in (self.score, self.rank, self.audit, self.explain, self.report):
            name = make.__name__
            if MadeFrom(self.store, self.config).is_current(name):
                self.observer.stage_kept(name)
                yield name
            else:
                make()

    def _stage(self, name: str, facts: FactsT) -> AbstractContextManager[StageInProgress[FactsT]]:
        return MadeFrom(self.store, self.config).stage(name, facts, self.observer)

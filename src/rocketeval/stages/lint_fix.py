"""lint --fix: the author proposes other items for those that lint flags; the run stays as it is."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from rocketeval.budget import Budget, Purse
from rocketeval.config import EngineConfig, RunConfig
from rocketeval.cost import usage_facts
from rocketeval.engines.base import create_engine
from rocketeval.errors import ConfigError
from rocketeval.grading.methods.table import kind_of
from rocketeval.lint.fixes import Change, Fixes, Outcome, changes_of
from rocketeval.lint.fixing import (
    OFFERED,
    Request,
    count_unoffered,
    gather_requests,
    with_rewrites,
)
from rocketeval.lint.lint import Lint, narrow
from rocketeval.lint.shared import is_shared
from rocketeval.observing import Observer
from rocketeval.records import Checklist
from rocketeval.stages.lint import LintedRun, look_at_run
from rocketeval.stages.proposal_file import write_proposal
from rocketeval.stages.rewriting import STAGE, Rewriter, Rewriting, rewrite_all
from rocketeval.stages.sheet_place import check_place
from rocketeval.store.run import RunStore

NOT_ASKED = "the author was not asked"


async def propose_fixes(
    store: RunStore,
    config: RunConfig,
    author: EngineConfig,
    observer: Observer,
    stop: asyncio.Event,
    budget: Budget | None = None,
    *,
    path: Path | None = None,
    kinds: Collection[str] = (),
    query_id: str | None = None,
) -> Fixes:
    """Return what the author proposes for flagged items, and write it to `path` if there is one.

    `config` is the config as it was given, with its own author, and `author` the LLM that
    `check_fixable` returned for it. When it is stopped, or the money is spent, what was answered is
    kept for the next time, and no file is written.
    """
    started = time.monotonic()
    observer.stage_entered(STAGE)
    run = look_at_run(store, config)
    requests = _requests(run, kinds, query_id)
    engine = create_engine(author, store.engine_home("author"))
    journal, price = store.authored(config.cache), config.author.price
    paying = store.manifest()["run_id"]
    rewriter = Rewriter(config.author, author, engine, journal, run.candidates, paying)
    purse = Purse(budget, price) if budget and price else None
    try:
        done = await rewrite_all(requests, rewriter, engine, observer, stop, purse)
    finally:
        await engine.aclose()
    observer.stage_ended(STAGE, {"seconds": round(time.monotonic() - started, 3)})
    fixes = _fixes(run, requests, done, usage_facts(done.usage, price), author.model)
    if not kinds:
        chosen = narrow(run.lint, query_id, ())
        fixes = replace(fixes, not_offered=count_unoffered(chosen.findings, OFFERED))
    if path is None or fixes.unasked or not (fixes.rewritten or fixes.dropped):
        return fixes
    write_proposal(path, fixes, run.checklists, run.queries)
    return replace(fixes, path=path)


def check_fixable(
    store: RunStore,
    config: RunConfig,
    path: Path | None = None,
    *,
    force: bool = False,
    config_file: Path | None = None,
) -> EngineConfig:
    """Return the author LLM, after a look at all that can be wrong before anything is paid for."""
    if path is not None:
        check_place(path, force=force, config=config, config_file=config_file)
    if kind_of(config.method.kind).items is not None:
        raise ConfigError(
            f"The method {config.method.kind!r} asks items of its own, not those of a checklist.",
            hint="Only items of checklists can be rewritten; see method.kind in the config.",
        )
    section = config.author.engine
    if section is None:
        raise ConfigError(
            "To rewrite items, an author LLM is needed; the config has no `author.engine`.",
            hint="Set author.engine.model (and base_url, api_key_env if not the OpenAI API). It "
            "may stand beside any author.kind, also imported or file.",
        )
    if config.max_cost is not None and config.author.price is None:
        raise ConfigError(
            f"`max_cost` limits the money, and the author {section.model!r} has no price.",
            hint="Set `author.price`, or give it in the file that `prices` names.",
        )
    store.inputs.checklists()
    return section


def _requests(run: LintedRun, kinds: Collection[str], query_id: str | None) -> list[Request]:
    shared = is_shared(run.checklists.values())
    if shared and query_id is not None:
        raise ConfigError(
            f"All {len(run.checklists):,} queries share one checklist: it cannot be rewritten for "
            f"{query_id!r} alone.",
            hint="Leave --query out.",
        )
    chosen: Lint = narrow(run.lint, query_id, tuple(kinds) or OFFERED)
    return gather_requests(chosen.findings, run.checklists, run.queries, shared=shared)


def _fixes(
    run: LintedRun,
    requests: list[Request],
    done: Rewriting,
    usage: Mapping[str, Any],
    author: str,
) -> Fixes:
    changes: list[Change] = []
    proposed: dict[str, Checklist] = dict(run.checklists)
    for request in requests:
        settled = done.settled.get(request.name)
        changes += changes_of(request, settled, done.failures.get(request.name, NOT_ASKED))
        for query_id in request.query_ids:
            new = settled.new if settled else {}
            proposed[query_id] = with_rewrites(run.checklists[query_id], new)
    count = {outcome: sum(each.outcome is outcome for each in changes) for outcome in Outcome}
    return Fixes(
        source=run.lint.source,
        author=author,
        asked=len(requests),
        changes=tuple(changes),
        rewritten=count[Outcome.REWRITTEN],
        dropped=count[Outcome.DROPPED],
        left=count[Outcome.LEFT],
        failures=_in_order(done.failures, requests),
        not_offered={},
        unasked=len(requests) - len(done.settled) - len(done.failures),
        reused=done.reused,
        usage=usage,
        checklists=tuple(proposed.values()),
    )


def _in_order(failures: Mapping[str, str], requests: list[Request]) -> dict[str, str]:
    return {each.name: failures[each.name] for each in requests if each.name in failures}

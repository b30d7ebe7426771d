"""`lint --fix`: the author rewrites flagged items into a proposal file; the run is unchanged."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from textwrap import indent

from rocketeval.budget import Budget, PricedBudget
from rocketeval.checklists.base import is_shared
from rocketeval.checklists.export import check_export_path, csv_checklists, dump_yaml, is_for_all
from rocketeval.checklists.rubric import unbound
from rocketeval.config import EngineConfig, RunConfig
from rocketeval.engines.base import confirm_recorded, create_engine
from rocketeval.errors import ConfigError
from rocketeval.grading.methods import kind_of
from rocketeval.lint.findings import ItemFinding
from rocketeval.lint.lint import Lint, narrow
from rocketeval.lint.rewrite import (
    OFFERED,
    STAGE,
    Fixes,
    FixOutcome,
    ItemChange,
    Rewriter,
    RewriteRequest,
    RewriteResults,
    change_of,
    gather_requests,
    rewrite_all,
    with_rewrites,
)
from rocketeval.lint.rubric_checks import why_by_hand
from rocketeval.lint.stage import LintedRun, look_at_run
from rocketeval.observer import Observer
from rocketeval.prices import PricedUsage, priced
from rocketeval.records import Checklist, Query
from rocketeval.store.files import write_bytes
from rocketeval.store.manifest import StageFacts
from rocketeval.store.run import RunStore
from rocketeval.text import printable

PROPOSAL_HEAD = """\
# All checklists of the run, as proposed by `rocketeval lint --fix`. Review and edit them. A comment
# above each changed item has its old text. To grade with this file, set in the config:
#   author: {kind: file, options: {file: THIS FILE}}
# With `method.kind: checklist`, only new items are sent to the judge.
"""
STEP = "  "


def write_proposal(
    path: Path, fixes: Fixes, before: Mapping[str, Checklist], queries: Mapping[str, Query]
) -> None:
    """Write all checklists of a proposal; a shared checklist is written once."""
    proposed = {checklist.query_id: checklist for checklist in fixes.checklists}
    if is_for_all(before, queries):
        first = next(iter(before))
        proposed, before = {"": proposed[first]}, {"": before[first]}
    if path.suffix == ".csv":
        text = csv_checklists(proposed, queries)
    else:
        text = "".join(_yaml(before, queries, fixes.changes))
    write_bytes(path, text.encode())


def _yaml(
    before: Mapping[str, Checklist], queries: Mapping[str, Query], changes: Sequence[ItemChange]
) -> Iterator[str]:
    """Yield the file in pieces; items are dumped one by one, since YAML dumps have no comments."""
    by_query: dict[str, dict[int, ItemChange]] = {}
    for change in changes:
        by_query.setdefault(change.query_id, {})[change.item] = change
    # All changes of a shared checklist are filed under its first query.
    shared = next(iter(by_query.values()), {})
    yield PROPOSAL_HEAD
    if "" in before:
        yield "for_all:\n"
        yield indent("".join(_entry(before[""], None, shared)), STEP)
        return
    yield "queries:\n"
    one_for_all = is_shared(before.values())
    for query_id, checklist in before.items():
        own = shared if one_for_all else by_query.get(query_id, {})
        yield indent(_key(query_id), STEP)
        yield indent("".join(_entry(checklist, queries.get(query_id), own)), 2 * STEP)


def _entry(
    checklist: Checklist, query: Query | None, changes: Mapping[int, ItemChange]
) -> Iterator[str]:
    if query is not None:
        yield dump_yaml({"query": query.text})
    if checklist.about is not None:
        yield dump_yaml({"about": checklist.about})
    numbers = range(1, len(checklist.items) + 1)
    items = replace(unbound(checklist), groups=None).to_json()
    if checklist.groups is None:
        yield "items:\n"
        yield from (_item(items[number - 1], changes.get(number)) for number in numbers)
        return
    yield "groups:\n"
    for group in dict.fromkeys(checklist.groups):
        own = [number for number in numbers if checklist.groups[number - 1] == group]
        lines = [_item(items[number - 1], changes.get(number)) for number in own]
        if all(_is_dropped(changes.get(number)) for number in own):
            # The file author rejects a group without items.
            yield from (indent(line, STEP) for line in lines)
            continue
        yield indent(_key(group), STEP)
        yield from (indent(line, 2 * STEP) for line in lines)


def _item(old: object, change: ItemChange | None) -> str:
    if change is None or change.outcome is FixOutcome.LEFT:
        note = f"# unchanged ({', '.join(change.kinds)})\n" if change else ""
        return note + dump_yaml([old])
    before = str(old["text"]) if isinstance(old, dict) else str(old)
    if change.outcome is FixOutcome.DROPPED:
        return f"# dropped ({', '.join(change.kinds)}): {_comment(before)}\n"
    new = {**old, "text": change.new} if isinstance(old, dict) else change.new
    return f"# was ({', '.join(change.kinds)}): {_comment(before)}\n{dump_yaml([new])}"


def _is_dropped(change: ItemChange | None) -> bool:
    return change is not None and change.outcome is FixOutcome.DROPPED


def _comment(text: str) -> str:
    """Return a text as one line that is safe inside a comment.

    >>> _comment("two\\nlines\\x1b")
    'two lines\ufffd'
    """
    return printable(" ".join(text.split()))


def _key(name: str) -> str:
    """Return the YAML of a key whose value follows on indented lines."""
    return dump_yaml({name: None}).removesuffix(" null\n") + "\n"


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
    """Ask the author to rewrite flagged items, and write the proposal to `path` if given.

    `config` is the user's config with its own author, and `author` the LLM that `check_fixable`
    returned for it. If the run is stopped or the budget is spent, finished rewrites are kept for
    next time and no file is written.
    """
    started = time.monotonic()
    observer.stage_entered(STAGE)
    run = look_at_run(store, config)
    requests, by_hand = _requests(run, kinds, query_id)
    engine = create_engine(author, store.engine_home("author"))
    journal, price = store.authored(config.cache), config.author.price
    paying = store.manifest().run_id
    rewriter = Rewriter(config.author, author, engine, journal, run.candidates, paying)
    limit = PricedBudget(budget, price) if budget and price else None
    try:
        done = await rewrite_all(requests, rewriter, engine, observer, stop, limit)
        confirm_recorded(engine)
    finally:
        await engine.aclose()
    observer.stage_ended(STAGE, StageFacts(seconds=round(time.monotonic() - started, 3)))
    fixes = _fixes(run, requests, by_hand, done, priced(done.usage, price), author.model)
    if not kinds:
        chosen = narrow(run.lint, query_id, ())
        fixes = replace(fixes, not_offered=_count_unoffered(chosen.findings, run.checklists))
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
    """Return the author LLM; raise for any mistake that can be found before sending requests."""
    if path is not None:
        check_export_path(path, force=force, config=config, config_file=config_file)
    if kind_of(config.method.kind).items is not None:
        raise ConfigError(
            f"The method {config.method.kind!r} uses its own items, not checklists.",
            hint="Only checklist items can be rewritten; change method.kind in the config.",
        )
    section = config.author.engine
    if section is None:
        raise ConfigError(
            "Rewriting items needs an author LLM, but the config has no `author.engine`.",
            hint="Set author.engine.model (and base_url, api_key_env if not the OpenAI API). It "
            "works with any author.kind, including imported and file.",
        )
    if config.max_cost is not None and config.author.price is None:
        raise ConfigError(
            f"`max_cost` needs a price, but the author {section.model!r} has none.",
            hint="Set `author.price`, or add it to the `prices` file.",
        )
    store.inputs.checklists()
    return section


def _requests(
    run: LintedRun, kinds: Collection[str], query_id: str | None
) -> tuple[list[RewriteRequest], list[ItemChange]]:
    """Return the requests to the author, and the items that only a person can rewrite."""
    shared = is_shared(run.checklists.values())
    if shared and query_id is not None:
        raise ConfigError(
            f"All {len(run.checklists):,} queries share one checklist, so it cannot be rewritten "
            f"for {query_id!r} only.",
            hint="Remove --query.",
        )
    chosen: Lint = narrow(run.lint, query_id, tuple(kinds) or OFFERED)
    gather = partial(gather_requests, checklists=run.checklists, queries=run.queries, shared=shared)
    ours = [found for found in chosen.findings if _is_for_author(found, run.checklists)]
    others = [found for found in chosen.findings if not _is_for_author(found, run.checklists)]
    by_hand = [
        change_of(request, number, None, why_by_hand(request.checklist.detail(number - 1)))
        for request in gather(others)
        for number in request.numbers
    ]
    return gather(ours), by_hand


def _is_for_author(found: ItemFinding, checklists: Mapping[str, Checklist]) -> bool:
    return why_by_hand(checklists[found.query_id].detail(found.item - 1)) is None


def _count_unoffered(
    findings: Iterable[ItemFinding], checklists: Mapping[str, Checklist]
) -> dict[str, int]:
    """Count the findings of kinds that the author rewrites only if they are named, by kind."""
    return dict(
        Counter(
            found.kind
            for found in findings
            if found.kind not in OFFERED and _is_for_author(found, checklists)
        )
    )


def _fixes(
    run: LintedRun,
    requests: list[RewriteRequest],
    by_hand: list[ItemChange],
    done: RewriteResults,
    usage: PricedUsage,
    author: str,
) -> Fixes:
    changes: list[ItemChange] = []
    proposed: dict[str, Checklist] = dict(run.checklists)
    for request in requests:
        settled = done.settled.get(request.name)
        failure = done.failures.get(request.name, NOT_ASKED)
        changes += [change_of(request, number, settled, failure) for number in request.numbers]
        for query_id in request.query_ids:
            new = settled.new if settled else {}
            proposed[query_id] = with_rewrites(run.checklists[query_id], new)
    changes += by_hand
    count = {outcome: sum(each.outcome is outcome for each in changes) for outcome in FixOutcome}
    return Fixes(
        source=run.lint.source,
        author=author,
        asked=len({change.query_id for change in changes}),
        changes=tuple(changes),
        rewritten=count[FixOutcome.REWRITTEN],
        dropped=count[FixOutcome.DROPPED],
        left=count[FixOutcome.LEFT],
        failures=_in_order(done.failures, requests),
        not_offered={},
        unasked=len(requests) - len(done.settled) - len(done.failures),
        reused=done.reused,
        usage=usage,
        checklists=tuple(proposed.values()),
    )


def _in_order(failures: Mapping[str, str], requests: list[RewriteRequest]) -> dict[str, str]:
    return {each.name: failures[each.name] for each in requests if each.name in failures}

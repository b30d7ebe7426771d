"""The verb `lint`: findings on checklist items, and with --fix the author's rewrites."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rocketeval.cli.help import codes, option, verb
from rocketeval.cli.options import MAX_COST, NAME, WHAT, existing, own_config
from rocketeval.cli.output import Output, with_output
from rocketeval.cli.run_with_signals import INCOMPLETE, run_with_signals
from rocketeval.cli.text import make_console, make_table, near, shown_path
from rocketeval.errors import ConfigError
from rocketeval.lint.findings import KINDS, Severity
from rocketeval.text import count_of, printable, printable_lines, query_name, starts_of_queries

if TYPE_CHECKING:
    from rocketeval.config import RunConfig
    from rocketeval.lint.answer_checks import RankingWithout
    from rocketeval.lint.lint import AnswerBehavior, Lint
    from rocketeval.lint.rewrite import Fixes, ItemChange


_STYLES = {"error": "red", "warning": "yellow"}


def show_lint(found: Lint, most: int) -> None:
    """Print the conclusion, the kinds of findings, their effect, and the worst items."""
    from rich.text import Text

    console = make_console()
    _say(printable(_conclusion(found)))
    if found.kinds:
        _say("")
        table = make_table("Kinds of findings")
        for name in ("items", "share"):
            table.add_column(name, justify="right")
        for name in ("kind", "severity", "finding"):
            table.add_column(name)
        for row in found.kinds:
            style = _STYLES[row.severity]
            severity = Text(str(row.severity), style=style)
            table.add_row(f"{row.items:,}", f"{row.share:.1%}", row.kind, severity, row.title)
        console.print(table)
    if found.not_english:
        skipped = count_of(found.not_english, "item is", "items are")
        _say(f"{skipped} not in English; checks that need English skipped them.")
    if found.behaviour is None:
        _say(f"Static checks only: {found.no_behaviour}.")
    else:
        _show_behaviour(found, found.behaviour)
    if found.in_few_queries:
        some = count_of(found.in_few_queries, "finding", "findings")
        _say(f"{some} on answers left out: each applies to fewer than half of the queries.")
    _show_items(found, most)


def _conclusion(found: Lint) -> str:
    items = count_of(found.items, "item", "items")
    where = f"{items} in {count_of(found.checklists, 'checklist', 'checklists')}"
    if _is_shared(found):
        where += f" that {len(found.query_ids):,} queries share"
    if not found.flagged:
        return f"No problems found in {where} of {near(Path(found.source))}."
    have = "has" if found.flagged == 1 else "have"
    flagged = f"{found.flagged:,} of {where} {have} a problem ({_part(found)})"
    text = f"In {near(Path(found.source))}, {flagged}."
    if found.kinds:
        most = max(found.kinds, key=lambda row: row.items)
        text += f" Most common: {most.kind} ({count_of(most.items, 'item', 'items')})."
    return text


def _show_behaviour(found: Lint, behaviour: AnswerBehavior) -> None:
    from rocketeval.lint.lint import SAYS_NOTHING

    items = count_of(behaviour.items, "item", "items")
    if _is_shared(found):
        shared = count_of(found.items, "item", "items")
        items = f"{shared} ({behaviour.items:,} over all queries)"
    _say(
        f"Answers of {printable(behaviour.judge)} to {items}, on "
        f"{count_of(behaviour.responses, 'response', 'responses')}{_labeled(behaviour)}."
    )
    kinds = [row.kind for row in found.kinds if row.kind in SAYS_NOTHING]
    if kinds:
        _say(
            f"Ranking by mean score without {' and '.join(kinds)} items: "
            f"{_moves(behaviour.without_dead_and_redundant)}."
        )
    _say(
        "Ranking by mean score with all flagged items left out: "
        f"{_moves(behaviour.without_flagged)}."
    )
    largest = max(behaviour.influences, key=lambda each: (each.places, each.shift), default=None)
    if largest is not None and largest.shift > 0:
        places = "the ranking by mean score stays the same"
        if largest.places:
            by = count_of(largest.places, "place", "places")
            places = f"a candidate moves by {by} in the ranking by mean score"
        query = printable(query_name(largest.query_id, found.query_texts))
        _say(
            f"The single item with the largest effect is {query}, item "
            f"{largest.item}: without it, {places}, and the difference between two candidates' "
            f"mean scores changes by at most {largest.shift:.3f} points."
        )


def _labeled(behaviour: AnswerBehavior) -> str:
    if not behaviour.labels:
        return ""
    if behaviour.labels == behaviour.responses:
        return ", which all have labels"
    return f", {behaviour.labels:,} of them labeled"


def _moves(without: RankingWithout) -> str:
    if not without.dropped:
        return "no item dropped"
    left = f"{count_of(without.dropped, 'item', 'items')} dropped"
    if without.kept_after_all:
        left += f" ({without.kept_after_all:,} kept: their query has no other item)"
    if not without.swapped_pairs:
        return f"{left}, no candidates swap places"
    tau = "" if without.tau is None else f" (Kendall's tau {without.tau:.2f})"
    return (
        f"{left}, {without.swapped_pairs:,} of {without.pairs:,} pairs swap places{tau}; "
        f"{printable(without.moved or '-')} moves most, by "
        f"{count_of(without.largest_move, 'place', 'places')}"
    )


def _show_items(found: Lint, most: int) -> None:
    from rich.text import Text

    by_item = [
        list(own) for _, own in groupby(found.findings, key=lambda one: (one.query_id, one.item))
    ]
    console = make_console()
    for own in by_item[:most]:
        first = own[0]
        whose = query_name(first.query_id, found.query_texts)
        if _is_shared(found):
            whose = in_queries(len(found.query_ids))
        console.print()
        console.print(
            Text(printable(f"{whose}, item {first.item}: {first.text}"), style="bold"),
            highlight=False,
        )
        for each in own:
            line = Text("  ")
            line.append(each.kind, style=_STYLES[each.severity])
            line.append(f": {printable(each.why)}")
            console.print(line, highlight=False)
    if len(by_item) > most:
        more = count_of(len(by_item) - most, "more item", "more items")
        _say(f"\n{more}: use --top {len(by_item)} or --json.")


def in_queries(count: int) -> str:
    """Return a label for a checklist that all queries share."""
    return f"all {count:,} queries"


def _is_shared(found: Lint) -> bool:
    return len(found.query_ids) > found.checklists


def _part(found: Lint) -> str:
    return f"{found.flagged / max(1, found.items):.1%}, {found.errors:,} with an error"


def _say(line: str) -> None:
    make_console().print(line, markup=False, highlight=False)


ALONE = "checklist"
"""The method that asks each item independently, so unchanged answers are reused."""


def show_fixes(
    fixes: Fixes, file: str, method: str, most: int, query_texts: Mapping[str, str]
) -> None:
    """Print the counts, the changed items and the next step; `file` is the path for the config."""
    _say(_counts(fixes))
    for change in fixes.changes[:most]:
        _show_change(change, query_name(change.query_id, query_texts))
    if len(fixes.changes) > most:
        more = count_of(len(fixes.changes) - most, "more item", "more items")
        _say(f"\n{more}: use --top {len(fixes.changes)} or --json, or read the file.")
    if fixes.changes:
        _say("")
    for name, reason in fixes.failures.items():
        _say(printable(f"No rewrite for {query_name(name, query_texts)}: {reason}"))
    if fixes.not_offered:
        named = ", ".join(f"{kind} ({count:,})" for kind, count in fixes.not_offered.items())
        _say(f"Rewritten only with --kind: {named}.")
    _show_next(fixes, file, method)


def _show_change(change: ItemChange, query: str) -> None:
    from rich.text import Text

    from rocketeval.lint.rewrite import FixOutcome

    console = make_console()
    whose = in_queries(change.queries) if change.queries > 1 else query
    about = f"{whose}, item {change.item}: {change.outcome} ({', '.join(change.kinds)})"
    console.print()
    console.print(Text(printable(about), style="bold"), highlight=False)
    if change.outcome is FixOutcome.LEFT:
        console.print(Text(f"    {printable(change.old)}"), highlight=False)
        because = f"    because {change.left_because}"
        console.print(Text(printable(because), style="yellow"), highlight=False)
        return
    console.print(Text(f"  - {printable(change.old)}", style="red"), highlight=False)
    if change.new is not None:
        console.print(Text(f"  + {printable(change.new)}", style="green"), highlight=False)


def _counts(fixes: Fixes) -> str:
    from rocketeval.prices import shown_money

    if not fixes.changes:
        return f"{shown_path(Path(fixes.source))}: no item needs a rewrite; no file was written."
    lists = count_of(fixes.asked, "checklist", "checklists")
    earlier = f", {fixes.reused:,} reused from the cache" if fixes.reused else ""
    usage = fixes.usage
    if usage.cost is None:
        spent = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
    else:
        spent = shown_money(usage.cost, usage.currency)
    items = count_of(len(fixes.changes), "item", "items")
    return (
        f"{items} in {lists}: {fixes.rewritten:,} rewritten, {fixes.dropped:,} dropped, "
        f"{fixes.left:,} unchanged. "
        f"Author {printable(fixes.author)}: {spent}{earlier}."
    )


def _show_next(fixes: Fixes, file: str, method: str) -> None:
    import yaml

    if fixes.path is None:
        if fixes.changes:
            _say("No item was rewritten and no file was written: change these items by hand.")
        return
    _say(f"Proposal, all {len(fixes.checklists):,} checklists: {shown_path(fixes.path)}")
    _say("The run is unchanged. Review the proposal, then set in the config (keep `engine`):")
    author = {"author": {"kind": "file", "options": {"file": file}}}
    shown = yaml.safe_dump(author, sort_keys=False, allow_unicode=True)
    click.echo(printable_lines("\n" + shown), nl=True)
    asked = (
        "only new items are sent to the judge."
        if method == ALONE
        else f"with `method.kind: {method}`, all items of changed checklists are sent again."
    )
    _say(f"Then `rocketeval run`: {asked}")


def fix(
    what: Path,
    settings: RunConfig | None,
    path: Path,
    *,
    kinds: Sequence[str],
    query_id: str | None,
    force: bool,
    max_cost: float | None,
    most: int,
    output: Output,
) -> int:
    """Write a proposal to `path` and print it; return 3 if some items stay flagged."""
    from rocketeval.checklists.export import without_about
    from rocketeval.cli.progress import make_observer
    from rocketeval.lint.fix import check_fixable
    from rocketeval.pipeline import Run
    from rocketeval.prices import with_prices

    if settings is None:
        raise ConfigError(
            f"--fix needs a config with an author LLM; {what} has none.",
            hint="Give a run's config, such as rocketeval.yaml, and set `author.engine` in it.",
        )
    limit = {} if max_cost is None else {"max_cost": max_cost}
    config = with_prices(settings.model_copy(update=limit))
    # Report mistakes before creating or locking a run directory.
    run = Run(config, observer=make_observer(config, quiet=output.quiet))
    config_file = what / "run.yaml" if what.is_dir() else what
    check_fixable(run.store, config, path, force=force, config_file=config_file)
    fixes = run_with_signals(
        run, lambda: run.propose_fixes(path, kinds=kinds, query_id=query_id, force=force)
    )
    file = "" if fixes.path is None else from_config(fixes.path, what)
    queries, method = run.store.inputs.queries, config.method.kind
    output.give(fixes, lambda: show_fixes(fixes, file, method, most, starts_of_queries(queries)))
    lost = fixes.path and without_about(fixes.path, fixes.checklists)
    if lost:
        click.echo(printable(lost), err=True)
    return INCOMPLETE if fixes.left else 0


def fixable_config(what: Path, name: str | None) -> RunConfig | None:
    """Return the config that WHAT is, or that its run directory holds; None without one."""
    from rocketeval.judges.runs import open_run

    if what.is_dir() and (what / "run.yaml").exists():
        return open_run(what).config
    return own_config(what, name)


def from_config(path: Path, config: Path) -> str:
    """Return a path relative to the config's folder."""
    if config.is_dir():
        return str(path.resolve())
    try:
        return Path(os.path.relpath(path.resolve(), config.parent.resolve())).as_posix()
    except ValueError:
        # On Windows, the path may be on another drive.
        return str(path.resolve())


FOUND_ERRORS = 3


def _list_of_kinds() -> str:
    """Return the kinds of findings by severity, for the help page."""
    lines = ["Kinds of findings (*: found in the judge's answers):"]
    for severity in Severity:
        lines.append(f"  {severity}s:")
        lines += [
            f"    {kind + '*' * about.behavioural:17} {about.title}"
            for kind, about in KINDS.items()
            if about.severity is severity
        ]
    return "\b\n" + "\n".join(lines)


@verb(
    examples=[
        ("rocketeval lint", "check the items of rocketeval.yaml's run"),
        ("rocketeval lint checklists.yaml --strict", "fail if a checklist file has errors"),
        ("rocketeval lint --fix better.yaml", "let the author LLM rewrite items"),
    ],
    exit_codes={
        **codes(2, 4),
        3: "with --strict: errors found; with --fix: some items could not be rewritten",
        **codes(6, 130),
    },
    renamed={"--most": "--top"},
    epilog=_list_of_kinds(),
)
@WHAT
@NAME
@option("--query", metavar="ID", help="Show only the items of this query.")
@option(
    "--kind",
    "kinds",
    multiple=True,
    type=click.Choice(list(KINDS)),
    metavar="KIND",
    help="Show only findings of this kind (see below); with --fix, rewrite only items with "
    "one. Repeatable.",
)
@option(
    "--top",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="Number of items to show; --json has all.",
)
@option(
    "--strict",
    is_flag=True,
    help="Exit with code 3 if there are errors (see below); warnings do not count.",
)
@option(
    "--fix",
    "proposal",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="Let the author LLM rewrite flagged items; write all checklists to FILE (.yaml or .csv).",
)
@option("--force", is_flag=True, help="With --fix: replace an existing FILE.")
@MAX_COST
@with_output
def command(
    what: Path,
    name: str | None,
    query: str | None,
    kinds: tuple[str, ...],
    top: int,
    strict: bool,
    proposal: Path | None,
    force: bool,
    max_cost: float | None,
    output: Output,
) -> int:
    """Find bad checklist items.

    WHAT is a config (default rocketeval.yaml), a run directory, a benchmark folder or a checklist
    file. Static checks find items that are not yes/no questions, ask two things, duplicate another
    item, refer to what the judge cannot see, or have yes as the worse answer. In a graded run, the
    judge's answers show items that do not discriminate, are redundant, leave the judge unsure, or
    correlate negatively with the query's other items or with labels. Nothing is changed.

    With --fix FILE, the author LLM (`author.engine`) rewrites flagged items, and all checklists are
    written to FILE. To grade with FILE, set this in the config:

    \b
      author: {kind: file, options: {file: FILE}}
    """
    from rocketeval.lint.lint import narrow

    if proposal is not None:
        if strict:
            raise click.UsageError("Use --strict or --fix, not both.")
        return fix(
            what,
            fixable_config(existing(what), name),
            proposal,
            kinds=kinds,
            query_id=query,
            force=force,
            max_cost=max_cost,
            most=top,
            output=output,
        )
    if force or max_cost is not None:
        raise click.UsageError("--force and --max-cost need --fix.")
    found = _look(existing(what), name)
    shown = narrow(found, query, kinds)
    output.give(shown, lambda: show_lint(shown, top))
    return FOUND_ERRORS if strict and shown.errors else 0


def _look(what: Path, name: str | None) -> Lint:
    from rocketeval.judges.runs import open_run
    from rocketeval.lint.stage import lint_path, lint_run
    from rocketeval.pipeline import Run

    if what.is_dir() and (what / "run.yaml").exists():
        run = open_run(what)
        return lint_run(run.store, run.config)
    config = own_config(what, name)
    return lint_path(what) if config is None else Run(config).lint()

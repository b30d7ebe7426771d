"""Options and tables of `rocketeval plan --cluster`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import CLUSTER, option
from rocketeval.cli.options import SEEDS, FiniteRange, Verb
from rocketeval.cli.text import make_console, make_table
from rocketeval.text import count_of, printable

if TYPE_CHECKING:
    from rich.table import Table

    from rocketeval.capacity.model import Assumptions, Capacity, Size
    from rocketeval.store.manifest import Plan


_ZERO_OR_MORE = FiniteRange(min=0)
_MORE_THAN_ZERO = FiniteRange(min=0, min_open=True)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A plan, with its estimate for a cluster."""

    plan: Plan
    cluster: Capacity


FLAG = "--cluster"


def _cluster_option(*names: str, **attributes: Any) -> Callable[[Verb], Verb]:
    """Return an option that help lists only with `--cluster`."""
    return option(*names, section=CLUSTER, shown_with=FLAG, **attributes)


_OPTIONS = (
    option(
        FLAG,
        is_flag=True,
        section=CLUSTER,
        help="Add replicas, hours, money and bytes for a cluster; with --help, list its options.",
    ),
    _cluster_option(
        "--hours",
        type=_MORE_THAN_ZERO,
        metavar="HOURS",
        help="Deadline; 24 unless --replicas is given.",
    ),
    _cluster_option(
        "--replicas",
        type=click.IntRange(min=1),
        metavar="N",
        help="Number of replicas, instead of a deadline.",
    ),
    _cluster_option(
        "--gpu-hour", type=_ZERO_OR_MORE, metavar="MONEY", help="Price of one GPU per hour."
    ),
    _cluster_option("--gpus", type=click.IntRange(min=1), metavar="N", help="GPUs per replica."),
    _cluster_option(
        "--routing",
        type=click.Choice(("together", "random", "round-robin")),
        metavar="HOW",
        help="How items of one response are routed: together (one request, or a header, keeps "
        "them on one replica), random or round-robin.",
    ),
    _cluster_option(
        "--losses",
        type=_ZERO_OR_MORE,
        metavar="N",
        help="Losses per replica and hour, such as spot preemptions.",
    ),
    _cluster_option(
        "--restart-minutes",
        type=_ZERO_OR_MORE,
        metavar="MINUTES",
        help="Time from a loss to a working replacement.",
    ),
    _cluster_option(
        "--batch", type=click.IntRange(min=1), metavar="N", help="Responses sent together."
    ),
    _cluster_option(
        "--checkpoint-seconds",
        type=_MORE_THAN_ZERO,
        metavar="SECONDS",
        help="Longest time until a finished response is on disk.",
    ),
    _cluster_option("--seed", type=SEEDS, metavar="N", help="Seed of the simulated losses."),
)


def with_cluster(verb: Verb) -> Verb:
    """Add the cluster options, passed to the verb as `cluster`; None without --cluster."""

    @wraps(verb)
    def command(*args: Any, cluster: bool, **own: Any) -> Any:
        from rocketeval.capacity.model import CapacityOptions

        names = [name for name in CapacityOptions.__slots__ if name in own and name != "rate"]
        values = {name: own.pop(name) for name in names}
        given = {name: value for name, value in values.items() if value is not None}
        if given and not cluster:
            shown = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"Only with --cluster: {shown}")
        if "hours" in given and "replicas" in given:
            raise click.UsageError("Give --hours or --replicas, not both.")
        return verb(*args, cluster=CapacityOptions(**given) if cluster else None, **own)

    wrapped: Verb = command
    for add in reversed(_OPTIONS):
        wrapped = add(wrapped)
    return wrapped


TITLES = {
    "rate": "answers/s per replica",
    "items": "items per response",
    "prefix_tokens": "tokens per prefix",
    "item_tokens": "tokens per item",
    "calls": "requests per answer",
    "gpus": "GPUs per replica",
    "gpu_hour": "money per GPU hour",
    "losses": "losses per replica-hour",
    "restart_minutes": "restart, minutes",
    "batch": "responses per batch",
    "in_hand": "batches per replica",
    "checkpoint_seconds": "checkpoint, seconds",
    "task_bytes": "bytes per task",
    "ledger_bytes": "bytes per judgment",
    "score_bytes": "bytes per score",
    "call_us": "client us per request",
    "answer_us": "client us per answer",
    "row_us": "Ray us per response",
}
"""Titles of the fields of `Assumptions`."""
NOT_COUNTED = (
    "time to start the cluster and load the judge, and idle replicas during the last batches",
    "time to wait for GPUs; a slow network or object store",
    "tokens shared between responses, which a perfect cache computes only once",
    "money for the checklist author, client machines, storage and writes",
    "bytes of the run's copy of the responses, of the journal, and of the cache",
)


def show_cluster(found: Capacity, currency: str) -> None:
    """Print the estimate for a cluster."""
    console = make_console()
    money = "USD" if found.assumed.gpu_hour.source == "paper" else currency
    console.print()
    for table in (*_size_tables(found, money), _scatter(found), _assumed(found.assumed)):
        console.print(table, highlight=False)
        console.print()
    for line in _notes(found):
        console.print(line, highlight=False)


def _sizes(found: Capacity) -> list[Size]:
    return [*([found.this_run] if found.this_run else []), *found.sizes]


def _size_tables(found: Capacity, currency: str) -> Iterator[Table]:
    """Yield the tables with one row per amount of work."""
    from rocketeval.prices import shown_money

    sizes = _sizes(found)
    names = [f"{size.answers:.0e}".replace("+", "") for size in sizes]
    if found.this_run is not None:
        names[0] = f"this run: {found.this_run.answers:,.0f}"
    lost = ", including losses" if found.assumed.losses.value else ""
    within = "with these replicas"
    if found.deadline is not None:
        within = f"replicas to finish in {found.deadline:g} hours{lost}"
    yield _columns(
        f"Work: {within}",
        {
            "answers": names,
            "responses": [f"{size.responses:,.0f}" for size in sizes],
            "replicas": map(_replicas, sizes),
            "GPU hours, no losses": [_short(size.gpu_hours) for size in sizes],
            "hours, no losses": [_short(size.hours) for size in sizes],
            "money, no losses": [shown_money(size.money, currency) for size in sizes],
        },
    )
    if any(size.rework.trials for size in sizes):
        yield _columns(
            "Extra for lost replicas: mean, and 95% of the simulated runs",
            {
                "answers": names,
                "lost": [_short(size.rework.losses) for size in sizes],
                "resent": [f"{size.rework.resent_share:.2%}" for size in sizes],
                "extra hours (95%)": [
                    f"{_short(size.extra_hours)} ({_short(size.extra_hours_95)})" for size in sizes
                ],
                f"extra {currency or 'money'} (95%)": [
                    f"{_short(size.extra_money)} ({_short(size.extra_money_95)})" for size in sizes
                ],
            },
        )
    yield _columns(
        "Client and storage (disk: the ledger twice, as blocks)",
        {
            "answers": names,
            "client cores": [_short(size.client_cores) for size in sizes],
            "tasks": [shown_bytes(size.storage.task_bytes) for size in sizes],
            "ledger": [shown_bytes(size.storage.ledger_bytes) for size in sizes],
            "scores": [shown_bytes(size.storage.score_bytes) for size in sizes],
            "disk": [shown_bytes(size.storage.disk_bytes) for size in sizes],
            "PUTs": [f"{size.storage.puts:,}" for size in sizes],
        },
    )


def _scatter(found: Capacity) -> Table:
    from rocketeval.capacity.model import FLEETS

    factors = found.scatter.values()
    fleets = {f"{fleet:,}": [f"x{row[fleet]:.2f}" for row in factors] for fleet in FLEETS}
    title = "Computed tokens with scattered items, as a factor, by replicas"
    return _columns(title, {"routing": found.scatter, **fleets})


def _columns(title: str, columns: Mapping[str, Iterable[str]]) -> Table:
    table = make_table(title)
    for name in columns:
        table.add_column(name, justify="right", overflow="fold")
    for row in zip(*columns.values(), strict=True):
        table.add_row(*row)
    return table


def _replicas(size: Size) -> str:
    if size.idle:
        return f"{size.replicas:,} of {size.replicas + size.idle:,}"
    return f"{size.replicas:,}{' late' if size.deadline_met is False else ''}"


def _assumed(assumed: Assumptions) -> Table:
    from rich.text import Text

    table = make_table("Assumptions")
    table.add_column("what", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    for name in ("from", "how"):
        table.add_column(name, overflow="fold")
    for field, title in TITLES.items():
        figure = getattr(assumed, field)
        table.add_row(title, _short(figure.value), figure.source, Text(printable(figure.note)))
    how = Text(printable(assumed.routed_by))
    table.add_row("routing", assumed.routing, assumed.routing_from, how)
    return table


def _notes(found: Capacity) -> Iterator[str]:
    """Yield notes on this run's row, the assumptions, and what is not counted."""
    left_out = []
    if found.waiting:
        waits = count_of(found.waiting, "response waits", "responses wait")
        left_out.append(f"{waits} for a checklist")
    if found.without_checklist:
        has = count_of(found.without_checklist, "response has", "responses have")
        left_out.append(f"{has} no checklist and no author")
    reasons = " and ".join(left_out)
    if found.this_run is None and not reasons:
        yield "This run has nothing left to ask."
    elif found.this_run is None:
        yield f"This run has no row: {reasons}. All other responses are judged."
    elif reasons:
        yield f"This run's row counts only responses with a checklist. Left out: {reasons}."
    if found.deadline is not None and not found.deadline_given:
        yield "A deadline of 24 hours is assumed; see --hours and --replicas."
    simulated = [size for size in _sizes(found) if size.rework.trials]
    if simulated:
        trials = max(size.rework.trials for size in simulated)
        yield f"Losses are simulated (up to {trials} runs per row, seed {found.seed})."
        yield "Restart time is paid for. In brackets: 95% of the runs need no more."
    if any(size.rework.replicas_simulated < size.replicas for size in simulated):
        yield "Only part of the largest fleets was simulated, which overstates the 95%."
    yield from _notes_on_fleets(found)
    yield "An answer is one item of one response. Time is assumed proportional to tokens."
    yield "Not counted:"
    yield from (f"- {line}" for line in NOT_COUNTED)


def _notes_on_fleets(found: Capacity) -> Iterator[str]:
    """Yield why replicas are idle, or a deadline is not met."""
    idle = next((size for size in _sizes(found) if size.idle), None)
    if idle is not None:
        yield f"{_replicas(idle)}: only these replicas have work, since a batch stays on one"
        yield "replica (see --batch). Idle replicas are not counted."
    late = [size.hours for size in _sizes(found) if size.deadline_met is False]
    if found.deadline is not None and late:
        if max(late) > found.deadline:
            yield "late: too slow even with one replica per batch (see --batch)."
        if min(late) <= found.deadline:
            yield "late: on time without losses, but not in 95% of the simulated runs."


def _short(value: float) -> str:
    """Format a number with the precision of a plan.

    >>> [_short(value) for value in (0, 0.01234, 1.234, 8, 56.78, 5595.4)]
    ['0', '0.012', '1.2', '8', '56.8', '5,595']
    """
    if value == round(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def shown_bytes(size: float) -> str:
    """Format bytes in powers of a thousand.

    >>> shown_bytes(999), shown_bytes(1_500_000), shown_bytes(8.5e12)
    ('999 B', '1.5 MB', '8.5 TB')
    """
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    unit = units[0]
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"

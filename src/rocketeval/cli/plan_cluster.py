"""`rocketeval plan --cluster`: its options, its tables, and what they leave out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from rocketeval.cli.help import CLUSTER, option
from rocketeval.cli.options import FiniteRange, Verb
from rocketeval.cli.text import make_console, make_table, printable
from rocketeval.text import count_of

if TYPE_CHECKING:
    from rich.table import Table

    from rocketeval.capacity.model import Assumptions, Capacity, Size
    from rocketeval.store.manifest import Plan


_ZERO_OR_MORE = FiniteRange(min=0)
_MORE_THAN_ZERO = FiniteRange(min=0, min_open=True)


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """A plan, and what it takes on a cluster."""

    plan: Plan
    cluster: Capacity


FLAG = "--cluster"


def _cluster_option(*names: str, **attributes: Any) -> Callable[[Verb], Verb]:
    """Return an option that help shows only beside `--cluster`."""
    return option(*names, section=CLUSTER, shown_with=FLAG, **attributes)


_OPTIONS = (
    option(
        FLAG,
        is_flag=True,
        section=CLUSTER,
        help="Add replicas, hours, money and bytes on a cluster; with --help, list its options.",
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
        help="Where the items of one response go: together (one call, or a header, keeps them on "
        "one replica), random or round-robin.",
    ),
    _cluster_option(
        "--losses",
        type=_ZERO_OR_MORE,
        metavar="N",
        help="Losses per replica and hour, as of spot machines.",
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
        help="Longest time until a finished response is durable.",
    ),
    _cluster_option("--seed", type=int, metavar="N", help="Seed of the simulated losses."),
)


def with_cluster(verb: Verb) -> Verb:
    """Give the verb what the command line says of a cluster, as `cluster`; None without one."""

    @wraps(verb)
    def command(*args: Any, cluster: bool, **own: Any) -> Any:
        from rocketeval.capacity.model import CapacityOptions

        names = [name for name in CapacityOptions.__slots__ if name in own and name != "rate"]
        told = {name: own.pop(name) for name in names}
        given = {name: value for name, value in told.items() if value is not None}
        if given and not cluster:
            shown = ", ".join(f"--{name.replace('_', '-')}" for name in given)
            raise click.UsageError(f"Only with --cluster: {shown}")
        if "hours" in given and "replicas" in given:
            raise click.UsageError("--hours finds the replicas, --replicas the hours: give one.")
        return verb(*args, cluster=CapacityOptions(**given) if cluster else None, **own)

    wrapped: Verb = command
    for add in reversed(_OPTIONS):
        wrapped = add(wrapped)
    return wrapped


TITLES = {
    "rate": "answers/s of a replica",
    "items": "items of a response",
    "prefix_tokens": "tokens of a prefix",
    "item_tokens": "tokens of an item",
    "calls": "calls an answer",
    "gpus": "GPUs of a replica",
    "gpu_hour": "money a GPU hour",
    "losses": "losses a replica-hour",
    "restart_minutes": "restart, minutes",
    "batch": "responses of a batch",
    "in_hand": "batches in hand",
    "checkpoint_seconds": "checkpoint, seconds",
    "task_bytes": "bytes of a task",
    "ledger_bytes": "bytes of a judgment",
    "score_bytes": "bytes of a score",
    "call_us": "client us a call",
    "answer_us": "client us an answer",
    "row_us": "Ray us a response",
}
"""What people read for the fields of `Assumptions`."""
NOT_COUNTED = (
    "the start of the cluster and the first loading of the judge; the last batches, when some "
    "replicas have nothing left to do",
    "waiting for GPUs that are not to be had; a network or an object store that is too slow",
    "what queries share beyond one response: a perfect cache computes less",
    "the author of checklists, the client's machines, storage and writes: their money",
    "the run's own copy of the responses, the journal of its newest judgments, the cache's copies "
    "of all of them: their bytes",
)


def show_cluster(found: Capacity, currency: str) -> None:
    """Print what a run takes on a cluster."""
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
    """Yield the tables that have a row per amount of work."""
    from rocketeval.prices import shown_money

    sizes = _sizes(found)
    names = [f"{size.answers:.0e}".replace("+", "") for size in sizes]
    if found.this_run is not None:
        names[0] = f"this run: {found.this_run.answers:,.0f}"
    lost = ", also when some are lost" if found.assumed.losses.value else ""
    within = "with these replicas"
    if found.deadline is not None:
        within = f"replicas for {found.deadline:g} hours{lost}"
    yield _columns(
        f"Work: {within}",
        {
            "answers": names,
            "responses": [f"{size.responses:,.0f}" for size in sizes],
            "replicas": map(_replicas, sizes),
            "GPU hours, none lost": [_short(size.gpu_hours) for size in sizes],
            "hours, none lost": [_short(size.hours) for size in sizes],
            "money, none lost": [shown_money(size.money, currency) for size in sizes],
        },
    )
    if any(size.rework.trials for size in sizes):
        yield _columns(
            "Replicas lost, to be added: mean, and 95 % of the simulated runs",
            {
                "answers": names,
                "lost": [_short(size.rework.losses) for size in sizes],
                "sent again": [f"{size.rework.resent_share:.2%}" for size in sizes],
                "hours more (95 %)": [
                    f"{_short(size.extra_hours)} ({_short(size.extra_hours_95)})" for size in sizes
                ],
                f"{currency or 'money'} more (95 %)": [
                    f"{_short(size.extra_money)} ({_short(size.extra_money_95)})" for size in sizes
                ],
            },
        )
    yield _columns(
        "Around the GPUs (disk: the ledger twice, as blocks)",
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
    title = "Scatter: times the tokens computed, by replicas"
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

    table = make_table("Every number this rests on")
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
    """Yield what the row of this run leaves out, what is assumed, and what is not counted."""
    left_out = []
    if found.waiting:
        waits = count_of(found.waiting, "response waits", "responses wait")
        left_out.append(f"{waits} for a checklist")
    if found.without_checklist:
        has = count_of(found.without_checklist, "response has", "responses have")
        left_out.append(f"{has} no checklist and no author")
    told = " and ".join(left_out)
    if found.this_run is None and not told:
        yield "The run itself has nothing left to ask."
    elif found.this_run is None:
        yield f"This run has no row: {told}. Of others, nothing is left to ask."
    elif told:
        yield f"This run: only responses that have a checklist. Left out: {told}."
    if found.deadline is not None and not found.deadline_given:
        yield "The deadline of a day is assumed; see --hours and --replicas."
    simulated = [size for size in _sizes(found) if size.rework.trials]
    if simulated:
        trials = max(size.rework.trials for size in simulated)
        yield f"Losses are simulated (up to {trials} runs a line, seed {found.seed})."
        yield "A replica that restarts is paid for. In brackets: 95 % of the runs need no more."
    if any(size.rework.replicas_simulated < size.replicas for size in simulated):
        yield "Of the largest fleets a part was simulated, which overstates the 95 %."
    yield from _notes_on_fleets(found)
    yield "An answer is one item of one response. The time is taken to grow as tokens do."
    yield "Not counted:"
    yield from (f"- {line}" for line in NOT_COUNTED)


def _notes_on_fleets(found: Capacity) -> Iterator[str]:
    """Yield why replicas have no work, or a deadline is not met."""
    idle = next((size for size in _sizes(found) if size.idle), None)
    if idle is not None:
        yield f"{_replicas(idle)}: so many have work, as a batch stays on one replica (see"
        yield "--batch). The others are in no figure."
    late = [size.hours for size in _sizes(found) if size.deadline_met is False]
    if found.deadline is not None and late:
        if max(late) > found.deadline:
            yield "late: not in time although every batch has a replica of its own (see --batch)."
        if min(late) <= found.deadline:
            yield "late: in time if no replica is lost, but not in 95 % of the simulated runs."


def _short(value: float) -> str:
    """Return a number with the digits that a plan has.

    >>> [_short(value) for value in (0, 0.01234, 1.234, 8, 56.78, 5595.4)]
    ['0', '0.012', '1.2', '8', '56.8', '5,595']
    """
    if value == round(value) or value >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if value >= 1 else f"{value:.2g}"


def shown_bytes(size: float) -> str:
    """Return bytes for people, in powers of a thousand.

    >>> shown_bytes(999), shown_bytes(1_500_000), shown_bytes(8.5e12)
    ('999 B', '1.5 MB', '8.5 TB')
    """
    units = ["B", "kB", "MB", "GB", "TB", "PB"]
    while size >= 1000 and len(units) > 1:
        size /= 1000
        units.pop(0)
    unit = units[0]
    return f"{size:.0f} {unit}" if size >= 10 or unit == "B" else f"{size:.1f} {unit}"

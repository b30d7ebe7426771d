"""What a verdict costs: calls and prompt tokens, for a case that comes alone and on a benchmark."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from rocketeval.config import PriceConfig
from rocketeval.cost import money
from rocketeval.evolve.cases import Case
from rocketeval.evolve.perspective import Perspective
from rocketeval.evolve.sheets import QUERIES, Asking, sheet_of
from rocketeval.records import Usage
from rocketeval.stages.evolve.questions import shown
from rocketeval.store.run import RunStore


@dataclass(frozen=True, slots=True)
class Load:
    """What the verdict on one case takes."""

    calls: float
    prompt_tokens: float | None
    """As measured on the held-out cases; None where the judge did not tell."""
    money: float | None
    """None without a price."""


@dataclass(frozen=True, slots=True)
class Cost:
    """What an evaluator costs, beside one prompt."""

    case: Literal["pair", "response"]
    about_responses: int
    """Questions asked of each response, or of each pair."""
    about_queries: int
    """Questions asked of each query."""
    alone: Load
    """A case that shares its query and responses with no other."""
    here: Load
    """Mean over the benchmark's cases: what they share is asked once."""
    single: Load
    """One question instead of all, of a case that comes alone."""
    currency: str


@dataclass(frozen=True, slots=True)
class SheetUse:
    """What the questions of a sheet used, whoever paid."""

    usage: Usage
    questions: int
    """A request may hold many: all that are asked about a response."""


def measured_use(store: RunStore, folder: str, sheets: Iterable[str]) -> dict[str, SheetUse]:
    """Return what each sheet's questions used; the sheets are runs inside the run."""
    inside = {name: store.inside(folder, name) for name in sheets}
    return {name: SheetUse(one.ledger_usage(), _asked(one)) for name, one in inside.items()}


def _asked(sheet: RunStore) -> int:
    """Return how many questions were asked: each item of a query once, of all that was judged."""
    items: dict[str, set[str]] = {}
    for checklist in (*sheet.inputs.checklists().values(), *sheet.inputs.earlier_checklists()):
        items.setdefault(checklist.query_id, set()).update(checklist.items)
    judged = {
        (query_id, candidate)
        for table in sheet.judgments(["query_id", "candidate"])
        for query_id, candidate in zip(
            table["query_id"].to_pylist(), table["candidate"].to_pylist(), strict=True
        )
    }
    return sum(len(items.get(query_id, ())) for query_id, _ in judged)


def count_cost(
    perspectives: Collection[Perspective],
    overall: Perspective,
    cases: Collection[Case],
    asking: Asking,
    used: Mapping[str, SheetUse],
    price: PriceConfig | None,
) -> Cost:
    """Return calls, tokens and money of a verdict with these perspectives."""
    pairs = len(next(iter(cases)).candidates) == 2
    sides = 2 if pairs and asking == "each" else 1
    texts = shown(cases, asking) / len(cases)
    queries = len({case.query_id for case in cases}) / len(cases)
    of_queries = sum(sheet_of(each, asking) is QUERIES for each in perspectives)

    def load(asked: Iterable[Perspective], per_case: float, per_query: float) -> Load:
        total = Load(0.0, 0.0, 0.0 if price else None)
        for each in asked:
            sheet = sheet_of(each, asking)
            times = per_query if sheet is QUERIES else per_case
            total = _plus(total, times, used.get(sheet.name, _NOTHING), price)
        return total

    return Cost(
        "pair" if pairs else "response",
        len(perspectives) - of_queries,
        of_queries,
        load(perspectives, sides, 1.0),
        load(perspectives, texts, queries),
        load([overall], sides, 0.0),
        price.currency if price else "",
    )


_NOTHING = SheetUse(Usage(), 0)


def _plus(total: Load, times: float, used: SheetUse, price: PriceConfig | None) -> Load:
    """Add a question that is asked so many times, at what such questions used on average."""
    tokens = spent = None
    if used.questions and used.usage.prompt_tokens:
        tokens = times * used.usage.prompt_tokens / used.questions
        spent = None if price is None else times * money(used.usage, price) / used.questions
    return Load(total.calls + times, _sum(total.prompt_tokens, tokens), _sum(total.money, spent))


def _sum(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one + other

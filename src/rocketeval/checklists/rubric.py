"""Binding of a checklist to the config: which material items show, and which checks exist."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Annotated, Literal

from pydantic import Field, field_validator

from rocketeval.checks.library import LIBRARY, needs_reference
from rocketeval.checks.runner import CheckSettings
from rocketeval.config import RunConfig, ScorerConfig, Section, parse_options
from rocketeval.errors import ChecklistError
from rocketeval.items import CHECK_NAME, MATERIALS, Checklist, ItemDetail, without_source
from rocketeval.records import Query
from rocketeval.store.inputs import ResponseHead
from rocketeval.text import join_words

SHOWING = ("checklist", "fixed")
"""Grading methods with these options."""
SHOWN_NAMES = 3


class RubricOptions(Section):
    """Options of the method checklist."""

    shows: tuple[Literal["system", "context", "reference"], ...] = ()
    """Material that the judge sees for every item, if the query or response has it; items may ask
    for it themselves with `uses`."""
    functions: dict[str, str] = Field(default_factory=dict)
    """Your own checks: `module:function`, or an entry point of the group rocketeval.checks, by the
    name that items use."""
    check_seconds: Annotated[float, Field(gt=0, le=600)] = 2.0
    """Time limit of one check."""
    check_megabytes: Annotated[int, Field(ge=256)] = 1024
    """Memory limit of the process that runs checks."""

    @field_validator("functions")
    @classmethod
    def _names_and_paths(cls, functions: dict[str, str]) -> dict[str, str]:
        for name, target in functions.items():
            if not CHECK_NAME.fullmatch(name):
                raise ValueError(f"{name!r} must be a lower-case name, such as is_polite.")
            if not target.strip():
                raise ValueError(f"{name!r} names no function.")
        return functions

    @property
    def checks(self) -> CheckSettings:
        """The settings of code checks."""
        return CheckSettings(self.functions, self.check_seconds, self.check_megabytes)


class AuthorOptions(Section):
    """Options of the author kind instance: what its items may have besides a yes/no question."""

    weights: bool = False
    """Items may weigh more or less than others."""
    penalties: bool = False
    """Items may ask for a fault, with a negative weight."""
    graded: bool = False
    """Items may have ordered levels instead of yes and no."""
    na: bool = False
    """Items may be answered with "not applicable"."""
    checks: bool = False
    """Items may be decided by the library of code checks."""

    @property
    def fields(self) -> tuple[str, ...]:
        """The fields of an item that the author may write; empty for plain yes/no questions."""
        given = {
            "weight": self.weights or self.penalties,
            "penalty": self.penalties,
            "levels": self.graded,
            "na": self.na,
            "check": self.checks,
        }
        return tuple(name for name, wanted in given.items() if wanted)

    @property
    def rules(self) -> str:
        """The rules of the author's prompt on these fields."""
        return "\n".join(rule for name, rule in _RULES.items() if getattr(self, name))


_CHECKS = ", ".join(
    f"{name} ({', '.join(function.args) or 'no arguments'})"
    for name, function in LIBRARY.items()
    if not function.package and (function.instead_of_reference or not function.needs_reference)
)
_RULES = {
    "weights": '- "weight": how much the item matters, from 1 (little) to 10 (decisive); 1 if left '
    "out.",
    "penalties": "- A serious fault may be an item of its own with a negative weight, from -1 to "
    "-10: then Yes means that the response has the fault, and lowers the score.",
    "graded": '- "levels": for a matter of degree, a list of 3 to 5 short descriptions from the '
    "worst to the best response; the reader then chooses a level instead of Yes or No. No two may "
    "describe the same response.",
    "na": '- "na": true if the question does not apply to some good responses; the reader may then '
    "answer NA.",
    "checks": '- "check": what code can decide must not be asked: {"fn": NAME, "args": {...}}, and '
    f'a "text" that says what is checked. Names with their arguments: {_CHECKS}. '
    'Example: {"text": "Has at most 100 words", "check": {"fn": "words", "args": {"max": 100}}}',
}


def rubric_options(config: RunConfig) -> RubricOptions:
    """Return the options on items of the config's method; defaults for other methods."""
    if config.method.kind not in SHOWING:
        return RubricOptions()
    own = {
        name: value
        for name, value in config.method.options.items()
        if name in RubricOptions.model_fields
    }
    return parse_options(own, RubricOptions, f"method.options of {config.method.kind!r}")


def bind_checklist(
    checklist: Checklist,
    query: Query,
    options: RubricOptions,
    left_out: list[str] | None = None,
) -> Checklist:
    """Return the checklist as it will be asked; raise ChecklistError that names a wrong item.

    With `left_out`, wrong items are left out and their problems added to that list; a checklist
    without a right item is still an error.
    """
    if checklist.details is None and not options.shows:
        return checklist
    checks = options.checks
    details, kept, problems = [], [], []
    for place, detail in enumerate(checklist.every_detail):
        bound = _with_material(detail, query, options.shows)
        if bound.check is not None:
            try:
                call = checks.bind(bound.check)
            except ValueError as error:
                problems.append(f"item {place + 1}: {error}")
                continue
            reads = ("reference",) if checks.reads_reference(call) else ()
            bound = replace(bound, check=call, uses=reads)
        details.append(bound)
        kept.append(place)
    if problems and (left_out is None or not kept):
        raise ChecklistError(problems[0])
    if left_out is not None:
        left_out += [f"{query.id!r}, {problem}" for problem in problems]
    plain = all(detail == ItemDetail() for detail in details)
    groups = checklist.groups
    return replace(
        checklist,
        items=tuple(checklist.items[place] for place in kept),
        groups=None if groups is None else tuple(groups[place] for place in kept),
        details=None if plain else tuple(details),
    )


NEED_WEIGHTS = frozenset(
    (
        "mean",
        "hard",
        "extra_trees",
        "random_forest",
        "pooled_ridge",
        "pooled_logistic",
        "isotonic",
        "select",
    )
)
"""The scorers that need an item with a weight other than 0: all that are built in but `points`."""


def weight_notes(
    checklists: Mapping[str, Checklist], scorer: ScorerConfig, *, complete: bool = True
) -> list[str]:
    """Return a note on queries without a score because of their items' weights.

    ChecklistError if they are all queries, which `complete` says. An installed scorer may ignore
    weights.
    """
    points = scorer.kind == "points"
    if not points and scorer.kind not in NEED_WEIGHTS:
        return []
    without = [
        repr(query_id)
        for query_id, made in checklists.items()
        if all(each.weight <= 0 if points else each.weight == 0 for each in made.every_detail)
    ]
    if not without:
        return []
    needed = "a positive weight" if points else "a weight other than 0"
    named = f"{len(without):,} ({join_words(without, most=SHOWN_NAMES)})"
    if complete and len(without) == len(checklists):
        raise ChecklistError(
            f"No response can have a score: no item has {needed}. Queries with such a checklist: "
            f"{named}.",
            hint=f"Give some item {needed}"
            + (", or set `scorer.kind: mean`." if points else "; without `weight` it is 1."),
        )
    return [
        f"queries without a score, because none of their items has {needed}, which the scorer "
        f"{scorer.kind} needs: {named}."
    ]


def _with_material(detail: ItemDetail, query: Query, shows: Iterable[str]) -> ItemDetail:
    if detail.check is not None:
        return detail
    # A response may have its own context, so `context` is shown wherever there is one.
    given = {name for name in shows if name == "context" or getattr(query, name) is not None}
    uses = tuple(name for name in MATERIALS if name in given or name in detail.uses)
    return replace(detail, uses=uses)


def unbound(checklist: Checklist) -> Checklist:
    """Return the checklist as a user writes it: without the identities of Python functions."""
    if checklist.details is None:
        return checklist
    return replace(checklist, details=tuple(map(without_source, checklist.details)))


def rubric_notes(
    checklists: Mapping[str, Checklist],
    queries: Mapping[str, Query],
    heads: Callable[[], Iterable[ResponseHead]],
) -> Iterator[str]:
    """Yield notes on items whose material or reference is missing, and on material never shown.

    `heads` returns the responses without their texts; it is called only if some need a context.
    """
    for name, what in (("reference", "a reference"), ("system", "a system prompt")):
        lacking = [
            repr(query_id)
            for query_id, made in checklists.items()
            if name in made.shows and getattr(queries[query_id], name) is None
        ]
        if lacking:
            yield (
                f"queries whose items use {what} that is missing: {len(lacking):,} "
                f"({join_words(lacking, most=SHOWN_NAMES)}). These items are asked without it."
            )
    undecided = [
        repr(query_id)
        for query_id, made in checklists.items()
        if queries[query_id].reference is None
        and any(
            each.check and needs_reference(each.check.fn, each.check.args)
            for each in made.every_detail
        )
    ]
    if undecided:
        yield (
            f"queries without the reference that a check of theirs needs: {len(undecided):,} "
            f"({join_words(undecided, most=SHOWN_NAMES)}). These checks have no result: add a "
            "`reference`, or for the check 'number' a `value`."
        )
    bare = {
        query_id
        for query_id, made in checklists.items()
        if "context" in made.shows and queries[query_id].context is None
    }
    alone = [
        f"{head.candidate!r} on {head.query_id!r}"
        for head in (heads() if bare else ())
        if head.query_id in bare and head.context_hash is None
    ]
    if alone:
        yield (
            f"responses whose items use a context that neither they nor their query have: "
            f"{len(alone):,} ({join_words(alone, most=SHOWN_NAMES)}). These items are asked "
            "without it."
        )
    for name, what in (("context", "a context"), ("system", "a system prompt")):
        unseen = [
            repr(query_id)
            for query_id, made in checklists.items()
            if getattr(queries[query_id], name) is not None and name not in made.shows
        ]
        if unseen:
            yield (
                f"queries with {what} that the judge does not see: {len(unseen):,} "
                f"({join_words(unseen, most=SHOWN_NAMES)}). To show it, set "
                f"`method: {{options: {{shows: [{name}]}}}}`, or `uses` of an item."
            )

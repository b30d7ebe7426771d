"""Pool files: perspectives as YAML that people can read and edit.

perspectives:
  - text: Does the response say where its figures come from?
  - text: Does the query ask for figures?
    kind: query
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import yaml
from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from rocketeval.config import Section, parse_options
from rocketeval.errors import ConfigError
from rocketeval.evolve.perspective import (
    LONGEST_TEXT,
    PROPOSED,
    AnswerFormat,
    Perspective,
    PerspectiveKind,
    PerspectiveOrigin,
    Pool,
    check_question,
    in_formats,
    one_line,
)
from rocketeval.registry import nearest
from rocketeval.resources import PackagedFiles, read_yaml
from rocketeval.store.files import write_bytes

MOST_BYTES = 1 << 22
HINT = "Write `perspectives:` with a list of entries under it, each with a `text`."
BEGINNING = """\
# The questions an evaluator asks, in the order they were added.
# To add one, append an entry with only a text: a yes/no question about "the response" for which
# yes is the better answer, or, with `kind: query`, a question about the query alone.
#   - text: Does the response say where its figures come from?
#   - text: Does the query ask for figures?
#     kind: query
"""


def _joined(text: object) -> object:
    return one_line(text) if isinstance(text, str) else text


_Text = Annotated[str, BeforeValidator(_joined), AfterValidator(check_question)]
_Share = Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]


class PoolEntry(Section):
    """One entry of a pool file."""

    text: _Text
    """The question."""
    kind: PerspectiveKind = PerspectiveKind.RESPONSE
    """response or query: the subject of the question."""
    origin: PerspectiveOrigin = PerspectiveOrigin.PERSON
    """The origin of the question."""
    form: AnswerFormat = AnswerFormat.CHOICE
    """choice or graded: the answer format."""
    types: tuple[str, ...] = ()
    """Instruction types it was written for."""
    parents: tuple[str, ...] = ()
    """Ids of the perspectives it was made from."""
    round: Annotated[int, Field(ge=0)] = 0
    """The round that proposed it."""
    importance: _Share | None = None
    """Its importance in the surrogate model."""
    stability: _Share | None = None
    """Share of the folds that selected it."""
    id: Any = None
    """For reference only; the id is always computed from the content."""

    @model_validator(mode="after")
    def _a_query_is_a_choice(self) -> Self:
        if self.kind is PerspectiveKind.QUERY and self.form is not AnswerFormat.CHOICE:
            raise ValueError("a question about a query is always `form: choice`; leave `form` out.")
        return self

    def perspective(self) -> Perspective:
        """Return the entry as a record."""
        return Perspective(**self.model_dump(exclude={"id"}))


def read_pool(path: Path) -> Pool:
    """Return the perspectives of a pool file; raise ConfigError that names an invalid entry."""
    if path.is_file() and path.stat().st_size > MOST_BYTES:
        raise ConfigError(f"{path} is too long for a pool of perspectives.", hint=HINT)
    raw = read_yaml(path, "pool of perspectives", hint=HINT)
    if not isinstance(raw, dict) or not isinstance(raw.get("perspectives"), list):
        raise ConfigError(f"{path} has no list of `perspectives`.", hint=HINT)
    for key in raw:
        if key != "perspectives":
            raise ConfigError(
                f"{path}: unknown key {key!r}.", hint=nearest(str(key), ["perspectives"])
            )
    listed = [_entry(path, number, entry) for number, entry in enumerate(raw["perspectives"], 1)]
    pool, repeated = Pool().add(listed)
    if repeated:
        _refuse_repeat(path, listed, repeated[0])
    return pool


def write_pool(pool: Pool, path: Path) -> None:
    """Write a pool file that `read_pool` reads back."""
    rows = [_row(each) for each in pool]
    listed = yaml.dump(
        {"perspectives": rows},
        Dumper=_Indented,
        sort_keys=False,
        allow_unicode=True,
        width=10 * LONGEST_TEXT,
    )
    write_bytes(path, (BEGINNING + listed).encode())


class _Indented(yaml.SafeDumper):
    """Indents list entries by two columns, as in the file's header comment."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _entry(path: Path, number: int, raw: Any) -> Perspective:
    where = f"{path}: perspective {number}"
    if not isinstance(raw, dict):
        raise ConfigError(f"{where} must be a mapping with a `text`.", hint=HINT)
    return parse_options(raw, PoolEntry, where).perspective()


def _refuse_repeat(path: Path, listed: Sequence[Perspective], repeat: Perspective) -> None:
    number = next(place for place, each in enumerate(listed, 1) if each is repeat)
    first = next(place for place, each in enumerate(listed, 1) if Pool([each]).add([repeat])[1])
    raise ConfigError(
        f"{path}: perspective {number} asks the same as perspective {first}: {repeat.text[:60]!r}.",
        hint="Delete one of them, or reword it.",
    )


def _row(perspective: Perspective) -> dict[str, Any]:
    """Return an entry without default values."""
    importance = perspective.importance
    row: dict[str, Any] = {
        "text": perspective.text,
        "kind": perspective.kind.value,
        "origin": perspective.origin.value,
        "form": perspective.form.value,
        "types": list(perspective.types),
        "parents": list(perspective.parents),
        "round": perspective.round,
        "importance": None if importance is None else round(importance, 4),
        "stability": perspective.stability,
        "id": perspective.id,
    }
    return {name: value for name, value in row.items() if value not in ([], None)}


_SEEDS = PackagedFiles("rocketeval.evolve", "seeds")


def packaged_seeds() -> list[str]:
    """Return the names of the packaged seed pools.

    >>> packaged_seeds()
    ['guidelines', 'presets', 'prompts']
    """
    return _SEEDS.names()


def seed_pool(names_or_paths: Sequence[str], forms: tuple[AnswerFormat, ...]) -> Pool:
    """Return the named pools as one, with questions about responses in the given formats.

    With two formats the second has the first as its parent. Duplicates are dropped. Rounds and
    weights of another run are dropped too; its proposals keep their origin.

    >>> len(seed_pool(["prompts"], (AnswerFormat.CHOICE, AnswerFormat.GRADED)))
    10
    """
    listed: list[Perspective] = []
    for name in names_or_paths:
        unknown = "evolve.seeds: there is no packaged pool"
        listed += _SEEDS.read(name, read_pool, unknown=unknown)
    pool, _ = Pool().add(in_formats(map(_as_seed, listed), forms))
    return pool


def _as_seed(each: Perspective) -> Perspective:
    """Return the perspective without the round and weights that another run gave it."""
    # An entry that names a round counts as a proposal of it.
    origin = PerspectiveOrigin.FAILURES if each.round and each.origin not in PROPOSED else None
    return replace(each, origin=origin or each.origin, round=0, importance=None, stability=None)

"""Checklists and their items: how each is asked, weighed and read, and their form in JSON.

An item is written as a plain text, or as an object with `text` and any of `weight`, `kind`,
`levels`, `na`, `uses`, `check`, `group` and `tags`. A plain text is a yes/no question of weight 1.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from enum import StrEnum

from rocketeval.hashing import content_hash

__all__ = [
    "AnswerLabels",
    "CheckCall",
    "Checklist",
    "ItemDetail",
    "ItemKind",
    "ParsedItem",
    "parse_item",
]


class ItemKind(StrEnum):
    """How an item is answered."""

    YES_NO = "yes_no"
    """The judge answers yes or no."""
    SCALE = "scale"
    """The judge chooses one of several ordered levels; the value is the expected level."""
    CHECK = "check"
    """Code decides it; the judge is not asked."""


NOT_APPLICABLE = "NA"
"""The label for an item that does not apply."""
FEWEST_LEVELS, MOST_LEVELS = 2, 10
LEAST_WEIGHT, MOST_WEIGHT = 1e-6, 1e6
MOST_DEPTH = 64
"""Deepest nesting of the arguments of a check."""
MOST_NUMBER = 10**18
"""Largest number in the arguments of a check, for which every JSON library is exact."""
NO_GROUP = "(no group)"
"""Group of an item without one, in a checklist where others have groups."""
MATERIALS = ("system", "context", "reference")
"""What an item may show to the judge besides the query and the response, in prompt order."""
CHECK_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}")
_FIELDS = ("text", "weight", "kind", "levels", "na", "uses", "check", "group", "tags")
_MEANT = {
    "question": ("text",),
    "item": ("text",),
    "criterion": ("text",),
    "points": ("weight",),
    "scale": ("levels",),
    "category": ("group",),
}
"""Names of other rubric formats."""


@dataclass(frozen=True, slots=True)
class AnswerLabels:
    """The words a judge answers an item with."""

    words: tuple[str, ...]
    """Best first."""
    na: str | None = None
    """The word for "not applicable"; None if that is no answer."""


@dataclass(frozen=True, slots=True)
class CheckCall:
    """A code check: the name of a function and its arguments."""

    fn: str
    """A function of the library, or a name that the config gives to a Python function."""
    args: Mapping[str, object] = field(default_factory=dict)
    """JSON values by argument name."""
    source: str = ""
    """Identity of the code: the version of a library function, or the import path and a hash of a
    function from the config. Empty until the checklist is bound; never read from a benchmark."""


@dataclass(frozen=True, slots=True)
class ItemDetail:
    """Everything about an item except its text and group."""

    weight: float = 1.0
    """Weight in the score; with a negative weight the item is a penalty: yes is worse."""
    kind: ItemKind = ItemKind.YES_NO
    levels: tuple[str, ...] = ()
    """Descriptions of the levels of a scale, worst first."""
    na: bool = False
    """Whether "not applicable" is an allowed answer."""
    uses: tuple[str, ...] = ()
    """Which of `MATERIALS` the judge is shown for this item, besides query and response; for a
    check that was bound, what it reads."""
    check: CheckCall | None = None
    """What to compute; None unless the kind is check."""
    tags: tuple[str, ...] = ()
    """Free words, such as an axis of the rubric."""

    @property
    def labels(self) -> AnswerLabels | None:
        """The item's own labels; None if it is answered with the judge's usual yes and no."""
        na = NOT_APPLICABLE if self.na else None
        if self.kind is ItemKind.SCALE:
            return AnswerLabels(level_labels(len(self.levels))[::-1], na)
        return AnswerLabels(("Yes", "No"), na) if na else None

    @property
    def asked_specially(self) -> bool:
        """Whether the judge is asked differently than for a plain item."""
        return self.kind is not ItemKind.YES_NO or self.na or bool(self.uses)

    @property
    def identity(self) -> dict[str, object]:
        """What determines the answer besides the text; empty for a plain item of any weight."""
        found: dict[str, object] = {}
        if self.kind is not ItemKind.YES_NO:
            found["kind"] = str(self.kind)
        if self.levels:
            found["levels"] = list(self.levels)
        if self.na:
            found["na"] = True
        if self.uses:
            found["uses"] = list(self.uses)
        if self.check is not None:
            found["check"] = [self.check.fn, dict(self.check.args), self.check.source]
        return found

    @property
    def summary(self) -> str:
        """What a reader should know besides the text; empty for a plain item.

        >>> ItemDetail(-5.0, na=True).summary
        'penalty of weight 5, may not apply'
        """
        words = []
        if self.weight < 0:
            words.append(f"penalty of weight {-self.weight:g}")
        elif self.weight != 1.0:
            words.append(f"weight {self.weight:g}")
        if self.kind is ItemKind.SCALE:
            words.append(f"{len(self.levels)} levels")
        if self.check is not None:
            words.append(f"check {self.check.fn}")
        if self.na:
            words.append("may not apply")
        return ", ".join(words)


PLAIN = ItemDetail()


def level_labels(levels: int) -> tuple[str, ...]:
    """Return the labels of a scale, worst first: single digits, which no label starts alike.

    >>> level_labels(3), level_labels(10)[-1]
    (('1', '2', '3'), '9')
    """
    first = 0 if levels == MOST_LEVELS else 1
    return tuple(str(first + place) for place in range(levels))


@dataclass(frozen=True, slots=True)
class ParsedItem:
    """One item as written in a file."""

    text: str
    detail: ItemDetail = PLAIN
    group: str | None = None


@dataclass(frozen=True, slots=True)
class Checklist:
    """The items by which responses to one query are judged."""

    query_id: str
    """The query it belongs to."""
    items: tuple[str, ...]
    """Texts of the items: yes/no questions, unless `details` says otherwise."""
    author: str = "imported"
    """Name of the author."""
    groups: tuple[str, ...] | None = None
    """Group of each item, such as a sub-dimension; None without groups."""
    about: str | None = None
    """Topic of the items, such as the definition of a dimension, for a judge that sees all items
    in one prompt."""
    details: tuple[ItemDetail, ...] | None = field(default=None, metadata={"optional": True})
    """Weight and kind of each item; None if all are plain yes/no questions of weight 1."""

    @classmethod
    def from_items(
        cls,
        query_id: str,
        items: Sequence[ParsedItem],
        author: str = "imported",
        about: str | None = None,
    ) -> Checklist:
        """Return a checklist of parsed items; plain ones have no groups and no details."""
        grouped = any(item.group is not None for item in items)
        plain = all(item.detail == PLAIN for item in items)
        return cls(
            query_id,
            tuple(item.text for item in items),
            author,
            tuple(item.group or NO_GROUP for item in items) if grouped else None,
            about,
            None if plain else tuple(item.detail for item in items),
        )

    def detail(self, place: int) -> ItemDetail:
        """Return the detail of the item at `place`, from 0."""
        return PLAIN if self.details is None else self.details[place]

    @property
    def every_detail(self) -> tuple[ItemDetail, ...]:
        """The detail of each item."""
        return self.details or (PLAIN,) * len(self.items)

    @property
    def uses(self) -> tuple[str, ...]:
        """The material that some item shows to the judge, or that its check reads."""
        return tuple(dict.fromkeys(name for each in self.details or () for name in each.uses))

    @property
    def shows(self) -> tuple[str, ...]:
        """The material that some item shows to the judge."""
        asked = (each for each in self.details or () if each.check is None)
        return tuple(dict.fromkeys(name for each in asked for name in each.uses))

    @property
    def asked_specially(self) -> bool:
        """Whether the judge is asked some item differently than a plain one."""
        return any(each.asked_specially for each in self.details or ())

    @property
    def titles(self) -> tuple[str, ...]:
        """The items as shown to people, with weight and kind in brackets unless plain."""
        summaries = (each.summary for each in self.every_detail)
        pairs = zip(self.items, summaries, strict=True)
        return tuple(f"{text} [{summary}]" if summary else text for text, summary in pairs)

    @property
    def content_hash(self) -> bytes:
        """Hash of the ordered items as asked, and of the groups and topic if any.

        Weights and tags are no part of it: they do not change an answer.
        """
        grouped = () if self.groups is None else (list(self.groups),)
        topic = () if self.about is None else ({"about": self.about},)
        asked = [each.identity for each in self.details or ()]
        special = ({"details": asked},) if any(asked) else ()
        return content_hash("checklist", list(self.items), *grouped, *topic, *special)

    @property
    def item_hashes(self) -> list[bytes]:
        """Hash of each item as asked: its text, and its details if any."""
        pairs = zip(self.items, self.every_detail, strict=True)
        return [content_hash("item", text, detail.identity) for text, detail in pairs]

    @property
    def scoring_hash(self) -> bytes:
        """Hash of everything that affects scores: the content, and weights that are not 1."""
        weights = [each.weight for each in self.details or ()]
        if all(weight == 1.0 for weight in weights):
            return self.content_hash
        return content_hash("weighted", self.content_hash.hex(), weights)

    def to_json(self) -> list[object]:
        """Return the items as JSON, each with its group and details if any."""
        groups = self.groups or (None,) * len(self.items)
        rows = zip(self.items, self.every_detail, groups, strict=True)
        return [item_to_json(text, detail, group) for text, detail, group in rows]


def parse_item(given: object, *, trusted: bool = False) -> ParsedItem:
    """Return an item given as JSON; raise ValueError that names the field and what is valid.

    Only a `trusted` item, from the run's own files, may carry the `source` of a check.

    >>> parse_item({"text": "Is it rude?", "weight": -2}).detail.weight
    -2.0
    """
    if isinstance(given, str):
        return ParsedItem(_text(given, "an item"))
    if not isinstance(given, Mapping):
        raise ValueError(f"it must be a text or an object, not {_kind(given)}.")
    unknown = [str(name) for name in given if name not in _FIELDS]
    if unknown:
        close = [*get_close_matches(unknown[0], _FIELDS, n=1), *_MEANT.get(unknown[0], ())][:1]
        meant = f" Did you mean {close[0]!r}?" if close else ""
        if not close and len(given) == 1 and " " in unknown[0]:
            meant = " In YAML, a colon followed by a space makes a field: put the item in quotes."
        raise ValueError(f"unknown field {unknown[0]!r}.{meant} Valid: {', '.join(_FIELDS)}.")
    if "text" not in given:
        raise ValueError("the field 'text' is missing.")
    levels = _levels(given.get("levels"))
    check = _check(given.get("check"), trusted=trusted)
    detail = ItemDetail(
        weight=_weight(given.get("weight", 1.0)),
        kind=_item_kind(given.get("kind"), levels, check),
        levels=levels,
        na=_flag(given.get("na", False)),
        uses=_uses(given.get("uses")),
        check=check,
        tags=_texts(given.get("tags"), "tags"),
    )
    if check is not None and (detail.na or (detail.uses and not trusted)):
        raise ValueError("a check has no 'na' and no 'uses': it reads response and reference only.")
    group = given.get("group")
    return ParsedItem(
        _text(given["text"], "text"), detail, None if group is None else _text(group, "group")
    )


def is_of_another_kind(given: object) -> bool:
    """Return whether an object has fields that are no misspelled fields of an item.

    >>> [is_of_another_kind({"text": "Milk", name: 2}) for name in ("price", "level", "weight")]
    [True, False, False]
    """
    fields = given if isinstance(given, Mapping) else ()
    own = (*_FIELDS, *_MEANT)
    return any(not get_close_matches(str(each), own, n=1, cutoff=0.75) for each in fields)


def valid_item(item: ParsedItem) -> ParsedItem:
    """Return an item that a reader of another format made; raise ValueError like `parse_item`."""
    parse_item(item_to_json(item.text, item.detail, item.group))
    return item


def item_to_json(text: str, detail: ItemDetail, group: str | None = None) -> object:
    """Return an item as JSON; a plain item is its text."""
    found: dict[str, object] = {} if group is None else {"group": group}
    if detail.weight != 1.0:
        found["weight"] = detail.weight
    identity = dict(detail.identity)
    identity.pop("check", None)
    found |= identity
    if detail.check is not None:
        call: dict[str, object] = {"fn": detail.check.fn}
        if detail.check.args:
            call["args"] = dict(detail.check.args)
        if detail.check.source:
            call["source"] = detail.check.source
        found["check"] = call
    if detail.tags:
        found["tags"] = list(detail.tags)
    return {"text": text, **found} if found else text


def without_source(detail: ItemDetail) -> ItemDetail:
    """Return the detail as a user writes it: without what binding adds to a check."""
    if detail.check is None or not detail.check.source:
        return detail
    return replace(detail, check=replace(detail.check, source=""), uses=())


def _kind(value: object) -> str:
    if value is None:
        return "null"
    names = {bool: "true or false", int: "a number", float: "a number", str: "a text"}
    return names.get(type(value), "a list" if isinstance(value, Sequence) else "an object")


def _text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} must be a text, not {_kind(value)}.")
    if not value.strip():
        raise ValueError(f"{name} is empty." if name != "an item" else "it is empty.")
    return value


def _texts(value: object, name: str) -> tuple[str, ...]:
    if value is None:
        return ()
    if isinstance(value, str) or not isinstance(value, Sequence):
        fix = f": write [{value[:40]}]" if isinstance(value, str) else ""
        raise ValueError(f"{name} must be a list of texts, not {_kind(value)}{fix}.")
    return tuple(_text(each, f"an entry of {name}") for each in value)


def _weight(value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"weight must be a number, not {_kind(value)}.")
    if not (value == 0 or LEAST_WEIGHT <= abs(value) <= MOST_WEIGHT):
        raise ValueError(
            f"weight must be 0, or between {LEAST_WEIGHT:g} and {MOST_WEIGHT:g} or the negatives, "
            f"but is {str(value)[:40]}."
        )
    return float(value)


def _flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise ValueError(f"na must be true or false, not {_kind(value)}.")
    return value


def _levels(value: object) -> tuple[str, ...]:
    levels = _texts(value, "levels")
    if value is not None and not FEWEST_LEVELS <= len(levels) <= MOST_LEVELS:
        raise ValueError(
            f"a scale has {FEWEST_LEVELS} to {MOST_LEVELS} levels, worst first, not {len(levels)}."
        )
    if len({" ".join(level.casefold().split()) for level in levels}) < len(levels):
        raise ValueError("two levels have the same description.")
    return levels


def _uses(value: object) -> tuple[str, ...]:
    given = _texts(value, "uses")
    for name in given:
        if name not in (*MATERIALS, "response"):
            raise ValueError(f"uses {name!r} is unknown. Valid: response, {', '.join(MATERIALS)}.")
    return tuple(name for name in MATERIALS if name in given)


def _check(value: object, *, trusted: bool) -> CheckCall | None:
    if value is None:
        return None
    allowed = {"fn", "args", "source"} if trusted else {"fn", "args"}
    if not isinstance(value, Mapping) or "fn" not in value:
        raise ValueError(
            "check must be an object such as {fn: words, args: {max: 100}}, not "
            + (f"{_kind(value)}." if not isinstance(value, Mapping) else "one without 'fn'.")
        )
    misplaced = [str(name) for name in value if name not in allowed]
    if misplaced:
        raise ValueError(
            f"unknown field {misplaced[0]!r} of check. Arguments belong in 'args': "
            f"{{fn: {str(value['fn'])[:60]}, args: {{{misplaced[0]}: ...}}}}."
        )
    name, args = value["fn"], value.get("args")
    if not isinstance(name, str) or not CHECK_NAME.fullmatch(name):
        raise ValueError(
            f"check {str(name)[:60]!r} is no name of a check. A benchmark or checklist cannot name "
            "a Python function: give the function a name in the config, under "
            "method.options.functions, and use that name here."
        )
    if args is not None and not isinstance(args, Mapping):
        raise ValueError(f"args of check {name!r} must be an object, not {_kind(args)}.")
    _check_json(args or {}, f"args of check {name!r}")
    return CheckCall(name, dict(args or {}), str(value.get("source", "")))


def _check_json(value: object, where: str, depth: int = 0) -> None:
    """Raise ValueError unless a value can be written as JSON; YAML allows more."""
    if depth > MOST_DEPTH:
        raise ValueError(f"{where}: it is nested more than {MOST_DEPTH} levels deep.")
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise ValueError(
                    f"{where}: the key {str(key)[:40]} must be a text. In YAML, put it in quotes."
                )
            _check_json(key, where, depth)
            _check_json(inner, where, depth + 1)
    elif isinstance(value, list | tuple):
        for inner in value:
            _check_json(inner, where, depth + 1)
    elif isinstance(value, str):
        if any("\ud800" <= character <= "\udfff" for character in value):
            raise ValueError(f"{where}: a text is not valid Unicode.")
    elif isinstance(value, int | float):
        if not -MOST_NUMBER <= value <= MOST_NUMBER:
            raise ValueError(f"{where}: a number is beyond {MOST_NUMBER:g} or not finite.")
    elif value is not None:
        raise ValueError(
            f"{where}: a value of type {type(value).__name__} is not JSON. In YAML, put it in "
            "quotes."
        )


def _item_kind(value: object, levels: tuple[str, ...], check: CheckCall | None) -> ItemKind:
    if value is None:
        value = "check" if check is not None else "scale" if levels else "yes_no"
    try:
        kind = ItemKind(str(value))
    except ValueError:
        valid = ", ".join(each.value for each in ItemKind)
        raise ValueError(f"kind {str(value)[:60]!r} is unknown. Valid: {valid}.") from None
    if levels and check is not None:
        raise ValueError("an item has 'levels' or a 'check', not both.")
    for own, name, there in (
        (ItemKind.SCALE, "levels", bool(levels)),
        (ItemKind.CHECK, "check", check is not None),
    ):
        if kind is own and not there:
            raise ValueError(f"an item of kind {own} needs {name!r}.")
        if there and kind is not own:
            raise ValueError(f"an item with {name!r} has the kind {own}, not {kind}.")
    return kind

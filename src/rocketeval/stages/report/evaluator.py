"""The evolved evaluator that judged a run, for the report: a sentence, and a block of the rest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rocketeval.evolve.described import Described
from rocketeval.report.plain import json_bytes, plain
from rocketeval.report.source import packed
from rocketeval.stages.report.moods import number, share

_UNITS = {"pairs": ("pair", "pairs"), "responses": ("response", "responses")}


def evaluator_in_words(found: Described | None) -> str:
    """Return what judged, what it learned from and how right it is; empty without an evaluator."""
    if found is None:
        return ""
    kinds = [each["kind"] for each in found["perspectives"]]
    return (
        "An evolved evaluator decided here: "
        f"{_counted(kinds.count('response'), 'perspective', 'perspectives')} about the response, "
        f"{kinds.count('query'):,} about the query, "
        f"{_counted(len(found['experts']), 'expert', 'experts')}{_learned(found)}."
        f"{_how_right(found)}"
    )


def evaluator_blocks(found: Described | None) -> dict[str, bytes]:
    """Return the block of the evaluator by its name; nothing without an evaluator."""
    if found is None:
        return {}
    names = [*Described.__required_keys__, *Described.__optional_keys__]
    block = {name: _plain(found.get(name), f"the evaluator's {name}") for name in sorted(names)}
    return {"evaluator": packed(json_bytes(block))}


def _plain(value: Any, owner: str) -> Any:
    """As the page takes it; what is no number is refused with the name of its owner."""
    if isinstance(value, Mapping):
        return {name: _plain(each, f"{owner}, {name}") for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each, owner) for each in value]
    return plain(value, owner)


def _learned(found: Described) -> str:
    told = found["provenance"]
    if told["cases"] is None:
        return ""
    of = f" of {told['benchmark']}" if told["benchmark"] else ""
    return f", learned from {_counted(told['cases'], *_UNITS[found['decides']])}{of}"


def _how_right(found: Described) -> str:
    own = next((each["value"] for each in found["figures"] if each["own"]), None)
    if own is None:
        return ""
    shown = share if found["unit"] == "share" else number
    low, high = own["low"], own["high"]
    reach = "" if low is None or high is None else f" ({shown(low)} to {shown(high)})"
    return f" Cross-validated {found['measure']}: {shown(own['value'])}{reach}."


def _counted(amount: int, one: str, more: str) -> str:
    return f"{amount:,} {one if amount == 1 else more}"

"""Findings are read from their files unchanged."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import ClassVar, Literal

import pytest

from rocketeval.errors import StageMissing, StoreError
from rocketeval.records import Interval
from rocketeval.store.codec import encode
from rocketeval.store.run import RunStore


class Color(Enum):
    """An enum in a record."""

    RED = "red"


@dataclass(frozen=True)
class Row:
    """A record inside a finding."""

    name: str
    figure: Interval | None
    color: Color


@dataclass(frozen=True)
class Made:
    """A finding with a field of every kind."""

    FILE: ClassVar[str] = "made"
    COMMAND: ClassVar[str] = "run --only rank"
    SCHEMA: ClassVar[int] = 3

    rows: tuple[Row, ...]
    pair: tuple[str, float]
    by_name: Mapping[str, Mapping[str, Row]]
    mode: Literal["a", "b"]
    counts: list[int]
    later: float | None = None


MADE = Made(
    (Row("x", Interval(0.5, 0.25, math.inf), Color.RED), Row("y", None, Color.RED)),
    ("p", 1.5),
    {"k": {"l": Row("z", Interval(1.0, math.nan, 2.0), Color.RED)}},
    "a",
    [1, 2],
)


def test_finding_round_trips(tmp_path: Path) -> None:
    """Nested records, enums, tuples and mappings; non-finite numbers become NaN."""
    store = RunStore(tmp_path)
    assert store.read_if_made(Made) is None
    with pytest.raises(StageMissing):
        store.read(Made)
    assert store.save(MADE)
    assert not store.save(MADE)
    found = store.read(Made)
    assert found.rows[1] == MADE.rows[1]
    assert found.rows[0].color is Color.RED
    assert found.rows[0].figure is not None
    assert found.rows[0].figure.low == 0.25
    assert math.isnan(found.rows[0].figure.high)
    assert (found.pair, found.mode, found.counts, found.later) == (("p", 1.5), "a", [1, 2], None)
    assert found.by_name["k"]["l"].name == "z"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "not a JSON object"),
        ('{"schema": 4}', "schema 4"),
        ('{"schema": 3, "rows": []}', "Made.pair"),
        ('{"rows": 7, "pair": ["a", 1], "by_name": {}, "mode": "a", "counts": []}', "TypeError"),
        ('{"rows": [], "pair": ["a", 1], "by_name": {}, "mode": "c", "counts": []}', "'c'"),
        (
            '{"rows": [], "pair": ["a", 1], "by_name": {}, "mode": "a", "counts": ["x"]}',
            "not of type int",
        ),
    ],
)
def test_file_of_another_version_is_refused(tmp_path: Path, text: str, why: str) -> None:
    """The message names the file and the command that creates it again."""
    (tmp_path / "made.json").write_text(text)
    with pytest.raises(
        StoreError, match=r"made\.json was written by (another|a newer) version"
    ) as refused:
        RunStore(tmp_path).read(Made)
    assert why in str(refused.value)
    assert "rocketeval run --only rank" in str(refused.value.hint)


def test_file_without_schema_is_read(tmp_path: Path) -> None:
    """Runs from before files had schema versions can be read."""
    text = '{"rows": [], "pair": ["a", 1], "by_name": {}, "mode": "b", "counts": [3]}'
    (tmp_path / "made.json").write_text(text)
    assert RunStore(tmp_path).read(Made).counts == [3]


@dataclass(frozen=True)
class ByName:
    """A finding whose file is one of its fields."""

    FILE: ClassVar[str] = "by_name"
    COMMAND: ClassVar[str] = "run --only score"
    SCHEMA: ClassVar[int] = 1
    ROOT: ClassVar[str] = "rows"

    rows: Mapping[str, tuple[float, ...]]


def test_field_can_be_the_whole_file(tmp_path: Path) -> None:
    """Its names are the user's, so `schema` is an ordinary name."""
    store = RunStore(tmp_path)
    store.save(ByName({"schema": (0.5, math.inf), "q": ()}))
    assert json.loads((tmp_path / "by_name.json").read_text()) == {"schema": [0.5, None], "q": []}
    found = store.read(ByName).rows
    assert (found["q"], found["schema"][0]) == ((), 0.5)
    assert math.isnan(found["schema"][1])


def test_records_are_plain_json_with_every_field() -> None:
    """Paths and mapping keys become strings, non-finite numbers None."""
    assert encode({1: (Path("a/b"), math.nan, Row("x", None, Color.RED))}) == {
        "1": ["a/b", None, {"name": "x", "figure": None, "color": Color.RED}]
    }

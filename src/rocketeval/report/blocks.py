"""The data blocks of a report, built on demand.

Rounded scores tie exactly where the original scores tie. A report file lists every query and embeds
as much of the other detail as fits.
"""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from math import ceil, floor, isfinite, log2
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rocketeval.arrays import Floats, Ints
from rocketeval.errors import RocketEvalError
from rocketeval.grid import win_threshold
from rocketeval.records import Interval
from rocketeval.report.cells import known, spread
from rocketeval.report.content import RunContent
from rocketeval.report.model import (
    ANSWER_STEPS,
    NO_ANSWER,
    CellsBlock,
    MissingNote,
    ReportHead,
    ResponseTexts,
)

_BITS = (16, 22)
"""Resolution of scores in bits: the default, and a finer one for rows that need it."""
_FARTHEST = 2
"""Most steps a score may move before its row gets the finer resolution."""
_FLOAT32_BITS = 24


def quantize(scores: Floats, scale: tuple[float, float], tie_margin: float) -> Floats:
    """Round scores to 1/65,000 of the scale without changing who beats whom in a row.

    >>> quantize(np.array([[7.123456789, 7.023456789]]), (1.0, 10.0), 0.1).tolist()
    [[7.12353515625, 7.0234375]]
    """
    found = scores.copy()
    steps = list(_steps(scores, scale))
    for row in found:
        present = ~np.isnan(row)
        row[present] = _row(row[present], steps, tie_margin)
    return found


def _steps(scores: Floats, scale: tuple[float, float]) -> Iterator[float]:
    largest = max(*map(abs, scale), float(np.nanmax(np.abs(scores), initial=0.0)))
    exact = ceil(log2(largest)) - _FLOAT32_BITS
    for bits in _BITS:
        yield 2.0 ** max(floor(log2(scale[1] - scale[0])) - bits, exact)


def _row(scores: Floats, steps: list[float], tie_margin: float) -> Floats:
    order = np.argsort(scores, kind="stable")
    rising = scores[order]
    # The highest score that each score beats; equal scores never beat each other.
    reached = np.minimum(rising - win_threshold(tie_margin), np.nextafter(rising, -np.inf))
    beaten = np.searchsorted(rising, reached, side="right")
    for step in steps:
        apart = max(1, ceil(tie_margin / step))
        nearest = np.round(rising / step).astype(np.int64)
        if _kept(nearest, beaten, apart):
            return _unsorted(nearest, order) * step
        places = _moved(nearest, beaten, apart)
        near = np.abs(places - nearest).max() <= _FARTHEST or step == steps[-1]
        if near and _kept(places, beaten, apart):
            return _unsorted(places, order) * step
    return _unsorted(nearest, order) * step


def _kept(places: Ints, beaten: NDArray[np.intp], apart: int) -> bool:
    return bool((np.searchsorted(places, places - apart, side="right") == beaten).all())


def _moved(nearest: Ints, beaten: NDArray[np.intp], apart: int) -> Ints:
    """Return grid positions near the nearest ones that keep every win and every tie.

    A score lies at least `apart` above each score it beats, and closer than that to the others.
    Scores are sorted, so the last beaten score and the first tied score bound its position.
    """
    borders = set(beaten.tolist())
    placed: list[int] = []
    for place, wins in zip(nearest.tolist(), beaten.tolist(), strict=True):
        here = len(placed)
        if here:
            place = max(place, placed[-1] + (here in borders))
        if wins:
            place = max(place, placed[wins - 1] + apart)
        if wins < here:
            place = min(place, placed[wins] + apart - 1)
        placed.append(place)
    return np.array(placed, dtype=np.int64)


def _unsorted(places: Ints, order: NDArray[np.intp]) -> Floats:
    found = np.empty(len(places))
    found[order] = places
    return found


_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_DIGITS = 6
_NAMES = ("name", "title", "what", "stage", "run")


def plain(value: Any, owner: str = "the report") -> Any:
    """Return a record as JSON-ready data; unknown or infinite interval bounds become None.

    >>> plain(Interval(0.5, float("-inf"), 0.75))
    {'value': 0.5, 'low': None, 'high': 0.75}
    """
    if isinstance(value, float):
        return _number(value, owner)
    if isinstance(value, Interval):
        return {
            "value": _number(value.value, owner),
            "low": _end(value.low),
            "high": _end(value.high),
        }
    if is_dataclass(value) and not isinstance(value, type):
        named = _owner(value, owner)
        return {field.name: plain(getattr(value, field.name), named) for field in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(each, owner) for each in value]
    return value


def json_bytes(value: Any) -> bytes:
    """Return data from `plain` as compact JSON; characters invalid in UTF-8 are replaced."""
    written = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return written.encode()
    except UnicodeEncodeError:
        return encodable(written).encode()


def encodable(value: str) -> str:
    """Return `value` with lone surrogates replaced, so that UTF-8 can encode it."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)


def _number(value: float, owner: str) -> float:
    if not isfinite(value):
        raise RocketEvalError(
            f"The report cannot show {value} for {owner}.",
            hint="An earlier stage produced it: check the scores and the ranking.",
        )
    return round(value, _DIGITS)


def _end(value: float) -> float | None:
    # Legitimate: a candidate that never lost has no upper bound, and few queries give no bounds.
    return round(value, _DIGITS) if isfinite(value) else None


def _owner(value: Any, outer: str) -> str:
    kind = re.sub("(?<=[a-z])(?=[A-Z])", " ", type(value).__name__).lower()
    for name in _NAMES:
        if hasattr(value, name):
            return f"{kind} {getattr(value, name)!r}"
    if hasattr(value, "text") and hasattr(value, "item"):
        return f"item {value.item} ({value.text!r}) of query {value.query + 1}, {outer}"
    if hasattr(value, "losses"):
        return f"candidate {value.candidate + 1}, {outer}"
    return outer if kind.endswith("bin") else f"{kind} of {outer}"


MOST_SCORES = 1_000_000
"""Most scores in the scores block: 4 MB unpacked, which a page filters without a pause."""
MOST_ANSWERS = 1_200_000
"""Most answers in the answers block: 150,000 responses with eight items each."""

WHOLE_BLOCKS = ("queries", "scores", "answers", "items", "labels", "pairs")
"""Blocks about all queries."""

LINE, SCORES, ANSWERS, TEXTS = range(4)
"""Detail levels of a query: only its line, plus scores, plus answers and items, plus texts."""

_LEVEL = 6
_QUERY = "query-"


@dataclass(frozen=True, eq=False)
class ReportSource:
    """A report's head and blocks."""

    head: ReportHead
    content: RunContent
    detail: Ints
    """Detail level of each query."""
    made: Mapping[str, bytes] = field(default_factory=dict)
    """Blocks that are already built."""

    def block(self, name: str) -> bytes | None:
        """Return a block, gzipped; None if no block has that name."""
        if name in self.made:
            return self.made[name]
        if name.startswith(_QUERY):
            place = _place(name, len(self.detail))
            return None if place is None else self.query_block(place, texts=True)
        return self._whole_block(name)

    def _whole_block(self, name: str) -> bytes | None:
        match name:
            case "queries":
                return _packed_json(self.content.queries(self.detail.tolist()))
            case "scores":
                return packed(self._coarse(self.places(SCORES)).astype("<f4").tobytes())
            case "answers":
                return self._answers()
            case "items":
                return _packed_json(list(self.content.figures(self.places(ANSWERS))))
            case "labels":
                return _packed_json(self.content.labels())
            case "pairs":
                return _packed_json(self.content.pairs())
        return None

    def places(self, detail: int) -> list[int]:
        """Return the queries with at least this detail level, in order."""
        return [int(place) for place in np.flatnonzero(self.detail >= detail)]

    def query_block(self, place: int, *, texts: bool, found: ResponseTexts | None = None) -> bytes:
        """Return the block of one query; pass its texts as `found` if they are already read."""
        block = self.content.query(place)
        if texts:
            shown = found or next(self.content.texts([place]))
            block["texts"], block["histories"], contexts = shown
            if contexts:
                block["contexts"] = contexts
            context = self.content.context(place)
            if context is not None:
                block["context"] = context
        if self.detail[place] < ANSWERS:
            block["cells"] = self._cells(place)
        return packed(json_bytes(block))

    def _answers(self) -> bytes:
        tables = [encoded(table).ravel() for table in self.content.answers(self.places(ANSWERS))]
        return packed(np.concatenate([np.empty(0, "<u2"), *tables]).astype("<u2").tobytes())

    def _cells(self, place: int) -> CellsBlock:
        (answers,) = self.content.answers([place])
        (scores,) = self._coarse([place])
        return {
            "scores": [None if score != score else score for score in scores.tolist()],
            "answers": [known(row) for row in answers],
        }

    def items_block(self, place: int) -> bytes:
        """Return one query's part of the items block, packed separately."""
        return packed(json_bytes(next(self.content.figures([place]))))

    def _coarse(self, places: Sequence[int]) -> Floats:
        scores = self.content.scores[list(places)]
        return quantize(scores, self.head.scale, self.head.tie_margin)


def packed(content: bytes) -> bytes:
    """Gzip content; equal content gives equal bytes."""
    return gzip.compress(content, _LEVEL, mtime=0)


def encoded(answers: Floats) -> NDArray[np.uint16]:
    """Encode probabilities as integer steps.

    >>> encoded(np.array([[0.5, np.nan]])).tolist()
    [[30000, 65535]]
    """
    steps = np.where(np.isnan(answers), NO_ANSWER, np.round(answers * ANSWER_STEPS))
    return steps.astype("<u2")


def most_divisive(scores: Floats) -> Ints:
    """Return query positions, those with the largest score spread first.

    >>> most_divisive(np.array([[5.0, 5.0], [np.nan, np.nan], [1.0, 9.0]])).tolist()
    [2, 0, 1]
    """
    return np.argsort(-np.nan_to_num(spread(scores), nan=-1.0), kind="stable")


def served_detail(scores: Floats, items: Ints) -> Ints:
    """Return each query's detail level in served blocks; the page requests the rest on demand."""
    order, candidates = most_divisive(scores), scores.shape[1]
    detail = np.zeros(len(scores), dtype=np.int64)
    within = np.arange(1, len(order) + 1) * candidates <= MOST_SCORES
    detail[order[within]] = SCORES
    answered = np.cumsum(items[order]) * candidates <= MOST_ANSWERS
    detail[order[within & answered]] = TEXTS
    return detail


def _packed_json(block: object) -> bytes | None:
    return None if block is None else packed(json_bytes(block))


def _place(name: str, queries: int) -> int | None:
    number = name.removeprefix(_QUERY)
    if not (number.isascii() and number.isdigit()) or len(number) > 9:
        return None
    return int(number) if int(number) < queries else None


MOST_BYTES = 14_500_000
"""Size limit of a page: fits in an email and opens at once in a browser."""
WITHOUT_TEXTS = 0.6
"""Share of the bytes left after scores that answers and items may use; texts get the rest."""
PATIENCE = 8
"""Number of consecutive queries that do not fit before fitting stops."""

_WRAP = 90
_READ_AT_ONCE = 16
_BY_SCORES, _BY_ANSWERS = (
    ("queries", "scores", "pairs", "labels", "evaluator"),
    ("answers", "items"),
)
_UNSETTLED = 1_500
# Reserve: notes on what is left out and the detail levels are known only at the end.


def embedded_size(block: bytes) -> int:
    """Return the number of bytes a block takes in the page, as base64 in its element."""
    return -(-len(block) // 3) * 4 + _WRAP


def fit(source: ReportSource, room: int) -> ReportSource:
    """Return the source with as much detail as fits in `room` bytes, with its blocks built."""
    order = most_divisive(source.content.scores)
    source.content.hold(source.places(ANSWERS))
    room -= _UNSETTLED + len(order) // 2
    blocks = _made(source, _BY_SCORES)
    room -= _size(blocks.values())
    frames = _frames(source, order, int(room * WITHOUT_TEXTS))
    detail = np.minimum(source.detail, SCORES)
    detail[list(frames)] = ANSWERS
    thin = replace(source, detail=detail)
    blocks |= _made(thin, _BY_ANSWERS)
    room -= _size([*frames.values(), *(blocks[name] for name in _BY_ANSWERS)])
    texts = _texts(thin, order, frames, room)
    detail = detail.copy()
    detail[list(texts)] = TEXTS
    whole = replace(thin, detail=detail)
    blocks |= _made(whole, ["queries"])
    by_place = {place: texts.get(place, frames[place]) for place in sorted(frames)}
    blocks |= {f"query-{place}": block for place, block in by_place.items()}
    head = replace(source.head, blocks="embedded", losses=(*source.head.losses, *left_out(detail)))
    return replace(whole, head=head, made=blocks)


def left_out(detail: Ints) -> tuple[MissingNote, ...]:
    """Return notes on data that the run has and the file leaves out."""
    elsewhere = "(open `rocketeval view`, or inputs/responses/*.parquet)"
    ledger = "(open `rocketeval view`, or ledger/*.parquet)"
    found = (
        (f"queries without response texts in this file {elsewhere}", detail < TEXTS),
        (f"queries without answers to items in this file {ledger}", detail < ANSWERS),
        ("queries without scores in this file (see scores.parquet)", detail < SCORES),
    )
    return tuple(
        MissingNote(what, int(missing.sum()), len(detail), lost=False)
        for what, missing in found
        if missing.any()
    )


def _made(source: ReportSource, names: Iterable[str]) -> dict[str, bytes]:
    made = ((name, source.block(name)) for name in names)
    return {name: block for name, block in made if block is not None}


def _size(blocks: Iterable[bytes]) -> int:
    return sum(map(embedded_size, blocks))


class _ByteBudget:
    """Remaining bytes; entries that do not fit are skipped, up to `PATIENCE` in a row."""

    def __init__(self, size: int) -> None:
        self.bytes = size
        self._misses = 0

    @property
    def is_used_up(self) -> bool:
        """Whether too many consecutive entries did not fit."""
        return self._misses >= PATIENCE

    def takes(self, cost: int) -> bool:
        """Deduct the cost if it fits, and return whether it did."""
        fits = cost <= self.bytes
        self.bytes -= cost if fits else 0
        self._misses = 0 if fits else self._misses + 1
        return fits


def _frames(source: ReportSource, order: Ints, room: int) -> dict[int, bytes]:
    """Return query blocks without texts, as many as fit with their answers and items."""
    candidates = source.content.scores.shape[1]
    frames: dict[int, bytes] = {}
    left = _ByteBudget(room)
    for place in order.tolist():
        if left.is_used_up:
            break
        if source.detail[place] < ANSWERS:
            continue
        block = source.query_block(place, texts=False)
        # The items block repeats the items; an answer takes at most two bytes.
        items = embedded_size(source.items_block(place))
        answers = int(source.content.items[place]) * candidates * 2 * 4 // 3
        if left.takes(embedded_size(block) + items + answers):
            frames[place] = block
    return frames


def _texts(
    source: ReportSource, order: Ints, frames: dict[int, bytes], room: int
) -> dict[int, bytes]:
    """Return query blocks with texts, as many as fit."""
    found: dict[int, bytes] = {}
    wanted = [place for place in order.tolist() if place in frames]
    left = _ByteBudget(room)
    start = 0
    while start < len(wanted) and not left.is_used_up and left.bytes > _typical(found) / 2:
        batch = wanted[start : start + max(_READ_AT_ONCE, _likely(found, left.bytes))]
        start += len(batch)
        for place, texts in zip(batch, source.content.texts(batch), strict=True):
            block = source.query_block(place, texts=True, found=texts)
            if left.takes(embedded_size(block) - embedded_size(frames[place])):
                found[place] = block
            elif left.is_used_up:
                break
    return found


def _likely(found: dict[int, bytes], room: int) -> int:
    """Estimate how many more queries fit, so that one pass reads all of them."""
    return int(1.1 * room / _typical(found)) + 1 if found else 0


def _typical(found: dict[int, bytes]) -> float:
    return _size(found.values()) / max(1, len(found))

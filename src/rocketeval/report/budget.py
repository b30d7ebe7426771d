"""What of a report goes into one file: all queries' lines, and of the rest what fits.

Queries that divide the candidates most come first: they are the ones people open.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from rocketeval.report.data import Loss
from rocketeval.report.source import (
    ANSWERS,
    SCORES,
    TEXTS,
    Ints,
    ReportSource,
    most_divisive,
)

MOST_BYTES = 14_500_000
"""A page in all: what a mail still takes, and a browser opens at once."""
WITHOUT_TEXTS = 0.6
"""Share of the room beside scores that answers and items may take: the rest is for texts."""
PATIENCE = 8
"""After so many queries in a row that do not fit, no more are tried."""

_WRAP = 90
_READ_AT_ONCE = 16
_BY_SCORES, _BY_ANSWERS = (
    ("queries", "scores", "pairs", "labels", "evaluator"),
    ("answers", "items"),
)
_UNSETTLED = 1_500
# What is left out, and the queries' details, are known only in the end: they take a little more.


def embedded_size(block: bytes) -> int:
    """Return how much of the page a block takes, as base64 in its element."""
    return -(-len(block) // 3) * 4 + _WRAP


def fit(source: ReportSource, room: int) -> ReportSource:
    """Return the source with as much detail as `room` bytes of a page hold, its blocks made."""
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


def left_out(detail: Ints) -> tuple[Loss, ...]:
    """Return what a file does not hold of the run, though the run has it."""
    elsewhere = "(open `rocketeval view`, or inputs/responses/*.parquet)"
    ledger = "(open `rocketeval view`, or ledger/*.parquet)"
    found = (
        (f"queries without response texts in this file {elsewhere}", detail < TEXTS),
        (f"queries without answers to items in this file {ledger}", detail < ANSWERS),
        ("queries without scores in this file (see scores.parquet)", detail < SCORES),
    )
    return tuple(
        Loss(what, int(missing.sum()), len(detail), lost=False)
        for what, missing in found
        if missing.any()
    )


def _made(source: ReportSource, names: Iterable[str]) -> dict[str, bytes]:
    made = ((name, source.block(name)) for name in names)
    return {name: block for name, block in made if block is not None}


def _size(blocks: Iterable[bytes]) -> int:
    return sum(map(embedded_size, blocks))


class _Room:
    """Bytes that are left; what does not fit is passed over, but not for ever."""

    def __init__(self, size: int) -> None:
        self.bytes = size
        self._misses = 0

    @property
    def is_used_up(self) -> bool:
        """Whether too many in a row did not fit to try more."""
        return self._misses >= PATIENCE

    def takes(self, cost: int) -> bool:
        """Whether it fits; then it is taken."""
        fits = cost <= self.bytes
        self.bytes -= cost if fits else 0
        self._misses = 0 if fits else self._misses + 1
        return fits


def _frames(source: ReportSource, order: Ints, room: int) -> dict[int, bytes]:
    """The blocks of queries without texts, as many as fit together with their answers and items."""
    candidates = source.content.scores.shape[1]
    frames: dict[int, bytes] = {}
    left = _Room(room)
    for place in order.tolist():
        if left.is_used_up:
            break
        if source.detail[place] < ANSWERS:
            continue
        block = source.query_block(place, texts=False)
        # Its items stand a second time in the block of items; an answer takes two bytes at most.
        items = embedded_size(source.items_block(place))
        answers = int(source.content.items[place]) * candidates * 2 * 4 // 3
        if left.takes(embedded_size(block) + items + answers):
            frames[place] = block
    return frames


def _texts(
    source: ReportSource, order: Ints, frames: dict[int, bytes], room: int
) -> dict[int, bytes]:
    """The blocks of queries with texts, as many as fit."""
    found: dict[int, bytes] = {}
    wanted = [place for place in order.tolist() if place in frames]
    left = _Room(room)
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
    """How many more queries will fit, if they are like those found: all are read in one pass."""
    return int(1.1 * room / _typical(found)) + 1 if found else 0


def _typical(found: dict[int, bytes]) -> float:
    return _size(found.values()) / max(1, len(found))

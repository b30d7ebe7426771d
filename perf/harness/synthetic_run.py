"""A graded run of any size, written to disk as grading would leave it.

Nothing is graded: answers are drawn and go straight into Parquet parts with the ledger's schema.
Keys, hashes, order and files are the real ones, so every stage after grading can read it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from rocketeval.config import RunConfig, dump_config, parse_config
from rocketeval.grading.schedule import Identities
from rocketeval.records import Checklist, JudgeFingerprint, Label, Query, Response, Status, Vote
from rocketeval.store.files import read_json, write_json, write_parquet
from rocketeval.store.inputs import MOST_BUCKETS, QUERIES_PER_BUCKET, RESPONSES
from rocketeval.store.ledger import ROLL_ROWS
from rocketeval.store.run import RunStore
from rocketeval.store.schema import JUDGMENTS

JUDGE = JudgeFingerprint("scripted", "drawn", "chat", "1", "exact", "template", "readout")
IN_FLIGHT = 512
"""Judgments finish out of order by about this many."""
UNJUDGED, UNANSWERED, REPEATED = 0.001, 0.005, 0.005
"""Shares of responses without a judgment, of answers without a probability, and of responses with
the text of another candidate's, which share its judgment."""
GOLD_QUERIES, GOLD_CANDIDATES = 100, 20
"""Labels exist for this many candidates on this many queries, and votes for neighbors."""
WORDS = ("a", "good", "answer", "names", "the", "facts", "in", "order", "or", "says", "why", "not")


@dataclass(frozen=True)
class Size:
    """The size of a run."""

    candidates: int
    queries: int
    items: int

    @property
    def answers(self) -> int:
        """Return the number of answers."""
        return self.candidates * self.queries * self.items


def make_config(folder: Path, bootstrap: int, scorer: str) -> RunConfig:
    """Return the config of the run in `folder`."""
    return parse_config(
        {
            "name": "synthetic",
            "benchmark": {"path": str(folder)},
            "judge": {"engine": "scripted", "model": JUDGE.model},
            "scorer": {"kind": scorer},
            "ranking": {"bootstrap": bootstrap},
            "output": str(folder),
            "cache": None,
        }
    )


def write_run(config: RunConfig, size: Size, *, scattered: bool, seed: int = 0) -> None:
    """Write a graded run; `scattered` puts its judgments into the ledger in random order."""
    store = RunStore(config.run_path)
    store.path.mkdir(parents=True)
    (store.path / "run.yaml").write_text(dump_config(config))
    store.freeze(config)
    random = np.random.default_rng(seed)
    queries = [Query(f"q{n:06d}", f"Question {n}: what matters here?") for n in range(size.queries)]
    names = [f"candidate-{n:05d}" for n in range(size.candidates)]
    labels, votes = _gold(random, queries, names)
    store.inputs.save(queries, [], labels, votes, [])
    checklists = [
        Checklist(query.id, tuple(f"Does it cover point {n}?" for n in range(size.items)))
        for query in queries
    ]
    store.inputs.save_checklists(checklists)
    store.bind_judge(JUDGE)
    asked = {made.query_id: made for made in checklists}
    identities = Identities(JUDGE.digest, {query.id: query for query in queries}, asked)
    ledger = _Ledger(store.ledger_folder, size, names, queries, random, scattered=scattered)
    for bucket, rows in enumerate(_buckets(size.queries)):
        ledger.add(*_write_bucket(store, bucket, rows, queries, names, identities, random))
    ledger.close()
    summary = read_json(store.inputs.folder / "summary.json")
    counts = {"responses": size.candidates * size.queries, "candidates": size.candidates}
    write_json(store.inputs.folder / "summary.json", {**summary, **counts})


def _gold(
    random: np.random.Generator, queries: list[Query], names: list[str]
) -> tuple[list[Label], list[Vote]]:
    labels, votes = [], []
    some = names[:: max(1, len(names) // GOLD_CANDIDATES)][:GOLD_CANDIDATES]
    for query in queries[:: max(1, len(queries) // GOLD_QUERIES)][:GOLD_QUERIES]:
        values = random.integers(1, 11, len(some)).tolist()
        labels += [Label(query.id, name, float(v)) for name, v in zip(some, values, strict=True)]
        votes += [
            Vote(query.id, one, other, "a" if left > right else "b" if right > left else "tie")
            for one, other, left, right in zip(some, some[1:], values, values[1:], strict=False)
        ]
    return labels, votes


def _buckets(queries: int) -> Iterator[range]:
    """Yield the queries of each file of responses, as the load stage splits them."""
    step = max(QUERIES_PER_BUCKET, -(-queries // MOST_BUCKETS))
    for start in range(0, queries, step):
        yield range(start, min(start + step, queries))


def _write_bucket(
    store: RunStore,
    bucket: int,
    rows: range,
    queries: list[Query],
    names: list[str],
    identities: Identities,
    random: np.random.Generator,
) -> tuple[list[bytes], NDArray[np.int32], NDArray[np.int32]]:
    """Write a file of responses; return the key, query and candidate of each judgment."""
    count = len(rows) * len(names)
    words = random.integers(0, len(WORDS), (count, 2)).tolist()
    times = random.integers(1, 6, count).tolist()
    repeats = (random.random(count) < REPEATED).tolist()
    texts: list[str] = []
    hashes: list[str] = []
    keys: list[bytes] = []
    places: list[int] = []
    for place in range(count):
        column, query_id = place % len(names), queries[rows[place // len(names)]].id
        if repeats[place] and column:
            texts.append(texts[-1])
            hashes.append(hashes[-1])
            continue
        one, other = words[place]
        text = f"{place}: " + f"{WORDS[one]} {WORDS[other]} " * times[place]
        response = Response(query_id, names[column], text)
        texts.append(text)
        own = response.content_hash
        hashes.append(own.hex())
        key = identities.key(query_id, own)
        assert key is not None
        keys.append(key)
        places.append(place)
    query_ids = [queries[row].id for row in rows for _ in names]
    columns = [query_ids, names * len(rows), hashes, list(map(len, texts)), texts, [None] * count]
    table = pa.table(
        [pa.array(column, field.type) for column, field in zip(columns, RESPONSES, strict=True)],
        schema=RESPONSES,
    )
    write_parquet(store.inputs.folder / "responses" / f"part-{bucket:06d}.parquet", table)
    where = np.array(places, dtype=np.int32)
    return keys, where // len(names) + rows[0], where % len(names)


class _Ledger:
    """A writer that draws judgments and stores them in parts."""

    def __init__(
        self,
        folder: Path,
        size: Size,
        names: list[str],
        queries: list[Query],
        random: np.random.Generator,
        *,
        scattered: bool,
    ) -> None:
        self._folder = folder
        self._names = pa.array(names)
        self._queries = pa.array([query.id for query in queries])
        self._random = random
        self._scattered = scattered
        self._strength = random.normal(size=size.candidates)
        self._hardness = random.normal(size=(size.queries, size.items))
        self._waiting: list[tuple[NDArray[Any], NDArray[Any], NDArray[Any]]] = []
        self._rows = 0
        self._number = 0

    def add(
        self, keys: list[bytes], queries: NDArray[np.int32], candidates: NDArray[np.int32]
    ) -> None:
        """Add the judgments of one bucket; some are dropped."""
        packed = np.frombuffer(b"".join(keys), np.uint8).reshape(-1, 16)
        kept = np.flatnonzero(self._random.random(len(keys)) >= UNJUDGED)
        jitter = self._random.random(len(kept)) * IN_FLIGHT
        kept = kept[np.argsort(np.arange(len(kept)) + jitter)]
        self._waiting.append((packed[kept], queries[kept], candidates[kept]))
        self._rows += len(kept)
        if not self._scattered:
            self._write(whole_parts_only=True)

    def close(self) -> None:
        """Write the remaining judgments."""
        if self._scattered:
            columns = [np.concatenate(column) for column in zip(*self._waiting, strict=True)]
            order = self._random.permutation(self._rows)
            self._waiting = [(columns[0][order], columns[1][order], columns[2][order])]
        self._write(whole_parts_only=False)

    def _write(self, *, whole_parts_only: bool) -> None:
        columns = [np.concatenate(column) for column in zip(*self._waiting, strict=True)]
        start = 0
        while start < self._rows and (not whole_parts_only or self._rows - start >= ROLL_ROWS):
            chosen = slice(start, start + ROLL_ROWS)
            self._number += 1
            path = self._folder / f"part-{self._number:06d}.parquet"
            write_parquet(path, self._table(*(column[chosen] for column in columns)))
            start += ROLL_ROWS
        self._waiting = [(columns[0][start:], columns[1][start:], columns[2][start:])]
        self._rows = max(0, self._rows - start)

    def _table(
        self, keys: NDArray[np.uint8], queries: NDArray[np.int32], candidates: NDArray[np.int32]
    ) -> pa.Table:
        rows, items = len(keys), self._hardness.shape[1]
        log_odds = self._strength[candidates][:, None] - self._hardness[queries]
        log_odds = (log_odds + self._random.normal(size=(rows, items))).ravel()
        missing = self._random.random(rows * items) < UNANSWERED
        mass = self._random.uniform(0.9, 1.0, rows * items)
        logp_yes = np.log(mass) - np.logaddexp(0.0, -log_odds)
        logp_no = np.log(mass) - np.logaddexp(0.0, log_odds)
        p_yes = 1.0 / (1.0 + np.exp(-log_odds))
        statuses = pa.array([str(Status.OK), str(Status.HIDDEN)]).take(pa.array(missing.view("i1")))
        offsets = pa.array(np.arange(0, rows * items + 1, items, dtype=np.int32))

        def numbers(values: NDArray[np.float64]) -> pa.Array:
            return pa.ListArray.from_arrays(offsets, pa.array(values, mask=missing))

        columns = {
            "key": pa.array([key.tobytes().hex() for key in keys]),
            "judge": pa.array([JUDGE.digest.hex()]).take(pa.array(np.zeros(rows, np.int8))),
            "query_id": self._queries.take(pa.array(queries)),
            "candidate": self._names.take(pa.array(candidates)),
            "status": pa.ListArray.from_arrays(offsets, statuses),
            "p_yes": numbers(p_yes),
            "p_low": numbers(p_yes),
            "p_high": numbers(p_yes),
            "mass": numbers(mass),
            "logp_yes": numbers(logp_yes),
            "logp_no": numbers(logp_no),
            "requests": pa.array(np.ones(rows, np.int32)),
            "prompt_tokens": pa.array(np.full(rows, 900)),
            "cached_tokens": pa.array(np.full(rows, 700)),
            "completion_tokens": pa.array(np.full(rows, items)),
            "seconds": pa.array(self._random.random(rows).round(4)),
            "neutralised": pa.array(np.zeros(rows, np.int32)),
            "text": pa.nulls(rows, JUDGMENTS.field("text").type),
        }
        return pa.table(columns, schema=JUDGMENTS)

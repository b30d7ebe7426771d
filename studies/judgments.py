"""Keep the judgments of a study, without texts, and read them again.

    python studies/judgments.py CONFIG OUT.parquet
    python studies/judgments.py CONFIG STORED.parquet --restore

The first writes one row per judged response of the config's run: the judgment's key, query,
candidate and method, and the answers' `p_yes`, proven bounds and statuses, in checklist order. The
judge's fingerprint is in the file's metadata, and next to it as OUT.json. No text of the benchmark
is written, so the file may be published. Studies read it instead of asking the judge again.

The second makes a run of the config with the stored judgments in its ledger, so that every command
works on it without asking the judge again. It refuses judgments of other texts or checklists.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rocketeval.cli.progress import make_observer
from rocketeval.config import RunConfig, load_config
from rocketeval.errors import StageMissing
from rocketeval.grading.schedule import cells
from rocketeval.pipeline import Run
from rocketeval.records import Answer, JudgeFingerprint, Judgment, Status
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.crossfit import table_of_lists
from rocketeval.scoring.read_answers import read_answers
from rocketeval.store.ledger_index import LedgerIndex, to_keys
from rocketeval.store.run import RunStore

ANSWERS = ("p_yes", "p_low", "p_high", "status")


async def grade(config: RunConfig) -> None:
    """Grade a study's run, with progress."""
    limit = config.benchmark.limit
    print(f"== {config.name}" + ("" if limit is None else f", {limit} queries"), flush=True)
    run = Run(config, observer=make_observer(config, quiet=False))
    try:
        facts = await run.to_judgments()
    finally:
        run.observer.closed()
    print(f"{facts.judged} judged, {facts.failed} failed, {facts.unfinished} left")


def steps(queries: int, block: int | None) -> list[int]:
    """Return growing numbers of queries, a block at a time; without a block, all at once.

    >>> steps(80, 30), steps(80, None)
    ([30, 60, 80], [80])
    """
    return [*range(block or queries, queries, block or queries), queries]


def kept(store: RunStore, method: str) -> pa.Table:
    """Return the judged responses of a run as a table, without responses that have no judgment."""
    answers, keys = read_answers(store)
    rows = [row for row, key in enumerate(keys) if key is not None]
    index = LedgerIndex(store.ledger_folder)
    found = index.find(to_keys(bytes.fromhex("".join(keys[row] or "" for row in rows))))
    rows = [row for row, place in zip(rows, found.tolist(), strict=True) if place >= 0]
    lists = {name: index.lists(found[found >= 0], name) for name in ANSWERS}
    return pa.table(
        {
            "key": [keys[row] for row in rows],
            "query_id": [answers.query_ids[row] for row in rows],
            "candidate": [answers.candidates[row] for row in rows],
            "method": pa.array([method] * len(rows)).dictionary_encode(),
            **lists,
        }
    )


def keep(store: RunStore, run: str, method: str, out: Path) -> pa.Table:
    """Write the judgments of a run, with the judge's fingerprint in the metadata; return them."""
    table = kept(store, method)
    fingerprint = store.judge()
    judge = {"judge": fingerprint.parts, "measured": fingerprint.measured, "run": run}
    out.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(
        table.replace_schema_metadata({"judge": json.dumps(judge)}), out, compression="zstd"
    )
    out.with_suffix(".json").write_text(json.dumps(judge, indent=1) + "\n", encoding="utf-8")
    return table


def keep_more(config: RunConfig, method: str, out: Path) -> None:
    """Write the judgments of a config's run, unless as many of them are stored."""
    store, graded = RunStore(config.run_path), 0
    with suppress(StageMissing):
        graded = kept(store, method).num_rows
    before = pq.read_metadata(out).num_rows if out.exists() else 0
    if graded > before:
        keep(store, config.name, method, out)
    print(f"{graded} judgments; {before} were stored before in {out}")


def read(path: Path, categories: Mapping[str, str] | None = None) -> AnswerTable:
    """Return the stored answers of responses, sorted by query and candidate."""
    table = pq.read_table(path).sort_by([("query_id", "ascending"), ("candidate", "ascending")])
    found = table_of_lists(
        table["query_id"].to_pylist(),
        table["candidate"].to_pylist(),
        table["p_yes"].combine_chunks(),
    )
    return AnswerTable(
        found.query_ids, found.candidates, found.p_yes, found.offsets, categories or {}
    )


def whole_queries(answers: AnswerTable) -> set[str]:
    """Return the queries with a row for each candidate of the table."""
    candidates, counts = len(set(answers.candidates)), Counter(answers.query_ids)
    return {query_id for query_id, count in counts.items() if count == candidates}


async def restore(config: RunConfig, stored: Path, only: Collection[str] | None = None) -> int:
    """Put stored judgments into the ledger of the config's run; return their number.

    With `only`, those of some queries.
    """
    table = pq.read_table(stored)
    if only is not None:
        table = table.filter(pc.field("query_id").isin(list(only)))
    about = json.loads(table.schema.metadata[b"judge"])
    parts = {name: value for name, value in about["judge"].items() if name != "digest"}
    judge = JudgeFingerprint(**parts, measured=about.get("measured", ""))
    run = Run(config)
    await run.to_checklists()
    store = run.store
    known = {cell.key for cell in cells(store.inputs, judge.digest)}
    # Equal responses have one judgment.
    judgments = {one.key: one for one in map(judgment_of, table.to_pylist())}
    strange = [one for key, one in judgments.items() if key not in known]
    if strange:
        first = f"{strange[0].query_id} of {strange[0].candidate}"
        sys.exit(f"{len(strange)} of {len(judgments)} judgments are not of this run, first {first}")
    store.bind_judge(judge)
    finished = store.finished()
    with store.locked(), store.ledger(judge.digest, None) as ledger:
        for key, one in judgments.items():
            if key not in finished:
                ledger.append(one)
    return len(judgments)


def judgment_of(row: Mapping[str, Any]) -> Judgment:
    """Return a stored row as a judgment."""
    answers = (
        Answer(Status(status), p_yes, p_low=low, p_high=high)
        for p_yes, low, high, status in zip(*(row[name] for name in ANSWERS), strict=True)
    )
    key = bytes.fromhex(row["key"])
    return Judgment(key, row["query_id"], row["candidate"], tuple(answers))


def main() -> None:
    """Write the judgments of a run, or restore them."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--restore", action="store_true")
    args = parser.parse_args()
    config = load_config(args.config)
    if args.restore:
        print(f"{asyncio.run(restore(config, args.out))} judgments in {config.run_path}")
        return
    table = keep(RunStore(config.run_path), config.name, config.method.kind, args.out)
    statuses = np.asarray(table["status"].combine_chunks().flatten().to_pylist())
    counts = {str(name): int((statuses == name).sum()) for name in np.unique(statuses)}
    print(f"{table.num_rows} judgments, {len(statuses)} answers: {counts}")


if __name__ == "__main__":
    main()

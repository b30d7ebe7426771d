"""Check that scores computed in parts equal those that DuckDB computes with a join.

    python perf/scale_check.py [--answers 1e7] [--candidates 250] [--items 8] [--scattered]
                               [--folder DIR] [--record]

The script writes a synthetic run like `perf/scale.py`, scores it with `mean`, and lets DuckDB
(`pip install duckdb`) join the whole ledger with the scores by key, average each judgment's answers
and count. It fails if a score differs by more than 1e-12, or if a count differs.
`--record` writes the result to perf/recorded/scale_check.txt.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import duckdb
from harness.synthetic_run import Size, make_config, write_run

from rocketeval.scoring.stage import score_responses
from rocketeval.store.run import RunStore

RECORDED = Path(__file__).parent / "recorded" / "scale_check.txt"
LARGEST_DIFFERENCE = 1e-12
JOINED = """
    SELECT score, status, p_yes, 1 + 9 * list_avg(p_yes) AS expected
    FROM read_parquet('{folder}/scores.parquet') AS scores
    LEFT JOIN read_parquet('{ledger}/part-*.parquet') AS ledger ON scores.judgment = ledger.key
"""
FIGURES = """
    SELECT count(score), count(*) - count(score), sum(len(p_yes)),
        sum(len(p_yes) - list_count(p_yes)), max(abs(score - expected)),
        count_if((score IS NULL) != (expected IS NULL))
    FROM joined
"""
STATUSES = """
    SELECT status, count(*) FROM (
        SELECT unnest(status) AS status FROM read_parquet('{ledger}/part-*.parquet')
        WHERE key IN (SELECT judgment FROM read_parquet('{folder}/scores.parquet'))
    ) GROUP BY status ORDER BY status
"""


def main() -> None:
    args = parse_args()
    queries = max(1, round(args.answers / args.items / args.candidates))
    size = Size(args.candidates, queries, args.items)
    with tempfile.TemporaryDirectory(dir=args.folder) as scratch:
        config = make_config(Path(scratch), 200, "mean")
        write_run(config, size, scattered=args.scattered)
        store = RunStore(config.run_path)
        result = score_responses(store, config)
        found = recount(store)
    difference, one_sided = found.pop("difference"), found.pop("one_sided")
    wrong = [name for name in found if found[name] != getattr(result, name)]
    order = "in random order" if args.scattered else "in the order of grading"
    lines = [
        f"{size.answers:,} answers, ledger {order}",
        f"largest difference of a score: {difference:.1e}; scores in one of both only: {one_sided}",
        *(f"{name}: {getattr(result, name)} by us, {found[name]} by DuckDB" for name in found),
    ]
    print("\n".join(lines))
    if wrong or one_sided or difference > LARGEST_DIFFERENCE:
        sys.exit(f"The scores do not match the ledger: {', '.join(wrong) or 'values differ'}.")
    if args.record:
        RECORDED.write_text("\n".join(lines) + "\n")


def parse_args() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--answers", type=float, default=1e7)
    parser.add_argument("--candidates", type=int, default=250)
    parser.add_argument("--items", type=int, default=8)
    parser.add_argument("--scattered", action="store_true")
    parser.add_argument("--folder", type=Path)
    parser.add_argument("--record", action="store_true")
    return parser.parse_args()


def recount(store: RunStore) -> dict[str, Any]:
    """Return DuckDB's counts of the score stage, and the largest difference of a score."""
    places = {"folder": store.path, "ledger": store.ledger_folder}
    with duckdb.connect(config={"memory_limit": "2GB", "threads": 2}) as database:
        database.execute(f"CREATE VIEW joined AS {JOINED.format(**places)}")
        names = ("scores", "without_score", "answers", "missing_answers", "difference", "one_sided")
        figures = database.execute(FIGURES).fetchone()
        assert figures is not None
        statuses = database.execute(STATUSES.format(**places)).fetchall()
    return {**dict(zip(names, figures, strict=True)), "statuses": dict(statuses)}


if __name__ == "__main__":
    main()

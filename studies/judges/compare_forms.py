"""Compare the answers of a judge in one number format with stored ones in another.

    python studies/judges/compare_forms.py RUN STORED.parquet

RUN is the directory of a run of the same benchmark, whole or in part; STORED is what
`studies/judgments.py` wrote for the other format. Prints how far `p_yes` differs, how many
answers change sides at 0.5, and how far the mean answers of the responses differ.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from scipy.stats import spearmanr

from rocketeval.scoring.read_answers import read_answers
from rocketeval.store.run import RunStore


def compare(run: Path, stored: Path) -> str:
    """Return the comparison as lines of text."""
    table, keys = read_answers(RunStore(run))
    before = {
        (row["query_id"], row["candidate"]): row["p_yes"]
        for row in pq.read_table(stored).to_pylist()
    }
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    for row, key in enumerate(keys):
        old = before.get((table.query_ids[row], table.candidates[row]))
        if key is None or old is None:
            continue
        new = table.p_yes[table.offsets[row] : table.offsets[row + 1]]
        pairs.append((np.asarray(old, dtype=float), np.asarray(new, dtype=float)))
    old, new = (np.concatenate(side) for side in zip(*pairs, strict=True))
    moved = np.abs(new - old)
    means = np.array([[one.mean() for one in pair] for pair in pairs])
    return "\n".join(
        (
            f"{len(pairs)} responses, {len(old)} answers in both",
            f"p_yes: mean difference {moved.mean():.4f} (signed {np.mean(new - old):+.4f}), "
            f"nine in ten below {np.quantile(moved, 0.9):.4f}, largest {moved.max():.4f}, "
            f"correlation {np.corrcoef(old, new)[0, 1]:.4f}",
            f"other side of 0.5: {np.mean((old > 0.5) != (new > 0.5)):.1%} of the answers",
            "mean answer of a response: mean difference "
            f"{np.abs(means[:, 1] - means[:, 0]).mean():.4f}, "
            f"Spearman {spearmanr(means[:, 0], means[:, 1]).statistic:.4f}",
        )
    )


def main() -> None:
    """Print the comparison of a run with stored judgments."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("run", type=Path)
    parser.add_argument("stored", type=Path)
    given = parser.parse_args()
    print(compare(given.run, given.stored))


if __name__ == "__main__":
    main()

"""Count the held-out queries whose mistakes were shown when the optimizer's recording was written.

    python studies/mad_eval/overlap.py > studies/mad_eval/recorded/overlap.txt

The recording was made on the whole benchmarks, some tables on their first queries. The split
depends on a query's text, so the two splits agree except for a few queries.
"""

from __future__ import annotations

from pathlib import Path

from stored_cases import load_split

from rocketeval.config import RunConfig, load_config
from rocketeval.evolve.history import CaseSplit

HERE = Path(__file__).parent
USED = (("pandalm", None), ("pandalm", 100), ("mt_bench", 32), ("mt_bench", None))
"""Number of first queries of each benchmark that the tables use."""


def main() -> None:
    for name, limit in USED:
        config = load_config(HERE / f"{name}.yaml")
        now, then = split_of(config, limit), split_of(config, None)
        held_out = {case.query_id for case in now.held_out}
        shown = {case.query_id for case in then.seen}
        used = f"{name}, first {limit}" if limit else name
        print(
            f"{used}: {len(held_out & shown)} of {len(held_out)} held-out queries are among the "
            f"{len(shown)} seen ones of the whole benchmark"
        )


def split_of(config: RunConfig, limit: int | None) -> CaseSplit:
    """Return the seen and held-out split of the first `limit` queries."""
    benchmark = config.benchmark.model_copy(update={"limit": limit})
    return load_split(config.model_copy(update={"benchmark": benchmark}))


if __name__ == "__main__":
    main()

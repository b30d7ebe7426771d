"""Grade MT-Bench's voted responses in every way that the studies compare, and keep the answers.

    studies/judges/serve_vllm.sh qwen2.5-coder-1.5b-int8 8000 &
    python studies/mt_bench/grade.py checklist direct fixed sequential cot
    python studies/mt_bench/grade.py checklist --turn second
    studies/judges/serve_vllm.sh qwen2.5-coder-0.5b-int8 8001 &
    python studies/mt_bench/grade.py checklist --judge 0.5b --base-url http://127.0.0.1:8001/v1

Each way is a run of its own in studies/runs; graded responses are not asked again. What is graded
goes to recorded/judgments, also after Ctrl-C, unless as many judgments are stored there. arms.py,
sizes.py and authors.py read them.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from itertools import product
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
from arms import CHECKLIST, JUDGES, STUDY_JUDGE, TURNS, stored  # noqa: E402
from authors import AUTHORS, BY, benchmark_folder, checklist_file  # noqa: E402
from spread import QUESTIONS  # noqa: E402

from rocketeval.config import AuthorConfig, MethodConfig, RunConfig, load_config  # noqa: E402
from rocketeval.errors import RocketEvalError  # noqa: E402

QUERIES = 80
"""In a turn of MT-Bench; other authors have fewer."""
ARMS = (CHECKLIST, "direct", "fixed", "sequential", "cot")


def run_config(
    turn: str, arm: str, judge: str, base_url: str, concurrency: int | None = None
) -> RunConfig:
    """Return the config of one way to score one turn."""
    base = load_config(HERE / f"{turn}_turn.yaml")
    # A canary is read without the prefix cache: 1% of the items would be about 10% of the tokens.
    changes: dict[str, Any] = {
        "model": JUDGES[judge],
        "base_url": base_url,
        "timeout": 600.0,
        "canaries": 0.002,
    }
    if concurrency is not None:
        changes["concurrency"] = concurrency
    config = base.model_copy(
        update={
            "name": stored(turn, arm, judge).stem,
            "judge": base.judge.model_copy(update=changes),
        }
    )
    if not arm.startswith(BY):
        return config.model_copy(update={"method": MethodConfig(kind=arm)})
    options = {"file": checklist_file(arm.removeprefix(BY))}
    author = AuthorConfig(kind="file", min_items=1, max_items=40, options=options)
    folder, count = benchmark_folder()
    layout = {
        "path": folder,
        "options": base.benchmark.options | {"questions": QUESTIONS},
        "limit": count,
    }
    benchmark = config.benchmark.model_copy(update=layout)
    return config.model_copy(update={"author": author, "benchmark": benchmark})


def main() -> None:
    """Grade what the command line selects, and keep it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument(
        "arms", nargs="+", choices=(*ARMS, *(f"{BY}{author}" for author in AUTHORS))
    )
    parser.add_argument("--turn", choices=TURNS, action="append", help="default: both")
    parser.add_argument("--judge", choices=list(JUDGES), default=STUDY_JUDGE)
    parser.add_argument("--base-url", default="http://127.0.0.1:8000/v1")
    parser.add_argument(
        "--concurrency", type=int, help="responses in flight; CoT is faster with 24 than with 8"
    )
    parser.add_argument(
        "--block",
        type=int,
        help="grade this many queries in every way, then the next ones: the server's prefix cache\n"
        "then serves several ways, and a stop leaves all of them with the same queries",
    )
    given = parser.parse_args()
    turns = given.turn or TURNS
    if "first" in turns and any(arm.startswith(BY) for arm in given.arms):
        parser.error("the authors wrote for the whole conversation: add --turn second")
    for turn, count, arm in product(turns, judgments.steps(QUERIES, given.block), given.arms):
        config = run_config(turn, arm, given.judge, given.base_url, given.concurrency)
        limit = min(count, config.benchmark.limit or count)
        benchmark = config.benchmark.model_copy(update={"limit": limit})
        config = config.model_copy(update={"benchmark": benchmark})
        try:
            asyncio.run(judgments.grade(config))
        except RocketEvalError as error:
            sys.exit(str(error))
        finally:
            judgments.keep_more(config, arm, stored(turn, arm, given.judge))


if __name__ == "__main__":
    main()

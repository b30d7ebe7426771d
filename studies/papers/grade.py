"""Grade everything the papers' studies need with one judge; graded responses are not asked again.

    python studies/papers/prepare.py
    judge="qwen2.5-coder-1.5b-instruct-int8 --base-url http://127.0.0.1:8000/v1"
    python studies/papers/grade.py $judge
    python studies/papers/grade.py $judge --only summeval --block 4
    python studies/papers/grade.py JUDGE --base-url URL --limit 2    # minutes, separate runs
    python studies/papers/grade.py JUDGE --engine scripted --limit 2    # dry run, fake answers

Each study uses the first N queries of the order that prepare.py draws (the table below). A longer
run only adds to a shorter one. Runs go to studies/runs, or to the folder in
$ROCKETEVAL_STUDY_RUNS. The judgments of the int8 judge are also kept in recorded/judgments.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from rocketeval.audit.stage import method_config, parse_variant
from rocketeval.config import AuthorConfig, RunConfig, parse_config
from rocketeval.pipeline import Run

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import judgments  # noqa: E402

RUNS = Path(os.environ.get("ROCKETEVAL_STUDY_RUNS", HERE.parent / "runs")).absolute()
KEPT_JUDGE = "qwen2.5-coder-1.5b-instruct-int8"
"""The judge whose judgments are kept in the repository."""
KEPT = HERE / "recorded" / "judgments"

SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")
TOPICAL_CHAT = ("coherence", "engagingness", "groundedness", "naturalness")

OWN = "own_dimensions"
"""The questions of a packaged dimension file, each asked independently."""
PACKAGED = {"summeval": ("summarization", SUMMEVAL)}
"""The packaged file of a study, and the dimensions that are asked."""

Part = tuple[int, tuple[str, ...]]


def levels(criteria: tuple[str, ...]) -> tuple[str, ...]:
    """Return Evaluating the Evaluator's prompt levels for these criteria, and perplexity."""
    named = [f"{level}:criterion={name}" for level in ("criterion", "rubric") for name in criteria]
    return ("generic", *named, "perplexity")


WORK: dict[str, tuple[Part, ...]] = {
    "mt_bench": ((20, ("all_yes", "all_no")),),
    "summeval": ((12, ("checklist", OWN, *levels(SUMMEVAL))),),
    "topical_chat": ((60, ("checklist", *levels(TOPICAL_CHAT))),),
    "infobench": ((60, ("checklist",)),),
}
"""Number of queries and methods by study."""


def main() -> None:
    """Grade what the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("judge")
    parser.add_argument("--base-url")
    parser.add_argument("--engine", default="openai")
    parser.add_argument("--only", choices=list(WORK), action="append")
    parser.add_argument("--methods", help="only these, separated by commas")
    parser.add_argument("--limit", type=int, help="only the first N queries of each study")
    parser.add_argument(
        "--concurrency", type=int, help="responses in flight (8); perplexity takes memory for each"
    )
    parser.add_argument(
        "--block",
        type=int,
        help="grade this many queries by every method, then the next ones: methods share prefixes",
    )
    given = parser.parse_args()
    engine: dict[str, object] = {"engine": given.engine, "base_url": given.base_url}
    if given.concurrency is not None:
        engine["concurrency"] = given.concurrency
    wanted = given.methods.split(",") if given.methods else None
    for study in given.only or WORK:
        for queries, methods in WORK[study]:
            chosen = [name for name in methods if wanted is None or name in wanted]
            keeps = given.judge == KEPT_JUDGE and given.engine == "openai" and given.limit is None
            for count in judgments.steps(given.limit or queries, given.block):
                config = study_config(study, given.judge, given.limit, count, engine)
                asyncio.run(grade(config, chosen, study if keeps else None))


def study_config(
    study: str,
    judge: str,
    limit: int | None = None,
    queries: int | None = None,
    engine: Mapping[str, object] | None = None,
) -> RunConfig:
    """Return the config of a study's run by one judge; a limited run has a separate name."""
    # A canary is read without the prefix cache: 1% of the items would be about 10% of the tokens.
    engine = {"concurrency": 8, "canaries": 0.002, **(engine or {})}
    name = f"{study}-{judge}"
    if limit is not None:
        name = f"{name}-first-{limit}"
    return parse_config(
        {
            "name": name,
            "benchmark": {"path": RUNS / "data" / study, "limit": queries},
            "judge": {"model": judge, **engine},
            "author": {"min_items": 1, "max_items": 40},
            "output": RUNS,
            "cache": RUNS / ".cache",
        }
    )


def study_method(config: RunConfig, name: str) -> RunConfig:
    """Return the config of a study's run by one method."""
    if name == OWN:
        file, dimensions = PACKAGED[config.benchmark.path.name]
        options = {"file": file, "dimensions": dimensions, "steps": []}
        author = AuthorConfig(kind="dimension", min_items=1, max_items=10, options=options)
        return config.model_copy(update={"name": f"{config.name}-{OWN}", "author": author})
    return method_config(Run(config).config, parse_variant(name))


async def grade(config: RunConfig, methods: list[str], study: str | None = None) -> None:
    """Grade a study's responses by these methods, in order; keep them under the study's name."""
    for name in methods:
        asked = study_method(config, name)
        try:
            await judgments.grade(asked)
        finally:
            if study is not None:
                judgments.keep_more(asked, name, KEPT / kept_as(study, name))


def kept_as(study: str, method: str) -> str:
    """Return the name of the file with the kept judgments of a study by one method.

    >>> kept_as("topical_chat", "rubric:criterion=coherence")
    'topical_chat_rubric_coherence.parquet'
    """
    return f"{study}_{method.replace(':criterion=', '_')}.parquet"


if __name__ == "__main__":
    main()

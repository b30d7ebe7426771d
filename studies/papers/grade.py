"""Grade everything the papers' studies need, with one judge; what is graded is not asked again.

    python studies/papers/prepare.py
    python studies/papers/grade.py qwen2.5-coder-1.5b-instruct --base-url http://127.0.0.1:8000/v1
    python studies/papers/grade.py smollm2-135m-instruct --base-url http://127.0.0.1:8001/v1
    python studies/papers/grade.py JUDGE --base-url URL --limit 2    # minutes, runs of their own
    python studies/papers/grade.py JUDGE --base-url URL --only arena_hard

Which queries: the first so many of the order that prepare.py draws, as the table below says, so
that all of it fits about two hours on two cores. A longer run only adds to a shorter one.
"""

from __future__ import annotations

import argparse
import asyncio
from pathlib import Path

from rocketeval.cli.progress import make_observer
from rocketeval.config import RunConfig, load_config
from rocketeval.pipeline import Run
from rocketeval.stages.methods import method_config, parse_variant

HERE = Path(__file__).parent
STUDY_JUDGE = "qwen2.5-coder-1.5b-instruct"
"""Whose runs have the studies' plain names."""

SUMMEVAL = ("coherence", "consistency", "fluency", "relevance")
TOPICAL_CHAT = ("coherence", "engagingness", "groundedness", "naturalness")

Part = tuple[int, tuple[str, ...]]


def levels(criteria: tuple[str, ...]) -> tuple[str, ...]:
    """The prompt levels of Evaluating the Evaluator for these criteria, and perplexity."""
    named = [f"{level}:criterion={name}" for level in ("criterion", "rubric") for name in criteria]
    return ("generic", *named, "perplexity")


WORK: dict[str, tuple[Part, ...]] = {
    "mt_bench": (
        (80, ("checklist",)),
        (40, ("fixed", "direct", "reference")),
        (20, ("sequential", "all_yes", "all_no", "multi_item", "cot")),
    ),
    "arena_hard": ((12, ("checklist", "direct")),),
    "summeval": ((12, ("checklist", *levels(SUMMEVAL))),),
    "topical_chat": ((12, ("checklist", *levels(TOPICAL_CHAT))),),
    "infobench": ((60, ("checklist",)),),
}
"""By study: how many queries, and which methods."""


def main() -> None:
    """Grade what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("judge")
    parser.add_argument("--base-url", required=True)
    parser.add_argument("--only", choices=list(WORK), action="append")
    parser.add_argument("--methods", help="only these, separated by commas")
    parser.add_argument("--limit", type=int, help="so many queries of each study")
    given = parser.parse_args()
    wanted = given.methods.split(",") if given.methods else None
    for study in given.only or WORK:
        for queries, methods in WORK[study]:
            chosen = [name for name in methods if wanted is None or name in wanted]
            config = study_config(study, given.judge, given.limit, queries, given.base_url)
            asyncio.run(grade(config, chosen))


def study_config(
    study: str,
    judge: str,
    limit: int | None = None,
    queries: int | None = None,
    base_url: str | None = None,
) -> RunConfig:
    """The config of a study's run by one judge; a limited run has a name of its own."""
    config = load_config(HERE / f"{study}.yaml")
    name = study if judge == STUDY_JUDGE else f"{study}-{judge}"
    if limit is not None:
        name, queries = f"{name}-first-{limit}", limit
    engine = {"model": judge} | ({} if base_url is None else {"base_url": base_url})
    return config.model_copy(
        update={
            "name": name,
            "benchmark": config.benchmark.model_copy(update={"limit": queries}),
            "judge": config.judge.model_copy(update=engine),
        }
    )


async def grade(config: RunConfig, methods: list[str]) -> None:
    """Grade a study's responses by these methods, in order."""
    for name in methods:
        chosen = method_config(Run(config).config, parse_variant(name))
        print(f"== {config.name}: {name}, {config.benchmark.limit} queries", flush=True)
        run = Run(chosen, observer=make_observer(chosen, quiet=False))
        try:
            facts = await run.to_judgments()
        finally:
            run.observer.closed()
        print(f"{facts['judged']} judged, {facts['failed']} failed, {facts['unfinished']} left")


if __name__ == "__main__":
    main()

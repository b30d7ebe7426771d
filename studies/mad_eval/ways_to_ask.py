"""Compare four ways to ask a judge about two responses.

    python studies/mad_eval/ways_to_ask.py studies/mad_eval/pandalm.yaml --record ways_to_ask

Each response separately or both side by side, with yes/no (A or B) or a grade. Works on a run that
`rocketeval evolve` has finished, with the same eight questions each way, on decided pairs. The
pairs are from queries that evolution saw; the held-out ones are not used.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from rocketeval.arrays import Floats
from rocketeval.config import RunConfig, load_config
from rocketeval.evolve.ask import PerspectiveAsker
from rocketeval.evolve.cases import Case, query_numbers
from rocketeval.evolve.history import split_cases
from rocketeval.evolve.perspective import AnswerFormat, Asking, Perspective, in_formats
from rocketeval.evolve.pool import seed_pool
from rocketeval.evolve.rounds import SEEN
from rocketeval.evolve.validate import LEVEL, TIMES
from rocketeval.observer import Observer
from rocketeval.stats.bootstrap import interval, resample_queries
from rocketeval.store.run import RunStore

RECORDED = Path(__file__).parent / "recorded"
FOLDER = "evolve/ways"
WAYS: tuple[tuple[Asking, AnswerFormat], ...] = (
    ("each", AnswerFormat.CHOICE),
    ("each", AnswerFormat.GRADED),
    ("pairs", AnswerFormat.CHOICE),
    ("pairs", AnswerFormat.GRADED),
)
QUESTIONS = 8


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("--queries", type=int, default=20, help="number of seen queries to use")
    parser.add_argument("--record", metavar="NAME", help="write recorded/NAME.txt")
    given = parser.parse_args()
    lines = asyncio.run(compare(load_config(given.config), given.queries))
    print("\n".join(lines))
    if given.record:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{given.record}.txt").write_text("\n".join(lines) + "\n")


async def compare(config: RunConfig, queries: int) -> list[str]:
    """Return one line per way, and a heading with the data used."""
    store = RunStore(config.run_path)
    cases = decided_cases(store, config, queries)
    questions = list(seed_pool(("guidelines",), (AnswerFormat.CHOICE,)))[:QUESTIONS]
    lines = [
        f"{config.benchmark.path.name}, judge {config.judge.model}: {len(cases)} decided pairs of "
        f"{len({case.query_id for case in cases})} queries, {len(questions)} questions",
        "right: how often the mean of the answers agrees with the votes (0.5 by chance)",
        "single: the same for a single question, mean over the questions",
        f"{'':18}{'right':26}{'minus each, choice':26}single",
    ]
    with store.locked():
        said = {way: await answers(store, config, questions, cases, *way) for way in WAYS}
    right = {way: hits(found, cases) for way, found in said.items()}
    for way, found in right.items():
        asking, form = way
        whole = with_interval(found[:, -1], cases)
        less = with_interval(found[:, -1] - right[WAYS[0]][:, -1], cases)
        name = f"{asking}, {form.value}"
        lines.append(f"{name:18}{whole:26}{less:26}{found[:, :-1].mean():.3f}")
    return lines


def decided_cases(store: RunStore, config: RunConfig, queries: int) -> list[Case]:
    """Return the decided pairs of the first `queries` queries that evolution saw."""
    seen = split_cases(store.inputs, config.evolve).seen
    names = list(dict.fromkeys(case.query_id for case in seen))[:queries]
    return [case for case in seen if case.query_id in names and case.gold]


async def answers(
    store: RunStore,
    config: RunConfig,
    questions: Sequence[Perspective],
    cases: Sequence[Case],
    asking: Asking,
    form: AnswerFormat,
) -> Floats:
    """Return the judge's answers for the first response of each pair, one column per question."""
    asker = PerspectiveAsker(
        store, config, Observer(), asyncio.Event(), asking=asking, folder=FOLDER, also=(SEEN,)
    )
    return (await asker.ask(in_formats(questions, (form,)), cases)).table.answers


def hits(said: Floats, cases: Sequence[Case]) -> Floats:
    """Return 1 where an answer agrees with the votes, 0.5 where it prefers neither.

    The last column is the mean of all questions.
    """
    gold = np.array([case.gold for case in cases], dtype=np.float64)
    every = np.column_stack([said, np.nanmean(said, axis=1)])
    side = np.where(np.isnan(every), 0.0, np.sign(every)) * gold[:, None]
    return (side + 1.0) / 2.0


def with_interval(values: Floats, cases: Sequence[Case]) -> str:
    """Return a mean with its interval over queries."""
    numbers = query_numbers([case.query_id for case in cases])
    queries = int(numbers.max()) + 1
    sums, sizes = np.bincount(numbers, values), np.bincount(numbers).astype(np.float64)
    drawn = [counts @ sums / (counts @ sizes) for counts in resample_queries(queries, TIMES, 0)]
    found = interval(float(values.mean()), np.concatenate(drawn), queries=queries, level=LEVEL)
    return f"{found.value:.3f} ({found.low:.3f} to {found.high:.3f})"


if __name__ == "__main__":
    main()

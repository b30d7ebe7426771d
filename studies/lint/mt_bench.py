"""Lint findings on MT-Bench's checklists, from stored judgments of 23 candidates.

    python studies/lint/mt_bench.py [--record]

needs MT-Bench (../shared/data next to the checkout), and no judge. The stored judgments of
studies/mt_bench/labelled.yaml, of its whole questions, become a run in a temporary folder.
The output has what the answer checks find, and agreement with votes without the flagged items.
Scores are means of the remaining answers. Votes, tie margin and resamples are the same with and
without the items.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from rocketeval.audit.figures import MeasuredFigure, find_paired_votes, hits, measure_votes
from rocketeval.config import load_config
from rocketeval.grid import ScoreGrid
from rocketeval.judges.runs import JudgedRun, open_run
from rocketeval.lint.answer_checks import drop_items
from rocketeval.lint.lint import SAYS_NOTHING, Lint, flagged_items
from rocketeval.lint.stage import lint_run
from rocketeval.scoring.answers import AnswerTable
from rocketeval.scoring.mean import MeanScorer
from rocketeval.scoring.read_answers import read_answers
from rocketeval.text import share

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent))
import judgments  # noqa: E402

MT_BENCH = HERE.parent / "mt_bench"
Items = set[tuple[str, int]]


def main() -> None:
    """Print the table of answer checks, and the agreement with and without items."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        run = restored(Path(folder))
        found = lint_run(run.store, run.config)
        lines = [*table(found), "", *agreement(run, found)]
    print("\n".join(lines))
    if given.record:
        path = HERE / "recorded" / "mt_bench.txt"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def restored(folder: Path) -> JudgedRun:
    """Return a run with the stored judgments of the questions that are whole."""
    stored = MT_BENCH / "recorded" / "judgments" / "labelled.parquet"
    whole = judgments.whole_queries(judgments.read(stored))
    config = load_config(MT_BENCH / "labelled.yaml")
    benchmark = config.benchmark.model_copy(update={"limit": len(whole)})
    places = {"benchmark": benchmark, "output": folder, "cache": folder / "cache"}
    config = config.model_copy(update=places)
    asyncio.run(judgments.restore(config, stored, whole))
    return open_run(config.run_path)


def table(found: Lint) -> list[str]:
    """Return the kinds of findings, statistics of the items, and changes in the ranking."""
    behaviour = found.behaviour
    if behaviour is None:
        raise SystemExit(f"No answers to look at: {found.no_behaviour}.")
    lines = [
        f"{behaviour.judge}: {behaviour.items} items, {behaviour.responses} responses, "
        f"{behaviour.labels} labels; {found.flagged} items flagged ({found.errors} with an error)",
        "",
        *(f"{row.items:5} {row.share:6.1%}  {row.kind}: {row.title}" for row in found.kinds),
        "",
        "over items                       10%   median      90%",
    ]
    for name in ("mean", "spread", "sureness", "discrimination", "with_labels"):
        values = [getattr(each, name) for each in behaviour.figures]
        lines.append(f"{name:<25} {quantiles(values)}")
    lines.append(
        f"{'points moved by one':<25} {quantiles([o.shift for o in behaviour.influences])}"
    )
    for name, without in (
        ("dead and redundant", behaviour.without_dead_and_redundant),
        ("all flagged", behaviour.without_flagged),
    ):
        lines.append(
            f"ranking without {name} ({without.dropped} items): {without.swapped_pairs} of "
            f"{without.pairs} pairs change places, tau {without.tau:.3f}, largest move "
            f"{without.largest_move}"
        )
    return lines


def quantiles(values: Iterable[float | None]) -> str:
    """Return the 10%, 50% and 90% quantiles of some figures, and their count."""
    known = [value for value in values if value is not None]
    if not known:
        return "  none"
    return " ".join(f"{each:8.3f}" for each in np.quantile(known, [0.1, 0.5, 0.9])) + (
        f"   ({len(known)} items)"
    )


def agreement(run: JudgedRun, found: Lint) -> list[str]:
    """Return the agreement with votes for all items, and the paired difference without some."""
    answers, _ = read_answers(run.store)
    kinds = {
        "dead": SAYS_NOTHING[:3],
        "redundant": ("redundant",),
        "dead or redundant": SAYS_NOTHING,
        "unsure": ("unsure",),
    }
    dropped: dict[str, Items] = {
        name: flagged_items(each for each in found.findings if each.kind in own)
        for name, own in kinds.items()
    }
    dropped["anything flagged"] = flagged_items(found.findings)
    whole = grid(answers, run)
    ballots = find_paired_votes(whole, run.store.inputs.votes())
    ranking = run.config.ranking
    own = hits(ballots, whole.scores, ranking.tie_margin)
    named = {"all items": own}
    for name, items in dropped.items():
        fewer = grid(drop_items(answers, items)[0], run)
        without = hits(ballots, fewer.scores, ranking.tie_margin)
        named |= {name: without, f"less {name}": without - own}
    measured = measure_votes(ballots, named, bootstrap=ranking.bootstrap, seed=ranking.seed)
    head = f"{'without':<20} items  with ties          difference          without ties       "
    lines = [f"{len(ballots.votes)} votes, tie margin {ranking.tie_margin:g}", head + "difference"]
    for name, items in {"all items": set(), **dropped}.items():
        cells = [shown(measured[name].with_ties), shown(measured[name].without_ties)]
        moved = ["", ""]
        if name in dropped:
            less = measured[f"less {name}"]
            moved = [shown(less.with_ties), shown(less.without_ties)]
        title = "nothing" if name == "all items" else name
        columns = (cells[0], moved[0], cells[1], moved[1])
        lines.append(f"{title:<20} {len(items):5}  " + " ".join(f"{x:<19}" for x in columns))
    return [line.rstrip() for line in lines]


def grid(answers: AnswerTable, run: JudgedRun) -> ScoreGrid:
    """Return the mean scores of the known answers."""
    scores = MeanScorer(run.config.scorer.scale).predict(answers).tolist()
    return ScoreGrid.from_columns(answers.query_ids, answers.candidates, scores)


def shown(measured: MeasuredFigure | None) -> str:
    """Return a share in percent with its interval."""
    return "-" if measured is None else share(measured.value)


if __name__ == "__main__":
    main()

"""Compare evaluators: single prompt, checklist, mean, forests, experts, the effect of evolution.

    rocketeval evolve studies/mad_eval/pandalm.yaml                          # once, with a judge
    python studies/mad_eval/stored_cases.py studies/mad_eval/pandalm.yaml    # once, after it
    python studies/mad_eval/study.py studies/mad_eval/pandalm.yaml --record pandalm

needs the stored answers and the benchmark, and no judge. The held-out cases are cross-validated
with the perspectives that evolution kept and with the seeds among them: as `evolve` does it, and
with two, three and four forced experts. On MT-Bench, the plain checklist is an arm too: the mean of
the same judge's stored answers to each query's own checklist, from the study of MT-Bench.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import orjson

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]
import judgments  # noqa: E402
import stored_cases  # noqa: E402
from stored_cases import EvolutionFacts, StudiedCases  # noqa: E402

from rocketeval.config import EvolveConfig, load_config  # noqa: E402
from rocketeval.errors import RocketEvalError  # noqa: E402
from rocketeval.evolve.cases import CaseTable, stacked  # noqa: E402
from rocketeval.evolve.perspective import Perspective, PerspectiveKind, Pool  # noqa: E402
from rocketeval.evolve.predictions import confidence_table  # noqa: E402
from rocketeval.evolve.select import weigh_perspectives  # noqa: E402
from rocketeval.evolve.validate import (  # noqa: E402
    MEAN,
    SINGLE,
    SINGLE_FITTED,
    WITH,
    WITHOUT,
    EvaluatorArm,
    Validation,
    cross_validate,
)
from rocketeval.records import Interval  # noqa: E402
from rocketeval.scoring.mean import MeanScorer  # noqa: E402
from rocketeval.store.codec import encode  # noqa: E402

RECORDED = HERE / "recorded"
FORCED = (2, 3, 4)
CHECKLISTS = {"mt_bench": HERE.parent / "mt_bench/recorded/judgments/first_turn_checklist.parquet"}
"""Stored answers to every query's own checklist, by benchmark."""
CHECKLIST = Perspective("Mean of the query's own checklist")
"""The column of the checklist's scores; no question asks it."""
PLAIN = {"plain checklist, cut points learned": CHECKLIST.id}
Scores = Mapping[tuple[str, str], float]
PAPER: dict[str, dict[str, str]] = {
    "pandalm": {
        "Qwen3-0.6B, PandaLM prompt": "57.5     0.520     0.28     0.27",
        "Qwen3-0.6B, MAD-Eval": "65.7     0.642     0.41     0.39",
        "Qwen2.5-7B, PandaLM prompt": "69.5     0.673",
        "Qwen2.5-7B, MAD-Eval without experts": "80.3     0.801",
        "Qwen2.5-7B, MAD-Eval": "82.9     0.828",
    },
    "mt_bench": {
        "Qwen3-0.6B, PandaLM prompt": "49.3     0.424     0.29     0.27",
        "Qwen3-0.6B, MAD-Eval": "55.3     0.500     0.40     0.37",
        "Qwen2.5-7B, PandaLM prompt": "55.1     0.481     0.45     0.42",
        "Qwen2.5-7B, MAD-Eval without experts": "63.5     0.628     0.52     0.49",
        "Qwen2.5-7B, MAD-Eval": "65.2     0.648     0.54     0.50",
    },
}
"""Accuracy, macro-F1, rho and tau as published (Tables 1, 2 and 9), on other splits."""


def main() -> None:
    """Print the study, and keep it with `--record`."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("--record", metavar="NAME", help="write recorded/NAME.txt and .json")
    parser.add_argument("--judgments", type=Path, help="default: recorded/judgments/CONFIG.parquet")
    given = parser.parse_args()
    stored, dataset = given.judgments or stored_cases.stored_path(given.config), given.config.stem
    if not stored.exists():
        sys.exit(f"{stored} does not exist: run `rocketeval evolve` and stored_cases.py first.")
    try:
        cases = stored_cases.read(load_config(given.config), stored)
    except RocketEvalError as error:
        sys.exit(str(error))
    checklist = checklist_scores(dataset, cases.stored.model)
    lines, found = study(cases, dataset, checklist, say=partial(print, flush=True))
    if given.record:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{given.record}.txt").write_text("\n".join(lines) + "\n")
        (RECORDED / f"{given.record}.json").write_bytes(as_json(found))


def as_json(found: Mapping[str, Any]) -> bytes:
    """Return the study's figures as a file."""
    return orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY) + b"\n"


def study(
    cases: StudiedCases,
    dataset: str,
    checklist: Scores | None = None,
    say: Callable[[str], None] = lambda line: None,
    *,
    whole_pool_only: bool = False,
) -> tuple[list[str], dict[str, Any]]:
    """Return the tables of one benchmark and judge, as lines and as data; `say` gets each line.

    With `whole_pool_only`, the seeds alone are left out.
    """
    lines: list[str] = []

    def tell(line: str = "") -> None:
        say(line)
        lines.append(line)

    stored, settings = cases.stored, cases.settings
    seen, held_out = cases.seen, cases.held_out
    if checklist is not None:
        seen, held_out = (with_checklist(table, checklist) for table in (seen, held_out))
    pool = stored.pool
    tell(f"{dataset}, judge {stored.model}, {settings.asking}, {settings.answers}")
    queries = len(set(held_out.query_ids))
    tell(
        f"{len(held_out):,} held-out cases of {queries} queries, "
        f"{len(seen):,} seen of {len(set(seen.query_ids))}; reference a/tie/b of the held-out: "
        + "/".join(str(int((held_out.gold == side).sum())) for side in (1, 0, -1))
    )
    tell("perspectives: those that evolution kept")
    found: dict[str, Any] = {"dataset": dataset, "judge": stored.model}
    found["held_out"] = {"cases": len(held_out), "queries": queries}
    every = pools(pool)
    for name, ids in list(every.items())[-1:] if whole_pool_only else every.items():
        some = held_out.narrow(ids)
        counts = some.answers.shape[1], some.traits.shape[1]
        tell(f"\n{name}: {counts[0]} about responses, {counts[1]} about queries")
        arms, chosen = validate(held_out, seen, settings, stored.overall, ids)
        tell(f"{'':36}accuracy in %         macro-F1  rho    tau    vs. without experts")
        for arm, row in arms.items():
            tell(f"{arm:36}{shown(row)}")
        tell("with experts minus, in points of accuracy:")
        for arm in (SINGLE, SINGLE_FITTED["pairs"], *PLAIN, MEAN, WITHOUT):
            if arm in arms:
                tell(f"  {arm:36}{percent(arms[arm].lead, sign=True)}")
        tell(f"experts chosen in the folds: {', '.join(map(str, chosen.experts))}")
        found[name] = {
            "arms": {arm: figures(row) for arm, row in arms.items()},
            "experts": chosen.experts,
            "confidence": say_confidence(chosen, tell),
        }
    for published, line in PAPER.get(dataset, {}).items():
        tell(f"paper: {published:40}{line}")
    found["origins"] = say_origins(pool, seen, held_out, settings, tell)
    found["evolution"] = say_evolution(stored.evolution, tell)
    return lines, found


def checklist_scores(dataset: str, judge: str) -> Scores | None:
    """Return the mean answer of each response to its query's checklist; None if not stored."""
    path = CHECKLISTS.get(dataset)
    if path is None or json.loads(path.with_suffix(".json").read_text())["judge"]["model"] != judge:
        return None
    answers = judgments.read(path)
    pairs = zip(answers.query_ids, answers.candidates, strict=True)
    scores = MeanScorer(scale=(0.0, 1.0)).predict(answers)
    return dict(zip(pairs, scores.tolist(), strict=True))


def with_checklist(table: CaseTable, scores: Scores) -> CaseTable:
    """Return a table of pairs with one more column: the difference of both responses' scores."""
    wanted = {(case.query_id, name) for case in table.cases for name in case.candidates}
    if absent := sorted(wanted - scores.keys()):
        sys.exit(f"{len(absent)} responses have no checklist's score, first {absent[0]}.")
    column = [
        scores[case.query_id, first] - scores[case.query_id, second]
        for case in table.cases
        for first, second in (case.candidates,)
    ]
    return replace(
        table,
        about_responses=(*table.about_responses, CHECKLIST),
        answers=np.column_stack([table.answers, column]),
    )


def pools(pool: Pool) -> dict[str, list[str]]:
    """Return the ids of the seeds, and of the whole pool if it is larger."""
    seeds = [each.id for each in pool if each.round == 0]
    every = [each.id for each in pool]
    found = {"the seeds of these": seeds, "all of these": every}
    return {"seeds": seeds} if len(seeds) == len(every) else found


def validate(
    held_out: CaseTable,
    seen: CaseTable,
    settings: EvolveConfig,
    overall: str,
    kept: Sequence[str],
) -> tuple[dict[str, EvaluatorArm], Validation]:
    """Return all arms, and the validation that chose the number of experts."""
    columns = PLAIN if CHECKLIST in held_out.about_responses else None
    chosen = cross_validate(
        held_out, settings, learn_also=seen, overall=overall, columns=columns, kept=kept
    )
    arms = dict(chosen.arms)
    for count in FORCED:
        forced = settings.model_copy(update={"experts": (count,)})
        found = cross_validate(held_out, forced, learn_also=seen, kept=kept)
        arms[f"{count} experts"] = found.arms[WITH]
    return arms, chosen


def say_confidence(chosen: Validation, say: Callable[[str], None]) -> list[dict[str, Any]]:
    """Print the accuracy by confidence threshold."""
    said = chosen.arms[WITH].predictions
    assert said is not None
    rows = confidence_table(said, chosen.gold, chosen.query_ids)
    say("confidence above   cases   coverage   accuracy")
    for row in rows:
        right = "-" if row.accuracy is None else percent(row.accuracy)
        say(f"{row.threshold:16.2f}{row.cases:8,}{row.coverage:10.1%}   {right}")
    return [asdict(row) for row in rows]


def say_origins(
    pool: Pool,
    seen: CaseTable,
    held_out: CaseTable,
    settings: EvolveConfig,
    say: Callable[[str], None],
) -> dict[str, Any]:
    """Print the mean importance by origin, and the most important perspectives."""
    ids = [each.id for each in pool]
    both = stacked(held_out.narrow(ids), seen.narrow(ids))
    standings = weigh_perspectives(both, settings).by_id()
    by_origin: dict[str, list[float]] = defaultdict(list)
    about = pool.of(PerspectiveKind.RESPONSE)
    for each in about:
        by_origin[each.origin.value].append(standings[each.id][0])
    say("\norigin        perspectives   mean importance (all about responses: 1)")
    for origin, values in sorted(by_origin.items(), key=lambda pair: -float(np.mean(pair[1]))):
        say(f"{origin:14}{len(values):12}   {float(np.mean(values)) * len(about):6.2f}")
    say("the most important, on all cases:")
    best = sorted(about, key=lambda each: -standings[each.id][0])[:10]
    for each in best:
        importance, stability = standings[each.id]
        say(f"  {importance:.3f} {stability:4.0%}  {each.origin.value:9} {each.text}")
    return dict(by_origin)


def say_evolution(evolution: EvolutionFacts, say: Callable[[str], None]) -> dict[str, Any]:
    """Print the accuracy of each round on the seen cases, and the cost of a verdict."""
    measures = [evolution.beginning, *(done.after for done in evolution.rounds)]
    say("\nout-of-fold accuracy on the seen cases, before the first round and after each:")
    say("  " + ", ".join(f"{100 * one.value:.1f} +- {100 * one.error:.1f}" for one in measures))
    say(f"best: round {evolution.best_round}. On held-out cases: {evolution.worth}")
    say("cost of the verdict on a pair              questions   prompt tokens")
    cost = evolution.cost
    loads = {
        "a pair that shares no responses": cost.alone,
        "mean over this benchmark": cost.here,
        "one prompt, no shared responses": cost.single,
    }
    for words, load in loads.items():
        tokens = "-" if load.prompt_tokens is None else f"{load.prompt_tokens:,.0f}"
        say(f"  {words:40}{load.calls:10.1f}{tokens:>16}")
    found: dict[str, Any] = encode(evolution)
    return found


def shown(arm: EvaluatorArm) -> str:
    """Return an arm's figures as one line."""
    accuracy, gain = arm.figures["accuracy"], arm.gain
    rest = "  ".join(f"{arm.figures[name].value:6.3f}" for name in ("f1", "rho", "tau"))
    against = "" if arm.name == WITHOUT else f"   {percent(gain, sign=True)}"
    return f"{percent(accuracy):20}  {rest}{against}"


def percent(figure: Interval, *, sign: bool = False) -> str:
    """Return a share with its interval, in percent."""
    first = f"{100 * figure.value:+.1f}" if sign else f"{100 * figure.value:.1f}"
    return f"{first} ({100 * figure.low:.1f} to {100 * figure.high:.1f})"


def figures(arm: EvaluatorArm) -> dict[str, Any]:
    """Return an arm's figures as data."""
    return {
        **{name: asdict(value) for name, value in arm.figures.items()},
        "gain": asdict(arm.gain),
        "lead": asdict(arm.lead),
    }


if __name__ == "__main__":
    main()

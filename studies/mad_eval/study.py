"""Compare evaluators: single prompt, mean, forests, experts, and the effect of evolution.

    rocketeval evolve studies/mad_eval/pandalm.yaml
    python studies/mad_eval/study.py studies/mad_eval/pandalm.yaml --record pandalm

Works on a run that `rocketeval evolve` has finished. Its judge must be reachable, but no paid
request is repeated. The held-out cases are cross-validated with the perspectives that evolution
kept and with the seeds among them: as `evolve` does it, and with two, three and four forced
experts. With `--whole`, the study uses the pool of the best round and all seeds instead, which asks
more questions.
"""

from __future__ import annotations

import argparse
import asyncio
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from rocketeval.config import EvolveConfig, RunConfig, load_config
from rocketeval.evolve.ask import PerspectiveAsker
from rocketeval.evolve.cases import Case, CaseTable
from rocketeval.evolve.history import split_cases
from rocketeval.evolve.perspective import PerspectiveKind, Pool
from rocketeval.evolve.pool import read_pool
from rocketeval.evolve.predictions import confidence_table
from rocketeval.evolve.rounds import SEEN
from rocketeval.evolve.select import weigh_perspectives
from rocketeval.evolve.stage import HELD_OUT, OVERALL
from rocketeval.evolve.validate import WITH, WITHOUT, EvaluatorArm, Validation, cross_validate
from rocketeval.observer import Observer
from rocketeval.records import Interval
from rocketeval.store.run import RunStore

RECORDED = Path(__file__).parent / "recorded"
FORCED = (2, 3, 4)
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
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", type=Path)
    parser.add_argument("--record", metavar="NAME", help="write recorded/NAME.txt and .json")
    parser.add_argument("--judge", help="another judge; its run has its name in front")
    parser.add_argument("--base-url", help="URL of that judge")
    parser.add_argument("--whole", action="store_true", help="use the best round's whole pool")
    given = parser.parse_args()
    config = load_config(given.config)
    dataset = given.config.stem
    if given.judge:
        judge = config.judge.model_copy(update={"model": given.judge, "base_url": given.base_url})
        config = config.model_copy(update={"judge": judge, "name": f"{given.judge}_{config.name}"})
    lines: list[str] = []

    def say(line: str = "") -> None:
        print(line, flush=True)
        lines.append(line)

    found = asyncio.run(study(config, dataset, say, whole=given.whole))
    if given.record:
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{given.record}.txt").write_text("\n".join(lines) + "\n")
        content = orjson.dumps(found, option=orjson.OPT_INDENT_2 | orjson.OPT_SERIALIZE_NUMPY)
        (RECORDED / f"{given.record}.json").write_bytes(content + b"\n")


async def study(
    config: RunConfig, dataset: str, say: Callable[[str], None], *, whole: bool
) -> dict[str, Any]:
    """Print the tables of one benchmark and judge; return them as data."""
    store = RunStore(config.run_path)
    pool = chosen_pool(store, whole=whole)
    overall = next(each for each in read_pool(store.pool_path) if each.text == OVERALL)
    seen, held_out = await tables(store, config, pool.add([overall])[0])
    say(f"{dataset}, judge {config.judge.model}, {config.evolve.asking}, {config.evolve.answers}")
    say(
        f"{len(held_out):,} held-out cases of {len(set(held_out.query_ids))} queries, "
        f"{len(seen):,} seen of {len(set(seen.query_ids))}; reference a/tie/b of the held-out: "
        + "/".join(str(int((held_out.gold == side).sum())) for side in (1, 0, -1))
    )
    say("perspectives: " + ("all of the best round" if whole else "those that evolution kept"))
    found: dict[str, Any] = {"dataset": dataset, "judge": config.judge.model}
    for name, ids in pools(pool).items():
        some = held_out.narrow(ids)
        counts = some.answers.shape[1], some.traits.shape[1]
        say(f"\n{name}: {counts[0]} about responses, {counts[1]} about queries")
        arms, chosen = validate(held_out, seen, config.evolve, overall.id, ids)
        say(f"{'':36}accuracy in %         macro-F1  rho    tau    vs. without experts")
        for arm, row in arms.items():
            say(f"{arm:36}{shown(row)}")
        say(f"experts chosen in the folds: {', '.join(map(str, chosen.experts))}")
        found[name] = {
            "arms": {arm: figures(row) for arm, row in arms.items()},
            "experts": chosen.experts,
            "confidence": say_confidence(chosen, say),
        }
    for published, line in PAPER.get(dataset, {}).items():
        say(f"paper: {published:40}{line}")
    found["origins"] = say_origins(pool, seen, held_out, config.evolve, say)
    found["evolution"] = say_evolution(store, say)
    return found


def chosen_pool(store: RunStore, *, whole: bool) -> Pool:
    """Return the perspectives about responses that evolution kept, or all; and all about queries.

    They stay in evolution's order, because forests draw their columns by position.
    """
    found = store.json_if_made("evolve/evolution")
    if found is None:
        raise SystemExit(f"{store.path} has no evaluator yet: run `rocketeval evolve` first.")
    kept = [each["id"] for each in found["evaluator"]["perspectives"]]
    there = [each for each in read_pool(store.pool_path) if each.round <= found["best_round"]]
    known = {each.id: each for each in there}
    others = (each for each in there if each.kind is PerspectiveKind.QUERY or whole)
    return Pool(known[name] for name in kept).add(each for each in others if each.id not in kept)[0]


def pools(pool: Pool) -> dict[str, list[str]]:
    """Return the ids of the seeds, and of the whole pool if it is larger."""
    seeds = [each.id for each in pool if each.round == 0]
    every = [each.id for each in pool]
    found = {"the seeds of these": seeds, "all of these": every}
    return {"seeds": seeds} if len(seeds) == len(every) else found


async def tables(store: RunStore, config: RunConfig, pool: Pool) -> tuple[CaseTable, CaseTable]:
    """Return the judge's answers about the seen and the held-out cases."""
    split = split_cases(store.inputs, config.evolve)

    async def ask(cases: Sequence[Case], folder: str) -> CaseTable:
        asker = PerspectiveAsker(
            store, config, Observer(), asyncio.Event(), asking=config.evolve.asking, folder=folder
        )
        return (await asker.ask(list(pool), cases)).table

    with store.locked():
        return await ask(split.seen, SEEN), await ask(split.held_out, HELD_OUT)


def validate(
    held_out: CaseTable,
    seen: CaseTable,
    settings: EvolveConfig,
    overall: str,
    kept: Sequence[str],
) -> tuple[dict[str, EvaluatorArm], Validation]:
    """Return all arms, and the validation that chose the number of experts."""
    chosen = cross_validate(held_out, settings, learn_also=seen, overall=overall, kept=kept)
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
    from rocketeval.evolve.cases import stacked

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


def say_evolution(store: RunStore, say: Callable[[str], None]) -> dict[str, Any]:
    """Print the accuracy of each round on the seen cases, and the cost of a verdict."""
    evolution = store.json_if_made("evolve/evolution")
    assert evolution is not None
    measures = [evolution["beginning"], *(done["after"] for done in evolution["rounds"])]
    say("\nout-of-fold accuracy on the seen cases, before the first round and after each:")
    say(
        "  "
        + ", ".join(f"{100 * one['value']:.1f} +- {100 * one['error']:.1f}" for one in measures)
    )
    say(f"best: round {evolution['best_round']}. On held-out cases: {evolution['worth']['words']}")
    say("cost of the verdict on a pair              questions   prompt tokens")
    cost = evolution["cost"]
    names = {
        "alone": "a pair that shares no responses",
        "here": "mean over this benchmark",
        "single": "one prompt, no shared responses",
    }
    for name, words in names.items():
        load = cost[name]
        say(f"  {words:40}{load['calls']:10.1f}{load['prompt_tokens']:16,.0f}")
    return {name: evolution[name] for name in ("beginning", "rounds", "best_round", "cost")}


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
    }


if __name__ == "__main__":
    main()

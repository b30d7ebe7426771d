"""Evolution finds a planted truth: the criteria, the query types, and the attainable accuracy.

People prefer brief responses for sums and long ones for stories; one vote in ten is flipped. The
seeds ask about neither length nor query type.
"""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from pathlib import Path

import pytest
from mad_eval.planted_benchmark import BRIEF, CALCULATION, DETAIL, Planted, make_planted

from rocketeval.evolve.artifact import load_evaluator
from rocketeval.evolve.ask import PerspectiveAsker
from rocketeval.evolve.forest import SPACES, ForestSettings
from rocketeval.evolve.history import gather_cases, split_cases
from rocketeval.evolve.perspective import PerspectiveOrigin
from rocketeval.evolve.pool import read_pool
from rocketeval.evolve.result import DescribedPerspective, Evolution
from rocketeval.evolve.validate import WITH, WITHOUT
from rocketeval.pipeline import Run
from rocketeval.records import Interval
from rocketeval.store.codec import encode
from support.planted_run import Engines, planted_config

SETTINGS = {"rounds": 3, "folds": 4, "patience": 2}
FORESTS = tuple(ForestSettings(16, depth, 2, 5) for depth in (3, 5))


def evolve(folder: Path, planted: Planted, engines: Engines, **changes: object) -> Evolution:
    """Run one command with small forests."""
    config = planted_config(folder, planted, **{**SETTINGS, **changes})
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(SPACES, "short", FORESTS)
        return asyncio.run(Run(config).evolve(make_engine=engines.make))


def accuracy(found: Evolution, name: str) -> Interval:
    """Held-out accuracy of one arm."""
    return next(arm.figures["accuracy"] for arm in found.figures.arms if arm.name == name)


@pytest.fixture(scope="module")
def planted() -> Planted:
    """Eighty queries with six votes each."""
    return make_planted(80)


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory, planted: Planted) -> tuple[Path, Evolution]:
    """The result of the evolution."""
    folder = tmp_path_factory.mktemp("planted")
    return folder, evolve(folder, planted, Engines())


def test_planted_criteria_are_found(found: tuple[Path, Evolution]) -> None:
    """Brevity and detail weigh most, the query type is asked about, and all came from mistakes."""
    every = found[1].evaluator.perspectives
    importance_of = {each.text: each.importance or 0.0 for each in every}
    about_responses = sorted(
        (each.text for each in every if each.kind == "response"),
        key=lambda text: -importance_of[text],
    )
    assert set(about_responses[:2]) == {BRIEF, DETAIL}
    assert importance_of[BRIEF] + importance_of[DETAIL] > 0.5
    assert max((each for each in every if each.kind == "query"), key=_importance).text == (
        CALCULATION
    )
    origins = {each.text: each.origin for each in every}
    assert {origins[text] for text in (BRIEF, DETAIL, CALCULATION)} == {
        PerspectiveOrigin.FAILURES.value
    }
    first, last = found[1].beginning, found[1].rounds[found[1].best_round - 1].after
    assert last.value - first.value > 3 * math.hypot(first.error, last.error)


def _importance(each: DescribedPerspective) -> float:
    return each.importance or 0.0


def test_experts_reach_the_optimum_and_one_forest_does_not(
    found: tuple[Path, Evolution], planted: Planted
) -> None:
    """Within the sampling error of the flipped votes; without experts it is near chance."""
    folder, evolution = found
    run = Run(planted_config(folder, planted, **SETTINGS))
    held_out = split_cases(run.store.inputs, run.config.evolve).held_out
    ceiling = planted.ceiling([case.query_id for case in held_out])
    assert 0.85 < ceiling < 0.95
    with_experts, without = accuracy(evolution, WITH), accuracy(evolution, WITHOUT)
    error = math.sqrt(ceiling * (1.0 - ceiling) / len(held_out))
    assert with_experts.value > ceiling - 3.0 * error
    # Ties can be predicted without the query type; the winner cannot.
    ties = sum(case.gold == 0 for case in held_out) / len(held_out)
    assert without.high < with_experts.low
    assert without.value < ties + (1.0 - ties) / 2.0 + 0.08
    gain = next(arm.gain for arm in evolution.figures.arms if arm.name == WITH)
    assert gain.low > 0.2
    assert set(evolution.figures.experts) == {2}


async def test_routing_separates_query_types(
    found: tuple[Path, Evolution], planted: Planted
) -> None:
    """Each expert judges one query type."""
    folder, evolution = found
    config = planted_config(folder, planted, **SETTINGS)
    run, evaluator = Run(config), load_evaluator(evolution.path)
    cases = gather_cases(run.store.inputs, config.evolve)
    asker = PerspectiveAsker(
        run.store, config, run.observer, run.stop, asking="each", make_engine=Engines().make
    )
    table = (await asker.ask(evaluator.about_queries, cases)).table
    expert = evaluator.router.route(table.traits).tolist()
    sorts = Counter(
        (one, planted.is_sum(case.query_id)) for one, case in zip(expert, cases, strict=True)
    )
    purest = sum(max(sorts[one, True], sorts[one, False]) for one in set(expert))
    assert purest / len(cases) > 0.95
    assert len(set(expert)) == 2


def test_confident_verdicts_are_right_more_often(found: tuple[Path, Evolution]) -> None:
    """The least confident verdicts are right less often than all."""
    confidence = found[1].confidence
    assert confidence is not None
    everything, surer = confidence.rows[0].accuracy, confidence.rows[2].accuracy
    assert everything is not None
    assert surer is not None
    assert surer.value >= everything.value


def test_second_command_asks_only_added_perspectives(
    found: tuple[Path, Evolution], planted: Planted
) -> None:
    """A perspective added between two commands is the only thing asked."""
    folder, evolution = found
    again = Engines()
    assert encode(evolve(folder, planted, again).figures) == encode(evolution.figures)
    assert (again.asked, again.written) == ({}, {})
    pool = evolution.pool_path
    pool.write_text(pool.read_text() + "  - text: Is the response short?\n")
    after = evolve(folder, planted, again, rounds=len(evolution.rounds))
    assert again.asked
    assert not again.written
    assert all("Is the response short?" in prompt for _, prompt in again.asked)
    assert after.pool.new_people == 1
    added = [each for each in read_pool(pool) if each.origin is PerspectiveOrigin.PERSON]
    assert [each.importance is not None and each.importance > 0.0 for each in added] == [True]


def test_shuffled_votes_give_no_gain(tmp_path: Path) -> None:
    """No arm is significantly better than the most common outcome."""
    planted = make_planted(40, shuffled=True)
    found = evolve(tmp_path, planted, Engines(), rounds=2)
    shares = Counter(vote["winner"] for vote in planted.votes)
    best_guess = max(shares.values()) / len(planted.votes)
    for name in (WITH, WITHOUT):
        assert accuracy(found, name).low < best_guess + 0.02
        assert accuracy(found, name).value < best_guess + 0.08

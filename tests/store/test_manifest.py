"""The manifest and the plan: all facts round-trip, and old files are read."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from rocketeval.config import PriceConfig
from rocketeval.errors import StoreError
from rocketeval.prices import PricedUsage
from rocketeval.store.codec import decode, encode
from rocketeval.store.manifest import (
    Bill,
    BillColumn,
    ChecklistFacts,
    Composition,
    DecisionFacts,
    EvaluatorFacts,
    EvolveFacts,
    GradeFacts,
    LearnedFacts,
    LoadFacts,
    Manifest,
    Plan,
    QuestionCounts,
    RayFacts,
    RefusalCounts,
    ScoreFacts,
    StageFacts,
    Stages,
    SubDimensionCounts,
)
from rocketeval.store.run import RunStore

USAGE = PricedUsage(3, 100, 20, 5, 0.25, "USD")
COLUMN = BillColumn(3, 100, None, 5, 0.25, 1.5)
EVALUATOR = EvaluatorFacts(
    file="e.npz",
    hash="ab",
    task="pairs",
    asking="each",
    about_responses=4,
    about_queries=1,
    experts=2,
)
SHEET = GradeFacts(tasks=2, judged=2, usage=USAGE)
FULL = Stages(
    load=LoadFacts(queries=3, responses=5, candidates=2, left_out_by_config={"votes": 1}),
    checklist=ChecklistFacts(
        composition=Composition(
            (SubDimensionCounts("a", "b", 1, 2, 3, {"duplicate": 1}, 5),), 4, 1, {"s": "why"}
        ),
        refusals=RefusalCounts(4, 1, 1, {"not a question": 1}, 0),
        unknown={"x": None, "y": "z"},
        unknown_count=2,
        failures={"q": "why"},
        usage=USAGE,
        not_used=("author",),
    ),
    grade=GradeFacts(
        tasks=6,
        responses_unfinished=1,
        usage=USAGE,
        usage_of_ledger=USAGE,
        bill=Bill(COLUMN, COLUMN, "sampled", 1.25, "USD", repriced=True),
        asked_as=None,
        ray=RayFacts("ray", 6, 1, 0, 0),
        evaluator=EVALUATOR,
        questions=QuestionCounts(12, 4, 3.0),
        sheets={"each": SHEET},
    ),
    score=ScoreFacts(
        scores=5,
        statuses={"ok": 9},
        scorer="evaluator",
        basis={"unseen": 5},
        learned=LearnedFacts(labels=3, fitted=("a",), held_out=()),
        evaluator=DecisionFacts(
            **encode(EVALUATOR),
            decided=3,
            undecided=0,
            to_person=1,
            threshold=0.5,
            clipped=0,
            learned_from_known=True,
        ),
    ),
    rank=StageFacts(seconds=0.5),
    evolve=EvolveFacts(rounds=2, path="evaluator.npz"),
)


def test_facts_of_every_stage_round_trip() -> None:
    """Nested records, tuples and omitted values; the same file is written again."""
    written = json.loads(json.dumps(encode(FULL)))
    assert decode(Stages, written) == FULL
    assert encode(decode(Stages, written)) == written


def test_stage_that_has_not_run_is_not_written() -> None:
    """Facts that only some runs have are left out of the others."""
    assert set(encode(FULL)) == {"load", "checklist", "grade", "score", "rank", "evolve"}
    assert list(FULL.made()) == ["load", "checklist", "grade", "score", "rank", "evolve"]
    plain = encode(SHEET)
    assert not {"finished", "seconds", "asked_as", "ray", "sheets"} & set(plain)
    assert plain["bill"] is None
    assert encode(FULL.grade)["asked_as"] is None
    assert encode(LearnedFacts()) == {}


def test_finish_time_comes_first_and_seconds_last() -> None:
    """People read the manifest from the top."""
    for facts in (FULL.load, FULL.checklist, FULL.grade, FULL.score, FULL.rank):
        names = list(encode(replace(facts, finished="2026-01-01", seconds=1.0)))
        assert (names[0], names[-1]) == ("finished", "seconds")


def test_manifest_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    """Without a schema, without later facts, and with one that no longer exists."""
    grade = {"tasks": 6, "unfinished": 2, "judged": 4, "usage": encode(USAGE), "gone": 1}
    old = {"run_id": "x", "created": "2025", "stages": {"grade": grade}}
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(old))
    store = RunStore(tmp_path)
    found = store.manifest()
    assert (found.run_id, found.judge, list(found.stages.made())) == ("x", None, ["grade"])
    assert found.stages.grade.responses_unfinished is None
    assert found.stages.grade.paid == USAGE
    store.record_stage("rank", StageFacts(seconds=1.0))
    written = json.loads(path.read_text())
    assert written["schema"] == Manifest.SCHEMA
    assert written["stages"]["grade"]["unfinished"] == 2
    assert "responses_unfinished" not in written["stages"]["grade"]
    assert set(written["stages"]["rank"]) == {"finished", "seconds"}


@pytest.mark.parametrize(
    "content", ["[]", '{"schema": 99}', '{"stages": {"grade": {"tasks": "x"}}}']
)
def test_invalid_manifest_is_reported_as_damaged(tmp_path: Path, content: str) -> None:
    """It is neither an empty manifest nor a traceback."""
    (tmp_path / "manifest.json").write_text(content)
    with pytest.raises(
        StoreError, match=r"manifest\.json was written by (another|a newer) version"
    ):
        RunStore(tmp_path).manifest()


def test_plan_round_trips(tmp_path: Path) -> None:
    """With its price and time; plans without a price are read too."""
    whole = dict.fromkeys(Plan.__dataclass_fields__, 0)
    texts = {"made_for": "a", "judge": "j", "judge_digest": None, "currency": "", "rate_from": None}
    known = {"tokens_known": "exact", "created": "", "estimated": None, "notes": []}
    plan = decode(Plan, {**whole, **texts, **known, "price": None, "author_price": None})
    plan = replace(plan, price=PriceConfig(prompt=0.5, completion=1.0))
    store = RunStore(tmp_path)
    assert store.read_if_made(Plan) is None
    store.save_plan(plan)
    found = store.read(Plan)
    assert found.created
    assert replace(found, created="") == plan
    path = tmp_path / "plan.json"
    old = json.loads(path.read_text())
    for name in ("schema", "price", "author_price"):
        del old[name]
    path.write_text(json.dumps(old))
    assert store.read(Plan).price is None

"""Whole runs with weights, penalties, levels, checks and material, on the scripted engine."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from reference.contents import report_content
from rocketeval.checklists.rubric import NEED_WEIGHTS
from rocketeval.compare.stage import compare_candidates
from rocketeval.config import RunConfig, parse_config
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError, ChecklistError, ConfigError
from rocketeval.explain.stage import Explanation
from rocketeval.judges.runs import open_run
from rocketeval.pipeline import Run
from rocketeval.ranking.stage import read_ranking
from rocketeval.report.run_diff import diff_runs
from rocketeval.scoring.base import SCORERS
from rocketeval.store.failures import FAILURES, read_failures
from support.in_process import cli

ITEMS: list[Any] = [
    "Is the response polite?",
    {"text": "Does the response insult the user?", "weight": -4},
    {"text": "How clear is the response?", "weight": 2, "levels": ["unclear", "fair", "clear"]},
    {"text": "Says 42", "check": {"fn": "contains", "args": {"text": "42"}}},
    {"text": "Is the date right?", "na": True},
    {"text": "Is the response supported by the context?", "uses": ["context"], "weight": 3},
]


def make(folder: Path, items: list[Any] = ITEMS, query: dict[str, Any] | None = None) -> RunConfig:
    """Write a benchmark of three queries and two candidates, and return its config."""
    data = folder / "data"
    (data / "responses").mkdir(parents=True, exist_ok=True)
    more = {"context": ["The answer is 42."], "reference": "42"} if query is None else query
    rows = [{"id": f"q{n}", "text": f"Question {n}?", "topic": n, **more} for n in range(3)]
    lists = [{"query_id": f"q{n}", "items": items} for n in range(3)]
    for name, lines in (("queries", rows), ("checklists", lists)):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    for name, text in (("good", "It is 42."), ("bad", "No idea.")):
        answers = [{"query_id": f"q{n}", "text": f"{text} ({n})"} for n in range(3)]
        file = data / "responses" / f"{name}.jsonl"
        file.write_text("".join(json.dumps(line) + "\n" for line in answers))
    return parse_config(
        {
            "benchmark": {"path": str(data)},
            "judge": {"engine": "scripted", "model": "s"},
            "ranking": {"bootstrap": 50},
            "output": str(folder / "runs"),
            "cache": None,
        }
    )


def p_yes(prefix: str, suffix: str) -> float:
    prompt = prefix + suffix
    if "insult" in suffix:
        return 0.75
    if "supported" in suffix:
        return 0.9 if "42" in prompt.split("Response of the assistant")[1] else 0.2
    return 0.5


def p_na(prefix: str, suffix: str) -> float:
    return 0.8


def judge() -> ScriptedEngine:
    return ScriptedEngine(p_yes, model="s", p_na=p_na)


async def run(
    config: RunConfig, engine: ScriptedEngine | None = None
) -> tuple[Run, ScriptedEngine]:
    engine = engine or judge()
    made = Run(config, judge=engine)
    await made.all()
    return made, engine


def scores(made: Run) -> dict[tuple[str, str], dict[str, Any]]:
    rows = pq.read_table(made.store.path / "scores.parquet").to_pylist()
    return {(row["query_id"], row["candidate"]): row for row in rows}


async def test_scores_are_the_written_out_rule(tmp_path: Path) -> None:
    """Weights, the penalty, the check and the applicability are in the score."""
    made, engine = await run(make(tmp_path))
    # polite 0.5, insult turned around 0.25, clear 0.5, check 1 or 0, date 0.5 at 0.2, supported
    expected = {
        "good": (0.5 + 4 * 0.25 + 2 * 0.5 + 1.0 + 0.2 * 0.5 + 3 * 0.9) / (11.2),
        "bad": (0.5 + 4 * 0.25 + 2 * 0.5 + 0.0 + 0.2 * 0.5 + 3 * 0.2) / (11.2),
    }
    for (_, candidate), row in scores(made).items():
        assert row["score"] == pytest.approx(1 + 9 * expected[candidate])
        assert row["score_low"] <= row["score"] <= row["score_high"]
        assert row["applicable"] == pytest.approx(5.2)
    assert engine.items_asked == 3 * 2 * 5
    facts = made.store.manifest().stages.score
    assert (facts.missing_answers, facts.not_applicable) == (0, 6)


async def test_weights_are_scored_again_without_asking(tmp_path: Path) -> None:
    """Changed weights, tags and plain texts as objects ask the judge nothing."""
    config = make(tmp_path)
    first, engine = await run(config)
    before, asked = scores(first), engine.items_asked
    changed = [{"text": ITEMS[0], "weight": 5, "tags": ["x"]}, *ITEMS[1:]]
    make(tmp_path, changed)
    again, engine = await run(config, engine)
    assert engine.items_asked == asked
    assert scores(again)["q0", "good"]["judgment"] == before["q0", "good"]["judgment"]
    assert scores(again)["q0", "good"]["score"] != before["q0", "good"]["score"]


async def test_only_changed_items_are_asked_again(tmp_path: Path) -> None:
    """A new level asks one item per response; the others are reused."""
    config = make(tmp_path)
    _, engine = await run(config)
    asked = engine.items_asked
    levels = {**ITEMS[2], "levels": ["unclear", "fair", "good", "clear"]}
    make(tmp_path, [*ITEMS[:2], levels, *ITEMS[3:]])
    _, engine = await run(config, engine)
    assert engine.items_asked - asked == 6


async def test_material_counts_only_where_it_is_used(tmp_path: Path) -> None:
    """A new reference asks nothing if no item uses it; a new context asks again."""
    config = make(tmp_path)
    _, engine = await run(config)
    asked = engine.items_asked
    make(tmp_path, query={"context": ["The answer is 42."], "reference": "43", "topic": "new"})
    _, engine = await run(config, engine)
    assert engine.items_asked == asked
    make(tmp_path, query={"context": ["The answer is 41."], "reference": "43"})
    _, engine = await run(config, engine)
    assert engine.items_asked > asked


async def test_plain_runs_ask_nothing_after_material_is_added(tmp_path: Path) -> None:
    """A run of plain items keeps its judgments and scores when the data gains new fields."""
    config = make(tmp_path, ["Is it short?", "Is it right?"], query={})
    first, engine = await run(config)
    asked, bytes_before = engine.items_asked, (first.store.path / "scores.parquet").read_bytes()
    make(tmp_path, ["Is it short?", "Is it right?"], query={"context": ["c"], "system": "s"})
    again, engine = await run(config, engine)
    assert engine.items_asked == asked
    assert (again.store.path / "scores.parquet").read_bytes() == bytes_before
    notes = again.store.manifest().stages.checklist.notes
    assert any("context" in note and "does not see" in note for note in notes)


async def test_config_shows_material_to_every_item(tmp_path: Path) -> None:
    """`method.options.shows` works for plain items, where the query has the material."""
    config = make(tmp_path, ["Is it right?"])
    shown: list[str] = []

    def record(prefix: str, suffix: str) -> float:
        shown.append(prefix + suffix)
        return 0.5

    raw = config.model_dump(mode="json")
    raw["method"]["options"] = {"shows": ["context", "reference", "system"]}
    await run(parse_config(raw), ScriptedEngine(record, model="s"))
    assert len(shown) == 6
    assert all("The answer is 42." in prompt and "reference response" in prompt for prompt in shown)
    assert not any("System prompt" in prompt for prompt in shown)


async def test_unknown_check_is_named_with_query_and_item(tmp_path: Path) -> None:
    """A check that does not exist fails its query before the judge is asked."""
    config = make(tmp_path, [{"text": "x", "check": {"fn": "rm_rf"}}])
    with pytest.raises(Exception, match="item 1: there is no check 'rm_rf'"):
        await run(config)


async def test_benchmark_cannot_name_a_python_function(tmp_path: Path) -> None:
    """An import path in a checklist is refused with file, line and item."""
    config = make(tmp_path, [{"text": "x", "check": {"fn": "os:system"}}])
    with pytest.raises(BenchmarkError, match=r"checklists.jsonl:1: item 1 .* Python function"):
        await run(config)


async def test_points_of_a_run(tmp_path: Path) -> None:
    """The scorer `points` may leave the scale for a response, but not for a candidate's mean."""
    raw = make(
        tmp_path,
        [
            {"text": "Does the response insult the user?", "weight": -4},
            {"text": "Is it x?", "weight": 1},
        ],
    ).model_dump(mode="json")
    raw["scorer"] |= {"kind": "points", "scale": [0, 1]}
    raw["ranking"].pop("tie_margin")
    made, _ = await run(parse_config(raw))
    assert {row["score"] for row in scores(made).values()} == {-2.5}
    ranking = json.loads((made.store.path / "ranking.json").read_text())
    assert [row["mean_score"]["value"] for row in ranking["rows"]] == [0.0, 0.0]


@pytest.mark.parametrize(
    ("kind", "weight", "needed"),
    [("points", -1, "a positive weight"), ("mean", 0, "a weight other than 0")],
)
async def test_weights_that_give_no_score_are_refused(
    tmp_path: Path, kind: str, weight: int, needed: str
) -> None:
    """Plan and run refuse them before the judge is asked; some such queries are counted."""
    wrong = [{"text": "Is it rude?", "weight": weight}, {"text": "Is it wrong?", "weight": weight}]
    raw = make(tmp_path, wrong).model_dump(mode="json")
    raw["scorer"]["kind"] = kind
    config, engine = parse_config(raw), judge()
    made = Run(config, judge=engine)
    for step in (made.plan, made.plan_offline, made.all):
        with pytest.raises(ChecklistError, match=rf"no item has {needed}\. .*: 3 \('q0', 'q1'"):
            await step()
    assert engine.items_asked == 0
    lists = tmp_path / "data" / "checklists.jsonl"
    rows = [*lists.read_text().splitlines()[:2], '{"query_id": "q2", "items": ["Is it x?"]}']
    lists.write_text("\n".join(rows) + "\n")
    plan = await Run(config, judge=judge()).plan()
    (note,) = [note for note in plan.notes if needed in note]
    assert note.endswith("2 ('q0', 'q1').")
    partly, _ = await run(config)
    assert note in partly.store.manifest().stages.checklist.notes


def test_every_scorer_but_points_needs_weights() -> None:
    """A new built-in scorer is checked, too; one of a plugin may ignore weights."""
    assert {*NEED_WEIGHTS, "points"} == {
        name for name in SCORERS.names() if not SCORERS.has_plugin(name)
    }


async def test_points_by_group_and_pair(tmp_path: Path) -> None:
    """Groups and comparisons follow the rule of the run: earned over possible points."""
    items = [
        {"text": "Does the response insult the user?", "weight": -1, "group": "tone"},
        {"text": "Is it x?", "weight": 2, "group": "tone"},
        {"text": "Is it wrong?", "weight": -3, "group": "harm"},
    ]
    raw = make(tmp_path, items).model_dump(mode="json")
    raw["scorer"] |= {"kind": "points", "scale": [0, 1]}
    raw["ranking"].pop("tie_margin")
    answers = {"insult": 0.2, "Is it x?": 0.9}

    def judged(prefix: str, item: str) -> float:
        harm = 0.9 if "No idea" in prefix else 0.1
        return next((p for words, p in answers.items() if words in item), harm)

    config = parse_config(raw)
    made, _ = await run(config, ScriptedEngine(judged, model="s"))
    explained = made.store.read(Explanation)
    means = {group.group: group.candidates[0].mean for group in explained.groups}
    assert means["tone"] is not None
    # 2 * 0.9 - 1 * 0.2 of 2 points; the mean of turned answers would be 0.87.
    assert means["tone"].value == pytest.approx(0.8)
    assert means["harm"] is None
    run_folder = str(made.store.path)
    for call in (("explain",), ("export", "--to", "markdown", "--what", "groups")):
        shown = " ".join(cli(tmp_path, call[0], run_folder, *call[1:]).stdout.split())
        assert "Points earned over the points" in shown
        assert "Mean answer" not in shown
    found = compare_candidates(made.store, config, "good", "bad", None, 0.95)
    # 0.65 and -0.55 points: only shown means are clipped, as in the tests of the ranking.
    assert found.effect.value == pytest.approx(1.2)
    assert found.wins == 3
    judged_run = open_run(made.store.path)
    changes = {one.candidate: one for one in diff_runs(judged_run, judged_run).candidates}
    shown_means = {row.candidate: row.mean_score.value for row in read_ranking(made.store).rows}
    assert changes["bad"].now == changes["bad"].before == shown_means["bad"] == 0.0
    assert changes["good"].now == pytest.approx(shown_means["good"])


async def test_plan_names_missing_references(tmp_path: Path) -> None:
    """The plan has the notes that the run prints, before anything is spent."""
    items = [{"text": "Right number", "check": {"fn": "number"}}, ITEMS[0]]
    config = make(tmp_path, items, query={})
    plan = await Run(config, judge=ScriptedEngine(p_yes, model="s")).plan()
    (note,) = [note for note in plan.notes if "reference that a check" in note]
    made, _ = await run(config)
    assert note in made.store.manifest().stages.checklist.notes
    (tmp_path / "rocketeval.yaml").write_text(json.dumps(config.model_dump(mode="json")))
    shown = await asyncio.to_thread(cli, tmp_path, "plan", "--offline")
    assert "reference that a check" in " ".join(shown.stdout.split())


async def test_context_of_responses_is_kept_and_counted(tmp_path: Path) -> None:
    """A response's own context reaches the judge, and changing it asks only that response again."""
    config = make(tmp_path, [ITEMS[5]], query={})
    path = tmp_path / "data" / "responses" / "good.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]

    def write(passage: str) -> None:
        for row in rows:
            row["context"] = [passage]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("It is 42.")
    made, engine = await run(config)
    stored = {one.candidate: one.context for one in made.store.inputs.responses()}
    assert stored == {"good": ("It is 42.",), "bad": None}
    notes = made.store.manifest().stages.checklist.notes
    assert any("neither they nor their query" in note and ": 3 ('bad' on" in note for note in notes)
    asked = engine.items_asked
    write("It is 43.")
    _, engine = await run(config, engine)
    assert engine.items_asked - asked == 3


async def test_learned_scorers_see_turned_values(tmp_path: Path) -> None:
    """A scorer that learns from labels works on rubrics, and weighs a penalty's absence as good."""
    config = make(tmp_path)
    labels = [
        {"query_id": f"q{n}", "candidate": name, "value": value}
        for n in range(3)
        for name, value in (("good", 9), ("bad", 2))
    ]
    file = tmp_path / "data" / "labels.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in labels))
    raw = config.model_dump(mode="json")
    raw["ranking"].pop("tie_margin")
    raw["scorer"] |= {"kind": "isotonic", "hold_out": 0.0, "folds": 2}
    made, _ = await run(parse_config(raw))
    found = scores(made)
    assert all(row["score"] is not None for row in found.values())
    assert "applicable" in found["q0", "good"]
    assert "score_low" not in found["q0", "good"]


async def test_report_says_what_answers_mean(tmp_path: Path) -> None:
    """Levels, checks and inapplicable items are in words; a penalty's mean is the one answered."""
    made, _ = await run(make(tmp_path))
    page = report_content((made.store.path / "report.html").read_text())
    assert "expected level" in page["head"]["answers_are"]
    block = page["blocks"]["query-0"]
    assert block["rubric"]["levels"][2] == ["unclear", "fair", "clear"]
    said = {
        (candidate, item): (words, na) for candidate, item, words, na in block["rubric"]["answers"]
    }
    good = [each["name"] for each in page["head"]["candidates"]].index("good")
    assert said[good, 3] == ("passed", None)
    assert said[1 - good, 3] == ("failed", None)
    assert said[good, 4] == ("", 0.8)
    assert said[good, 2][0].endswith("of 3, nearest: fair")
    assert block["figures"][1]["mean"] == 0.75
    assert [figure.get("check", False) for figure in block["figures"]] == [False] * 3 + [True] + [
        False
    ] * 2


async def test_report_explains_scores_by_the_rubric(tmp_path: Path) -> None:
    """Kinds of answers are counted, and no sentence speaks of equal weights or a plain mean."""
    grouped = [
        {**(item if isinstance(item, dict) else {"text": item}), "group": "g"} for item in ITEMS
    ]
    made, _ = await run(make(tmp_path, grouped))
    head = report_content((made.store.path / "report.html").read_text())["head"]
    assert head["answer_kinds"] == [["yes_no", 24], ["scale", 6], ["check", 6]]
    assert sum(count for _, count in head["answer_kinds"]) == dict(head["sizes"])["answers"]
    notes = " ".join(head["notes"])
    for words in (head["groups_are"], notes):
        assert "by their weights" in words
        assert "penalty counts one minus its answer" in words
        assert "as far as it applies" in words
        assert "equal weight" not in words
    assert "expected level" in notes
    assert "code check" in notes
    assert head["score_is"] == "weighted mean answer, penalties reversed, rescaled"
    shown = cli(tmp_path, "explain", str(made.store.path)).stdout
    assert head["groups_are"] in " ".join(shown.split())


@pytest.mark.parametrize(
    ("check", "asked_again"),
    [
        ({"fn": "equals_reference"}, True),
        ({"fn": "number"}, True),
        ({"fn": "number", "args": {"value": 42}}, False),
        ({"fn": "mine"}, True),
    ],
)
async def test_new_reference_checks_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, check: dict[str, Any], asked_again: bool
) -> None:
    """A check that reads the reference gives a new result for a new one, also with a cache."""
    (tmp_path / "own_reference_check.py").write_text("def f(r, ref): return ref in r\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    items = [ITEMS[0], {"text": "As the reference says", "check": check}]
    functions = {"functions": {"mine": "own_reference_check:f"}}

    def config(reference: str) -> RunConfig:
        made = make(tmp_path, items, query={"reference": reference})
        more = {"cache": str(tmp_path / "cache"), "method": {"options": functions}}
        return parse_config({**made.model_dump(mode="json", exclude_unset=True), **more})

    first, engine = await run(config("It is 42. (0)"))
    asked, before = engine.items_asked, scores(first)
    again, engine = await run(config("nothing: 7"), engine)
    assert (engine.items_asked > asked) is asked_again
    assert (scores(again)["q0", "good"] != before["q0", "good"]) is asked_again


async def test_checks_without_their_reference_are_named(tmp_path: Path) -> None:
    """A library check whose query has no reference is in the notes of the checklists."""
    items = [ITEMS[0], {"text": "As the reference says", "check": {"fn": "number"}}]
    made, _ = await run(make(tmp_path, items, query={}))
    (note,) = made.store.manifest().stages.checklist.notes
    assert "without the reference that a check of theirs needs: 3 ('q0'" in note


async def test_check_out_of_time_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A check over its time limit is no judgment; the next run repeats the check, not the judge."""
    slow = tmp_path / "slow"
    (tmp_path / "own_slow_check.py").write_text(
        "import os, time\n"
        "def f(r, ref):\n"
        f"    if 'idea' in r and os.path.exists({str(slow)!r}):\n"
        "        time.sleep(60)\n"
        "    return True\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    items = [ITEMS[0], {"text": "Quick", "check": {"fn": "mine"}}]

    def config(name: str) -> RunConfig:
        options = {"functions": {"mine": "own_slow_check:f"}, "check_seconds": 1}
        more = {"name": name, "cache": str(tmp_path / "cache"), "method": {"options": options}}
        made = make(tmp_path, items, query={})
        return parse_config({**made.model_dump(mode="json", exclude_unset=True), **more})

    slow.touch()
    made, engine = await run(config("one"))
    assert len(made.store.finished()) == 3
    failures = read_failures(made.store.path / FAILURES)
    assert len(failures) == 3
    assert all("item 2: the check failed: it took longer than 1 s" in f.reason for f in failures)
    slow.unlink()
    asked = engine.items_asked
    made, engine = await run(config("one"), engine)
    assert engine.items_asked == asked
    assert len(made.store.finished()) == 6
    assert scores(made)["q0", "bad"]["score"] == pytest.approx(1 + 9 * 0.75)
    other, engine = await run(config("two"), engine)
    assert (len(other.store.finished()), engine.items_asked) == (6, asked)


async def test_checks_out_of_time_are_not_the_judges_fault(tmp_path: Path) -> None:
    """If a check takes too long for every response, the error says so and what to do."""
    items = [ITEMS[0], {"text": "Slow", "check": {"fn": "regex", "args": {"pattern": r"(.+)+\n$"}}}]
    config = make(tmp_path, items, query={})
    data = tmp_path / "data" / "responses" / "good.jsonl"
    rows = [{"query_id": f"q{n}", "text": "a" * 60} for n in range(3)]
    data.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (data.parent / "bad.jsonl").unlink()
    with pytest.raises(ConfigError, match="exceeded its limits for all 3 responses"):
        await run(config)


async def test_wrong_items_of_a_benchmark_are_left_out(tmp_path: Path) -> None:
    """A check that cannot run costs its item, not the query's checklist, and is counted."""
    wrong = [
        {"text": "Named group", "check": {"fn": "regex", "args": {"pattern": "(?<n>4)2"}}},
        {"text": "Schema", "check": {"fn": "json_schema", "args": {"schema": {"type": "objekt"}}}},
    ]
    config = make(tmp_path, [wrong[0], *ITEMS[:2], wrong[1]], query={})
    planned = await Run(config, judge=judge()).plan()
    assert planned.items == 3 * 2 * 2
    made, engine = await run(config)
    assert engine.items_asked == 3 * 2 * 2
    assert made.store.inputs.checklists()["q0"].items == (
        "Is the response polite?",
        ITEMS[1]["text"],
    )
    facts = made.store.manifest().stages.checklist
    assert not facts.failures
    (note,) = facts.notes
    assert note.startswith("items left out because they cannot be checked: 6 ('q0', item 1: ")
    assert "not a JSON schema" in note

"""Rubric benchmarks in their published form, on rows written for these tests."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.base import check_benchmark, open_benchmark
from rocketeval.benchmarks.load import load_inputs
from rocketeval.config import BenchmarkConfig, parse_config
from rocketeval.errors import BenchmarkError
from rocketeval.items import Checklist, ItemKind
from rocketeval.lint.static import check_checklists
from rocketeval.records import Query
from rocketeval.store.run import RunStore

HEALTH = {
    "prompt_id": "h1",
    "prompt": [
        {"role": "user", "content": "I have a headache."},
        {"role": "assistant", "content": "Since when?"},
        {"role": "user", "content": "Since Monday."},
    ],
    "rubrics": [
        {"criterion": "Asks about fever.", "points": 7, "tags": ["axis:completeness", "level:x"]},
        {"criterion": "Recommends a dangerous dose.", "points": -9, "tags": ["axis:accuracy"]},
    ],
    "example_tags": ["theme:context_seeking"],
    "ideal_completions_data": {"ideal_completion": "Do you have a fever?"},
    "canary": "x",
}
BIGGEN = {
    "capability": "reasoning",
    "task": "sums",
    "instance_idx": 3,
    "system_prompt": "Be brief.",
    "input": "1+1?",
    "reference_answer": "2",
    "score_rubric": {
        "criteria": "Is it right?",
        **{f"score{level}_description": f"Level {level}." for level in range(1, 6)},
    },
    "atomic_checklist": ["Does the response say 2?"],
    "background_knowledge": ["Numbers."],
}
WRITING = {
    "index": 4,
    "domain1": "Finance",
    "domain2": "Report",
    "query": "Write a report.",
    "checklist": [
        {
            "name": "Tone",
            "criteria_description": "Formal and neutral.",
            **{band: f"Band {band}." for band in ("1-2", "3-4", "5-6", "7-8", "9-10")},
        }
    ],
}
INFO = {
    "id": "i1",
    "input": "Berlin",
    "category": "Geo",
    "instruction": "Name the country.",
    "decomposed_questions": ["Is it a country?", "Is it Germany?"],
    "subset": "Easy_set",
    "question_label": [["Format"], ["Content"]],
}


def reader(folder: Path, kind: str, row: dict[str, Any], **options: Any) -> Any:
    """Return a reader of a file with one row and one response."""
    (folder / "rubrics.jsonl").write_text(json.dumps(row) + "\n")
    responses = folder / "answers"
    responses.mkdir(exist_ok=True)
    config = BenchmarkConfig(kind=kind, path=folder / "rubrics.jsonl", options=options)
    benchmark = open_benchmark(config)
    (query,) = benchmark.queries()
    line = json.dumps({"query_id": query.id, "text": "An answer."})
    (responses / "mine.jsonl").write_text(line + "\n")
    return open_benchmark(
        config.model_copy(update={"options": {"responses": "answers", **options}})
    )


def only(benchmark: Any) -> tuple[Query, Checklist]:
    check_benchmark(benchmark)
    (query,), (checklist,) = list(benchmark.queries()), list(benchmark.checklists())
    return query, checklist


def test_healthbench(tmp_path: Path) -> None:
    """Points are weights, the axis is the group, and the conversation is the history."""
    query, made = only(reader(tmp_path, "healthbench", HEALTH))
    assert (query.id, query.text, len(query.history)) == ("h1", "Since Monday.", 2)
    assert (query.reference, query.category) == ("Do you have a fever?", "context_seeking")
    assert [detail.weight for detail in made.every_detail] == [7.0, -9.0]
    assert made.groups == ("completeness", "accuracy")
    assert made.items[0] == "Does the response meet this criterion? Asks about fever."
    assert made.every_detail[0].tags == ("axis:completeness", "level:x")


def test_biggen(tmp_path: Path) -> None:
    """The rubric is a scale that shows reference and system prompt; the checklist is yes/no."""
    query, made = only(reader(tmp_path, "biggen", BIGGEN))
    assert (query.id, query.system, query.reference) == ("reasoning_sums_3", "Be brief.", "2")
    assert query.metadata["background_knowledge"] == ["Numbers."]
    rubric, atomic = made.every_detail
    assert rubric.kind is ItemKind.SCALE
    assert rubric.levels == tuple(f"Level {level}." for level in range(1, 6))
    assert rubric.uses == ("system", "reference")
    assert (atomic.kind, atomic.uses) == (ItemKind.YES_NO, ("system",))
    _, alone = only(reader(tmp_path, "biggen", BIGGEN, items=["atomic_checklist"]))
    assert alone.items == ("Does the response say 2?",)


def test_writingbench(tmp_path: Path) -> None:
    """The five bands are the levels of each criterion."""
    query, made = only(reader(tmp_path, "writingbench", WRITING))
    assert (query.id, query.category) == ("4", "Finance")
    assert made.items == ("Tone: Formal and neutral.",)
    assert made.every_detail[0].levels[-1] == "Band 9-10."


def test_infobench(tmp_path: Path) -> None:
    """Questions are plain yes/no items with their labels as tags."""
    query, made = only(reader(tmp_path, "infobench", INFO))
    assert query.text == "Name the country.\n\nBerlin"
    assert made.items == ("Is it a country?", "Is it Germany?")
    assert [detail.tags for detail in made.every_detail] == [("Format",), ("Content",)]


@pytest.mark.parametrize(
    ("row", "part"),
    [
        (
            {**HEALTH, "prompt": [{"role": "assistant", "content": "Hi"}]},
            "does not end with a user",
        ),
        ({**HEALTH, "rubrics": [{"criterion": "x", "points": "many"}]}, "entry 1 of 'rubrics'"),
        ({**HEALTH, "rubrics": ["x"]}, "entry 1 of 'rubrics' is not an object"),
    ],
)
def test_mistakes_name_the_row(tmp_path: Path, row: dict[str, Any], part: str) -> None:
    """A wrong row is refused with its file, line and entry."""
    (tmp_path / "h.jsonl").write_text(json.dumps(row))
    benchmark = open_benchmark(BenchmarkConfig(kind="healthbench", path=tmp_path / "h.jsonl"))
    with pytest.raises(BenchmarkError, match=part):
        list(benchmark.queries()) + list(benchmark.checklists())


def test_responses_must_be_named(tmp_path: Path) -> None:
    """Without responses the benchmark can be planned with assumed ones, but not run."""
    (tmp_path / "h.jsonl").write_text(json.dumps(HEALTH))
    path = tmp_path / "h.jsonl"
    bare = open_benchmark(BenchmarkConfig(kind="healthbench", path=path))
    with pytest.raises(BenchmarkError, match="no responses of its own"):
        list(bare.responses())
    raw = {
        "benchmark": {"kind": "healthbench", "path": str(path), "options": {"assume": 100}},
        "judge": {"engine": "scripted", "model": "s"},
        "output": str(tmp_path / "runs"),
    }
    config = parse_config(raw)
    (assumed,) = open_benchmark(config.benchmark).responses()
    assert len(assumed.text) == 100
    with pytest.raises(BenchmarkError, match="plan"):
        load_inputs(RunStore(config.run_path), config)


def test_all_of_biggen_loads_and_lints() -> None:
    """775 instances, each with a five-level rubric, and 3,279 atomic items."""
    path = Path(os.environ.get("ROCKETEVAL_SHARED_DATA", "none")) / "biggen" / "instances.jsonl.gz"
    if not path.exists():
        pytest.skip("BiGGen is absent; set ROCKETEVAL_SHARED_DATA")
    benchmark = open_benchmark(BenchmarkConfig(kind="biggen", path=path, options={"assume": 500}))
    queries = {query.id: query for query in benchmark.queries()}
    made = list(benchmark.checklists())
    kinds = [detail.kind for checklist in made for detail in checklist.every_detail]
    assert (len(queries), len(made)) == (775, 775)
    assert (kinds.count(ItemKind.SCALE), kinds.count(ItemKind.YES_NO)) == (775, 3279)
    assert all(query.reference for query in queries.values())
    found = check_checklists(made, queries)
    assert found.items == 4054
    assert sum(finding.kind == "levels_overlap" for finding in found.findings) < 10


@pytest.mark.parametrize(
    ("kind", "row", "part"),
    [
        (
            "healthbench",
            {
                **HEALTH,
                "rubrics": [HEALTH["rubrics"][0], {"criterion": "x", "points": 1, "tags": [""]}],
            },  # type: ignore[index]
            "item 2: an entry of tags is empty",
        ),
        (
            "healthbench",
            {**HEALTH, "rubrics": [{"criterion": "x", "points": 1e-9, "tags": []}]},
            "item 1: weight must be 0, or between",
        ),
        (
            "healthbench",
            {**HEALTH, "rubrics": [{"criterion": "x", "points": 1, "tags": ["axis:"]}]},
            "item 1: group is empty",
        ),
        ("infobench", {**INFO, "question_label": [["Format"], [""]]}, "item 2: an entry of tags"),
        (
            "writingbench",
            {**WRITING, "checklist": [{**WRITING["checklist"][0], "1-2": "Band 3-4."}]},  # type: ignore[index,dict-item]
            "item 1: two levels have the same description",
        ),
    ],
)
def test_wrong_items_are_named_when_they_are_read(
    tmp_path: Path, kind: str, row: dict[str, Any], part: str
) -> None:
    """What no checklist can hold is a mistake of the file, with row and item."""
    benchmark = reader(tmp_path, kind, row)
    with pytest.raises(BenchmarkError, match=f"rubrics.jsonl.*1, {part}"):
        list(benchmark.checklists())

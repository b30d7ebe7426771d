"""Results of promptfoo: `promptfoo/` was written by promptfoo 0.121 with its echo provider."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from rocketeval.benchmarks.base import check_benchmark
from rocketeval.benchmarks.messages import RowError
from rocketeval.benchmarks.promptfoo import PromptfooResults, read_assertion
from rocketeval.checks.runner import CheckSettings
from rocketeval.config import BenchmarkConfig
from rocketeval.errors import BenchmarkError

FOLDER = Path(__file__).parent / "promptfoo"


def results(path: Path) -> PromptfooResults:
    """Return the reader of a results file."""
    return PromptfooResults.create(BenchmarkConfig(kind="promptfoo", path=path))


@pytest.mark.parametrize("name", ["results.json", "results.jsonl"])
def test_real_results_are_read(name: str) -> None:
    """Tests are queries, prompts are candidates, and assertions are items."""
    benchmark = results(FOLDER / name)
    check_benchmark(benchmark)
    queries = list(benchmark.queries())
    assert [(query.id, query.text) for query in queries] == [
        ("test-0", "capital of France?"),
        ("test-1", "2+2?"),
    ]
    responses = list(benchmark.responses())
    assert len(responses) == 4
    assert len({response.candidate for response in responses}) == 2
    first, second = benchmark.checklists()
    calls = [detail.check for detail in first.every_detail]
    assert [(call.fn, dict(call.args)) for call in calls if call] == [
        ("contains", {"text": "France", "ignore_case": True}),
        ("contains", {"text": "Berlin", "negate": True}),
        ("regex", {"pattern": "capital\\s+of"}),
        ("json_schema", {"schema": {"type": "object"}}),
        ("contains_all", {"texts": ["capital", "France"]}),
    ]
    assert first.every_detail[0].weight == 2.0
    assert first.groups is not None
    assert first.groups[0] == "names"
    assert len(second.items) == 1
    for call in calls:
        assert call is not None
        CheckSettings().bind(call)


def test_assertions_that_run_code_are_left_out_and_counted() -> None:
    """JavaScript and latency are no items; both are reported."""
    notes = results(FOLDER / "results.json").summary.notes
    for kind in ("javascript", "latency"):
        assert notes[f"an assertion of type {kind} is not used"].count >= 1


@pytest.mark.parametrize(
    ("given", "weights"),
    [
        ({"type": "llm-rubric", "value": "Names Paris", "weight": 2}, [2.0]),
        ({"type": "not-llm-rubric", "value": "Is rude"}, [-1.0]),
        ({"type": "g-eval", "value": ["Is short", "Is right"], "weight": 3}, [1.5, 1.5]),
        (
            {
                "type": "assert-set",
                "weight": 4,
                "assert": [
                    {"type": "contains", "value": "a", "weight": 3},
                    {"type": "contains", "value": "b"},
                ],
            },
            [3.0, 1.0],
        ),
    ],
)
def test_weights(given: dict[str, Any], weights: list[float]) -> None:
    """Weights of assertions, lists and sets reach the items; `not-` makes a penalty."""
    items = [item for item, _ in read_assertion(given, "here")]
    assert [item.detail.weight for item in items if item] == weights


@pytest.mark.parametrize("weight", ["2x", None, "a", True, 1e-9, float("nan"), 10**400])
@pytest.mark.parametrize("inner", [False, True])
def test_wrong_weights_are_one_kind_of_mistake(weight: object, inner: bool) -> None:
    """A wrong weight is a mistake whose kind all rows share."""
    given: dict[str, Any] = {"type": "contains", "value": "a", "weight": weight}
    if inner:
        given = {"type": "assert-set", "assert": [given]}
    with pytest.raises(RowError) as caught:
        list(read_assertion(given, "row 7, assertion 2"))
    assert caught.value.kind == "the weight of an assertion is wrong"
    assert caught.value.detail.startswith("row 7, assertion 2: weight must be")


@pytest.mark.parametrize(
    "given",
    [
        {"type": "is-json", "value": {"properties": {1: {}}}},
        {"type": "contains-all", "value": "a,,b"},
        {"type": "contains-any", "value": ["a", ""]},
        {"type": "word-count", "value": 10**30},
    ],
)
def test_what_cannot_be_an_item_is_left_out(given: dict[str, Any]) -> None:
    """An assertion that no checklist can hold is no item."""
    assert list(read_assertion(given, "here")) == [(None, given["type"])]


def test_many_wrong_rows_are_counted(tmp_path: Path) -> None:
    """Thirty rows with the same mistake are ten lines and a count."""
    file = json.loads((FOLDER / "results.json").read_text())
    row = file["results"]["results"][0]
    rows = [
        {
            **row,
            "testIdx": n,
            "testCase": {"assert": [{"type": "contains", "value": "a", "weight": None}]},
        }
        for n in range(30)
    ]
    file["results"]["results"] = rows
    (tmp_path / "results.json").write_text(json.dumps(file))
    with pytest.raises(BenchmarkError) as caught:
        list(results(tmp_path / "results.json").queries())
    assert "30" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 20


def test_other_files_are_refused(tmp_path: Path) -> None:
    """A file that promptfoo did not write is named."""
    (tmp_path / "x.json").write_text("[]")
    with pytest.raises(BenchmarkError, match="results"):
        list(results(tmp_path / "x.json").queries())

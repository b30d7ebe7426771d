"""Reference answers to items: compared with the run's answers, with bad rows named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rocketeval
from rocketeval.audit.item_gold import ItemGold
from rocketeval.engines.scripted import ScriptedEngine
from rocketeval.errors import BenchmarkError, ConfigError
from rocketeval.pipeline import Run
from support.make import CANDIDATES, QUERIES, as_json, make_config, write_jsonl

ITEMS = ["Is it right?", "Is it clear?"]


def p_yes(prefix: str, suffix: str) -> float:
    """Return yes for the first item, and for both items for `left`."""
    return 0.9 if "left" in prefix or "right?" in suffix else 0.2


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Return a finished run of three queries, two candidates and two items."""
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine(p_yes))
    return Run(config)


def gold(*, left: list[Any], right: list[Any], **more: Any) -> list[dict[str, Any]]:
    """Return the same reference answers for every query."""
    given = {"left": left, "right": right}
    return [
        {"query_id": q, "candidate": c, "answers": given[c], **more}
        for q in QUERIES
        for c in CANDIDATES
    ]


def test_figures_match_the_answers(run: Run, tmp_path: Path) -> None:
    """The second yes of `left` is wrong; an item without a reference does not count."""
    path = tmp_path / "gold.jsonl"
    write_jsonl(path, gold(left=[True, False], right=[None, False]))
    found = run.hold_against_item_gold(path)
    figures = found.calibration
    assert (found.responses, found.unjudged, found.unknown) == (6, 0, 0)
    assert (figures.items, figures.missing, figures.gold_yes, figures.gold_no) == (9, 0, 3, 6)
    assert figures.yes_bias is not None
    assert figures.yes_bias.value == pytest.approx(1 / 3)
    assert figures.false_yes is not None
    assert figures.false_yes.value == pytest.approx(0.5)
    assert figures.false_no is not None
    assert figures.false_no.value == 0.0
    assert figures.auc is not None
    assert figures.auc.value == pytest.approx(0.75)
    assert figures.brier is not None
    assert figures.brier.value == pytest.approx((0.01 + 0.81 + 0.04) / 3)
    low, high = figures.by_width.bins
    assert (low.items, high.items) == (3, 6)
    assert (low.mean_p, high.mean_p) == (pytest.approx(0.2), pytest.approx(0.9))
    assert (low.gold.value, high.gold.value) == (0.0, 0.5)
    assert figures.by_width.error == pytest.approx((3 * 0.2 + 6 * 0.4) / 9)
    kept = json.loads((run.store.path / "item_gold.json").read_text())
    assert kept["calibration"]["yes_bias"]["value"] == pytest.approx(1 / 3)
    assert kept["advice"] == list(found.advice)
    assert as_json(run.store.read(ItemGold)) == as_json(found)
    run.score()
    assert not (run.store.path / "item_gold.json").exists()


def test_rows_may_have_items_and_be_a_json_array(run: Run, tmp_path: Path) -> None:
    """The same items are accepted; JSON lines and one list give the same."""
    rows = gold(left=[True, True], right=[True, False], items=ITEMS)
    lines, array = tmp_path / "gold.jsonl", tmp_path / "gold.json"
    write_jsonl(lines, rows)
    array.write_text(json.dumps(rows))
    found = run.hold_against_item_gold(lines)
    assert found == run.hold_against_item_gold(array)
    assert found.calibration.yes_bias is not None
    assert found.calibration.yes_bias.value == 0.0


def test_unknown_and_unjudged_responses_are_counted(tmp_path: Path) -> None:
    """Rows for unknown responses and responses without a judgment are counted."""
    config = make_config(tmp_path)
    rocketeval.run(config, judge=ScriptedEngine(p_yes, fail_on="left explains the sea"))
    rows = gold(left=[True, True], right=[True, False])
    rows.append({"query_id": "sky", "candidate": "nobody", "answers": [True]})
    write_jsonl(tmp_path / "gold.jsonl", rows)
    found = Run(config).hold_against_item_gold(tmp_path / "gold.jsonl")
    assert (found.responses, found.unjudged, found.unknown) == (5, 1, 1)
    assert found.calibration.items == 10


def test_all_null_reference_gives_a_reason(run: Run, tmp_path: Path) -> None:
    """There is no figure, and the advice says why."""
    write_jsonl(tmp_path / "gold.jsonl", gold(left=[None, None], right=[None, None]))
    found = run.hold_against_item_gold(tmp_path / "gold.jsonl")
    assert (found.calibration.items, found.calibration.brier) == (0, None)
    (sentence,) = found.advice
    assert "no item has both" in sentence


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ({"candidate": "left", "answers": [True, True]}, "the field 'query_id' is missing"),
        ({"query_id": "sky", "answers": [True, True]}, "the field 'candidate' is missing"),
        ({"query_id": " ", "candidate": "left", "answers": []}, "the field 'query_id' is empty"),
        ({"query_id": "sky", "candidate": "left"}, "the field 'answers' is missing"),
        ({"query_id": "sky", "candidate": "left", "answers": "yes"}, "should be a list"),
        ({"query_id": "sky", "candidate": "left", "answers": [1, 0]}, "true, false or null"),
        ({"query_id": "sky", "candidate": "left", "answers": ["Yes", "No"]}, "true, false or null"),
        (
            {"query_id": "sky", "candidate": "left", "answers": [True]},
            "1 answers for a checklist of 2 items",
        ),
        (
            {
                "query_id": "sky",
                "candidate": "left",
                "answers": [True, True],
                "items": ITEMS[::-1],
            },
            "`items` differs from the run's checklist",
        ),
        (["sky", "left"], "gold.jsonl:2"),
    ],
)
def test_bad_row_is_named_by_its_line(run: Run, tmp_path: Path, row: Any, expected: str) -> None:
    """The bad row follows a good one, so the line is the second."""
    good = {"query_id": "sun", "candidate": "left", "answers": [True, True]}
    write_jsonl(tmp_path / "gold.jsonl", [good, row])
    with pytest.raises(BenchmarkError) as caught:
        run.hold_against_item_gold(tmp_path / "gold.jsonl")
    assert expected in str(caught.value)
    assert "gold.jsonl:2" in str(caught.value)
    assert not (run.store.path / "item_gold.json").exists()


def test_duplicate_response_is_refused(run: Run, tmp_path: Path) -> None:
    """Its items would count twice."""
    row = {"query_id": "sky", "candidate": "left", "answers": [True, True]}
    write_jsonl(tmp_path / "gold.jsonl", [row, row])
    with pytest.raises(BenchmarkError, match=r"gold\.jsonl:2: duplicate .*'sky', candidate 'left'"):
        run.hold_against_item_gold(tmp_path / "gold.jsonl")


def test_file_without_matching_rows_is_refused(run: Run, tmp_path: Path) -> None:
    """A file with nothing to compare raises an error."""
    row = {"query_id": "moon", "candidate": "left", "answers": [True]}
    write_jsonl(tmp_path / "gold.jsonl", [row])
    with pytest.raises(BenchmarkError, match="has no row for a response judged"):
        run.hold_against_item_gold(tmp_path / "gold.jsonl")
    with pytest.raises(BenchmarkError, match="Cannot read"):
        run.hold_against_item_gold(tmp_path / "absent.jsonl")


def test_grading_methods_are_refused(tmp_path: Path) -> None:
    """A method without yes and no is refused before the file is read."""
    run = Run(make_config(tmp_path, method={"kind": "direct"}))
    with pytest.raises(ConfigError, match="'direct' does not answer with yes or no"):
        run.hold_against_item_gold(tmp_path / "absent.jsonl")
